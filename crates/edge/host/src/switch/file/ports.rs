//! The section `[ports]`: which frames of their links the ports take.

use super::replication::mac_address;
use super::{SwitchFile, SwitchFileCause, SwitchFileError};
use crate::ports::MacAddress;
use serde::Deserialize;
use stateplane_switch::Port;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Which ports are routed and which are promiscuous. A port that `[neighbours]` or
/// `[replication]` gives a MAC address is routed unless it is named here; all others are
/// promiscuous.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortsFile {
    /// Ports that take the frames to their own MAC addresses, to groups and to all.
    #[serde(default)]
    pub routed: Vec<Port>,
    /// Ports that take every frame of their links.
    #[serde(default)]
    pub promiscuous: Vec<Port>,
    /// Addresses of the switch that are told to neighbours who ask (ARP, neighbour solicitations),
    /// beside those of `[replication]`, `[coordination]` and `[sync]`, which are told without being
    /// named; none unless set.
    #[serde(default)]
    pub addresses: Vec<PortAddressFile>,
}

/// An address of the switch at a port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortAddressFile {
    /// The port.
    pub port: Port,
    /// The IPv4 or IPv6 address.
    pub address: IpAddr,
    /// The MAC address there; that of the port's interface unless set.
    pub mac: Option<String>,
}

impl PortsFile {
    /// Refuses ports that are named as both, and those that are not among `ports`.
    pub(super) fn check(&self, ports: &[Port]) -> Result<(), SwitchFileCause> {
        if let Some(port) = self.routed.iter().find(|it| self.promiscuous.contains(it)) {
            return Err(SwitchFileCause::RoutedAndPromiscuous(*port));
        }
        let with_addresses = self.addresses.iter().map(|it| &it.port);
        let mut named = self
            .routed
            .iter()
            .chain(&self.promiscuous)
            .chain(with_addresses);
        match named.find(|port| !ports.contains(port)) {
            Some(port) => Err(SwitchFileCause::NoSuchPort(*port)),
            None => Ok(()),
        }
    }
}

impl SwitchFile {
    /// The routed ports, each with the MAC addresses that the file gives the switch there. The
    /// address of the port's interface is one of them without being named.
    ///
    /// # Errors
    ///
    /// [`SwitchFileError`] for a text that is no MAC address.
    pub fn routed_ports(&self) -> Result<BTreeMap<Port, Vec<MacAddress>>, SwitchFileError> {
        let neighbours = self.neighbours.iter().flat_map(|it| &it.list);
        let neighbours = neighbours.map(|it| (it.get_ref().port, &it.get_ref().source_mac));
        let replication = self.replication.iter().map(|it| it.get_ref());
        let replication = replication.map(|it| (it.port, &it.mac));
        let mut routed = BTreeMap::<Port, Vec<MacAddress>>::new();
        for (port, text) in neighbours.chain(replication) {
            let mac =
                mac_address(text).map_err(|cause| SwitchFileError::new(&self.path, None, cause))?;
            let macs = routed.entry(port).or_default();
            if !macs.contains(&mac) {
                macs.push(mac);
            }
        }
        if let Some(ports) = &self.ports {
            for port in &ports.get_ref().routed {
                routed.entry(*port).or_default();
            }
            routed.retain(|port, _| !ports.get_ref().promiscuous.contains(port));
        }
        Ok(routed)
    }
}

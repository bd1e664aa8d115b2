//! The section `[replication]`: what the replication library needs of this switch.

use super::{ChainServerFile, SwitchFileCause};
use crate::store::FirstLeaseFile;
use serde::Deserialize;
use stateplane_runtime::parse_value;
use stateplane_setup::{Chain, Hold, Probe, Replication, Server};
use stateplane_switch::Port;
use std::net::Ipv4Addr;

/// This switch's part in replication ([`Replication`]): its identity, its port towards the
/// store, and its timing. Mirror sessions, generator and watch follow from it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicationFile {
    /// Number of the switch, from 1, which no other switch of the store has.
    pub switch: u32,
    /// IPv4 address at which the store reaches the switch.
    pub address: Ipv4Addr,
    /// MAC address of the switch towards the store.
    pub mac: String,
    /// Port towards the store.
    pub port: Port,
    /// Data ports that go down while the store is silent; none unless set.
    #[serde(default)]
    pub links: Vec<Port>,
    /// Heads of chains: the chain of shard n begins at number n modulo their count. None
    /// where a controller names the chains (`[chains]`).
    #[serde(default)]
    pub heads: Vec<ChainServerFile>,
    /// Shards of the store; needed with `heads`.
    #[serde(default)]
    pub shards: u16,
    /// Number of the chains' configuration, as the store's file has it; 1 unless set.
    #[serde(default = "first_epoch")]
    pub chain_epoch: u32,
    /// Bytes of the longest IP packet on the path to the store; 1500 unless set.
    #[serde(default = "ethernet_mtu")]
    pub mtu: u16,
    /// Classes of the program's flows whose first leases the switch compares with the store's; none
    /// unless set.
    #[serde(default)]
    pub classes: Vec<ReplicationClassFile>,
    /// ms before a request is first sent again; 20 unless set.
    pub hold_ms: Option<u64>,
    /// Most ms before a request is sent again; 500 unless set.
    pub longest_hold_ms: Option<u64>,
    /// ms between probes of the store; 250 unless set.
    pub probe_ms: Option<u64>,
    /// ms without an answer after which `links` go down; 1000 unless set.
    pub silence_ms: Option<u64>,
}

/// A class of flows, as the program expects it of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicationClassFile {
    /// Byte 0 of the class's keys.
    pub id: u8,
    /// Source of the state that a flow's first lease request gets.
    pub first_lease: FirstLeaseFile,
}

fn first_epoch() -> u32 {
    1
}

fn ethernet_mtu() -> u16 {
    1500
}

impl ReplicationFile {
    /// The section's contents, checked.
    pub(super) fn replication(&self) -> Result<Replication, SwitchFileCause> {
        if self.switch == 0 {
            return Err(SwitchFileCause::SwitchZero);
        }
        if !self.heads.is_empty() && self.shards == 0 {
            return Err(SwitchFileCause::NoShards);
        }
        let mut heads = Vec::new();
        for ChainServerFile { address, mac } in &self.heads {
            heads.push(Server {
                address: *address,
                mac: mac_address(mac)?,
            });
        }
        let chains = heads.iter().cycle().take(match heads.len() {
            0 => 0,
            _ => self.shards.into(),
        });
        let us = |ms: Option<u64>, otherwise| ms.map_or(otherwise, |ms| ms.saturating_mul(1000));
        let (hold, probe) = (Hold::default(), Probe::default());
        Ok(Replication {
            switch: self.switch,
            address: self.address,
            mac: mac_address(&self.mac)?,
            port: self.port,
            chains: chains
                .map(|&head| Chain {
                    head,
                    epoch: self.chain_epoch,
                    mtu: self.mtu,
                })
                .collect(),
            hold: Hold {
                first_us: us(self.hold_ms, hold.first_us),
                longest_us: us(self.longest_hold_ms, hold.longest_us),
            },
            probe: Probe {
                period_us: us(self.probe_ms, probe.period_us),
                silence_us: us(self.silence_ms, probe.silence_us),
                ports: self.links.clone(),
                ..probe
            },
        })
    }
}

/// A MAC address from its text.
pub(super) fn mac_address(text: &str) -> Result<[u8; 6], SwitchFileCause> {
    let bytes = parse_value(text)?.to_bytes_be();
    let mut mac = [0; 6];
    let start = mac.len().checked_sub(bytes.len());
    let start = start.ok_or_else(|| SwitchFileCause::Mac(text.chars().take(80).collect()))?;
    mac[start..].copy_from_slice(&bytes);
    Ok(mac)
}

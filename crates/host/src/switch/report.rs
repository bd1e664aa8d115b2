//! What a switch did, as data.

use crate::ports::{HostPortCounters, PortMode};
use serde::Serialize;
use stateplane_switch::{Counters, Occupancy, Port};
use std::collections::BTreeMap;

/// Counts of a switch since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SwitchReport {
    /// Its ports, ascending.
    pub ports: Vec<PortReport>,
    /// Packets in all.
    pub packets: PacketReport,
    /// Packets dropped by the switch, by reason
    /// ([`DropReason`](stateplane_switch::DropReason)); reasons that never occurred
    /// are left out.
    pub drops: BTreeMap<&'static str, u64>,
    /// Times that an interface could not be set up or down as a watch asked.
    pub port_state_failed: u64,
}

/// Counts of one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortReport {
    /// Its number.
    pub port: Port,
    /// Its interface.
    pub interface: String,
    /// How its frames are had.
    pub mode: PortMode,
    /// Whether frames pass: the link is up and the watches agree.
    pub up: bool,
    /// Frames given to the program.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames that the switch sent.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// What happened between the wire and the switch.
    pub host: HostPortCounters,
}

/// Counts of packets ([`Counters`]) and packets inside ([`Occupancy`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PacketReport {
    /// Frames that came to the switch.
    pub received: u64,
    /// Frames that left it.
    pub transmitted: u64,
    /// Frames injected by packet generators.
    pub generated: u64,
    /// Clones made by ingress.
    pub ingress_clones: u64,
    /// Clones made by egress.
    pub egress_clones: u64,
    /// Multicast copies.
    pub replicas: u64,
    /// Recirculations.
    pub recirculated: u64,
    /// Resubmissions.
    pub resubmitted: u64,
    /// Copies that mirror sessions hold at the moment.
    pub held: u64,
}

impl PacketReport {
    pub(crate) fn new(counters: &Counters, occupancy: Occupancy) -> PacketReport {
        PacketReport {
            received: counters.received,
            transmitted: counters.transmitted,
            generated: counters.generated,
            ingress_clones: counters.ingress_clones,
            egress_clones: counters.egress_clones,
            replicas: counters.replicas,
            recirculated: counters.recirculated,
            resubmitted: counters.resubmitted,
            held: occupancy.held,
        }
    }
}

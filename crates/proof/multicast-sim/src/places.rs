//! Nodes and their addresses. Each node has one port, which faces a network that joins all.

use crate::scenario::Scenario;
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_multicast_store::STORE_PORT;
use stateplane_wire::multicast;
use stateplane_world::{NodePort, NodeSpec, Topology};

/// Number of switches.
pub(crate) const SWITCHES: usize = 6;
/// Port of a switch that faces the network.
pub(crate) const NETWORK_PORT: u16 = 0;
/// Port of a switch whose egress held copies pass.
pub(crate) const HOLD_PORT: u16 = 1;

/// Address of a switch.
pub(crate) fn switch_address(switch: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, switch as u8 + 1)
}

/// Address and UDP port at which a switch listens.
pub(crate) fn switch_socket(switch: usize) -> SocketAddrV4 {
    SocketAddrV4::new(switch_address(switch), multicast::PORT)
}

/// Address and UDP port of the authority.
pub(crate) const AUTHORITY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 2, 1), 5000);

/// A node of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    Switch(usize),
    Authority,
    Receiver(usize),
    Sender(usize),
}

/// Nodes by number: switches, the authority, receivers, senders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// Receivers of all groups, those that wait to join among them.
    pub(crate) receivers: usize,
    pub(crate) senders: usize,
    groups: usize,
}

impl Places {
    pub(crate) const AUTHORITY: usize = SWITCHES;

    pub(crate) fn new(scenario: &Scenario) -> Self {
        let groups = usize::from(scenario.groups);
        Self {
            receivers: groups * usize::from(scenario.receivers + scenario.spares),
            senders: scenario.senders.into(),
            groups,
        }
    }

    pub(crate) fn party(&self, node: usize) -> Party {
        let hosts = SWITCHES + 1;
        match node {
            0..SWITCHES => Party::Switch(node),
            SWITCHES => Party::Authority,
            _ if node < hosts + self.receivers => Party::Receiver(node - hosts),
            _ => Party::Sender(node - hosts - self.receivers),
        }
    }

    pub(crate) fn receiver(receiver: usize) -> usize {
        SWITCHES + 1 + receiver
    }

    pub(crate) fn sender(&self, sender: usize) -> usize {
        SWITCHES + 1 + self.receivers + sender
    }

    /// Nodes that are receivers or senders.
    pub(crate) fn hosts(&self) -> core::ops::Range<usize> {
        SWITCHES + 1..self.count()
    }

    /// The group of a receiver.
    pub(crate) fn group_of(&self, receiver: usize) -> u8 {
        (receiver % self.groups) as u8
    }

    /// Receivers of a group.
    pub(crate) fn receivers_of(&self, group: u8) -> impl Iterator<Item = usize> + use<> {
        (usize::from(group)..self.receivers).step_by(self.groups)
    }

    pub(crate) fn receiver_address(receiver: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 1, receiver as u8 + 1)
    }

    pub(crate) fn sender_socket(sender: usize) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(10, 0, 3, sender as u8 + 1), 5000)
    }

    /// The node at an address.
    pub(crate) fn at(&self, address: Ipv4Addr) -> Option<usize> {
        let [10, 0, kind, last] = address.octets() else {
            return None;
        };
        let place = usize::from(last).checked_sub(1)?;
        match kind {
            0 if place < SWITCHES => Some(place),
            1 if place < self.receivers => Some(Self::receiver(place)),
            2 if place == 0 => Some(Self::AUTHORITY),
            3 if place < self.senders => Some(self.sender(place)),
            _ => None,
        }
    }

    /// Addresses of all nodes.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> {
        let receivers = (0..self.receivers).map(Self::receiver_address);
        let senders = (0..self.senders).map(|sender| *Self::sender_socket(sender).ip());
        let switches = (0..SWITCHES).map(switch_address);
        switches
            .chain([*AUTHORITY.ip()])
            .chain(receivers)
            .chain(senders)
    }

    fn count(&self) -> usize {
        SWITCHES + 1 + self.receivers + self.senders
    }

    pub(crate) fn topology(&self, scenario: &Scenario) -> Topology {
        let mut topology = Topology::default();
        for _ in 0..self.count() {
            topology.add_node(NodeSpec::default());
        }
        for one in 0..self.count() {
            for other in one + 1..self.count() {
                let quality = match (self.party(one), self.party(other)) {
                    (Party::Switch(_), Party::Switch(_)) => scenario.link,
                    (Party::Authority, _) | (_, Party::Authority) => scenario.control_link,
                    _ => scenario.host_link,
                };
                topology.join(port(one), port(other), quality);
            }
        }
        topology
    }
}

/// Socket of a replica or a client of the store at a host.
pub(crate) fn store_socket(host: Ipv4Addr) -> SocketAddrV4 {
    SocketAddrV4::new(host, STORE_PORT)
}

/// The port of a node that faces the network.
pub(crate) fn port(node: usize) -> NodePort {
    NodePort::new(node, NETWORK_PORT)
}

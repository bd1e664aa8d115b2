//! Addresses, nodes and ports: the test bed of NetChain's Fig. 8, four switches of which S0, S1
//! and S2 are in a line and S3 is joined to S0 and S2.

use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_wire::{control, coordination};
use stateplane_world::{NodePort, NodeSpec, Topology};
use std::collections::{BTreeSet, VecDeque};

use crate::scenario::Scenario;

/// Number of switches.
pub(crate) const SWITCHES: usize = 4;
/// Ports of a switch that face others.
pub(crate) const LINK_PORTS: u16 = 2;
/// Port of a switch that faces the controller.
pub(crate) const CONTROLLER_PORT: u16 = 20;
/// First port of a switch that faces clients.
const FIRST_CLIENT_PORT: u16 = 30;
/// Links between switches: place and port of each end.
const LINKS: [((usize, u16), (usize, u16)); 4] = [
    ((0, 0), (1, 0)),
    ((1, 1), (2, 0)),
    ((0, 1), (3, 0)),
    ((2, 1), (3, 1)),
];
/// Switches at which clients are.
const HOSTS: [usize; 2] = [0, 2];

/// Address of a switch.
pub(crate) fn switch_address(switch: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, switch as u8 + 1)
}

/// Place of the switch at an address.
pub(crate) fn switch_at(address: Ipv4Addr) -> Option<usize> {
    (0..SWITCHES).find(|switch| switch_address(*switch) == address)
}

/// Ethernet address of a switch.
pub(crate) fn mac(switch: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, switch as u8 + 1]
}

/// Address at which the controller listens.
pub(crate) const CONTROLLER: SocketAddrV4 =
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 2, 1), control::PORT);

/// Address at which a client listens.
pub(crate) fn client_address(client: usize) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 1, client as u8 + 1), 5000)
}

/// Address at which a switch listens.
pub(crate) fn switch_socket(switch: usize) -> SocketAddrV4 {
    SocketAddrV4::new(switch_address(switch), coordination::PORT)
}

/// A node of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    Switch(usize),
    Controller,
    Client(usize),
}

/// Nodes by number: switches, the controller, clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) clients: usize,
}

impl Places {
    pub(crate) fn party(node: usize) -> Party {
        match node {
            0..SWITCHES => Party::Switch(node),
            SWITCHES => Party::Controller,
            _ => Party::Client(node - SWITCHES - 1),
        }
    }

    pub(crate) const CONTROLLER: usize = SWITCHES;

    pub(crate) fn client(client: usize) -> usize {
        SWITCHES + 1 + client
    }

    pub(crate) fn client_port(client: usize) -> u16 {
        FIRST_CLIENT_PORT + client as u16
    }

    /// The switch at which a client is.
    fn host_of(client: usize) -> usize {
        HOSTS[client % HOSTS.len()]
    }

    /// Addresses of switches, the controller and clients.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> {
        let switches = (0..SWITCHES).map(switch_address);
        let clients = (0..self.clients).map(|client| *client_address(client).ip());
        switches.chain([*CONTROLLER.ip()]).chain(clients)
    }

    pub(crate) fn topology(&self, scenario: &Scenario) -> Topology {
        let mut topology = Topology::default();
        for _ in 0..SWITCHES + 1 + self.clients {
            topology.add_node(NodeSpec::default());
        }
        for ((one, first), (other, second)) in LINKS {
            let ends = (NodePort::new(one, first), NodePort::new(other, second));
            topology.join(ends.0, ends.1, scenario.link);
        }
        for switch in 0..SWITCHES {
            let own = NodePort::new(switch, CONTROLLER_PORT);
            let peer = NodePort::new(Self::CONTROLLER, switch as u16);
            topology.join(own, peer, scenario.control_link);
        }
        for client in 0..self.clients {
            let own = NodePort::new(Self::client(client), 0);
            let host = NodePort::new(Self::host_of(client), Self::client_port(client));
            topology.join(own, host, scenario.host_link);
            // The way to the controller besides: clients ask it for chains.
            let own = NodePort::new(Self::client(client), 1);
            let peer = NodePort::new(Self::CONTROLLER, Self::client_port(client));
            topology.join(own, peer, scenario.control_link);
        }
        topology
    }

    /// The links that may be cut, each way.
    pub(crate) fn ways(&self) -> Vec<(NodePort, NodePort)> {
        let mut ways = Vec::new();
        for ((one, first), (other, second)) in LINKS {
            ways.push((NodePort::new(one, first), NodePort::new(other, second)));
        }
        for switch in 0..SWITCHES {
            let own = NodePort::new(switch, CONTROLLER_PORT);
            ways.push((own, NodePort::new(Self::CONTROLLER, switch as u16)));
        }
        for client in 0..self.clients {
            let host = NodePort::new(Self::host_of(client), Self::client_port(client));
            ways.push((NodePort::new(Self::client(client), 0), host));
        }
        let back: Vec<_> = ways.iter().map(|(one, other)| (*other, *one)).collect();
        ways.extend(back);
        ways
    }

    /// The port by which a switch reaches each address over those that live; none if it does
    /// not.
    pub(crate) fn routes(&self, from: usize, lives: &[bool]) -> Vec<(Ipv4Addr, u16)> {
        // First port of a shortest way to each switch.
        let mut first: [Option<u16>; SWITCHES] = [None; SWITCHES];
        let mut seen = BTreeSet::from([from]);
        let mut open = VecDeque::from([from]);
        while let Some(at) = open.pop_front() {
            for ((one, first_port), (other, second_port)) in LINKS {
                let ways = [(one, first_port, other), (other, second_port, one)];
                for (end, port, next) in ways {
                    if end == at && lives[next] && seen.insert(next) {
                        first[next] = first[at].or(Some(port));
                        open.push_back(next);
                    }
                }
            }
        }
        let mut routes = vec![(*CONTROLLER.ip(), CONTROLLER_PORT)];
        for (switch, port) in first.iter().enumerate() {
            routes.extend(port.map(|port| (switch_address(switch), port)));
        }
        for client in 0..self.clients {
            let host = Self::host_of(client);
            let port = if host == from {
                Some(Self::client_port(client))
            } else {
                first[host]
            };
            routes.extend(port.map(|port| (*client_address(client).ip(), port)));
        }
        routes
    }
}

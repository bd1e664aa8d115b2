//! The simulated network as a topology, and the place of each party in it.

use crate::frame::{INSIDE_PORT, OUTSIDE_PORT, STORE_PORT};
use crate::plan::Node;
use crate::scenario::Scenario;
use core::net::SocketAddrV4;
use stateplane_world::{NodePort, NodeSpec, Topology};
use std::collections::BTreeSet;

/// Frames that wait before a switch; more are lost, as in a real ring.
const RING: usize = 512;

/// Port of a store server for requests of switches.
pub(crate) const REQUESTS: u16 = 0;
/// Port of a store server for its neighbours and the controller.
pub(crate) const LINKS: u16 = 1;
/// Port of the controller.
pub(crate) const CONTROL: u16 = 2;
/// Port of a switch's agent, which asks the controller where heads are.
const ROWS: u16 = 3;
/// Port of the hosts.
const HOSTS: u16 = 4;

/// A message under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Message {
    /// To a switch.
    Frame(Vec<u8>),
    /// Between store servers and controller, and to them.
    Datagram { from: SocketAddrV4, bytes: Vec<u8> },
    /// To a host.
    Packet { number: u64, frame: Vec<u8> },
}

/// A party, by its number among those of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    Switch(usize),
    Store(usize),
    Controller,
    /// The process beside a switch that asks the controller where heads are.
    Agent(usize),
    Hosts,
}

/// Numbers of all parties: switches, store servers, controller, agents, hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) switches: usize,
    pub(crate) stores: usize,
}

impl Places {
    /// The parties of a scenario.
    pub(crate) fn of(scenario: &Scenario) -> Self {
        Self {
            switches: scenario.switches.into(),
            stores: scenario
                .cluster
                .map_or(scenario.replicas, |c| c.stores)
                .into(),
        }
    }

    pub(crate) const fn switch(self, switch: usize) -> usize {
        switch
    }

    pub(crate) const fn store(self, store: usize) -> usize {
        self.switches + store
    }

    pub(crate) const fn controller(self) -> usize {
        self.store(self.stores)
    }

    const fn agent(self, switch: usize) -> usize {
        self.controller() + 1 + switch
    }

    const fn hosts(self) -> usize {
        self.agent(self.switches)
    }

    /// The party that is node `node` of the topology.
    pub(crate) fn party(self, node: usize) -> Party {
        if node < self.switches {
            Party::Switch(node)
        } else if node < self.controller() {
            Party::Store(node - self.switches)
        } else if node == self.controller() {
            Party::Controller
        } else if node < self.hosts() {
            Party::Agent(node - self.agent(0))
        } else {
            Party::Hosts
        }
    }

    pub(crate) const fn port(self, switch: usize, port: u16) -> NodePort {
        NodePort::new(self.switch(switch), port)
    }

    pub(crate) const fn requests(self, store: usize) -> NodePort {
        NodePort::new(self.store(store), REQUESTS)
    }

    /// The port by which a member of the cluster reaches the others.
    pub(crate) const fn cluster(self, node: Node) -> NodePort {
        match node {
            Node::Store(store) => NodePort::new(self.store(store), LINKS),
            Node::Controller => NodePort::new(self.controller(), CONTROL),
        }
    }

    pub(crate) const fn rows(self, switch: usize) -> NodePort {
        NodePort::new(self.agent(switch), ROWS)
    }

    pub(crate) const fn outside(self) -> NodePort {
        NodePort::new(self.hosts(), HOSTS)
    }

    /// Each switch has hosts at its data ports and all store servers at the port that faces
    /// the store; store servers and controller reach each other, agents the controller.
    pub(crate) fn topology(self, scenario: &Scenario, data_ports: &BTreeSet<u16>) -> Topology {
        let mut topology = Topology {
            nodes: vec![NodeSpec::default(); self.hosts() + 1],
            links: Vec::new(),
        };
        let controller = self.cluster(Node::Controller);
        for switch in 0..self.switches {
            topology.nodes[self.switch(switch)].ring = Some(RING);
            for &port in data_ports {
                let port = self.port(switch, port);
                topology.join(self.outside(), port, scenario.host_link);
            }
            for store in 0..self.stores {
                let port = self.port(switch, STORE_PORT);
                topology.join(port, self.requests(store), scenario.protocol_link);
            }
            topology.join(self.rows(switch), controller, scenario.chain_link);
        }
        for store in 0..self.stores {
            let links = self.cluster(Node::Store(store));
            for other in 0..store {
                let other = self.cluster(Node::Store(other));
                topology.join(other, links, scenario.chain_link);
            }
            topology.join(links, controller, scenario.chain_link);
        }
        topology
    }
}

/// Ports at which every switch has hosts.
pub(crate) fn host_ports() -> BTreeSet<u16> {
    BTreeSet::from([INSIDE_PORT, OUTSIDE_PORT])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_party_has_a_node_of_its_own() {
        let scenario = Scenario {
            switches: 3,
            ..Scenario::failing_stores()
        };
        let places = Places::of(&scenario);
        assert_eq!((places.switches, places.stores), (3, 3));
        let topology = places.topology(&scenario, &host_ports());
        let parties = (0..topology.nodes.len()).map(|node| places.party(node));
        let mut expected = Vec::new();
        expected.extend((0..places.switches).map(Party::Switch));
        expected.extend((0..places.stores).map(Party::Store));
        expected.push(Party::Controller);
        expected.extend((0..places.switches).map(Party::Agent));
        expected.push(Party::Hosts);
        assert_eq!(parties.collect::<Vec<_>>(), expected);
        let (switches, stores) = (places.switches, places.stores);
        // Hosts at two ports of a switch, each store server, and its agent at the controller.
        let of_switches = switches * (2 + stores + 1);
        let of_stores = stores * (stores - 1) / 2 + stores;
        assert_eq!(topology.links.len(), of_switches + of_stores);
    }
}

//! Nodes and links as data.

use crate::link::LinkQuality;
use serde::{Deserialize, Serialize};

/// A port of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodePort {
    /// Number of the node: its place in the topology.
    pub node: usize,
    /// Number of the port.
    pub port: u16,
}

impl NodePort {
    /// Port `port` of node `node`.
    pub const fn new(node: usize, port: u16) -> Self {
        Self { node, port }
    }
}

/// Properties of a node that its core does not decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// Greatest number of messages that wait in the ring before the node; more are lost. A
    /// node without a ring takes messages at once, or, while it stands still, at the end of the
    /// standstill.
    #[serde(default)]
    pub ring: Option<usize>,
    /// Time in µs that a node with a ring needs for one message.
    #[serde(default)]
    pub service: u64,
}

/// A link between two ports, the same in both directions. A port may have several links, as
/// one that faces a network has; its node then says to which of its peers a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The ports at its ends.
    pub ends: [NodePort; 2],
    /// Loss, duplication, reordering, delay.
    pub quality: LinkQuality,
}

/// Nodes, by number, and the links between their ports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// The nodes; the first is number 0.
    pub nodes: Vec<NodeSpec>,
    /// The links.
    #[serde(default)]
    pub links: Vec<Link>,
}

impl Topology {
    /// Adds a node and returns its number.
    pub fn add_node(&mut self, spec: NodeSpec) -> usize {
        self.nodes.push(spec);
        self.nodes.len() - 1
    }

    /// Joins two ports.
    pub fn join(&mut self, one: NodePort, other: NodePort, quality: LinkQuality) {
        self.links.push(Link {
            ends: [one, other],
            quality,
        });
    }

    /// A chain: port 1 of each of `count` nodes is joined to port 0 of the next.
    pub fn chain(count: usize, spec: NodeSpec, quality: LinkQuality) -> Self {
        let mut chain = Self {
            nodes: vec![spec; count],
            links: Vec::new(),
        };
        for node in 1..count {
            chain.join(NodePort::new(node - 1, 1), NodePort::new(node, 0), quality);
        }
        chain
    }

    /// Spines, the first nodes, each joined to each leaf: port *s* of a leaf to spine *s*,
    /// port *l* of a spine to leaf *l*.
    pub fn leaf_spine(spines: usize, leaves: usize, spec: NodeSpec, quality: LinkQuality) -> Self {
        let mut network = Self {
            nodes: vec![spec; spines + leaves],
            links: Vec::new(),
        };
        for spine in 0..spines {
            for leaf in 0..leaves {
                let up = NodePort::new(spines + leaf, spine as u16);
                network.join(NodePort::new(spine, leaf as u16), up, quality);
            }
        }
        network
    }
}

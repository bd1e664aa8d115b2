//! The tables of a topology file as written.

use super::{End, Link, Node, Process, Topology, Traffic};
use crate::address::{Mac, Prefix};
use crate::error::LabError;
use crate::scenario::scenarios;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::path::Path;

/// A topology file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Name of the network: 1 to 12 of `a-z`, `0-9`, `_`.
    name: String,
    /// True if each application of the list with a scenario is a variant.
    #[serde(default)]
    applications: bool,
    /// Values of each variant, such as which program the switches run. One that names an
    /// annotated program as `protects` has `stateplane protect` write `program` before
    /// anything starts; one that names a program as `synchronises` has `stateplane sync` write
    /// `program` of that, and `protect` write that if it names both.
    #[serde(default)]
    variant: BTreeMap<String, BTreeMap<String, String>>,
    /// The nodes, each a network namespace.
    #[serde(default)]
    node: Vec<Node>,
    /// The links.
    #[serde(default)]
    link: Vec<FileLink>,
    /// The processes, in the order in which they are started.
    #[serde(default)]
    process: Vec<Process>,
    /// The demonstration's traffic.
    traffic: Option<Traffic>,
}

/// A link: a veth pair.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLink {
    /// MTU of both ends, 576 to 65,535; 1500 unless set.
    #[serde(default = "ethernet_mtu")]
    mtu: u32,
    /// One end.
    a: FileEnd,
    /// The other end.
    b: FileEnd,
}

/// One end of a link.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEnd {
    /// The node.
    node: String,
    /// The interface's name in the node: 1 to 15 of `a-z`, `0-9`, `_`.
    interface: String,
    /// Address with the network's length. Every other end of the segment gets a permanent
    /// neighbour entry for it; a switch's interface does not get it in the kernel.
    address: Option<Prefix>,
    /// Ethernet address; `02:00:00:00:LL:EE` from the link's number, from 1, and the end's, 1 or
    /// 2, unless set.
    mac: Option<Mac>,
    /// True if a switch's interface gets the address in the kernel too: the switch's process
    /// reaches others through it, such as its controller.
    #[serde(default)]
    kernel: bool,
}

/// A text, or several.
pub(super) fn one_or_several<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Texts {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Texts::deserialize(from)? {
        Texts::One(text) => vec![text],
        Texts::Several(texts) => texts,
    })
}

fn ethernet_mtu() -> u32 {
    1500
}

impl FileEnd {
    fn end(self, link: usize, number: u8) -> End {
        let [.., high, low] = link.to_be_bytes();
        End {
            node: self.node,
            interface: self.interface,
            address: self.address,
            mac: self.mac.unwrap_or(Mac([2, 0, 0, high, low, number])),
            kernel: self.kernel,
        }
    }
}

pub(super) fn read(path: &Path, text: &str) -> Result<Topology, LabError> {
    let file: File = toml::from_str(text).map_err(|error| LabError::Syntax {
        path: path.to_path_buf(),
        reason: error.to_string(),
    })?;
    let links = file.link.into_iter().zip(1..);
    let mut variants = file.variant;
    if file.applications {
        for scenario in scenarios() {
            variants.insert(scenario.name.to_owned(), scenario.values());
        }
    }
    Ok(Topology {
        name: file.name,
        path: path.to_path_buf(),
        nodes: file.node,
        links: links
            .map(|(link, number)| Link {
                mtu: link.mtu,
                ends: [link.a.end(number, 1), link.b.end(number, 2)],
            })
            .collect(),
        processes: file.process,
        variants,
        traffic: file.traffic,
    })
}

//! The tables of a topology file as written.

use super::{End, Link, Node, Process, Topology, Traffic};
use crate::address::{Mac, Prefix};
use crate::error::LabError;
use crate::scenario::scenarios;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    /// True if each application of the list with a scenario is a variant.
    #[serde(default)]
    applications: bool,
    #[serde(default)]
    variant: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(default)]
    node: Vec<Node>,
    #[serde(default)]
    link: Vec<FileLink>,
    #[serde(default)]
    process: Vec<Process>,
    traffic: Option<Traffic>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLink {
    #[serde(default = "ethernet_mtu")]
    mtu: u32,
    a: FileEnd,
    b: FileEnd,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEnd {
    node: String,
    interface: String,
    address: Option<Prefix>,
    mac: Option<Mac>,
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

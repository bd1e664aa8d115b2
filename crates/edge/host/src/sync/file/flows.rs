//! Flows that an engine follows, as its TOML file says it.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use stateplane_observe::{MOST_ELEMENTS, Merge};
use stateplane_wire::replication::PORT;

use super::{GroupFile, SyncError};

/// Most sections of an engine.
const MOST_SECTIONS: usize = 64;

/// Most servers of a store.
const MOST_STORES: usize = 64;

/// Most flows that a section follows.
const MOST_FLOWS: usize = 1 << 24;

/// Flows that the chains of a store keep.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowsFile {
    /// Name by which clients call them, at most 64 bytes, which no group has.
    pub name: String,
    /// Addresses at which the store's servers take requests, of all of them, 1 to 64; port 4793
    /// where none is said.
    #[serde(deserialize_with = "addresses")]
    pub stores: Vec<SocketAddrV4>,
    /// Number under which the engine asks and takes leases, which no switch of the store has; from
    /// 1.
    pub switch: u32,
    /// Classes of the flows, the first bytes of their keys; all unless set.
    #[serde(default)]
    pub classes: Vec<u8>,
    /// µs between two questions to a chain, at least 1,000; 100,000 unless set. Each costs the chain an
    /// entry. A read that asks for a younger view is a question of its own.
    #[serde(default = "poll")]
    pub poll_us: u64,
    /// µs before a datagram is repeated, more than a round trip.
    #[serde(default = "retry")]
    pub retry_us: u64,
    /// Flows that are followed at most, to 2²⁴; the view of more is not complete.
    #[serde(default = "most")]
    pub most_flows: usize,
    /// Changes of clients are made; without, they are refused.
    #[serde(default = "writes")]
    pub writes: bool,
    /// Arrays of programs in bounded inconsistency, whose snapshots the store has.
    #[serde(default)]
    pub snapshots: Vec<SnapshotsFile>,
}

/// Register arrays of a program in bounded inconsistency, of which switches keep snapshots in the store.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotsFile {
    /// Name by which clients call them, at most 64 bytes, which no group and no flows have.
    pub name: String,
    /// Class of the flows that the elements are.
    pub class: u8,
    /// Elements of each array, SNAPSHOT_ELEMENTS of the program.
    pub elements: u32,
    /// Arrays of the program, each with a value of 32 bits for an element; elements times arrays is at
    /// most 2²⁰. 1 unless set.
    #[serde(default = "one")]
    pub arrays: u32,
    /// How snapshots of several switches, and of several starts of one, are merged; `add` unless set.
    #[serde(default)]
    pub merge: MergeName,
    /// Switches whose arrays the engine has in view, too.
    #[serde(default)]
    pub views: Vec<ArraysInView>,
}

/// The groups in which an engine has the arrays of one switch in view.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArraysInView {
    /// The switch's number in its section `[replication]`.
    pub switch: u32,
    /// Of each array the group of its register of copies, which has two locations for an element.
    pub groups: Vec<String>,
}

/// Operation that merges snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MergeName {
    /// By adding without overflow: counters, count-min sketches.
    #[default]
    Add,
    /// Bit by bit: Bloom filters, bitmaps.
    Or,
    /// By the greater: maxima, HyperLogLog.
    Greatest,
}

impl From<MergeName> for Merge {
    fn from(name: MergeName) -> Merge {
        match name {
            MergeName::Add => Merge::Add,
            MergeName::Or => Merge::Or,
            MergeName::Greatest => Merge::Greatest,
        }
    }
}

fn one() -> u32 {
    1
}

fn poll() -> u64 {
    100_000
}

fn retry() -> u64 {
    20_000
}

fn most() -> usize {
    1_048_576
}

fn writes() -> bool {
    true
}

fn addresses<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<SocketAddrV4>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let address = |text: String| {
        let alone = |_| {
            text.parse()
                .map(|host: Ipv4Addr| SocketAddrV4::new(host, PORT))
        };
        let read = text.parse().or_else(alone);
        read.map_err(|_| {
            Error::custom(format!(
                "`{text}` is no IPv4 address, with or without a port"
            ))
        })
    };
    texts.into_iter().map(address).collect()
}

/// Checks the sections. `names` are those of the groups, which flows do not share.
pub(super) fn check<'f>(
    flows: &'f [FlowsFile],
    groups: &'f [GroupFile],
    names: &mut BTreeSet<&'f str>,
) -> Result<(), SyncError> {
    let mut in_view = BTreeSet::new();
    if flows.len() > MOST_SECTIONS {
        return Err(SyncError::Setting {
            group: String::new(),
            field: "number of [[flows]] sections",
            must: "at most 64".to_owned(),
        });
    }
    for section in flows {
        let name = &section.name;
        let stores: BTreeSet<&SocketAddrV4> = section.stores.iter().collect();
        let is_list = (1..=MOST_STORES).contains(&section.stores.len());
        let checks = [
            (
                (1..=64).contains(&name.len()) && names.insert(name.as_str()),
                "name",
                "1 to 64 bytes that no group and no other flows have",
            ),
            (
                is_list && stores.len() == section.stores.len(),
                "stores",
                "1 to 64 addresses, each once",
            ),
            (section.switch > 0, "switch", "1 to 4294967295"),
            (
                (1_000..=60_000_000).contains(&section.poll_us),
                "poll_us",
                "1000 to 60000000",
            ),
            (
                (1_000..=60_000_000).contains(&section.retry_us),
                "retry_us",
                "1000 to 60000000",
            ),
            (
                (1..=MOST_FLOWS).contains(&section.most_flows),
                "most_flows",
                "1 to 16777216",
            ),
        ];
        if let Some((_, field, must)) = checks.into_iter().find(|(right, ..)| !right) {
            return Err(SyncError::Setting {
                group: name.clone(),
                field,
                must: must.to_owned(),
            });
        }
        check_snapshots(section, names)?;
        for snapshots in &section.snapshots {
            check_views(snapshots, groups, &mut in_view)?;
        }
    }
    Ok(())
}

fn check_snapshots<'f>(
    section: &'f FlowsFile,
    names: &mut BTreeSet<&'f str>,
) -> Result<(), SyncError> {
    for snapshots in &section.snapshots {
        let name = &snapshots.name;
        let values = u64::from(snapshots.elements) * u64::from(snapshots.arrays);
        let classes = &section.classes;
        let checks = [
            (
                (1..=64).contains(&name.len()) && names.insert(name.as_str()),
                "name",
                "1 to 64 bytes that no group, no flows and no other snapshots have",
            ),
            (
                (1..=u64::from(MOST_ELEMENTS)).contains(&values),
                "elements",
                "1 or more, and with `arrays` at most 1048576 values",
            ),
            (
                classes.is_empty() || classes.contains(&snapshots.class),
                "class",
                "one of the section's `classes`",
            ),
        ];
        if let Some((_, field, must)) = checks.into_iter().find(|(right, ..)| !right) {
            return Err(SyncError::Setting {
                group: name.clone(),
                field,
                must: must.to_owned(),
            });
        }
    }
    Ok(())
}

/// Checks the groups of arrays that are in view, each of which is `in_view` once.
fn check_views<'f>(
    snapshots: &'f SnapshotsFile,
    groups: &[GroupFile],
    in_view: &mut BTreeSet<&'f str>,
) -> Result<(), SyncError> {
    let most = 2 * snapshots.elements;
    let fits = |name: &String| {
        let group = groups.iter().find(|group| group.name == *name);
        group.is_some_and(|it| it.locations.is_multiple_of(2) && it.locations <= most)
    };
    let mut switches = BTreeSet::new();
    for view in &snapshots.views {
        let are_new = view.groups.iter().all(|name| in_view.insert(name));
        let checks = [
            (
                view.switch > 0 && switches.insert(view.switch),
                "switch",
                "1 to 4294967295, each once".to_owned(),
            ),
            (
                view.groups.len() == snapshots.arrays as usize && are_new,
                "groups",
                format!(
                    "as many as `arrays`, {}, each of which is named once",
                    snapshots.arrays
                ),
            ),
            (
                view.groups.iter().all(fits),
                "groups",
                format!(
                    "groups of this file with two locations for an element of an array, at most {most}"
                ),
            ),
        ];
        if let Some((_, field, must)) = checks.into_iter().find(|(right, ..)| !right) {
            return Err(SyncError::Setting {
                group: snapshots.name.clone(),
                field,
                must,
            });
        }
    }
    Ok(())
}

//! Flows that an engine follows, as its TOML file says it.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use stateplane_wire::replication::PORT;

use super::SyncError;

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
    /// µs between two questions to a chain, at least 1,000.
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
}

fn poll() -> u64 {
    10_000
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
    names: &mut BTreeSet<&'f str>,
) -> Result<(), SyncError> {
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
    }
    Ok(())
}

//! An engine's configuration, as its TOML file says it.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use stateplane_wire::sync::{MAX_VALUES, PORT};

use super::SyncError;

pub use flows::{ArraysInView, FlowsFile, MergeName, SnapshotsFile};

mod flows;

/// Most locations of a group: a window is one record of the log.
const MOST_LOCATIONS: u32 = 1 << 20;

/// Most groups of an engine.
const MOST_GROUPS: usize = 256;

/// Most locations of a group that metrics show.
const MOST_SHOWN: usize = 256;

/// Configuration of an engine.
///
/// ```
/// let file = r#"
///     listen = "10.0.0.9"             # own address; any port unless `port` says one
///     data = "engine-data"            # folder of the log, unless there is a section [etcd]
///     rpc = "127.0.0.1:9560"          # where clients are served (gRPC); nowhere unless set
///
///     [[group]]
///     name = "packets"                # by which clients call it
///     switch = "10.0.0.1"             # the switch's address
///     group = 0                       # number of the group in the switch's program
///     locations = 65536
///     batch = 16                      # SYNC_BATCH of the program; 16 unless set
///     poll_us = 2000                  # between two polls; 2,000 unless set
///     retry_us = 5000                 # before a request is repeated; 5,000 unless set
///     windows = 16                    # windows that are kept; 16 unless set
///     metrics = [0, 17]               # locations whose values are metrics
///     counter_bits = 32               # width of a counter whose totals are kept; none unless set
///
///     [[flows]]                       # flows of a store's chains
///     name = "nat"                    # by which clients call them
///     stores = ["10.0.1.1", "10.0.1.2:4793", "10.0.1.3"]  # all servers; port 4793 unless said
///     switch = 60000                  # number, which no switch has, under which leases are taken
///     classes = [1]                   # classes of flows; all unless set
///     poll_us = 100000                # between two questions to a chain; 100,000 unless set
///     retry_us = 20000                # before a datagram is repeated; 20,000 unless set
///     most_flows = 1048576            # flows that are followed; 1,048,576 unless set
///     writes = true                   # changes of clients are made; true unless set
///
///     [[flows.snapshots]]             # arrays of a program in bounded inconsistency
///     name = "sketch"                 # by which clients call them
///     class = 1                       # of the flows that their elements are
///     elements = 128                  # of each array, as the program has
///     arrays = 3                      # 1 unless set
///     merge = "add"                   # "or", "greatest"; "add" unless set
///     ## groups that have the arrays' registers `….copies` of a switch in view; none unless set
///     ## views = [{ switch = 1, groups = ["row-1", "row-2", "row-3"] }]
///
///     [redis]                         # a server that gets copies; none without this section
///     url = "redis://127.0.0.1:6379"
///     prefix = "stateplane"           # begin of all keys; so unless set
///     interval_ms = 100               # between two copies of a view; 100 unless set
///     windows = 1000                  # of a group that the server keeps, about; 1,000 unless set
/// "#;
/// let file = stateplane_host::sync::SyncEngineFile::parse("engine.toml".as_ref(), file)?;
/// assert_eq!(file.groups[0].locations, 65_536);
/// assert_eq!(file.flows[0].stores[0].to_string(), "10.0.1.1:4793");
/// # Ok::<(), stateplane_host::sync::SyncError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncEngineFile {
    /// The engine's own address; any of the machine's unless set.
    #[serde(default = "anywhere")]
    pub listen: Ipv4Addr,
    /// UDP port of the engine; one that is free unless set.
    #[serde(default)]
    pub port: u16,
    /// Folder of the log, which has terms, windows and outcomes of writes. Without one the file has
    /// the section `[etcd]`.
    pub data: Option<PathBuf>,
    /// An etcd that has them instead, and elects one of several engines of the same groups.
    pub etcd: Option<SyncEtcdFile>,
    /// Address at which clients are served.
    pub rpc: Option<SocketAddr>,
    /// The groups.
    #[serde(default, rename = "group")]
    pub groups: Vec<GroupFile>,
    /// Flows of a store's chains.
    #[serde(default)]
    pub flows: Vec<FlowsFile>,
    /// A Redis or Valkey server that gets copies of views and windows.
    pub redis: Option<RedisFile>,
}

/// An etcd that several engines of the same groups share.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncEtcdFile {
    /// Client addresses of its members, as `http://10.0.0.1:2379`.
    pub endpoints: Vec<String>,
    /// Prefix of the keys in etcd, which the engines of the same groups share; `/stateplane-sync`
    /// unless set.
    #[serde(default = "etcd_prefix")]
    pub prefix: String,
    /// ms without a sign of the engine that leads after which another leads, 200 to 60,000; 2,000
    /// unless set.
    #[serde(default = "detection")]
    pub detection_ms: u64,
    /// Address that refusals of other engines name, at most 256 bytes; `rpc` unless set.
    pub announce: Option<String>,
    /// Certificates (PEM) that `https` endpoints have to be signed by.
    pub tls_roots: Option<PathBuf>,
    /// Certificate (PEM) of the engine, for mutual TLS.
    pub tls_certificate: Option<PathBuf>,
    /// Private key (PEM) of the engine.
    pub tls_key: Option<PathBuf>,
}

/// A Redis or Valkey server that gets copies of views and windows.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedisFile {
    /// Its address: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]` or `unix:///PATH`.
    pub url: String,
    /// Begin of all keys, 1 to 64 bytes.
    #[serde(default = "prefix")]
    pub prefix: String,
    /// ms between two copies of a view, 1 to 60,000.
    #[serde(default = "interval")]
    pub interval_ms: u64,
    /// Windows of a group that the server keeps, about, 1 to 2²⁰.
    #[serde(default = "streamed")]
    pub windows: usize,
}

/// A group of registers of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupFile {
    /// Name by which clients call it, at most 64 bytes.
    pub name: String,
    /// The switch's address.
    pub switch: Ipv4Addr,
    /// UDP port of the switch; 4798 unless set.
    #[serde(default = "port")]
    pub port: u16,
    /// Number of the group in the switch's program.
    pub group: u16,
    /// Its locations, 1 to 2²⁰.
    pub locations: u32,
    /// Values that the switch takes in a message: SYNC_BATCH of its program, 1 to 32.
    #[serde(default = "batch")]
    pub batch: u32,
    /// µs between two polls, at least 50.
    #[serde(default = "poll")]
    pub poll_us: u64,
    /// µs before a request is repeated, more than a round trip.
    #[serde(default = "retry")]
    pub retry_us: u64,
    /// Windows that are kept, 1 to 65,536.
    #[serde(default = "windows")]
    pub windows: usize,
    /// Locations whose values are metrics, at most 256.
    #[serde(default)]
    pub metrics: Vec<u32>,
    /// Bits of a value, 1 to 64, of a group of counters whose totals are kept (rule 25 of
    /// docs/sync-protocol.md).
    pub counter_bits: Option<u32>,
}

fn anywhere() -> Ipv4Addr {
    Ipv4Addr::UNSPECIFIED
}

fn port() -> u16 {
    PORT
}

fn batch() -> u32 {
    16
}

fn poll() -> u64 {
    2_000
}

fn retry() -> u64 {
    5_000
}

fn windows() -> usize {
    16
}

fn etcd_prefix() -> String {
    "/stateplane-sync".to_owned()
}

fn detection() -> u64 {
    2_000
}

fn prefix() -> String {
    "stateplane".to_owned()
}

fn interval() -> u64 {
    100
}

fn streamed() -> usize {
    1_000
}

impl SyncEngineFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// [`SyncError::Read`], [`SyncError::Parse`], [`SyncError::Setting`].
    pub fn read(path: &Path) -> Result<SyncEngineFile, SyncError> {
        let text = std::fs::read_to_string(path).map_err(|cause| SyncError::Read {
            path: path.into(),
            cause,
        })?;
        SyncEngineFile::parse(path, &text)
    }

    /// Reads `text`, the contents of the file at `path`.
    ///
    /// # Errors
    ///
    /// [`SyncError::Parse`], [`SyncError::Setting`].
    pub fn parse(path: &Path, text: &str) -> Result<SyncEngineFile, SyncError> {
        let file: SyncEngineFile = toml::from_str(text).map_err(|cause| SyncError::Parse {
            path: path.into(),
            cause: Box::new(cause),
        })?;
        let wrong = |group: &str, field, must: &str| {
            Err(SyncError::Setting {
                group: group.to_owned(),
                field,
                must: must.to_owned(),
            })
        };
        if file.groups.is_empty() && file.flows.is_empty() {
            let field = "number of [[group]] and [[flows]] sections";
            return wrong("", field, "at least 1");
        }
        if file.groups.len() > MOST_GROUPS {
            return wrong("", "number of [[group]] sections", "at most 256");
        }
        if let Some(etcd) = &file.etcd {
            let announced = etcd.announce.as_deref().unwrap_or_default();
            let checks = [
                (
                    (200..=60_000).contains(&etcd.detection_ms),
                    "detection_ms",
                    "200 to 60000",
                ),
                (announced.len() <= 256, "announce", "at most 256 bytes"),
            ];
            if let Some((_, field, must)) = checks.iter().find(|(right, ..)| !right) {
                return wrong("[etcd]", field, must);
            }
        }
        if let Some(redis) = &file.redis {
            let checks = [
                (
                    (1..=64).contains(&redis.prefix.len()),
                    "prefix",
                    "1 to 64 bytes",
                ),
                (
                    (1..=60_000).contains(&redis.interval_ms),
                    "interval_ms",
                    "1 to 60000",
                ),
                (
                    (1..=1 << 20).contains(&redis.windows),
                    "windows",
                    "1 to 1048576",
                ),
            ];
            if let Some((_, field, must)) = checks.iter().find(|(right, ..)| !right) {
                return wrong("[redis]", field, must);
            }
        }
        let (mut names, mut places) = (BTreeSet::new(), BTreeSet::new());
        for group in &file.groups {
            let name = &group.name;
            let last = group.metrics.iter().max().copied().unwrap_or(0);
            let checks = [
                (1..=64).contains(&name.len()) && names.insert(name.as_str()),
                places.insert((group.socket(), group.group)),
                (1..=MOST_LOCATIONS).contains(&group.locations),
                (1..=MAX_VALUES as u32).contains(&group.batch),
                (50..=60_000_000).contains(&group.poll_us),
                (50..=60_000_000).contains(&group.retry_us),
                (1..=1 << 16).contains(&group.windows),
                group.metrics.len() <= MOST_SHOWN && last < group.locations,
                group
                    .counter_bits
                    .is_none_or(|bits| (1..=64).contains(&bits)),
            ];
            let rules = [
                ("name", "1 to 64 bytes that no other group has"),
                ("group", "another one at the same switch"),
                ("locations", "1 to 1048576"),
                ("batch", "1 to 32"),
                ("poll_us", "50 to 60000000"),
                ("retry_us", "50 to 60000000"),
                ("windows", "1 to 65536"),
                ("metrics", "at most 256 of the group's locations"),
                ("counter_bits", "1 to 64"),
            ];
            if let Some(at) = checks.iter().position(|right| !right) {
                let (field, must) = rules[at];
                return wrong(name, field, must);
            }
        }
        flows::check(&file.flows, &file.groups, &mut names)?;
        Ok(file)
    }
}

impl SyncEngineFile {
    /// Checks that facts have one place.
    ///
    /// # Errors
    ///
    /// [`SyncError::Setting`] if there are both a folder and an etcd, or neither.
    pub fn check_place(&self) -> Result<(), SyncError> {
        if self.data.is_some() != self.etcd.is_some() {
            return Ok(());
        }
        let there = if self.data.is_some() {
            "both are"
        } else {
            "neither is"
        };
        Err(SyncError::Place { there })
    }

    /// True if this group has copies of an array whose snapshots a store has.
    pub(super) fn is_of_snapshots(&self, group: &str) -> bool {
        let snapshots = self.flows.iter().flat_map(|flows| &flows.snapshots);
        let mut views = snapshots.flat_map(|snapshots| &snapshots.views);
        views.any(|view| view.groups.iter().any(|name| name == group))
    }

    /// Address at which other engines tell clients that this one is.
    pub(super) fn announced(&self) -> String {
        let etcd = self.etcd.as_ref();
        let chosen = etcd.and_then(|etcd| etcd.announce.clone());
        let served = || self.rpc.map(|address| address.to_string());
        chosen.or_else(served).unwrap_or_default()
    }

    /// µs without a sign of the engine that leads after which another leads.
    pub(super) fn detection_us(&self) -> u64 {
        let etcd = self.etcd.as_ref();
        etcd.map_or_else(detection, |etcd| etcd.detection_ms) * 1_000
    }
}

impl GroupFile {
    /// Address of the switch.
    pub fn socket(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.switch, self.port)
    }
}

#[cfg(test)]
mod tests;

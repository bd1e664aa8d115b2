//! Topology files: which nodes there are, how they are linked, what runs on them.
//!
//! A file is TOML. Its tables are documented at the types here; `lab/nat.toml` is an
//! example that uses all of them.

mod check;
mod file;
#[cfg(test)]
mod tests;

use crate::address::{Mac, Prefix};
use crate::error::LabError;
use crate::tool;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Least MTU of a link to a store: a replication request carries a whole frame of
/// 1,514 bytes, 72 bytes of header, the flow's state, and UDP and IPv4 headers.
pub const LEAST_STORE_MTU: u32 = 1700;

/// Metric of the routes that [`Lab::steer`](crate::Lab::steer) adds.
pub const STEERED_METRIC: u32 = 1;

/// Folder in the run's directory with those of the store servers' states.
pub(crate) const DISKS: &str = "disks";

/// Kind of a node, which decides how its network namespace is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An end system: addresses and routes, no forwarding.
    Host,
    /// A Linux router: forwards, splits flows over next hops by addresses and ports
    /// (`fib_multipath_hash_policy=1`) and avoids next hops without carrier
    /// (`ignore_routes_with_linkdown=1`).
    Router,
    /// A Stateplane switch: its interfaces get no kernel addresses, a process takes
    /// the frames.
    Switch,
    /// A state store: an end system whose links carry whole frames in requests.
    Store,
    /// A Linux bridge over all its interfaces.
    Bridge,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Router => "router",
            Self::Switch => "switch",
            Self::Store => "store",
            Self::Bridge => "bridge",
        })
    }
}

/// A node: one network namespace.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// 1 to 12 of `a-z`, `0-9`, `_`.
    pub name: String,
    /// Kind of the node.
    pub kind: Kind,
    /// Static routes.
    #[serde(default)]
    pub routes: Vec<Route>,
}

/// A static route.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Destination.
    pub to: Prefix,
    /// Next hops; flows are split over several.
    pub via: Vec<Ipv4Addr>,
    /// Of several routes to one destination, the least that works counts; above
    /// [`STEERED_METRIC`]. The kernel's default without.
    #[serde(default)]
    pub metric: Option<u32>,
}

/// A veth pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// MTU of both ends in bytes, 576 to 65,535.
    pub mtu: u32,
    /// The two interfaces.
    pub ends: [End; 2],
}

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The node.
    pub node: String,
    /// The interface's name in the node: 1 to 15 of `a-z`, `0-9`, `_`.
    pub interface: String,
    /// Address with the network's length. Every other end of the segment gets a permanent neighbour
    /// entry for it, so that no ARP is needed; a switch's interface does not get it in the kernel.
    pub address: Option<Prefix>,
    /// Ethernet address; if the file gives none, `02:00:00:00:LL:EE` from the link's
    /// number (from 1) and the end's (1 or 2).
    pub mac: Mac,
    /// True if a switch's interface gets the address in the kernel: its process talks through it,
    /// and its program has nothing of it.
    pub kernel: bool,
}

/// A process that runs on a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its name, which its log and its rendered configuration bear.
    pub name: String,
    /// The node.
    pub node: String,
    /// Program and arguments. `${stateplane}` is the running binary, `${lab}` the
    /// topology's directory, `${run}` the run's directory, `${config}` the rendered
    /// configuration; the variant's values may be used too.
    pub command: Vec<String>,
    /// Configuration templates, relative to the topology's directory, which are joined in
    /// this order; a single one may be given as a text, and an empty name is passed over.
    /// `FILE#TABLE` is the content of a table of a TOML file.
    /// The same `${…}` are replaced, and those of `set`.
    #[serde(default, deserialize_with = "file::one_or_several")]
    pub config: Vec<String>,
    /// Values for the template and the command.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// The beginning of the line on its standard output that says it is ready. Without,
    /// it counts as ready at once.
    #[serde(default)]
    pub ready: Option<String>,
    /// Interfaces of its node that the process sets up by itself, so that no
    /// neighbour routes to it before it forwards. The lab leaves them down.
    #[serde(default)]
    pub raises: Vec<String>,
    /// Variants in which it runs; all if empty.
    #[serde(default)]
    pub only: Vec<String>,
    /// Identity for sealed messages; without one, it seals none.
    #[serde(default)]
    pub keys: Option<Sealed>,
}

impl Process {
    fn is_store_server(&self) -> bool {
        self.command.get(1).is_some_and(|word| word == "store")
    }
}

/// A process whose messages may be sealed. It shares a key with each other such process.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealed {
    /// Its number among its peers; of a switch its `switch_id`.
    pub id: u32,
    /// Source address of its messages.
    pub address: Ipv4Addr,
    /// Arguments of its command beside `--keys FILE`.
    #[serde(default)]
    pub arguments: Vec<String>,
}

/// Traffic of the demonstration: clients, servers and their addresses.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Node of the `iperf3` client.
    pub iperf_client: String,
    /// Node of the `iperf3` server.
    pub iperf_server: String,
    /// Nodes whose agents open connections.
    pub clients: Vec<String>,
    /// Nodes whose agents answer.
    pub servers: Vec<String>,
    /// The router whose multipath choice gives each outbound connection its switch.
    pub chooser: String,
    /// The nodes that the outbound routes lead to, one of which is made to fail.
    pub switches: Vec<String>,
}

/// A topology that has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Its name: 1 to 12 of `a-z`, `0-9`, `_`.
    pub name: String,
    /// File from which the topology was read.
    pub path: PathBuf,
    /// Nodes in the order of the file.
    pub nodes: Vec<Node>,
    /// Links in the order of the file.
    pub links: Vec<Link>,
    /// Processes in the order in which they are started.
    pub processes: Vec<Process>,
    /// Values of each variant, such as which program the switches run. One that names an
    /// annotated program as `protects` has `stateplane protect` write `program` before
    /// anything starts; one that names a program as `synchronises` has `stateplane sync` write
    /// `program` of that, and `protect` write that if it names both.
    pub variants: BTreeMap<String, BTreeMap<String, String>>,
    /// The demonstration's traffic.
    pub traffic: Option<Traffic>,
}

impl Topology {
    /// Reads and checks a topology file: that at `path`, or else the one of this name that was
    /// installed with the program, below `share/stateplane`.
    ///
    /// # Errors
    /// `LAB003` unreadable, `LAB004` not TOML or not these tables (with line and
    /// column), `LAB005` contradictory (with the place and a remedy).
    pub fn load(path: impl AsRef<Path>) -> Result<Self, LabError> {
        let path = tool::data(path.as_ref());
        let text =
            std::fs::read_to_string(&path).map_err(|reason| LabError::file(&path, reason))?;
        Self::parse(path, &text)
    }

    /// Reads and checks a topology given as text; `path` names it in errors and is
    /// what relative paths in it start from.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn parse(path: impl AsRef<Path>, text: &str) -> Result<Self, LabError> {
        let topology = file::read(path.as_ref(), text)?;
        check::check(&topology)?;
        Ok(topology)
    }

    /// Lets each switch have so many threads.
    pub(crate) fn set_switch_workers(&mut self, workers: u8) {
        let runs = |process: &&mut Process| process.command.get(1).is_some_and(|it| it == "run");
        // A switch that is driven by P4Runtime takes no word of workers.
        let switches = self.processes.iter_mut().filter(runs);
        for process in switches.filter(|_| workers > 1) {
            let words = ["--workers".to_owned(), workers.to_string()];
            process.command.extend(words);
        }
    }

    /// The processes that are store servers, in the order of the file, which is that of their chain.
    pub(crate) fn store_servers(&self) -> Vec<String> {
        let servers = self.processes.iter().filter(|it| it.is_store_server());
        servers.map(|process| process.name.clone()).collect()
    }

    /// Lets each store server keep its state in a folder of its own, below [`DISKS`].
    pub(crate) fn give_disks(&mut self) {
        let servers = self.processes.iter_mut();
        for process in servers.filter(|process| process.is_store_server()) {
            let folder = format!("${{run}}/{DISKS}/{}", process.name);
            process.command.extend(["--data".to_owned(), folder]);
        }
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// The directory that relative paths start from.
    pub fn directory(&self) -> PathBuf {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
            _ => PathBuf::from("."),
        }
    }

    /// Each end of each link with the link.
    pub fn ends(&self) -> impl Iterator<Item = (&Link, &End)> {
        self.links
            .iter()
            .flat_map(|link| link.ends.iter().map(move |end| (link, end)))
    }

    /// The ends on one node.
    pub fn ends_of<'a>(&'a self, node: &'a str) -> impl Iterator<Item = (&'a Link, &'a End)> {
        self.ends().filter(move |(_, end)| end.node == node)
    }

    /// The first address of a node; `None` if it has none.
    pub fn address_of(&self, node: &str) -> Option<Ipv4Addr> {
        let mut ends = self.ends_of(node);
        ends.find_map(|(_, end)| Some(end.address?.address))
    }

    /// The ends with an address that `end` reaches without a router, itself not
    /// among them.
    pub fn neighbours(&self, end: &End) -> Vec<&End> {
        self.segments()
            .into_iter()
            .find(|segment| segment.iter().any(|other| same(other, end)))
            .unwrap_or_default()
            .into_iter()
            .filter(|other| !same(other, end) && other.address.is_some())
            .collect()
    }

    /// The ends that share a link, or links joined by bridges; the bridges' own ends
    /// are left out.
    pub(crate) fn segments(&self) -> Vec<Vec<&End>> {
        let mut segments: Vec<(Vec<&str>, Vec<&End>)> = Vec::new();
        for link in &self.links {
            let (bridged, ends): (Vec<&End>, Vec<&End>) =
                link.ends.iter().partition(|end| self.is_bridge(&end.node));
            let mut bridges: Vec<&str> = bridged.iter().map(|end| end.node.as_str()).collect();
            let mut members = ends;
            segments.retain(|(theirs, others)| {
                let joined = theirs.iter().any(|bridge| bridges.contains(bridge));
                if joined {
                    bridges.extend(theirs);
                    members.extend(others);
                }
                !joined
            });
            segments.push((bridges, members));
        }
        segments.into_iter().map(|(_, ends)| ends).collect()
    }

    fn is_bridge(&self, node: &str) -> bool {
        self.node(node)
            .is_some_and(|node| node.kind == Kind::Bridge)
    }
}

fn same(a: &End, b: &End) -> bool {
    a.node == b.node && a.interface == b.interface
}

//! Parcels between nodes: frames, and messages of a control plane on other paths.

use core::hash::{Hash, Hasher};
use core::net::Ipv4Addr;
use stateplane_multicast_setup::Rows;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A message between nodes.
#[derive(Clone, Debug)]
pub(crate) enum Parcel {
    Frame(Vec<u8>),
    Told(Arc<Told>),
    /// A datagram of a replica of the store, to another one or to a client.
    Store(Vec<u8>),
}

/// The place from which a receiver may begin: the state of the first leader that has it on its
/// list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Begin {
    /// Last index of the log: a peer's state with all up to there misses nothing.
    pub(crate) last: u32,
    /// Index behind which the leader keeps all for it, and the log's last timestamp: it gets every
    /// message with a later one.
    pub(crate) base: u32,
    pub(crate) time: u64,
}

/// Messages of the authority to switches and hosts, and the switches' answers.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    /// A switch's rows; for one start of it.
    Rows {
        incarnation: u32,
        version: u64,
        rows: Rows,
    },
    /// The switch has them.
    Set {
        switch: usize,
        incarnation: u32,
        version: u64,
    },
    /// Addresses of all leaders.
    Leaders {
        version: u64,
        leaders: BTreeMap<u8, Ipv4Addr>,
    },
    /// The receiver's number in the list of this version, if it is in it, with the version since
    /// which it has it; and from where it may join, once that is known.
    List {
        version: u16,
        listed: Option<(u8, u16)>,
        begin: Option<Begin>,
    },
}

impl Hash for Parcel {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Parcel::Frame(frame) => frame.hash(state),
            Parcel::Told(told) => match &**told {
                Told::Rows {
                    incarnation,
                    version,
                    ..
                } => (1, incarnation, version).hash(state),
                Told::Set {
                    switch,
                    incarnation,
                    version,
                } => (2, switch, incarnation, version).hash(state),
                Told::Leaders { version, leaders } => (3, version, leaders).hash(state),
                Told::List {
                    version,
                    listed,
                    begin,
                } => (4, version, listed, begin).hash(state),
            },
            Parcel::Store(bytes) => (5, bytes).hash(state),
        }
    }
}

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
    /// The receiver's number in the list of this version, if it is in it, and once it may join the
    /// index that a peer's state must have.
    List {
        version: u16,
        number: Option<u8>,
        join_at: Option<u32>,
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
                    number,
                    join_at,
                } => (4, version, number, join_at).hash(state),
            },
        }
    }
}

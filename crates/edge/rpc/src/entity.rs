//! One module for each kind of entity: how it is written, read, and put back.

pub(crate) mod action;
pub(crate) mod action_set;
pub(crate) mod counter;
pub(crate) mod group;
pub(crate) mod keys;
pub(crate) mod member;
pub(crate) mod meter;
pub(crate) mod register;
pub(crate) mod replication;
pub(crate) mod table;
pub(crate) mod value_set;
mod wanted;

use crate::digest::Digests;
use crate::pipeline::Pipeline;
use crate::proto::v1;
use crate::refusal::Refusal;
use stateplane_runtime::Engine;
use stateplane_switch::{Fellows, Switch};
use std::collections::{BTreeMap, BTreeSet};

/// Data of the control plane that no packet uses, but that the control plane reads back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadow {
    /// Metadata of table entries: the deprecated number and the bytes.
    pub(crate) entries: BTreeMap<EntryKey, (u64, Vec<u8>)>,
    /// Metadata of default entries by table.
    pub(crate) defaults: BTreeMap<u32, (u64, Vec<u8>)>,
    /// Groups by profile and number, as written.
    pub(crate) groups: BTreeMap<(u32, u32), v1::ActionProfileGroup>,
    /// Action sets of entries.
    pub(crate) sets: BTreeMap<EntryKey, action_set::ActionSet>,
    /// Multicast groups as written.
    pub(crate) multicast: BTreeMap<u32, v1::MulticastGroupEntry>,
    /// Clone sessions as written.
    pub(crate) sessions: BTreeMap<u32, v1::CloneSessionEntry>,
    /// Ports that were down when groups and replicas were last looked at.
    pub(crate) down: BTreeSet<u16>,
}

/// Table, canonical matches and priority of an entry.
pub(crate) type EntryKey = (u32, Vec<u8>, u32);

/// Objects to which an update is applied.
pub(crate) struct Context<'a, E: Engine> {
    pub(crate) switch: &'a mut Switch<E>,
    /// The other switches of the program.
    pub(crate) fellows: &'a mut dyn Fellows<E>,
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) shadow: &'a mut Shadow,
    pub(crate) digests: &'a mut Digests,
    /// Time in µs.
    pub(crate) now: u64,
}

/// An index that is given: not negative.
pub(crate) fn index(index: &v1::Index) -> Result<u64, Refusal> {
    u64::try_from(index.index)
        .map_err(|_| Refusal::invalid(format!("the index {} is negative", index.index)))
}

/// Bytes of the longest metadata that are kept with an entity.
const MAX_METADATA: usize = 4096;

/// Checks that metadata, which are kept unchanged, are not too long.
pub(crate) fn check_metadata(metadata: &[u8]) -> Result<(), Refusal> {
    match metadata.len() {
        ..=MAX_METADATA => Ok(()),
        length => Err(Refusal::new(
            tonic::Code::ResourceExhausted,
            format!("the metadata have {length} bytes, at most {MAX_METADATA} are kept"),
        )),
    }
}

/// Checks that an update of an entity that can only be modified is a modification.
pub(crate) fn only_modify(kind: v1::update::Type, what: &str) -> Result<(), Refusal> {
    match kind {
        v1::update::Type::Modify => Ok(()),
        _ => Err(Refusal::invalid(format!(
            "{what} exist from the start to the end: MODIFY them"
        ))),
    }
}

/// Parts of an array or table read in one go.
pub(crate) const CHUNK: u32 = 256;

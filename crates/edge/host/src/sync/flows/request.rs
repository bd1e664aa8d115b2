//! Requests of clients about flows that the store's chains keep.

use std::sync::Arc;

use stateplane_observe::{Flow, Operation, Told};
use stateplane_wire::observe::Holding;
use stateplane_wire::replication::Key;

/// Request for the view of flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowsRequest {
    /// Their name.
    pub name: String,
    /// The flows with this key alone.
    pub key: Option<Key>,
    /// The flows of this class alone.
    pub class: Option<u8>,
    /// All that was acknowledged before the request has to be in the view.
    pub fresh: bool,
    /// The greatest age that will do, in µs; any unless set.
    pub max_age_us: Option<u64>,
    /// µs until it is given up.
    pub patience_us: u64,
}

impl FlowsRequest {
    /// True if a view of which this is told will do.
    pub fn is_met_by(&self, told: &Told) -> bool {
        self.max_age_us.is_none_or(|most| told.age_us <= most)
    }
}

/// One flow as the store's chain has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// Its shard.
    pub shard: u16,
    /// Its key.
    pub key: Key,
    /// Its state.
    pub state: Arc<[u8]>,
    /// Epoch of its newest grant. Pairs of epoch and sequence order the states of a flow.
    pub epoch: u32,
    /// Number of the state.
    pub sequence: u32,
    /// Holder of a lease.
    pub lease: Holding,
    /// The view's revision at which the record changed last.
    pub revision: u64,
}

impl FlowRecord {
    pub(super) fn new(shard: u16, key: &Key, flow: &Flow) -> FlowRecord {
        FlowRecord {
            shard,
            key: *key,
            state: flow.state.as_slice().into(),
            epoch: flow.epoch,
            sequence: flow.sequence,
            lease: flow.lease,
            revision: flow.revision,
        }
    }
}

/// Flows, and what is promised of them: at a moment at most the age ago each flow of a chain had
/// exactly the state of its record, and no other flow of the chain was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowsReading {
    /// The promise.
    pub told: Told,
    /// The records in the order of their shards and keys.
    pub records: Arc<Vec<FlowRecord>>,
}

/// Request to change a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowsChange {
    /// Name of the flows.
    pub name: String,
    /// The flow's key.
    pub key: Key,
    /// Its shard; that of the flow in the view unless set.
    pub shard: Option<u16>,
    /// The change. An addition of length 0 goes to the end of the state.
    pub operation: Operation,
    /// µs until it is given up.
    pub patience_us: u64,
}

/// A change that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowsDone {
    /// It was made once, and is in the view.
    Made {
        /// Epoch of the lease under which it was written.
        epoch: u32,
        /// Number of the state.
        sequence: u32,
        /// The state.
        state: Vec<u8>,
    },
    /// The flow has another state than expected; nothing was written.
    Mismatch {
        /// The state that it has.
        state: Vec<u8>,
    },
}

//! Requests of clients.

use std::sync::Arc;

use stateplane_sync::Told;
use stateplane_wire::sync::{CutKind, Operation, Outcome};

use super::{ViewError, WriteId};

/// Bytes of a value where values are packed: little-endian, those of narrow registers too.
pub const VALUE_BYTES: usize = 8;

/// Gets the answer to a request; it is called in the engine's thread, must be short, and cannot look at
/// views.
pub type Reply<T> = Box<dyn FnOnce(Result<T, ViewError>) + Send>;

/// Request for the view of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadRequest {
    /// Name of the group.
    pub group: String,
    /// The mark has to be younger than the request.
    pub fresh: bool,
    /// The greatest bound that will do; any, an unbounded one included, unless set.
    pub bound: Option<u64>,
    /// The greatest age that will do, in µs; any unless set.
    pub max_age_us: Option<u64>,
    /// µs until it is given up.
    pub patience_us: u64,
}

impl ReadRequest {
    /// True if a view of which this is told will do.
    pub fn is_met_by(&self, told: &Told) -> bool {
        let near = self
            .bound
            .is_none_or(|most| told.bound.is_some_and(|bound| bound <= most));
        near && self.max_age_us.is_none_or(|most| told.age_us <= most)
    }
}

/// A group's values, and what is promised of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The promise.
    pub told: Told,
    /// Values by location, [`VALUE_BYTES`] each.
    pub values: Arc<Vec<u8>>,
}

/// Totals of a group of counters, and what is promised of the view that they are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TotalsReading {
    /// The promise of the view.
    pub told: Told,
    /// Totals by location, [`VALUE_BYTES`] each: what was counted, over widths and resets (rule 25).
    pub totals: Vec<u8>,
    /// Numbers of discontinuities by location, 4 bytes each, little-endian; 0: there was none. Between two
    /// readings with the same number a total went on by what was counted between them.
    pub discontinuities: Vec<u8>,
}

/// Request to change values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Name of the group.
    pub group: String,
    /// The client's number for the change; with one it is applied once however often it is asked
    /// for.
    pub id: Option<WriteId>,
    /// Change to each location.
    pub operation: Operation,
    /// Locations and values. [`Operation::Set`] writes all of them at once; others as many at once as a
    /// message takes, and more in pieces.
    pub values: Vec<(u32, u64)>,
    /// The value that [`Operation::SetIfEqual`] expects.
    pub expected: u64,
    /// µs until it is given up as unknown.
    pub patience_us: u64,
}

/// A change that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeDone {
    /// DONE or MISMATCH.
    pub outcome: Outcome,
    /// Pieces in which it took effect: with 1 all of it did at once.
    pub pieces: u32,
}

/// Request for a cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutRequest {
    /// Name of the group.
    pub group: String,
    /// How locations cross it.
    pub kind: CutKind,
    /// The value that fills them.
    pub fill: u64,
    /// Tell what locations held.
    pub window: bool,
    /// Keep the window, which has to be told.
    pub keep: bool,
    /// µs until it is given up as unknown.
    pub patience_us: u64,
}

/// A cut that was made, and the window that it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutMade {
    /// Number of the window; 0 if it is not kept.
    pub number: u64,
    /// The switch's own name for its start.
    pub incarnation: u32,
    /// Number of the cut.
    pub epoch: u32,
    /// Term of the engine that made it.
    pub term: u64,
    /// Values at the cut, [`VALUE_BYTES`] each; none unless they were asked for.
    pub values: Arc<Vec<u8>>,
}

/// Makes `bytes` those of `values`.
pub(super) fn pack(values: &[u64], bytes: &mut Vec<u8>) {
    bytes.resize(values.len() * VALUE_BYTES, 0);
    let (places, _) = bytes.as_chunks_mut::<VALUE_BYTES>();
    for (place, value) in places.iter_mut().zip(values) {
        *place = value.to_le_bytes();
    }
}

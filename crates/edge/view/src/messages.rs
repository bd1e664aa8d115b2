//! Promises and counts of the engine's groups as messages.

use std::sync::Arc;

use prost::bytes::Bytes;
use stateplane_host::sync::{GroupReport, SyncReport};
use stateplane_sync::Told;

use crate::proto::v1;

/// The promise of a view as a message.
pub(crate) fn told_of(told: &Told) -> v1::Told {
    v1::Told {
        bound: told.bound,
        all_but: told.all_but,
        within: told.within,
        age_us: told.age_us,
        stamp: told.stamp,
        generation: told.generation,
        incarnation: told.incarnation,
        epoch: told.epoch,
        sweep_us: told.sweep_us,
    }
}

/// A group, and the promise of its view.
pub(crate) fn group_of(group: GroupReport, told: Option<&Told>) -> v1::Group {
    v1::Group {
        told: told.map(told_of),
        last_window: group.last_window,
        fenced: group.fenced,
        status: Some(status_of(&group)),
        locations: group.locations,
        name: group.name,
    }
}

/// The parts of which the promise of a group's view is made, as a message.
fn status_of(group: &GroupReport) -> v1::Status {
    v1::Status {
        unsent: group.unsent,
        queued: group.queued,
        sent: group.sent,
        missing: group.missing,
        named: group.named,
        lost: group.lost,
        updates: group.updates,
        applied: group.applied,
        repairs: group.repairs,
        repaired: group.repaired,
        refused: group.refused,
        foreign: group.foreign,
        beyond: group.beyond,
        other_incarnation: group.other_incarnation,
    }
}

/// The engine's datagrams, by what became of them.
pub(crate) fn datagrams_of(report: &SyncReport) -> v1::Datagrams {
    v1::Datagrams {
        received: report.received,
        sent: report.sent,
        send_failed: report.send_failed,
        unknown_source: report.unknown_source,
        malformed: report.malformed,
        unknown_group: report.unknown_group,
    }
}

/// Values that a message shares with the engine.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The bytes of values, without a copy.
pub(crate) fn shared(values: Arc<Vec<u8>>) -> Bytes {
    Bytes::from_owner(Shared(values))
}

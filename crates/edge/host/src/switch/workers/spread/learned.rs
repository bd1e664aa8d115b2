//! Kinds of frames whose keys tell apart what the hash of their flow does not, learned from frames that
//! come.

use super::kind::Kind;
use std::sync::atomic::{AtomicU8, Ordering};

/// Frames of a kind that are tried before the kind is left to the flow.
const TRIALS: u8 = 16;

/// Bytes of a frame that are changed in a trial, at most.
const MOST_BYTES: usize = 128;

/// Changes of a byte that are tried: of its lowest bit, and of all.
const MASKS: [u8; 2] = [0x01, 0xff];

/// Kinds that go by key at divided ports, as the workers of a switch have learned them.
///
/// No order between workers is needed: one that does not know yet keeps a frame, or tries it too.
#[derive(Debug, Default)]
pub(in crate::switch::workers) struct Learned {
    /// A bit for each kind that goes by key.
    by_key: AtomicU8,
    /// A bit for each kind of which it was logged.
    told: AtomicU8,
    /// Trials of each kind that found nothing.
    failed: [AtomicU8; Kind::ALL.len()],
}

impl Learned {
    /// Forgets all: another program has other keys.
    pub(in crate::switch::workers) fn forget(&self) {
        self.by_key.store(0, Ordering::Relaxed);
        self.try_again();
    }

    /// Lets frames of all kinds be tried again: keys depend on entries of tables too.
    pub(in crate::switch::workers) fn try_again(&self) {
        for failed in &self.failed {
            failed.store(0, Ordering::Relaxed);
        }
    }

    /// True if some kind goes by key.
    pub(super) fn has_any(&self) -> bool {
        self.by_key.load(Ordering::Relaxed) != 0
    }

    fn goes_by_key(&self, kind: Kind) -> bool {
        self.by_key.load(Ordering::Relaxed) & kind.bit() != 0
    }

    fn may_be_tried(&self, kind: Kind) -> bool {
        self.failed[kind as usize].load(Ordering::Relaxed) < TRIALS
    }

    /// The key of a frame of that kind, if it is to go by it. `key_of` tells the keys of frames, and
    /// `buffer` is overwritten.
    pub(super) fn key(
        &self,
        kind: Kind,
        frame: &[u8],
        buffer: &mut Vec<u8>,
        key_of: &mut dyn FnMut(&[u8]) -> Option<u16>,
    ) -> Option<u16> {
        let is_known = self.goes_by_key(kind);
        if !is_known && !self.may_be_tried(kind) {
            return None;
        }
        let key = key_of(frame)?;
        if is_known {
            return Some(key);
        }
        buffer.clear();
        buffer.extend_from_slice(frame);
        if !tells_more(kind, key, buffer, key_of) {
            self.failed[kind as usize].fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.by_key.fetch_or(kind.bit(), Ordering::Relaxed);
        if self.told.fetch_or(kind.bit(), Ordering::Relaxed) & kind.bit() == 0 {
            let kind = kind.name();
            tracing::info!(kind, "frames go to the worker of the state that they lock");
        }
        Some(key)
    }
}

/// True if a change of some byte that the flow's hash does not cover changes the frame's key.
fn tells_more(
    kind: Kind,
    key: u16,
    frame: &mut [u8],
    key_of: &mut dyn FnMut(&[u8]) -> Option<u16>,
) -> bool {
    let hidden = kind.hidden(frame);
    let bytes = hidden.into_iter().flatten().take(MOST_BYTES);
    for (at, mask) in bytes.flat_map(|at| MASKS.map(|mask| (at, mask))) {
        frame[at] ^= mask;
        let differs = Kind::of(frame) == kind && key_of(frame).is_some_and(|it| it != key);
        frame[at] ^= mask;
        if differs {
            return true;
        }
    }
    false
}

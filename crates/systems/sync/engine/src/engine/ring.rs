//! The switch's ring, as the engine knows it.

use super::Engine;
use stateplane_wire::sync::UNBOUNDED;

/// Ring of the switch, through which changes are sent, as the newest mark tells it, and what of it
/// came. Positions are places in all that was sent since the switch started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// T: no location is farther from what was last sent of it (rule 3); `None`: unbounded.
    pub unsent: Option<u64>,
    /// Locations that wait in the ring.
    pub queued: u32,
    /// Behind the last position that was sent, as far as known.
    pub sent: u64,
    /// Positions that neither came nor were named: lost, or on their way.
    pub missing: u64,
    /// Positions that the switch named as lost and that no newer value supersedes yet.
    pub named: u64,
    /// Positions that the switch named as lost since the view began.
    pub lost: u64,
}

impl Engine {
    /// The ring of the switch; `None` before the first mark of a view.
    pub fn ring(&self) -> Option<Ring> {
        let mark = self.mark?;
        let named = self.tracker.named_open() as u64;
        Some(Ring {
            unsent: (mark.bound < UNBOUNDED).then_some(mark.bound),
            queued: mark.queued,
            sent: self.tracker.end(),
            missing: self.tracker.open() - named,
            named,
            lost: self.tracker.lost(),
        })
    }
}

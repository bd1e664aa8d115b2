//! A replica that comes back from its disk asks how far its successor is: what that has more
//! than itself, the disk has lost.
//!
//! Until then a head decides nothing, or it would give the numbers of entries that others
//! have to new ones. Whoever is asked, and came back itself, asks its own successor first, so
//! that the answer is of one that lacks nothing.

use std::sync::Arc;

use stateplane_wire::chain::{Kind, Packet, Repr};

use super::{Destination, Replica, Transmit};

/// A question to the successor that was not answered yet.
#[derive(Debug, Clone)]
pub(super) struct Comparing {
    /// Which start of the server asks: an answer to an earlier one is old.
    start: u32,
    at: u64,
    wait: u64,
}

impl Comparing {
    /// When the question is to be sent next.
    pub(super) fn due(&self) -> u64 {
        self.at
    }
}

impl Replica {
    /// It came back from the disk, for the time numbered `start`.
    pub(super) fn begin_comparing(&mut self, start: u32) {
        if !self.is_tail() && self.install.is_none() {
            self.comparing = Some(Comparing {
                start,
                at: 0,
                wait: self.config.limits.resend_first,
            });
        }
    }

    /// It has another successor at `now`, or none.
    pub(super) fn compare_anew(&mut self, now: u64) {
        if self.is_tail() {
            self.comparing = None;
        }
        if let Some(comparing) = &mut self.comparing {
            comparing.at = now;
            comparing.wait = self.config.limits.resend_first;
        }
    }

    /// Asks the successor, if it is time to.
    pub(super) fn ask_successor(&mut self, now: u64) {
        let header = self.header(Kind::Compare);
        let Some(comparing) = self.comparing.as_mut().filter(|it| it.at <= now) else {
            return;
        };
        comparing.at = now.saturating_add(comparing.wait);
        comparing.wait = comparing.wait.saturating_mul(2);
        comparing.wait = comparing.wait.min(self.config.limits.resend_bound);
        let question = Repr {
            number: comparing.start.into(),
            ..header
        };
        self.log.asks(now);
        self.tell(self.place.position.checked_add(1), &question);
    }

    /// The predecessor asks how far this replica is.
    pub(super) fn asked_by_predecessor(&mut self, packet: &Packet<'_>) {
        if self.comparing.is_some() || self.install.is_some() {
            return;
        }
        let answer = Repr {
            incarnation: packet.incarnation(),
            number: packet.number(),
            base: self.applied,
            ..self.header(Kind::Compared)
        };
        self.tell(self.place.position.checked_sub(1), &answer);
    }

    /// The successor says how far it is.
    pub(super) fn compared(&mut self, now: u64, packet: &Packet<'_>) {
        let asked = self.comparing.as_ref().map(|it| u64::from(it.start));
        if asked != Some(packet.number()) || packet.incarnation() != self.incarnation {
            return;
        }
        self.log.heard();
        self.has_lost(packet.base());
        if self.lacks.is_none() {
            self.comparing = None;
            self.run_due(now);
        }
    }

    /// Another has entry `number`, which this one had once too.
    pub(super) fn has_lost(&mut self, number: u64) {
        if self.config.durable && number > self.applied {
            self.lacks = self.lacks.max(Some(number));
        }
    }

    /// Number of an entry that this replica had, and that its disk has lost: it has no state
    /// that anybody may rely on.
    pub fn lacks(&self) -> Option<u64> {
        self.lacks
    }

    fn tell(&mut self, position: Option<u8>, message: &Repr<'_>) {
        if let (Some(position), Ok(bytes)) = (position, message.to_vec()) {
            self.outbox.push_back(Transmit {
                to: Destination::Replica(position),
                bytes: Arc::new(bytes),
            });
        }
    }
}

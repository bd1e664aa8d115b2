//! A replica that comes back from its disk asks its neighbours what it should have: as far as
//! its successor is, and as far as its predecessor knows all to be. What it has not, its disk
//! has lost.
//!
//! Until the successor has answered a head decides nothing, or it would give the numbers of
//! entries that others have to new ones. A successor that came back itself asks its own
//! successor first, so that the answer is of one that lacks nothing.

use std::sync::Arc;

use stateplane_wire::chain::{Kind, Packet, Repr};

use super::{Destination, Replica, Transmit};

/// Questions to the neighbours that were not answered yet.
#[derive(Debug, Clone)]
pub(super) struct Comparing {
    /// Number of the start of the server that asks; answers to an earlier start are ignored.
    start: u32,
    at: u64,
    wait: u64,
    successor: bool,
    predecessor: bool,
}

impl Comparing {
    /// When the questions are to be sent next.
    pub(super) fn due(&self) -> u64 {
        self.at
    }
}

impl Replica {
    /// Begins the comparison with neighbours after restart number `start` from the disk.
    pub(super) fn begin_comparing(&mut self, start: u32) {
        if self.install.is_none() {
            self.comparing = Some(Comparing {
                start,
                at: 0,
                wait: self.config.limits.resend_first,
                successor: true,
                predecessor: true,
            });
            self.compare_anew(0);
        }
    }

    /// Continues with other neighbours at `now`, or with none.
    pub(super) fn compare_anew(&mut self, now: u64) {
        let (is_tail, is_first) = (self.is_tail(), self.place.position == 0);
        if let Some(comparing) = &mut self.comparing {
            comparing.successor &= !is_tail;
            comparing.predecessor &= !is_first;
            comparing.at = now;
            comparing.wait = self.config.limits.resend_first;
        }
        self.end_comparing();
    }

    fn end_comparing(&mut self) {
        let waits = |it: &Comparing| it.successor || it.predecessor;
        self.comparing = self.comparing.take().filter(waits);
    }

    /// True if the replica does not know which entries its successor has.
    pub(super) fn awaits_successor(&self) -> bool {
        self.comparing.as_ref().is_some_and(|it| it.successor)
    }

    /// Asks the neighbours, if it is time to.
    pub(super) fn ask_neighbours(&mut self, now: u64) {
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
        let (successor, predecessor) = (comparing.successor, comparing.predecessor);
        if successor {
            self.log.asks(now);
            self.tell(self.place.position.checked_add(1), &question);
        }
        if predecessor {
            self.tell(self.place.position.checked_sub(1), &question);
        }
    }

    /// A neighbour asks what it should have.
    pub(super) fn asked_to_compare(&mut self, packet: &Packet<'_>) {
        let by_predecessor = packet.replica() < self.place.position;
        if self.install.is_some() || by_predecessor && self.awaits_successor() {
            return;
        }
        if by_predecessor {
            self.predecessor.forget_early();
        }
        let answer = Repr {
            incarnation: packet.incarnation(),
            number: packet.number(),
            base: if by_predecessor {
                self.applied
            } else {
                self.base
            },
            ..self.header(Kind::Compared)
        };
        self.tell(Some(packet.replica()), &answer);
    }

    /// A neighbour says what this one should have.
    pub(super) fn compared(&mut self, now: u64, packet: &Packet<'_>) {
        let asked = self.comparing.as_ref().map(|it| u64::from(it.start));
        if asked != Some(packet.number()) || packet.incarnation() != self.incarnation {
            return;
        }
        self.has_lost(packet.base());
        let by_successor = packet.replica() > self.place.position;
        if by_successor {
            self.log.heard();
        }
        let Some(comparing) = self.comparing.as_mut().filter(|_| self.lacks.is_none()) else {
            return;
        };
        if by_successor {
            comparing.successor = false
        } else {
            comparing.predecessor = false
        }
        self.end_comparing();
        self.run_due(now);
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

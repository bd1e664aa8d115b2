//! Watches of one record (rule 23).

use std::collections::VecDeque;

use stateplane_wire::coordination::Outcome;

use crate::call::{Call, End};
use crate::{Agent, Event, Operation, Place, Record};

/// What a watch saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// The record is this one since the entry `record.number`.
    Put {
        /// The record.
        record: Record,
    },
    /// There is no record. It was deleted by the entry `number` or one before it.
    Deleted {
        /// A number at which there was no record.
        number: u64,
    },
    /// Entries before `oldest` may be missing from what follows: the record may have changed and
    /// changed again meanwhile.
    Compacted {
        /// Number of the first entry that is not missing.
        oldest: u64,
    },
    /// Another name has the same key.
    Clash,
}

/// A watch: it reads the record from time to time and tells what changed. It can be resumed from
/// the number of the last event.
///
/// ```
/// # #[allow(dead_code)]
/// # mod chain { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chain/mod.rs")); }
/// use stateplane_coordination::{Name, Operation, Watch, WatchEvent};
///
/// # let mut service = chain::Service::new();
/// # let mut agent = service.agent(4);
/// let place = Name::new(b"lamp").unwrap().place(4);
/// agent.submit(0, Operation::put(place.clone(), b"on"))?;
/// # service.events(&mut agent);
/// let mut watch = Watch::new(place, 5_000, None);
/// watch.handle_timeout(0, &mut agent);
/// for event in service.events(&mut agent) {
///     watch.handle_event(0, &event);
/// }
/// let Some(WatchEvent::Put { record }) = watch.poll_event() else { panic!() };
/// assert_eq!((record.number, record.value.as_slice()), (1, b"on".as_slice()));
/// # Ok::<(), stateplane_coordination::Refused>(())
/// ```
#[derive(Debug)]
pub struct Watch {
    place: Place,
    poll_us: u64,
    next: u64,
    call: Call,
    /// Number up to which everything is known.
    complete_to: Option<u64>,
    /// The record's number when it was last seen, 0 if there was none.
    seen: Option<u64>,
    events: VecDeque<WatchEvent>,
}

impl Watch {
    /// A watch of the record at `place`, which looks each `poll_us` µs. It tells the record as it
    /// is first, or, with `after`, what changed after the entry of that number.
    pub fn new(place: Place, poll_us: u64, after: Option<u64>) -> Watch {
        Watch {
            place,
            poll_us,
            next: 0,
            call: Call::default(),
            complete_to: after,
            seen: None,
            events: VecDeque::new(),
        }
    }

    /// What happened next.
    pub fn poll_event(&mut self) -> Option<WatchEvent> {
        self.events.pop_front()
    }

    /// Takes an event of the agent; true if it was the watch's.
    pub fn handle_event(&mut self, now: u64, event: &Event) -> bool {
        let concerned = self.call.concerns(event);
        match self.call.end(event) {
            Some(End::Answered(answer)) => {
                let record = answer.record.filter(|_| answer.outcome == Outcome::Done);
                self.looked(answer.newest, record);
            }
            Some(End::Clash) => self.events.push_back(WatchEvent::Clash),
            Some(End::Never | End::Lost) | None => return concerned,
        }
        self.next = now.saturating_add(self.poll_us);
        true
    }

    fn looked(&mut self, newest: u64, record: Option<Record>) {
        let number = record.as_ref().map_or(0, |record| record.number);
        let known = match (self.seen, self.complete_to) {
            (Some(seen), _) => seen == number,
            (None, Some(after)) => number != 0 && number <= after,
            (None, None) => false,
        };
        if !known {
            // A record's number says when it changed last, not whether it changed before that.
            let oldest = if number == 0 { newest } else { number };
            if self
                .complete_to
                .is_some_and(|to| to.saturating_add(1) < oldest)
            {
                self.events.push_back(WatchEvent::Compacted { oldest });
            }
            self.events.push_back(match record {
                Some(record) => WatchEvent::Put { record },
                None => WatchEvent::Deleted { number: newest },
            });
        }
        self.seen = Some(number);
        self.complete_to = Some(newest.max(number));
    }

    /// Does what is due at `now`: another look.
    pub fn handle_timeout(&mut self, now: u64, agent: &mut Agent) {
        // The events must be taken before more are made.
        if now < self.next || self.call.is_busy() || !self.events.is_empty() {
            return;
        }
        self.next = now.saturating_add(self.poll_us);
        // An agent without room is asked at the next look.
        _ = self
            .call
            .begin(now, agent, Operation::read(self.place.clone()));
    }

    /// When [`Watch::handle_timeout`] is due next.
    pub fn poll_timeout(&self) -> Option<u64> {
        (!self.call.is_busy() && self.events.is_empty()).then_some(self.next)
    }
}

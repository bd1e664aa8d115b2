//! A list of the records of a group, one scan after the other.

use stateplane_coordination::{Action, Agent, Event, Operation, Place, Reading, Ticket};
use stateplane_history::coordination::{Scanned, Seen};
use stateplane_wire::coordination::Key;

/// Progress of a list, as histories have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Kind of the progress.
    pub scanned: Scanned,
    /// Number of the newest entry that the answerer had; 0 of the begin.
    pub number: u64,
    /// The record that was found.
    pub record: Option<(Key, Seen)>,
}

impl Progress {
    /// The progress in a history that names some records: the answer that has another shows none.
    /// Each answer counts, since a list may miss what is written behind the places that it has seen.
    #[must_use]
    pub fn of_named(self, is_named: impl Fn(Key) -> bool) -> Progress {
        let record = self.record.filter(|(key, _)| is_named(*key));
        let scanned = match self.scanned {
            Scanned::Record if record.is_none() => Scanned::Nothing,
            scanned => scanned,
        };
        Progress {
            scanned,
            record,
            ..self
        }
    }
}

/// A list under way.
#[derive(Debug)]
pub struct Listing {
    /// The group.
    pub group: u16,
    /// Number of the list.
    pub number: u64,
    reading: Reading,
    /// The scan under way; none of a list that has ended, or was given up.
    ticket: Option<Ticket>,
}

impl Listing {
    /// Asks for the first places of `group`; `None` if the agent takes no operation.
    pub fn begin(
        now: u64,
        agent: &mut Agent,
        (group, number): (u16, u64),
        reading: Reading,
    ) -> Option<(Listing, Progress)> {
        let ticket = agent.submit(now, scan(group, 0, reading)).ok()?;
        let listing = Listing {
            group,
            number,
            reading,
            ticket: Some(ticket),
        };
        let begin = Progress {
            scanned: Scanned::Begin,
            number: 0,
            record: None,
        };
        Some((listing, begin))
    }

    /// True if it has ended, or was given up since a scan had no answer.
    pub fn is_over(&self) -> bool {
        self.ticket.is_none()
    }

    /// Takes an event of the agent, and asks for the places behind those that were answered.
    pub fn handle_event(&mut self, now: u64, agent: &mut Agent, event: &Event) -> Vec<Progress> {
        if self.ticket.is_none() || event.ticket() != self.ticket {
            return Vec::new();
        }
        self.ticket = None;
        let Event::Answered { answer, .. } = event else {
            return Vec::new();
        };
        let number = answer.newest;
        let seen = super::response(answer, false, false).seen;
        let record = answer.record.as_ref().map(|record| record.key).zip(seen);
        let scanned = match record {
            Some(_) => Scanned::Record,
            None => Scanned::Nothing,
        };
        let mut all = vec![Progress {
            scanned,
            number,
            record,
        }];
        match answer.next_slot() {
            Some(slot) => {
                let next = scan(self.group, slot, self.reading);
                self.ticket = agent.submit(now, next).ok();
            }
            None => all.push(Progress {
                scanned: Scanned::End,
                number,
                record: None,
            }),
        }
        all
    }
}

fn scan(group: u16, slot: u16, reading: Reading) -> Operation {
    let place = Place::within(group, Key::default());
    Operation::new(place, Action::Scan { slot, reading })
}

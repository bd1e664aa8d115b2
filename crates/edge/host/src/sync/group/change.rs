//! Changes of a group's values.

use std::collections::BTreeSet;

use stateplane_disk::Files;
use stateplane_sync::{Ticket, WriteError};
use stateplane_wire::sync::{Operation, Outcome};

use super::waiting::{WaitingChange, answer};
use super::{Change, ChangeDone, Group, Kept, MOST_WAITING, Progress, Reply, ViewError};

/// Messages of one change that are with the core at one time.
const MOST_PIECES: usize = 64;

/// Most values of a change.
const MOST_VALUES: usize = 1 << 20;

impl Group {
    pub(in crate::sync) fn begin_change<F: Files>(
        &mut self,
        now: u64,
        change: Change,
        kept: &mut Kept<F>,
        reply: Reply<ChangeDone>,
    ) {
        match change.id.and_then(|id| Some((id, kept.write(&id)?))) {
            Some((_, Progress::Ended(outcome))) => {
                let done = ChangeDone { outcome, pieces: 0 };
                return reply(Ok(done));
            }
            Some((_, Progress::Unknown)) => return reply(Err(unknown_before())),
            Some((id, Progress::Begun)) => {
                let mut waiting = self.changes.iter_mut();
                let same = waiting.find(|waiting| waiting.change.id == Some(id));
                return match same.filter(|same| same.replies.len() < MOST_WAITING) {
                    Some(same) => same.replies.push(reply),
                    None => reply(Err(ViewError::Busy("the change is under way".into()))),
                };
            }
            None => {}
        }
        if let Err(error) = self.check_change(now, &change) {
            return reply(Err(error));
        }
        let begun = change.id.map_or(0, |id| {
            kept.begin_write(id);
            kept.position()
        });
        self.changes.push(WaitingChange {
            begun,
            end: now.saturating_add(change.patience_us),
            change,
            next: 0,
            pieces: 0,
            tickets: BTreeSet::new(),
            outcome: Outcome::Done,
            is_unknown: false,
            replies: vec![reply],
        });
    }

    fn check_change(&self, now: u64, change: &Change) -> Result<(), ViewError> {
        let conditional = change.operation == Operation::SetIfEqual;
        let most = if conditional { 1 } else { MOST_VALUES };
        if change.values.is_empty() || change.values.len() > most {
            let message = format!("a change of this kind has 1 to {most} values");
            return Err(ViewError::Malformed(message));
        }
        let last = self.file.locations - 1;
        let beyond = change.values.iter().find(|(location, _)| *location > last);
        if let Some((location, _)) = beyond {
            return Err(self.no_location(u64::from(*location)));
        }
        if self.changes.len() >= MOST_WAITING {
            return Err(ViewError::Busy(format!("{MOST_WAITING} changes")));
        }
        self.check_follows(now)
    }

    pub(super) fn written(&mut self, ticket: Ticket, outcome: Option<Outcome>) {
        let mut waiting = self.changes.iter_mut();
        let Some(change) = waiting.find_map(|it| it.tickets.remove(&ticket).then_some(it)) else {
            return;
        };
        match outcome {
            Some(Outcome::Done) => {}
            // Pieces before it may have been written.
            None | Some(Outcome::NotAllowed) => change.is_unknown = true,
            Some(outcome) => change.outcome = outcome,
        }
    }

    pub(super) fn settle_changes<F: Files>(&mut self, now: u64, kept: &mut Kept<F>) {
        let changes = std::mem::take(&mut self.changes);
        for mut change in changes {
            let failed = if kept.may_send(change.begun) {
                self.feed(&mut change).err()
            } else {
                None
            };
            let is_over = change.next == change.change.values.len()
                || change.is_unknown
                || change.outcome != Outcome::Done;
            if failed.is_none() && !(is_over && change.tickets.is_empty()) {
                if now >= change.end {
                    for reply in change.replies.drain(..) {
                        let said = ViewError::Unknown("the switch did not answer in time".into());
                        answer(&mut self.answers, 0, reply, Err(said));
                    }
                }
                self.changes.push(change);
                continue;
            }
            let is_known = !change.is_unknown && failed.is_none();
            let outcome = is_known.then_some(change.outcome);
            let position = change.change.id.map_or(0, |id| {
                kept.end_write(id, outcome);
                kept.position()
            });
            let said = match (failed, outcome) {
                (Some(error), _) => Err(error),
                (None, None) => Err(ViewError::Unknown("the switch's view began anew".into())),
                (None, Some(outcome)) => Ok(ChangeDone {
                    outcome,
                    pieces: change.pieces,
                }),
            };
            for reply in change.replies {
                answer(&mut self.answers, position, reply, said.clone());
            }
        }
    }

    /// Gives the core what it takes of a change.
    fn feed(&mut self, waiting: &mut WaitingChange) -> Result<(), ViewError> {
        let change = &waiting.change;
        while waiting.next < change.values.len()
            && waiting.tickets.len() < MOST_PIECES
            && !waiting.is_unknown
            && waiting.outcome == Outcome::Done
        {
            let all = change.values.len();
            let batch = self.file.batch as usize;
            let is_staged = change.operation == Operation::Set && all > batch;
            let end = if is_staged {
                all
            } else {
                all.min(waiting.next + batch)
            };
            let piece = &change.values[waiting.next..end];
            let taken = if is_staged {
                self.engine.write_staged(piece)
            } else {
                self.engine.write(change.operation, piece, change.expected)
            };
            match taken {
                Ok(ticket) => waiting.tickets.insert(ticket),
                Err(WriteError::Full(_)) => break,
                Err(error) => return Err(ViewError::of_write(&self.file.name, error)),
            };
            waiting.next = end;
            waiting.pieces += 1;
        }
        Ok(())
    }
}

fn unknown_before() -> ViewError {
    ViewError::Unknown("switch or engine started anew when it was under way".into())
}

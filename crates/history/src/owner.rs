//! One owner at a time.
//!
//! A tenure is one grant in the hands of one start of one switch: it begins when
//! the switch accepts the grant and ends when its deadline has passed by its own
//! clock (given in true time), it gives the slot up, or it dies; a packet processed
//! under the grant later than that extends it. Of two tenures of a flow by
//! different holders that overlap, both must be shared.
//!
//! Besides, a switch may accept only what the store granted to this start of it
//! (rule 6), use only what it accepted, and the epoch grows with each new grant
//! (rule 2). What the store granted is checked only if the history tells of any
//! grants by it.

use crate::checker::{Checker, Subject, Violation};
use crate::event::{EventKind, Flow, History, Occupant};
use crate::serial::newer;
use std::collections::BTreeMap;

struct Tenure {
    holder: Occupant,
    epoch: u32,
    shared: bool,
    /// Index of the event with which it began.
    accepted: usize,
    /// First µs at which it is over.
    until: u64,
    /// It was given up or died with its holder.
    over: bool,
}

#[derive(Default)]
struct Leases {
    /// Epoch and holder of each grant, in order.
    grants: Vec<(u32, Occupant)>,
    tenures: Vec<Tenure>,
    /// A violation was found.
    guilty: bool,
}

impl Leases {
    fn granted(&mut self, to: Occupant, epoch: u32) -> Option<String> {
        if self.grants.contains(&(epoch, to)) {
            return None;
        }
        let greatest = self.grants.last().map(|(epoch, _)| *epoch);
        self.grants.push((epoch, to));
        let greatest = greatest.filter(|&greatest| !newer(epoch, greatest))?;
        Some(format!(
            "epoch {epoch} was granted to {to} after epoch {greatest}"
        ))
    }

    fn accepted(&mut self, index: usize, at: u64, new: Tenure, told: bool) -> Option<String> {
        let Tenure {
            holder,
            epoch,
            shared,
            until,
            ..
        } = new;
        if told && !self.grants.contains(&(epoch, holder)) {
            return Some(match self.grants.iter().find(|(e, _)| *e == epoch) {
                Some((_, other)) => {
                    format!("{holder} accepted epoch {epoch}, which was granted to {other}")
                }
                None => format!("{holder} accepted epoch {epoch}, which was never granted"),
            });
        }
        let mut held = self.tenures.iter_mut().rev();
        let held = held.find(|t| t.holder == holder && !t.over);
        match held.filter(|t| t.epoch == epoch) {
            Some(tenure) => {
                tenure.until = tenure.until.max(until);
                tenure.shared = shared;
            }
            None => {
                for tenure in &mut self.tenures {
                    tenure.over |= tenure.holder == holder;
                }
                self.tenures.push(Tenure {
                    accepted: index,
                    ..new
                });
            }
        }
        self.tenures
            .iter()
            .find(|t| {
                t.holder != holder && !t.over && t.until > at && !(t.shared && shared)
            })
            .map(|other| {
                format!(
                    "{holder} holds it under epoch {epoch} although {} has it until {} under epoch {}",
                    other.holder, other.until, other.epoch
                )
            })
    }

    fn used(&mut self, at: u64, holder: Occupant, epoch: u32) -> Option<String> {
        let tenures = &mut self.tenures;
        let place = tenures
            .iter()
            .position(|t| t.holder == holder && t.epoch == epoch && !t.over);
        let Some(place) = place else {
            return Some(format!("{holder} used epoch {epoch} without holding it"));
        };
        tenures[place].until = tenures[place].until.max(at.saturating_add(1));
        let own = &tenures[place];
        // A holder that comes back late has held the lease all the time: whoever
        // accepted it in between overlaps, even if that tenure has ended.
        tenures
            .iter()
            .find(|t| {
                t.holder != holder
                    && !(t.shared && own.shared)
                    && (t.accepted > own.accepted || (!t.over && t.until > at))
            })
            .map(|other| {
                format!(
                    "{holder} used epoch {epoch} although {} had got it under epoch {}",
                    other.holder, other.epoch
                )
            })
    }
}

pub(crate) fn check(history: &History) -> Vec<Violation> {
    let told = history
        .events
        .iter()
        .any(|event| matches!(event.kind, EventKind::Granted { .. }));
    let mut flows: BTreeMap<&Flow, Leases> = BTreeMap::new();
    let mut found = Vec::new();
    for (index, event) in history.events.iter().enumerate() {
        let at = event.at;
        let (flow, because) = match &event.kind {
            EventKind::Granted {
                to, flow, epoch, ..
            } => {
                let leases = flows.entry(flow).or_default();
                (flow, leases.granted(*to, *epoch))
            }
            EventKind::Accepted {
                by,
                flow,
                epoch,
                shared,
                until,
            } => {
                let tenure = Tenure {
                    holder: *by,
                    epoch: *epoch,
                    shared: *shared,
                    accepted: index,
                    until: *until,
                    over: false,
                };
                let leases = flows.entry(flow).or_default();
                (flow, leases.accepted(index, at, tenure, told))
            }
            EventKind::Used { by, flow, epoch } => {
                let leases = flows.entry(flow).or_default();
                (flow, leases.used(at, *by, *epoch))
            }
            EventKind::Ended { by, flow } => {
                if let Some(leases) = flows.get_mut(flow) {
                    for tenure in &mut leases.tenures {
                        tenure.over |= tenure.holder == *by;
                    }
                }
                continue;
            }
            EventKind::Died { switch } => {
                for leases in flows.values_mut() {
                    for tenure in &mut leases.tenures {
                        tenure.over |= tenure.holder.switch == *switch;
                    }
                }
                continue;
            }
            _ => continue,
        };
        let Some(because) = because else { continue };
        let leases = flows.entry(flow).or_default();
        if !leases.guilty {
            leases.guilty = true;
            found.push(Violation {
                checker: Checker::SingleOwner,
                subject: Subject::Flow(flow.clone()),
                event: index,
                because,
            });
        }
    }
    found
}

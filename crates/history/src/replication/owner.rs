//! One owner at a time.
//!
//! A tenure is one grant in the hands of one start of one switch: it begins when
//! the switch accepts the grant and ends when its deadline has passed by its own
//! clock (given in true time), it gives the slot up, or it dies; a packet processed
//! under the grant later than that extends it. Of two tenures of a flow by
//! different holders that overlap, both must be shared.
//!
//! Besides, a switch may accept only what the store granted to this start of it
//! (rule 6), use only what it accepted, no two holders get one epoch, and the epoch grows
//! with each new grant (rule 2). What the store granted is checked only if the history
//! tells of any grants by it. Grants come to light when they are answered, and not in
//! order: a tail that was cut out may answer late what the next one did not answer, since
//! that one came back from its disk meanwhile. So a grant may be told after a newer one,
//! but if another holder got the newer one, or its own holder accepted it, the older lease
//! is over and may not be accepted with time left. Shared ones are valid side by side.

use crate::checker::{Checker, Objections};
use crate::replication::event::{
    Event, EventKind, Flow, Occupant, Replication, StateEvent, Violation,
};
use crate::serial::newer;
use std::collections::BTreeMap;

struct Tenure {
    holder: Occupant,
    epoch: u32,
    shared: bool,
    /// When it began.
    from: u64,
    /// First µs at which it is over. A grant that arrives after its deadline is
    /// empty.
    until: u64,
    /// It was given up, replaced, or died with its holder.
    over: bool,
}

impl Tenure {
    fn end(&mut self, at: u64) {
        self.over = true;
        self.until = self.until.min(at);
    }

    fn conflicts(&self, other: &Tenure) -> bool {
        let start = self.from.max(other.from);
        let overlap = start < self.until.min(other.until);
        let exclusive = !self.shared || !other.shared;
        self.holder != other.holder && exclusive && overlap
    }
}

/// A grant as it was first told.
struct Grant {
    epoch: u32,
    to: Occupant,
    shared: bool,
}

fn never_granted(holder: Occupant, epoch: u32) -> String {
    format!("{holder} accepted epoch {epoch}, which was never granted")
}

#[derive(Default)]
struct Leases {
    /// Each grant, in the order in which they were told.
    grants: Vec<Grant>,
    tenures: Vec<Tenure>,
}

impl Leases {
    fn has_granted(&self, to: Occupant, epoch: u32) -> bool {
        let mut grants = self.grants.iter();
        grants.any(|grant| grant.to == to && grant.epoch == epoch)
    }

    fn granted(&mut self, to: Occupant, epoch: u32, shared: bool) -> Option<String> {
        if self.has_granted(to, epoch) {
            return None;
        }
        let mut before = self.grants.iter();
        let other = before.find(|grant| grant.epoch == epoch && !(grant.shared && shared));
        let other = other.map(|grant| grant.to);
        self.grants.push(Grant { epoch, to, shared });
        let other = other?;
        Some(format!(
            "epoch {epoch} was granted to {to}, and before to {other}"
        ))
    }

    /// A newer grant, told before that of `epoch` to `holder`, whose lease ended that one's.
    fn overtaken(&self, holder: Occupant, epoch: u32) -> Option<&Grant> {
        let of = |grant: &Grant| grant.to == holder && grant.epoch == epoch;
        let told = self.grants.iter().position(of)?;
        let shared = self.grants[told].shared;
        let has_accepted = |epoch: u32| {
            let mut tenures = self.tenures.iter();
            tenures.any(|tenure| tenure.holder == holder && tenure.epoch == epoch)
        };
        self.grants[..told].iter().find(|grant| {
            !(grant.shared && shared)
                && newer(grant.epoch, epoch)
                && (grant.to != holder || has_accepted(grant.epoch))
        })
    }

    fn accepted(&mut self, new: Tenure, told: bool) -> Option<String> {
        let (holder, epoch) = (new.holder, new.epoch);
        if told && !self.has_granted(holder, epoch) {
            return Some(
                match self.grants.iter().find(|grant| grant.epoch == epoch) {
                    Some(Grant { to: other, .. }) => {
                        format!("{holder} accepted epoch {epoch}, which was granted to {other}")
                    }
                    None => never_granted(holder, epoch),
                },
            );
        }
        if new.from < new.until
            && let Some(later) = self.overtaken(holder, epoch)
        {
            return Some(format!(
                "{holder} accepted epoch {epoch}, which was granted after epoch {} to {}",
                later.epoch, later.to
            ));
        }
        let place = match self.held(holder, epoch) {
            Some(place) => {
                let tenure = &mut self.tenures[place];
                tenure.until = tenure.until.max(new.until);
                tenure.shared = new.shared;
                place
            }
            None => {
                self.end(new.from, |of| *of == holder);
                self.tenures.push(new);
                self.tenures.len() - 1
            }
        };
        let other = self.rival_of(place)?;
        Some(format!(
            "{holder} holds it under epoch {epoch} although {} has it until {} under epoch {}",
            other.holder, other.until, other.epoch
        ))
    }

    fn used(&mut self, at: u64, holder: Occupant, epoch: u32) -> Option<String> {
        let Some(place) = self.held(holder, epoch) else {
            return Some(format!("{holder} used epoch {epoch} without holding it"));
        };
        // Whoever comes back late has held the lease all the time.
        let tenure = &mut self.tenures[place];
        tenure.until = tenure.until.max(at.saturating_add(1));
        let other = self.rival_of(place)?;
        Some(format!(
            "{holder} used epoch {epoch} although {} has had it from {} to {} under epoch {}",
            other.holder, other.from, other.until, other.epoch
        ))
    }

    fn held(&self, holder: Occupant, epoch: u32) -> Option<usize> {
        let mut tenures = self.tenures.iter();
        tenures.position(|t| t.holder == holder && t.epoch == epoch && !t.over)
    }

    fn rival_of(&self, place: usize) -> Option<&Tenure> {
        let own = &self.tenures[place];
        self.tenures.iter().find(|other| own.conflicts(other))
    }

    fn end(&mut self, at: u64, whose: impl Fn(&Occupant) -> bool) {
        let held = self.tenures.iter_mut();
        held.filter(|t| !t.over && whose(&t.holder))
            .for_each(|tenure| tenure.end(at));
    }
}

/// Objections to flows by the event at which they show.
type Found = BTreeMap<Flow, (usize, String)>;

#[derive(Default)]
pub(crate) struct SingleOwner {
    flows: BTreeMap<Flow, Leases>,
    found: Found,
    /// First acceptance of each flow before the first grant of the history. An objection
    /// if the history tells of grants at all.
    never_granted: Found,
    /// The history told of a grant.
    told: bool,
}

impl SingleOwner {
    pub(crate) const NAME: &'static str = "single-owner";

    fn handle_state(&mut self, index: usize, at: u64, event: &StateEvent) {
        let (flow, because) = match event {
            StateEvent::Granted {
                to,
                flow,
                epoch,
                shared,
            } => {
                self.told = true;
                let leases = self.flows.entry(flow.clone()).or_default();
                (flow, leases.granted(*to, *epoch, *shared))
            }
            StateEvent::Accepted {
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
                    from: at,
                    until: *until,
                    over: false,
                };
                if !self.told {
                    let because = never_granted(*by, *epoch);
                    let first = self.never_granted.entry(flow.clone());
                    first.or_insert((index, because));
                }
                let leases = self.flows.entry(flow.clone()).or_default();
                (flow, leases.accepted(tenure, self.told))
            }
            StateEvent::Used { by, flow, epoch } => {
                let leases = self.flows.entry(flow.clone()).or_default();
                (flow, leases.used(at, *by, *epoch))
            }
            StateEvent::Ended { by, flow } => {
                if let Some(leases) = self.flows.get_mut(flow) {
                    leases.end(at, |of| of == by);
                }
                return;
            }
            _ => return,
        };
        if let Some(because) = because {
            let first = self.found.entry(flow.clone());
            first.or_insert((index, because));
        }
    }
}

impl Checker<Replication> for SingleOwner {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Replication, index: usize, event: &Event) {
        match &event.kind {
            EventKind::Of(state) => self.handle_state(index, event.at, state),
            EventKind::Died { node } => {
                for leases in self.flows.values_mut() {
                    leases.end(event.at, |of| of.switch == *node);
                }
            }
            _ => {}
        }
    }

    fn finish(mut self: Box<Self>, _: &Replication) -> Vec<Violation> {
        if self.told {
            for (flow, early) in std::mem::take(&mut self.never_granted) {
                let found = self.found.entry(flow).or_insert_with(|| early.clone());
                if early.0 <= found.0 {
                    *found = early;
                }
            }
        }
        let mut found: Vec<_> = self.found.into_iter().collect();
        found.sort_by_key(|(_, (event, _))| *event);
        let mut objections = Objections::new(Self::NAME);
        for (flow, (event, because)) in found {
            objections.add(flow, event, because);
        }
        objections.into_violations()
    }
}

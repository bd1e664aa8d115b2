//! The authority's knowledge of a group, and the part that it stores.

use super::{Members, Start};
use crate::options::Rule;
use crate::parcel::Begin;
use stateplane_wire::multicast::Repr;
use std::collections::{BTreeMap, BTreeSet};

/// Change of members with which an epoch begins: one leaves, one that learned joins.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Change {
    pub(super) leaves: Option<u8>,
    pub(super) joins: Option<(u8, Start)>,
}

/// Numbers of members and of receivers in a group.
const NUMBERS: u8 = 8;

/// A group.
pub(super) struct Group {
    /// Stored: the epoch, its members and leader, configurations that are not settled, the list.
    pub(super) epoch: u32,
    pub(super) members: Members,
    pub(super) leader: Option<u8>,
    pub(super) sets: Vec<Members>,
    pub(super) receivers: BTreeMap<u8, usize>,
    pub(super) list_version: u16,
    /// Version of the list in which each receiver was listed.
    since: BTreeMap<u8, u16>,
    /// The learner. It has promised the present epoch if `learner_promised`.
    pub(super) learner: Option<(u8, Start)>,
    pub(super) learner_promised: bool,
    change: Change,
    /// Last term and index of those who promised the epoch.
    promises: BTreeMap<u8, (u32, u32)>,
    /// Numbers of learners in this epoch, which no other start gets in it.
    used: BTreeSet<u8>,
    pub(super) established: bool,
    pub(super) joined: bool,
    /// A member that lives and is to leave.
    pub(super) leaves: Option<u8>,
    /// Numbers of receivers that the leader may still have on its list.
    cooling: BTreeSet<u8>,
    /// State of the first established leader that has this list, and when the leader was heard last.
    pub(super) begins_at: Option<Begin>,
    pub(super) heard_at: u64,
}

/// True if `one` was counted up from `other`.
fn is_newer(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}

impl Group {
    pub(super) fn new(epoch: u32, members: Members, receivers: BTreeMap<u8, usize>) -> Self {
        Self {
            epoch,
            sets: vec![members.clone()],
            members,
            leader: None,
            since: receivers.keys().map(|number| (*number, 1)).collect(),
            receivers,
            list_version: 1,
            learner: None,
            learner_promised: false,
            change: Change::default(),
            promises: BTreeMap::new(),
            used: BTreeSet::new(),
            established: false,
            joined: false,
            leaves: None,
            cooling: BTreeSet::new(),
            begins_at: None,
            heard_at: 0,
        }
    }

    /// The start that leads.
    pub(super) fn leads(&self) -> Option<Start> {
        self.members.get(&self.leader?).copied()
    }

    /// Members of the present epoch, and who learns in it.
    pub(super) fn present(&self) -> Members {
        let mut present = self.members.clone();
        present.extend(self.learner.filter(|_| self.learner_promised));
        present
    }

    /// All starts that have a number in the group.
    pub(super) fn starts(&self) -> BTreeSet<(u8, Start)> {
        let sets = self.sets.iter().flatten();
        let sets = sets.map(|(number, start)| (*number, *start));
        let members = self.members.iter().map(|(number, start)| (*number, *start));
        let joins = self.learner.into_iter().chain(self.change.joins);
        sets.chain(members).chain(joins).collect()
    }

    pub(super) fn involves(&self, switch: usize) -> bool {
        self.starts().iter().any(|(_, of)| of.switch == switch)
    }

    /// Takes starts of switches for those that had their places before.
    pub(super) fn take_for_same(&mut self, lives: &[Option<u32>]) {
        let sets = self.sets.iter_mut().chain([&mut self.members]);
        for start in sets.flat_map(|set| set.values_mut()) {
            start.incarnation = lives[start.switch].unwrap_or(start.incarnation);
        }
    }

    /// Begins the next epoch.
    pub(super) fn begin(&mut self, change: Change) {
        self.epoch = self.epoch.wrapping_add(1);
        self.forget_what_was_not_stored();
        self.change = change;
        self.used.clear();
        // The next leader takes the list anew, with all numbers.
        self.cooling.clear();
        if change.joins.is_some() {
            self.learner = None;
        }
        self.used.extend(self.learner.map(|(number, _)| number));
    }

    /// State that the controller does not have after a restart.
    pub(super) fn forget_what_was_not_stored(&mut self) {
        self.leader = None;
        self.learner_promised = false;
        self.promises.clear();
        self.established = false;
        self.joined = false;
        self.begins_at = None;
    }

    /// A number that no start has had in a configuration that counts, or in this epoch.
    fn free_number(&self) -> Option<u8> {
        let starts = self.starts();
        let taken = |number: &u8| starts.iter().any(|(of, _)| of == number);
        let was = |number: &u8| self.used.contains(number) || self.promises.contains_key(number);
        (0..NUMBERS).find(|number| !taken(number) && !was(number))
    }

    /// Has a start learn. Without `promises` it is not asked to promise first.
    pub(super) fn learns(&mut self, start: Start, promises: bool) {
        if let Some(number) = self.free_number() {
            self.used.insert(number);
            self.learner = Some((number, start));
            self.learner_promised = !promises;
            self.joined = false;
        }
    }

    /// The receiver's number in the list, and the version since which it has it.
    pub(super) fn listed(&self, receiver: usize) -> Option<(u8, u16)> {
        let mut listed = self.receivers.iter();
        let (number, _) = listed.find(|(_, of)| **of == receiver)?;
        Some((*number, *self.since.get(number)?))
    }

    pub(super) fn unlist(&mut self, number: u8) {
        self.receivers.remove(&number);
        self.cooling.insert(number);
        self.list_version = self.list_version.wrapping_add(1);
        self.begins_at = None;
    }

    /// Lists a receiver. With `cools` it gets a number that the leader has not on its list.
    pub(super) fn list(&mut self, receiver: usize, cools: bool) {
        let taken = |number: &u8| {
            self.receivers.contains_key(number) || (cools && self.cooling.contains(number))
        };
        if let Some(number) = (0..NUMBERS).find(|number| !taken(number)) {
            self.receivers.insert(number, receiver);
            self.list_version = self.list_version.wrapping_add(1);
            self.since.insert(number, self.list_version);
            self.begins_at = None;
        }
    }

    /// Starts that have to promise and have not.
    pub(super) fn unpromised(&self) -> Vec<Start> {
        let learner = self.learner.filter(|_| !self.learner_promised);
        let members = self.sets.iter().flatten();
        let members = members.map(|(number, start)| (*number, *start));
        let members = members.filter(|_| self.leader.is_none());
        let members: BTreeSet<_> = members.chain(learner).collect();
        let open = members
            .iter()
            .filter(|(number, _)| !self.promises.contains_key(number));
        open.map(|(_, start)| *start).collect()
    }

    pub(super) fn promised(&mut self, message: &Repr<'_>) {
        let start = (message.origin, message.incarnation);
        if message.epoch != self.epoch {
            return;
        }
        if let Some((number, of)) = self.learner
            && (number, of.incarnation) == start
        {
            self.learner_promised = true;
        }
        let mut sets = self.sets.iter();
        let is_member = sets.any(|set| {
            let member = set.get(&message.origin);
            member.is_some_and(|of| of.incarnation == message.incarnation)
        });
        if is_member && self.leader.is_none() {
            self.promises
                .insert(message.origin, (message.term, message.index));
        }
    }

    /// Appoints a leader if promises suffice; true if one is.
    pub(super) fn appoint(
        &mut self,
        alive: &dyn Fn(Start) -> bool,
        without: Option<Rule>,
        draw: u64,
    ) -> bool {
        if self.leader.is_some() {
            return false;
        }
        let quorum = |set: &Members, left_out: Option<u8>| {
            let promised = set
                .keys()
                .filter(|number| self.promises.contains_key(number) && Some(**number) != left_out);
            2 * promised.count() > set.len()
        };
        let count = match without {
            Some(Rule::EveryConfiguration) => self.sets.len() - 1,
            _ => 0,
        };
        let sets = &self.sets[count..];
        if !sets.iter().all(|set| quorum(set, None)) {
            return false;
        }
        // If the others are majorities without the member that leaves, nothing is committed that it
        // alone has.
        let leaves = self.change.leaves;
        let suffice = sets.iter().all(|set| quorum(set, leaves));
        let unheard =
            |(number, start): &(&u8, &Start)| !self.promises.contains_key(number) && alive(**start);
        if !suffice && sets.iter().flatten().any(|of| unheard(&of)) {
            return false;
        }
        let left_out = leaves.filter(|_| suffice);
        let greater = |one: &(u32, u32), other: &(u32, u32)| {
            is_newer(one.0, other.0) || (one.0 == other.0 && is_newer(one.1, other.1))
        };
        let all = self.promises.iter().map(|(of, at)| (*of, *at));
        let all: Vec<(u8, (u32, u32))> = all.filter(|(of, _)| Some(*of) != left_out).collect();
        let best = all.iter().filter(|(_, at)| {
            !all.iter().any(|(_, other)| greater(other, at)) || without == Some(Rule::GreatestLog)
        });
        let start = |number: &u8| {
            let mut sets = self.sets.iter().rev();
            sets.find_map(|set| set.get(number).copied())
        };
        let best: Vec<u8> = best.map(|(number, _)| *number).collect();
        let best = best.into_iter().filter(|of| start(of).is_some_and(alive));
        let best: Vec<u8> = best.collect();
        if best.is_empty() {
            // Whoever could lead is dead.
            self.begin(Change::default());
            return false;
        }
        self.settle(&best, alive, draw);
        true
    }

    /// Chooses the leader among `best`, and the members.
    fn settle(&mut self, best: &[u8], alive: &dyn Fn(Start) -> bool, draw: u64) {
        let mut members = self.members.clone();
        let mut change = self.change;
        if change.joins.is_some_and(|(_, start)| !alive(start)) {
            // With a dead member more deaths would be too many than the configurations before bear.
            change = Change::default();
        }
        if !best.iter().any(|number| members.contains_key(number)) {
            // Only one that was taken out has it all: that configuration is restored (rule 11).
            let mut sets = self.sets.iter().rev();
            let restored = sets.find(|set| best.iter().any(|of| set.contains_key(of)));
            members = restored.cloned().unwrap_or(members);
            change = Change::default();
        }
        let inside: Vec<u8> = best
            .iter()
            .copied()
            .filter(|of| members.contains_key(of))
            .collect();
        let staying: Vec<u8> = inside
            .iter()
            .copied()
            .filter(|of| Some(*of) != change.leaves)
            .collect();
        if staying.is_empty() || change.leaves.is_some_and(|of| !members.contains_key(&of)) {
            change = Change::default();
        }
        let from = if staying.is_empty() {
            &inside
        } else {
            &staying
        };
        self.leader = Some(from[draw as usize % from.len()]);
        if let Change {
            leaves: Some(leaves),
            joins: Some((number, start)),
        } = change
        {
            members.remove(&leaves);
            members.insert(number, start);
            if self.leaves == Some(leaves) {
                self.leaves = None;
            }
        }
        self.change = Change::default();
        if !self.sets.contains(&members) {
            self.sets.push(members.clone());
        }
        self.members = members;
        let learner = self.learner.map(|(number, _)| number);
        if learner.is_some_and(|number| self.members.contains_key(&number)) {
            self.learner = None;
        }
    }

    /// The leader's report about itself.
    pub(super) fn leading(&mut self, message: &Repr<'_>, established: u8, joined: u8) {
        if message.flags & established != 0 && !self.established {
            self.established = true;
            self.sets = vec![self.members.clone()];
        }
        let learner = self.learner.filter(|_| self.learner_promised);
        if message.flags & joined != 0 && learner.is_some_and(|(of, _)| of == message.learner) {
            self.joined = true;
        }
        if message.list_version != self.list_version {
            return;
        }
        self.cooling.clear();
        if self.established && self.begins_at.is_none() {
            self.begins_at = Some(Begin {
                last: message.before,
                base: message.base,
                time: message.timestamp,
            });
        }
    }
}

//! Each group is a log: answers are those of its entries in the order of their numbers
//! (`docs/coordination-protocol.md`, rules 1 to 8, 14, 20, 21).
//!
//! A numbered answer fixes its operation's place, and so does the newest number in a read's
//! answer. Only operations without an answer have to be placed: a number that an answer shows
//! though no answered operation has it must be one of theirs; and any may lie, unseen, at a
//! number that is free. Those places are searched, depth first, unseen ones last.

use crate::checker::{Checker, Objections, Violation};
use crate::coordination::event::{
    Coordination, CoordinationEvent, Event, EventKind, Number, Outcome, Request, Response, Subject,
};
use crate::coordination::machine::{Decision, Group};
use crate::coordination::scans::{Scan, Scans};
use crate::event::Object;
use crate::operation::Operations;
use std::collections::{BTreeMap, BTreeSet};

/// Most operations without an answer on keys that guards join.
pub const LONGEST_LIST: usize = 256;

/// Most places that are tried for the operations of keys that guards join, besides those that
/// fit at once.
pub const WIDEST_SEARCH: usize = 1 << 17;

/// An operation of a group.
struct Operation {
    number: u64,
    request: Request,
    /// Greatest number that an answer had shown before the call: its entry is newer.
    floor: u64,
    /// Generation that began after it took effect, if it ever did.
    before: Option<u16>,
    /// The answer, and the event that gave it.
    answer: Option<(usize, Response)>,
}

impl Operation {
    /// True if it cannot be, or lie hidden before, the entry `number`.
    fn is_over(&self, number: u64) -> bool {
        self.before
            .is_some_and(|before| Number(number).generation() >= u64::from(before))
    }
}

/// Objects to groups whose answers no log explains.
#[derive(Default)]
pub(super) struct Linearizable {
    operations: Operations<Coordination>,
    /// Greatest number shown so far, by group.
    newest: BTreeMap<Object, u64>,
    /// `newest` as of each call.
    floors: BTreeMap<(Object, u64), u64>,
    /// Generations that began after operations.
    before: BTreeMap<(Object, u64), u16>,
    scans: Scans,
    /// Records that scans showed, by group: each is a read of its key.
    scanned: BTreeMap<Object, Vec<Operation>>,
}

impl Linearizable {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "linearizable";
    /// Name of the objection that a search was given up.
    pub(super) const UNDECIDED: &'static str = "undecided";

    fn scanned(&mut self, scan: Scan) {
        let newest = self.newest.entry(scan.group.clone()).or_default();
        *newest = (*newest).max(scan.number);
        let Some((request, response)) = scan.read() else {
            return;
        };
        let read = Operation {
            number: scan.list,
            request,
            floor: scan.floor,
            before: None,
            answer: Some((scan.event, response)),
        };
        self.scanned.entry(scan.group).or_default().push(read);
    }

    fn group(
        &mut self,
        of: Vec<crate::operation::OperationOf<Coordination>>,
        name: &Object,
    ) -> Vec<Operation> {
        let (floors, before) = (&self.floors, &self.before);
        let operations = of.into_iter().map(|of| {
            let (number, request) = of.input;
            let operation = (name.clone(), number);
            let floor = floors.get(&operation).copied().unwrap_or(0);
            Operation {
                number,
                request,
                floor,
                before: before.get(&operation).copied(),
                answer: of.ended,
            }
        });
        operations.collect()
    }
}

impl Checker<Coordination> for Linearizable {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Coordination, index: usize, event: &Event) {
        self.operations.handle(index, event);
        let newest = |group: &Object| self.newest.get(group).copied().unwrap_or(0);
        if let Some(scan) = self.scans.handle(index, event, newest) {
            return self.scanned(scan);
        }
        match &event.kind {
            EventKind::Call {
                object, operation, ..
            } => {
                let newest = self.newest.get(object).copied().unwrap_or(0);
                self.floors.insert((object.clone(), *operation), newest);
            }
            EventKind::Return {
                object, response, ..
            } => {
                let newest = self.newest.entry(object.clone()).or_default();
                *newest = (*newest).max(response.number);
            }
            EventKind::Of(CoordinationEvent::Unknown {
                group,
                operation,
                before: Some(before),
                ..
            }) => {
                self.before.insert((group.clone(), *operation), *before);
            }
            _ => {}
        }
    }

    fn finish(mut self: Box<Self>, _: &Coordination) -> Vec<Violation<Coordination>> {
        let mut found = Objections::new(Self::NAME);
        let mut undecided = Objections::new(Self::UNDECIDED);
        let mut groups = core::mem::take(&mut self.operations).by_object();
        for name in self.scanned.keys() {
            groups.entry(name.clone()).or_default();
        }
        for (name, operations) in groups {
            let mut operations = self.group(operations, &name);
            operations.extend(self.scanned.remove(&name).unwrap_or_default());
            let taken: BTreeMap<u64, usize> = operations
                .iter()
                .enumerate()
                .filter_map(|(at, of)| {
                    let (_, answer) = of.answer.as_ref()?;
                    let numbered = !of.request.reads() && answer.outcome != Outcome::Never;
                    numbered.then_some((answer.number, at))
                })
                .collect();
            for keys in joined(&operations) {
                let key = keys.first().cloned();
                let subject = Subject {
                    group: name.clone(),
                    key,
                };
                match (Search::new(&operations, &keys, &taken)).run() {
                    Verdict::Explained => {}
                    Verdict::Wrong(event, because) => found.add(subject, event, because),
                    Verdict::Undecided(event, because) => undecided.add(subject, event, because),
                }
            }
        }
        let mut all = found.into_violations();
        all.extend(undecided.into_violations());
        all
    }
}

/// The keys of a group, those together that guards join.
fn joined(operations: &[Operation]) -> Vec<BTreeSet<Object>> {
    let mut sets: Vec<BTreeSet<Object>> = Vec::new();
    for Operation { request, .. } in operations {
        let guard = request.guard.as_ref().map(|guard| &guard.key);
        let mut keys: BTreeSet<Object> = [Some(&request.key), guard]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let (apart, with): (Vec<_>, Vec<_>) =
            sets.into_iter().partition(|set| set.is_disjoint(&keys));
        sets = apart;
        keys.extend(with.into_iter().flatten());
        sets.push(keys);
    }
    sets
}

enum Verdict {
    Explained,
    Wrong(usize, String),
    Undecided(usize, String),
}

/// Content of a place of the log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stands {
    /// An entry that an answer shows, though no answered operation has its number.
    Open,
    /// A number that a request names: perhaps that of an operation without an answer.
    Named,
    /// An answered operation.
    Entry(usize),
    /// A read by one who had the entries up to this place.
    Read(usize),
}

struct Search<'a> {
    operations: &'a [Operation],
    /// By number.
    log: Vec<(u64, Stands)>,
    /// Operations without an answer.
    lost: Vec<usize>,
    /// Numbers that some answered operation of the group has.
    taken: &'a BTreeMap<u64, usize>,
}

/// A way to the place `at` of the log.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    at: usize,
    group: Group,
    /// Places in `lost` of operations that took effect.
    used: BTreeSet<usize>,
    /// How many of them lie unseen since the last place.
    unseen: u64,
}

impl<'a> Search<'a> {
    fn new(
        operations: &'a [Operation],
        keys: &BTreeSet<Object>,
        taken: &'a BTreeMap<u64, usize>,
    ) -> Self {
        let mut log = BTreeSet::new();
        let mut lost = Vec::new();
        for (at, operation) in operations.iter().enumerate() {
            if !keys.contains(&operation.request.key) {
                continue;
            }
            let asked = operation.request.numbers();
            log.extend(asked.map(|number| (number, Stands::Named)));
            let Some((_, answer)) = &operation.answer else {
                if !operation.request.reads() {
                    lost.push(at);
                }
                continue;
            };
            if answer.outcome == Outcome::Never {
                continue;
            }
            let stands = if operation.request.reads() {
                Stands::Read(at)
            } else {
                Stands::Entry(at)
            };
            log.insert((answer.number, stands));
            let seen = answer.seen.as_ref().map(|seen| seen.number);
            let shown = [seen, answer.token].into_iter().flatten();
            log.extend(
                shown
                    .filter(|number| *number != 0 && !taken.contains_key(number))
                    .map(|number| (number, Stands::Open)),
            );
        }
        let shown = log.clone();
        log.retain(|(number, stands)| {
            let known = taken.contains_key(number) || shown.contains(&(*number, Stands::Open));
            *stands != Stands::Named || !known
        });
        Self {
            operations,
            log: log.into_iter().collect(),
            lost,
            taken,
        }
    }

    /// Numbers between two places of the log that no answered operation has.
    fn room(&self, at: usize) -> u64 {
        let after = at.checked_sub(1).map_or(0, |before| self.log[before].0);
        let number = self.log.get(at).map_or(u64::MAX, |(number, _)| *number);
        // A read stands behind the entry of its number, which may be one of those unseen.
        let end = match self.log.get(at) {
            Some((_, Stands::Read(_))) => number.saturating_add(1),
            _ => number,
        };
        let between = end.saturating_sub(after.saturating_add(1));
        let taken = self
            .taken
            .range(after.saturating_add(1)..end.max(after.saturating_add(1)))
            .count() as u64;
        between.saturating_sub(taken)
    }

    fn run(&self) -> Verdict {
        if self.lost.len() > LONGEST_LIST {
            let because = format!(
                "{} operations without an answer are too many to place",
                self.lost.len()
            );
            return Verdict::Undecided(0, because);
        }
        let start = Way {
            at: 0,
            group: Group::default(),
            used: BTreeSet::new(),
            unseen: 0,
        };
        // Each way, with how many of its turns were taken.
        let mut ways = vec![(start, 0)];
        let mut dead = BTreeSet::new();
        let mut tried = 0;
        let mut furthest = 0;
        while let Some((way, turn)) = ways.last_mut() {
            if way.at == self.log.len() {
                return Verdict::Explained;
            }
            furthest = furthest.max(way.at);
            let next = self.turn(way, *turn);
            *turn += 1;
            match next {
                Turn::To(next) => {
                    if *turn > 1 {
                        tried += 1;
                    }
                    if !dead.contains(&next) {
                        ways.push((next, 0));
                    }
                }
                Turn::Nowhere => tried += 1,
                Turn::Back => {
                    if let Some((way, _)) = ways.pop()
                        && !self.lost.is_empty()
                    {
                        dead.insert(way);
                    }
                }
            }
            if tried > WIDEST_SEARCH {
                let (event, _) = self.reason(furthest);
                let because = format!("no order was found among {WIDEST_SEARCH} places tried");
                return Verdict::Undecided(event, because);
            }
        }
        let (event, because) = self.reason(furthest);
        Verdict::Wrong(event, because)
    }

    /// The turn of number `turn` from `way`: first what stands at its place, then each operation
    /// without an answer.
    fn turn(&self, way: &Way, turn: usize) -> Turn {
        let (number, stands) = self.log[way.at];
        let onward = |group: Group, used: BTreeSet<usize>| {
            let next = self.log.get(way.at + 1).map_or(number, |(next, _)| *next);
            // A group that is founded anew begins empty (rule 17).
            let anew = Number(next).generation() > Number(number).generation();
            let group = if anew { Group::default() } else { group };
            Turn::To(Way {
                at: way.at + 1,
                group,
                used,
                unseen: 0,
            })
        };
        match stands {
            Stands::Open => {}
            _ if turn > 0 => {}
            Stands::Named => return onward(way.group.clone(), way.used.clone()),
            Stands::Entry(at) => {
                return match explained(&way.group, &self.operations[at], number) {
                    Some(group) => onward(group, way.used.clone()),
                    None => Turn::Nowhere,
                };
            }
            Stands::Read(at) => {
                return match self.operations[at].answer.as_ref() {
                    Some((_, answer))
                        if shows(&way.group, &self.operations[at].request, answer) =>
                    {
                        onward(way.group.clone(), way.used.clone())
                    }
                    _ => Turn::Nowhere,
                };
            }
        }
        let turn = if stands == Stands::Open {
            turn
        } else {
            turn - 1
        };
        let count = self.lost.len();
        let in_sight = matches!(stands, Stands::Open | Stands::Named);
        let (place, hidden) = match (in_sight, turn < count) {
            (true, true) => (turn, false),
            (true, false) => (turn - count, true),
            (false, _) => (turn, true),
        };
        let Some(&lost) = self.lost.get(place) else {
            return Turn::Back;
        };
        let operation = &self.operations[lost];
        // An operation of a later call has a greater number than all that were shown before.
        let end = match stands {
            Stands::Read(_) => number.saturating_add(1),
            _ => number,
        };
        let late = if hidden {
            operation.floor.saturating_add(1) >= end
        } else {
            operation.floor >= number
        };
        if late
            || operation.is_over(number)
            || way.used.contains(&place)
            || (hidden && way.unseen >= self.room(way.at))
        {
            return Turn::Nowhere;
        }
        let decision = way
            .group
            .decide(&operation.request, (!hidden).then_some(number));
        let Some(group) = changed(&way.group, &operation.request, &decision) else {
            return Turn::Nowhere;
        };
        let mut used = way.used.clone();
        used.insert(place);
        if !hidden {
            return onward(group, used);
        }
        Turn::To(Way {
            at: way.at,
            group,
            used,
            unseen: way.unseen + 1,
        })
    }

    /// Event and words for a log that ends before the place `at`.
    fn reason(&self, at: usize) -> (usize, String) {
        let (number, stands) = self.log[at];
        let shown = Number(number);
        match stands {
            Stands::Open | Stands::Named => {
                let mut witnesses = self.log.iter().filter_map(|(_, stands)| match stands {
                    Stands::Entry(at) | Stands::Read(at) => self.operations[*at].answer.as_ref(),
                    Stands::Open | Stands::Named => None,
                });
                let witness = witnesses.find(|(_, answer)| {
                    answer.token == Some(number)
                        || answer
                            .seen
                            .as_ref()
                            .is_some_and(|seen| seen.number == number)
                });
                let event = witness.map_or(0, |(event, _)| *event);
                (
                    event,
                    format!("no operation can be entry {shown}, which the answer shows"),
                )
            }
            Stands::Entry(of) | Stands::Read(of) => {
                let operation = &self.operations[of];
                let event = operation.answer.as_ref().map_or(0, |(event, _)| *event);
                (
                    event,
                    format!(
                        "no log explains the answer of operation {} at {shown}",
                        operation.number
                    ),
                )
            }
        }
    }
}

enum Turn {
    To(Way),
    Nowhere,
    Back,
}

/// The group after a decision that changes it.
fn changed(group: &Group, request: &Request, decision: &Decision) -> Option<Group> {
    decision.change.as_ref()?;
    let mut after = group.clone();
    after.apply(&request.key, decision);
    (after != *group).then_some(after)
}

/// The group after an answered operation, if its answer is right.
fn explained(group: &Group, operation: &Operation, number: u64) -> Option<Group> {
    let (_, answer) = operation.answer.as_ref()?;
    let request = &operation.request;
    let decision = group.decide(request, Some(number));
    if answer.outcome == Outcome::Full && decision.outcome != Outcome::Full {
        let refused = decision.outcome == Outcome::Done && group.may_be_full(request);
        return (refused && shows(group, request, answer)).then(|| group.clone());
    }
    if answer.outcome != decision.outcome {
        return None;
    }
    let mut after = group.clone();
    after.apply(&request.key, &decision);
    shows(&after, request, answer).then_some(after)
}

/// True if a group in this state gives such an answer.
fn shows(group: &Group, request: &Request, answer: &Response) -> bool {
    if request.reads() && group.decide(request, None).outcome != answer.outcome {
        return false;
    }
    let seen = answer.seen.as_ref().is_none_or(|seen| {
        let present = group.seen(&request.key);
        seen.kind == present.kind
            && seen.number == present.number
            && (seen.value.is_none() || seen.value == present.value)
    });
    seen && answer
        .token
        .is_none_or(|token| group.token(&request.key) == Some(token))
}

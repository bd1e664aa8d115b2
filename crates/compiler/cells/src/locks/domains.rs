//! Domains of a program's arrays, and their order.

use super::arrays::{Arrays, Kind};
use super::run::{Run, Use};
use super::{Access, Domain, Edge, Grain, LockPlan, Reason};
use crate::symbols::Symbol;
use stateplane_ir::Program;
use std::collections::{BTreeMap, BTreeSet};

/// An array ([`Arrays`]).
#[derive(Default)]
struct Array {
    name: String,
    length: u64,
    used: bool,
    /// Why its elements cannot be locked one by one.
    whole: Option<Reason>,
    /// True if a block that stands apart uses it.
    apart: bool,
    /// The units with which it is locked, if blocks name these.
    unit: Option<usize>,
    indices: BTreeSet<String>,
}

/// Orders between groups: of the first and the later group one use that shows it.
type Order = BTreeMap<(usize, usize), Edge>;

/// Arrays, the lower number first.
type Pairs = BTreeSet<(usize, usize)>;

pub(super) struct Domains<'p> {
    program: &'p Program,
    kinds: &'p Arrays,
    arrays: Vec<Array>,
    /// The group of each array that is used, by the first array of the group.
    groups: Vec<Option<usize>>,
    order: Order,
}

impl<'p> Domains<'p> {
    pub fn new(program: &'p Program, kinds: &'p Arrays) -> Domains<'p> {
        let registers = program.registers.iter().map(|it| (&*it.name, it.size));
        let meters = program.meters.iter().map(|it| (&*it.name, it.size));
        let units = kinds.all_units().map(|(_, name, it)| (name, it.count));
        let arrays: Vec<Array> = registers
            .chain(meters)
            .chain(units)
            .map(|(name, length)| Array {
                name: name.to_owned(),
                length,
                ..Array::default()
            })
            .collect();
        Domains {
            program,
            kinds,
            groups: vec![None; arrays.len()],
            arrays,
            order: Order::new(),
        }
    }

    /// True if some use of the array is known.
    pub fn has(&self, array: usize) -> bool {
        self.arrays[array].used || self.arrays[array].unit.is_some()
    }

    /// An array whose uses were not followed.
    pub fn lock_as_whole(&mut self, array: usize, why: impl FnOnce(String) -> Reason) {
        let reason = why(self.arrays[array].name.clone());
        self.arrays[array].whole = Some(reason);
        self.arrays[array].used = true;
    }

    /// Makes groups of what a run uses, and their order.
    pub fn follow(&mut self, run: &Run<'_>) {
        let named = self.named(run);
        // An element of a unit is locked with its unit, and units are locked or nothing.
        let is_other = |array: usize| match self.kinds.kind(array) {
            Kind::Register(_) => {
                let units = self.kinds.units_of(array);
                !units.is_some_and(|units| named.contains(&units))
            }
            Kind::Meter(_) => true,
            Kind::Units => named.contains(&array),
        };
        let uses: Vec<&Use> = run.uses.iter().filter(|it| is_other(it.array)).collect();
        // Pairs of arrays that a block may use both, at one index and at two.
        let mut together = BTreeSet::new();
        let mut apart = BTreeSet::new();
        for it in &uses {
            let is_units = self.is_units(it.array);
            let array = &mut self.arrays[it.array];
            array.used = true;
            array.apart |= it.apart;
            if let Some(numbers) = run.unit_numbers.get(&it.array) {
                array.indices.clone_from(numbers);
            } else if array.indices.len() < SHOWN {
                array.indices.insert(run.symbols.text(it.index));
            }
            for before in it.maybe.iter() {
                let Some((&(other, index), place)) = run.elements.get_index(before) else {
                    continue;
                };
                if other != it.array {
                    let set = if index == it.index {
                        &mut together
                    } else {
                        &mut apart
                    };
                    set.insert((other.min(it.array), other.max(it.array)));
                } else if index != it.index && array.whole.is_none() && !is_units {
                    let access = |index: Symbol, place: &str| Access {
                        index: run.symbols.text(index),
                        place: place.to_owned(),
                    };
                    array.whole = Some(Reason::TwoIndices {
                        array: array.name.clone(),
                        uses: [access(index, place), access(it.index, &it.place)],
                    });
                }
            }
        }
        self.group(&together, &apart);
        for it in uses {
            self.note(run, it);
        }
        for (units, _, it) in self.kinds.all_units() {
            if named.contains(&units) {
                for register in &it.registers {
                    self.arrays[register.index()].unit = Some(units);
                }
            }
        }
    }

    /// Units that blocks name before they use any of their elements.
    fn named(&mut self, run: &Run<'_>) -> BTreeSet<usize> {
        let kinds = self.kinds;
        let mut named = BTreeSet::new();
        for (units, name, it) in kinds.all_units() {
            if !run.uses.iter().any(|it| it.array == units) {
                continue;
            }
            let registers = it.registers.iter().map(|it| it.index());
            let in_parser = registers.clone().find(|at| self.has(*at));
            let (at, place) = match (run.without_units.get(&units), in_parser) {
                (Some((at, place)), _) => (*at, place.to_string()),
                (None, Some(at)) => (at, String::new()),
                (None, None) => {
                    named.insert(units);
                    continue;
                }
            };
            let reason = Reason::UnitsNotNamed {
                units: name.to_owned(),
                array: self.arrays[at].name.clone(),
                place,
            };
            for at in registers.filter(|at| kinds.change(*at)) {
                self.arrays[at].whole.get_or_insert_with(|| reason.clone());
            }
        }
        named
    }

    /// Groups arrays of one length that are used together, and then always at one index.
    fn group(&mut self, together: &Pairs, apart: &Pairs) {
        for array in 0..self.arrays.len() {
            if !self.arrays[array].used {
                continue;
            }
            let joined = (0..array).find(|first| {
                let mut members = (0..array).filter(|at| self.groups[*at] == Some(*first));
                self.groups[*first] == Some(*first)
                    && self.fit(*first, array)
                    && members.clone().any(|at| together.contains(&(at, array)))
                    && !members.any(|at| apart.contains(&(at, array)))
            });
            self.groups[array] = Some(joined.unwrap_or(array));
        }
    }

    fn fit(&self, one: usize, other: usize) -> bool {
        // The lock of an array that blocks apart use is free before the block around them ends.
        let alone = |at: &usize| self.is_units(*at) || self.arrays[*at].apart;
        if [one, other].iter().any(alone) {
            return false;
        }
        let (one, other) = (&self.arrays[one], &self.arrays[other]);
        one.whole.is_none() && other.whole.is_none() && one.length == other.length
    }

    /// Notes the order of groups that a use shows, unless its block has locked its group before.
    fn note(&mut self, run: &Run<'_>, it: &Use) {
        let Some(group) = self.groups[it.array] else {
            return;
        };
        let has = it.surely.iter().any(|at| self.groups[at] == Some(group));
        if has && !self.is_change_of_units(run, it) {
            return;
        }
        for element in it.maybe.iter() {
            let Some((&(before, _), _)) = run.elements.get_index(element) else {
                continue;
            };
            if let Some(first) = self.groups[before].filter(|first| *first != group) {
                self.order.entry((first, group)).or_insert_with(|| Edge {
                    first: self.arrays[before].name.clone(),
                    later: self.arrays[it.array].name.clone(),
                    place: it.place.to_string(),
                });
            }
        }
    }

    /// True if a block names units and may hold others, which it lets go of before it takes these
    /// behind all that it holds.
    fn is_change_of_units(&self, run: &Run<'_>, it: &Use) -> bool {
        let mut before = it.maybe.iter().filter_map(|at| run.elements.get_index(at));
        let is_other = |(array, index): &(usize, Symbol)| *array == it.array && *index != it.index;
        self.is_units(it.array) && before.any(|(element, _)| is_other(element))
    }

    /// The domains in an order that all blocks keep.
    pub fn plan(mut self) -> LockPlan {
        // Arrays that no use was seen of have groups of their own.
        for array in 0..self.arrays.len() {
            if self.arrays[array].used && self.groups[array].is_none() {
                self.groups[array] = Some(array);
            }
        }
        self.unite_whole();
        let circles = self.circles();
        let mut plan = LockPlan {
            domains: Vec::new(),
            registers: vec![None; self.program.registers.len()],
            meters: vec![None; self.program.meters.len()],
            units: BTreeMap::new(),
        };
        for group in self.sorted() {
            let number = plan.domains.len();
            let members: Vec<usize> = (0..self.arrays.len())
                .filter(|at| self.groups[*at] == Some(group))
                .collect();
            for &at in &members {
                match self.kinds.kind(at) {
                    Kind::Register(register) => plan.registers[register.index()] = Some(number),
                    Kind::Meter(meter) => plan.meters[meter.index()] = Some(number),
                    Kind::Units => {
                        plan.units.insert(self.arrays[at].name.clone(), number);
                    }
                }
            }
            plan.domains
                .push(self.describe(&members, circles.get(&group)));
        }
        plan
    }

    /// Arrays whose order is unknown are one group.
    fn unite_whole(&mut self) {
        let unordered = |array: &Array| {
            matches!(
                array.whole,
                Some(Reason::Parser { .. } | Reason::NotFollowed { .. } | Reason::TooLarge)
            )
        };
        let all: Vec<usize> = (0..self.arrays.len())
            .filter(|at| unordered(&self.arrays[*at]))
            .collect();
        if let Some(first) = all.first().copied() {
            for at in all {
                self.replace(at, first);
            }
        }
    }

    /// Makes one group part of another.
    fn replace(&mut self, group: usize, by: usize) {
        for member in &mut self.groups {
            if *member == Some(group) {
                *member = Some(by);
            }
        }
        for ((first, later), edge) in std::mem::take(&mut self.order) {
            let renamed = |of: usize| if of == group { by } else { of };
            let (first, later) = (renamed(first), renamed(later));
            if first != later {
                self.order.entry((first, later)).or_insert(edge);
            }
        }
    }

    /// Makes one group of those in a circle; gives for each such group the circles.
    fn circles(&mut self) -> BTreeMap<usize, Vec<Reason>> {
        let mut circles: BTreeMap<usize, Vec<Reason>> = BTreeMap::new();
        let edges: Vec<(usize, usize)> = self.order.keys().copied().collect();
        for (first, later) in edges {
            let Some(edge) = self.order.get(&(first, later)) else {
                continue;
            };
            let Some(back) = self.way(later, first) else {
                continue;
            };
            let mut circle = vec![edge.clone()];
            circle.extend(back.iter().map(|step| self.order[step].clone()));
            let mut reasons = vec![Reason::Circle(circle)];
            let members: BTreeSet<usize> = back.iter().map(|(from, _)| *from).collect();
            let mut all = members;
            all.insert(first);
            let Some(by) = all.first().copied() else {
                continue;
            };
            for group in all {
                reasons.extend(circles.remove(&group).into_iter().flatten());
                self.replace(group, by);
            }
            circles.insert(by, reasons);
        }
        // A merged group may lead back to itself by other edges.
        if self.has_circle() {
            for (group, reasons) in self.circles() {
                circles.entry(group).or_default().extend(reasons);
            }
        }
        let groups = self.groups.clone();
        let mut kept: BTreeMap<usize, Vec<Reason>> = BTreeMap::new();
        for (group, reasons) in circles {
            let present = groups[group].unwrap_or(group);
            kept.entry(present).or_default().extend(reasons);
        }
        kept
    }

    fn has_circle(&self) -> bool {
        let mut edges = self.order.keys();
        edges.any(|(first, later)| self.way(*later, *first).is_some())
    }

    /// The shortest way from one group to another, as steps of the order.
    fn way(&self, from: usize, to: usize) -> Option<Vec<(usize, usize)>> {
        let mut came: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        let mut open = vec![from];
        while !came.contains_key(&to) && !open.is_empty() {
            let mut next = Vec::new();
            for group in open {
                for step in self.order.range((group, 0)..(group + 1, 0)) {
                    let (step, _) = step;
                    if let std::collections::btree_map::Entry::Vacant(entry) = came.entry(step.1) {
                        entry.insert(*step);
                        next.push(step.1);
                    }
                }
            }
            open = next;
        }
        let mut way = Vec::new();
        let mut at = to;
        while at != from || way.is_empty() {
            let step = *came.get(&at)?;
            way.push(step);
            at = step.0;
        }
        way.reverse();
        Some(way)
    }

    /// The groups, each behind those that blocks take before it.
    fn sorted(&self) -> Vec<usize> {
        let mut open: BTreeSet<usize> = self.groups.iter().flatten().copied().collect();
        let mut sorted = Vec::new();
        while !open.is_empty() {
            let free = |group: &&usize| {
                let mut edges = self.order.keys();
                !edges.any(|(first, later)| later == *group && open.contains(first))
            };
            let Some(group) = open.iter().find(free).copied() else {
                // No circle is left.
                break;
            };
            open.remove(&group);
            sorted.push(group);
        }
        sorted
    }

    fn is_units(&self, array: usize) -> bool {
        matches!(self.kinds.kind(array), Kind::Units)
    }

    fn unit_elements(&self, array: usize) -> u64 {
        let mut all = self.kinds.all_units();
        let found = all.find(|(number, ..)| *number == array);
        found.map_or(1, |(_, _, units)| units.elements)
    }

    fn describe(&self, members: &[usize], circles: Option<&Vec<Reason>>) -> Domain {
        let is_within = |at: usize| {
            let units = self.arrays[at].unit;
            members.contains(&at) || units.is_some_and(|units| members.contains(&units))
        };
        let arrays = (0..self.arrays.len())
            .filter(|at| is_within(*at) && !self.is_units(*at))
            .map(|at| self.arrays[at].name.clone());
        let own = members
            .iter()
            .filter_map(|at| self.arrays[*at].whole.clone());
        let mut reasons: Vec<Reason> = Vec::new();
        for reason in own.chain(circles.into_iter().flatten().cloned()) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        let indices = members.iter().flat_map(|at| &self.arrays[*at].indices);
        Domain {
            arrays: arrays.collect(),
            grain: match members.first() {
                _ if !reasons.is_empty() => Grain::Whole(reasons),
                Some(&at) if self.is_units(at) => Grain::Unit {
                    elements: self.unit_elements(at),
                    count: self.arrays[at].length,
                    numbers: indices.cloned().collect(),
                },
                first => Grain::Element {
                    length: first.map_or(0, |at| self.arrays[*at].length),
                    indices: indices.cloned().collect(),
                },
            },
        }
    }
}

/// Indices of an array that are shown.
const SHOWN: usize = 8;

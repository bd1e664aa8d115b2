//! The judge: what was told against what the registers held.

use crate::device::{Device, value};
use crate::engines::BATCH;
use crate::program::{Group, Program};
use stateplane_sync::Told;
use stateplane_synchronise::Kind;
use stateplane_wire::sync::CutKind;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Marks that are kept of each group.
const MARKS: usize = 20_000;

/// Violations that are kept.
const MOST: usize = 50;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The promise.
    pub promise: &'static str,
    /// The mistake that was seen.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.what)
    }
}

/// The registers of a group at a mark.
struct Moment {
    at: u64,
    values: Vec<u64>,
    /// Counts of the locations over all starts of the switch, if the program keeps them.
    counted: Option<Vec<u64>>,
}

/// Start of the switch, group and stamp or epoch.
type Place = (u32, u16, u64);

#[derive(Default)]
pub(crate) struct Judge {
    marks: BTreeMap<Place, Moment>,
    windows: BTreeMap<Place, Vec<u64>>,
    /// Windows that the store of the engines has.
    pub(crate) stored: BTreeMap<Place, Vec<u64>>,
    /// Windows of staged writes, which nobody wants; and those of which the store of the engines knows
    /// that.
    unwanted: BTreeSet<Place>,
    waived: BTreeSet<Place>,
    pub(crate) violations: Vec<Violation>,
}

/// The program's registers of a group: an array in which locations that have not
/// crossed the last cut have the values that it gave them.
pub(crate) fn registers(
    device: &dyn Device,
    program: Program,
    group: u16,
    locations: u32,
) -> Vec<u64> {
    let at = u64::from(group);
    let of = &program.groups()[usize::from(group)];
    let epoch = device.word("sync_epoch", at);
    let kind = device.word("sync_kind", at);
    let fill = device.word("sync_fill", at);
    let tag = device.word("sync_cut_tag", at);
    let base = at * u64::from(locations);
    let held = |index: u64| {
        let place = base + index;
        let crossed = device.word("sync_crossed", place) == epoch & 1;
        let staged = device.word("sync_staged_tag", place) == tag;
        if !crossed && kind == CutKind::Filled as u64 {
            fill
        } else if !crossed && kind == CutKind::Staged as u64 && staged {
            device.word("sync_staged", place)
        } else {
            value(device, of, index)
        }
    };
    (0..u64::from(locations)).map(held).collect()
}

impl Judge {
    pub(crate) fn object(&mut self, promise: &'static str, what: String) {
        if self.violations.len() < MOST {
            self.violations.push(Violation { promise, what });
        }
    }

    /// The switch sent an UPDATE.
    pub(crate) fn mark(
        &mut self,
        place: Place,
        at: u64,
        values: Vec<u64>,
        counted: Option<Vec<u64>>,
    ) {
        // Each write adds to these locations alike, and nothing else changes them but cuts.
        let written = &values[values.len() - BATCH as usize..];
        if written.iter().any(|value| *value != written[0]) {
            self.object(
                "whole",
                format!("{at} µs: of writes there are parts at {place:?}"),
            );
        }
        self.marks.entry(place).or_insert(Moment {
            at,
            values,
            counted,
        });
        if self.marks.len() > MARKS {
            self.marks.pop_first();
        }
    }

    /// The switch made a cut while its registers held `values`.
    pub(crate) fn cut(&mut self, place: Place, values: Vec<u64>) {
        self.windows.insert(place, values);
    }

    /// Nobody wants the window of this cut.
    pub(crate) fn unwanted(&mut self, place: Place) {
        self.unwanted.insert(place);
    }

    /// The store of the engines knows that nobody wants the window.
    pub(crate) fn waive(&mut self, place: Place) {
        self.waived.insert(place);
    }

    /// True if the window was delivered, or nobody wants it.
    pub(crate) fn is_over(&self, place: Place) -> bool {
        self.stored.contains_key(&place) || self.unwanted.contains(&place)
    }

    /// An engine tells something of its view.
    pub(crate) fn told(&mut self, now: u64, (group, of): (u16, &Group), told: &Told, view: &[u64]) {
        let place = (told.incarnation, group, told.stamp);
        let Some(moment) = self.marks.get(&place) else {
            self.object("mark", format!("{now} µs: {place:?} is no mark"));
            return;
        };
        let mut wrong = Vec::new();
        let pairs = view.iter().zip(&moment.values).enumerate();
        let off = pairs.map(|(at, (told, held))| (at, of.distance(*told, *held)));
        let off: Vec<(usize, u64)> = off.collect();
        if let Some(bound) = told.bound
            && let Some((at, off)) = off.iter().find(|(_, off)| *off > bound)
        {
            wrong.push((
                "bound",
                format!("location {at} of group {group} is {off} off, told was {bound}"),
            ));
        }
        if of.kind == Kind::Opaque && told.within != 0 {
            let within = told.within;
            wrong.push(("opaque", format!("group {group} is within {within}")));
        }
        let beyond = off.iter().filter(|(_, off)| *off > told.within).count() as u64;
        if beyond > told.all_but {
            let (k, within) = (told.all_but, told.within);
            wrong.push((
                "all but k",
                format!("{beyond} locations of group {group} are beyond {within}, told was {k}"),
            ));
        }
        if moment.at + told.age_us < now {
            let age = now - moment.at;
            wrong.push((
                "age",
                format!("the mark is {age} µs old, told was {}", told.age_us),
            ));
        }
        for (promise, what) in wrong {
            self.object(promise, format!("{now} µs, {told:?}: {what}"));
        }
    }

    /// Counts of a group's locations at the mark, if the program keeps them.
    pub(crate) fn counted(&self, group: u16, told: &Told) -> Option<&[u64]> {
        let moment = self.marks.get(&(told.incarnation, group, told.stamp))?;
        moment.counted.as_deref()
    }

    /// An engine delivers a window, which the store takes unless it has it. True if it is new.
    pub(crate) fn window(&mut self, now: u64, place: Place, values: &[u64]) -> bool {
        match self.windows.get(&place) {
            None => self.object("window", format!("{now} µs: there is no window {place:?}")),
            Some(truth) if truth != values => {
                let at = truth
                    .iter()
                    .zip(values)
                    .position(|(one, other)| one != other);
                self.object(
                    "window",
                    format!("{now} µs: window {place:?} differs, first at {at:?}"),
                );
            }
            Some(_) => {}
        }
        let (incarnation, group, epoch) = place;
        let is_new = !self.stored.contains_key(&place);
        if is_new && epoch > 1 && !self.is_over((incarnation, group, epoch - 1)) {
            self.object(
                "window",
                format!("{now} µs: window {place:?} came before the one in front of it"),
            );
        }
        self.stored.insert(place, values.to_vec());
        is_new
    }

    /// Windows that the store has, of a group: incarnations and epochs.
    pub(crate) fn kept(&self, group: u16) -> Vec<(u32, u32)> {
        let stored = self.stored.keys().chain(&self.waived);
        stored
            .filter(|(_, of, _)| *of == group)
            .map(|(incarnation, _, epoch)| (*incarnation, *epoch as u32))
            .collect()
    }
}

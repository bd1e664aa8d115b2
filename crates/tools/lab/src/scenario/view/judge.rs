//! Objections to what a client was told of views.
//!
//! * A view goes on: while its switch lives it is complete, bounded and young; a dead switch's last
//!   view is told on, and is said to be at least as old as the switch is dead.
//! * No count steps back within a start of a switch, and no earlier start is told again.
//! * What is told is true: a location counts, up to the bound, all packets that had come back to the
//!   hosts before the view's age, and the views of all starts together no more than were sent.
//! * In the end, each living switch's view is what went through it.

use super::reader::{Answer, Reading, Seen};
use super::report::{GroupReport, ViewReport};
use super::truth::{Silences, Truth};
use super::{LOCATIONS, SWITCHES};
use std::collections::{BTreeMap, BTreeSet};

/// Greatest age of the view of a switch that lives, in µs.
pub(super) const YOUNG_US: u64 = 200_000;
/// One reading in so many may be late: a busy machine pauses for a tenth of a second.
pub(super) const LATE_IN: u64 = 20;
/// Time from when a switch is back, or goes on, until its view has to be complete, in µs.
pub(super) const RECOVERY_US: u64 = 2_000_000;
/// Time from the first reading until views have to be complete, in µs.
pub(super) const BEGINNING_US: u64 = 2_000_000;
/// Longest time without a reading, in µs.
const GAP_US: u64 = 2_000_000;
/// µs by which the clocks of hosts and client may differ from the engine's, which is steered less.
pub(super) const CLOCK_US: u64 = 1_000;
/// Maximum number of objections that are reported for one view.
const MOST_TOLD: usize = 10;

/// A switch in the eyes of the client.
struct Watched<'a> {
    switch: usize,
    truth: &'a Truth,
    silences: &'a Silences,
    report: GroupReport,
    ages: Vec<u64>,
    wrong: Vec<String>,
    /// When the switch's lives began.
    births: Vec<u64>,
    /// The life of each start that was told.
    lives: BTreeMap<u32, usize>,
    /// The start and the generation that were told last.
    last: Option<(u32, u64)>,
    /// Newest values by life.
    told: BTreeMap<usize, Vec<u64>>,
    /// When readings begin to count.
    from_us: u64,
    asked_us: u64,
    /// Returns of the switch whose new view was told.
    returned: BTreeSet<usize>,
}

impl<'a> Watched<'a> {
    fn new(switch: usize, truth: &'a Truth, silences: &'a Silences) -> Self {
        Self {
            switch,
            truth,
            silences,
            report: GroupReport {
                switch: SWITCHES[switch].to_owned(),
                ..GroupReport::default()
            },
            ages: Vec::new(),
            wrong: Vec::new(),
            births: silences.births(switch),
            lives: BTreeMap::new(),
            last: None,
            told: BTreeMap::new(),
            from_us: 0,
            asked_us: 0,
            returned: BTreeSet::new(),
        }
    }

    fn object(&mut self, at: u64, what: &str) {
        let after = at.saturating_sub(self.from_us) as f64 / 1e6;
        let switch = SWITCHES[self.switch];
        self.wrong
            .push(format!("view of {switch}, {after:.3} s on: {what}"));
    }

    fn take(&mut self, reading: &Reading) {
        if self.report.readings == 0 {
            (self.from_us, self.asked_us) = (reading.asked_us, reading.asked_us);
        }
        self.report.readings += 1;
        let gap = reading.asked_us.saturating_sub(self.asked_us);
        if gap > GAP_US {
            let what = format!("no reading for {} ms", gap / 1000);
            self.object(reading.asked_us, &what);
        }
        self.asked_us = reading.asked_us;
        self.goes_on(reading);
        if let Answer::View(seen) = &reading.answer {
            if seen.values.len() != LOCATIONS {
                let what = format!("it has {} locations", seen.values.len());
                return self.object(reading.asked_us, &what);
            }
            let life = self.life(reading, seen);
            self.steps(reading, seen, life);
            self.covers(reading, seen, life);
        }
    }

    /// The life of the switch whose start is told: one that is new belongs to the life that has
    /// begun last.
    fn life(&mut self, reading: &Reading, seen: &Seen) -> usize {
        if let Some(life) = self.lives.get(&seen.incarnation) {
            return *life;
        }
        let begun = self.births.iter();
        let begun = begun.filter(|born| **born <= reading.answered_us);
        let life = begun.count().saturating_sub(1);
        if self.lives.values().any(|other| *other == life) {
            self.object(
                reading.asked_us,
                "a start of the switch is told that it did not make",
            );
        }
        self.lives.insert(seen.incarnation, life);
        self.report.incarnations += 1;
        let silences = self.silences.0.iter();
        let returns: Vec<u64> = silences
            .filter(|silence| silence.born_us.is_some())
            .filter_map(|silence| silence.to_us)
            .collect();
        if let Some(back) = life.checked_sub(1).and_then(|at| returns.get(at))
            && self.returned.insert(life)
        {
            let within = reading.answered_us.saturating_sub(*back) as f64 / 1000.0;
            let longest = self.report.back_within_ms.unwrap_or(0.0);
            self.report.back_within_ms = Some(longest.max(within));
        }
        life
    }

    /// Views of living switches are complete and young, and dead ones are told.
    fn goes_on(&mut self, reading: &Reading) {
        let at = reading.asked_us;
        if let Some(died) = self.silences.dead_since(self.switch, at) {
            match &reading.answer {
                Answer::View(seen) => {
                    self.report.dead += 1;
                    let dead = at.saturating_sub(died);
                    if seen.age_us + CLOCK_US < dead {
                        let what = format!(
                            "its age is said to be {} ms, and the switch is dead for {} ms",
                            seen.age_us / 1000,
                            dead / 1000
                        );
                        self.object(at, &what);
                    }
                }
                Answer::Refused(because) => {
                    let what = format!("the last view of a dead switch is refused: {because}");
                    self.object(at, &what);
                }
                Answer::Changed(_) => {}
            }
        }
        let begins = at < self.from_us + BEGINNING_US;
        if begins || !self.silences.is_heard(self.switch, at, RECOVERY_US) {
            return;
        }
        self.report.heard += 1;
        let young = match &reading.answer {
            Answer::View(seen) => {
                self.ages.push(seen.age_us);
                let greatest = self.report.greatest_bound;
                self.report.greatest_bound = greatest.max(seen.bound.unwrap_or(0));
                let begun = self.births.iter().filter(|born| **born <= at).count();
                let life = self.lives.get(&seen.incarnation);
                let current = life.is_none_or(|life| *life + 1 == begun);
                seen.bound.is_some() && seen.age_us <= YOUNG_US && current
            }
            Answer::Refused(_) | Answer::Changed(_) => false,
        };
        self.report.late += u64::from(!young);
    }

    /// Counts and starts go forward.
    fn steps(&mut self, reading: &Reading, seen: &Seen, life: usize) {
        let at = reading.asked_us;
        if let Some((start, generation)) = self.last {
            let known = self.lives.get(&start).copied().unwrap_or(0);
            if life < known || seen.generation < generation {
                self.object(at, "an earlier start or generation is told again");
            }
        }
        self.last = Some((seen.incarnation, seen.generation));
        let before = self.told.insert(life, seen.values.clone());
        let before = before.unwrap_or_else(|| vec![0; LOCATIONS]);
        let pairs = before.iter().zip(&seen.values).enumerate();
        let back: Vec<_> = pairs.filter(|(_, (old, new))| new < old).collect();
        for (location, (old, new)) in back {
            let what = format!("location {location} steps back from {old} to {new}");
            self.object(at, &what);
        }
    }

    /// All that had come back before the mark is counted, up to the bound.
    fn covers(&mut self, reading: &Reading, seen: &Seen, life: usize) {
        let mark = reading.asked_us.saturating_sub(seen.age_us + CLOCK_US);
        let lacks = |within: u64| {
            let values = seen.values.iter().enumerate();
            let lacking = values.filter_map(|(location, value)| {
                let least = self.truth.received((self.switch, life, location), mark);
                (value.saturating_add(within) < least).then_some((location, *value, least))
            });
            lacking.collect::<Vec<_>>()
        };
        let beyond = seen.bound.map(lacks).unwrap_or_default();
        let far = lacks(seen.within);
        let age = seen.age_us / 1000;
        for (location, value, least) in beyond {
            let bound = seen.bound.unwrap_or(0);
            let what = format!(
                "location {location} is told as {value}, off by {bound} at most {age} ms ago, when \
                 {least} packets had come back"
            );
            self.object(reading.asked_us, &what);
        }
        if far.len() as u64 > seen.all_but {
            let what = format!(
                "{} locations are off by more than {}, and {} may be",
                far.len(),
                seen.within,
                seen.all_but
            );
            self.object(reading.asked_us, &what);
        }
    }

    /// Packets that all starts of the switch were told to have counted at a location.
    fn counted(&self, location: usize) -> u64 {
        self.told.values().map(|values| values[location]).sum()
    }

    /// The view of a switch that lives is what went through it, once traffic has stopped.
    fn ends(&mut self) {
        let life = self.births.len() - 1;
        let counts: Vec<u64> = (0..LOCATIONS).map(|it| self.counted(it)).collect();
        self.report.told = counts.iter().sum();
        let lives = 0..self.births.len();
        let received = lives.map(|life| self.truth.received_from(self.switch, life));
        self.report.received = received.sum();
        if self.silences.ends_alive(self.switch) {
            let nothing = vec![0; LOCATIONS];
            let last = self.told.get(&life).cloned().unwrap_or(nothing);
            for (location, value) in last.into_iter().enumerate() {
                let least = self.truth.received((self.switch, life, location), u64::MAX);
                let most = least + self.truth.lost(location);
                if !(least..=most).contains(&value) {
                    let what = format!(
                        "in the end location {location} is told as {value}, where {least} packets \
                         came through and {} were lost",
                        most - least
                    );
                    self.object(self.asked_us, &what);
                }
            }
        }
        self.ages.sort_unstable();
        let ms = |age: Option<&u64>| age.map_or(0.0, |age| *age as f64 / 1000.0);
        self.report.age_median_ms = ms(self.ages.get(self.ages.len() / 2));
        self.report.age_greatest_ms = ms(self.ages.last());
        if self.report.late * LATE_IN > self.report.heard {
            let what = format!(
                "{} of {} readings were refused, unbounded, of an earlier start or older than {} ms \
                 while it lived",
                self.report.late,
                self.report.heard,
                YOUNG_US / 1000
            );
            self.object(self.asked_us, &what);
        }
    }

    fn objections(self) -> (GroupReport, Vec<String>) {
        (self.report, first_few(self.wrong, SWITCHES[self.switch]))
    }
}

/// The first objections to the view of `whom`, and how many more there are.
pub(super) fn first_few(mut wrong: Vec<String>, whom: &str) -> Vec<String> {
    let more = wrong.len().saturating_sub(MOST_TOLD);
    wrong.truncate(MOST_TOLD);
    if more > 0 {
        wrong.push(format!("view of {whom}: {more} more objections"));
    }
    wrong
}

/// Compares what was told with what is known; the report, and what is wrong.
pub(super) fn judge(
    readings: &[Reading],
    truth: &Truth,
    silences: &Silences,
) -> (ViewReport, Vec<String>) {
    let mut watched: Vec<_> = (0..SWITCHES.len())
        .map(|switch| Watched::new(switch, truth, silences))
        .collect();
    let mut ordered: Vec<&Reading> = readings.iter().collect();
    ordered.sort_by_key(|reading| reading.answered_us);
    for reading in ordered {
        let Some(switch) = SWITCHES.iter().position(|name| *name == reading.group) else {
            continue;
        };
        watched[switch].take(reading);
        if matches!(reading.answer, Answer::View(_)) {
            for location in 0..LOCATIONS {
                let counted = watched.iter().map(|it| it.counted(location)).sum::<u64>();
                let sent = truth.sent(location, reading.answered_us);
                if counted > sent {
                    let what = format!(
                        "location {location} is told as {counted} with all other starts, and {sent} \
                         packets had been sent"
                    );
                    watched[switch].object(reading.asked_us, &what);
                }
            }
        }
    }
    let (mut report, mut wrong) = (ViewReport::default(), Vec::new());
    for mut watched in watched {
        watched.ends();
        let (group, objections) = watched.objections();
        report.groups.push(group);
        wrong.extend(objections);
    }
    if truth.stray > 0 {
        wrong.push(format!("{} packets came from no switch", truth.stray));
    }
    (report, wrong)
}

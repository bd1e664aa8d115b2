//! Turns of the systems: in each run all of them one after the other, in the other order each time.

use super::Setting;
use super::bed::{Bed, Measured, Messages};
use super::system::{Shape, System};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::series;
use crate::statistics::median;
use std::collections::BTreeMap;

/// Outcomes of the runs of each system at each point, by its number.
#[derive(Default)]
pub struct Outcomes {
    by_point: BTreeMap<(usize, System), Vec<Measured>>,
}

impl Outcomes {
    /// Adds the outcome of a run.
    pub fn add(&mut self, point: usize, system: System, measured: Measured) {
        let of = self.by_point.entry((point, system));
        of.or_default().push(measured);
    }

    /// Outcomes of all runs.
    pub fn of(&self, point: usize, system: System) -> &[Measured] {
        let of = self.by_point.get(&(point, system));
        of.map_or(&[], Vec::as_slice)
    }

    /// Median of the runs' messages per second.
    pub fn rate(&self, point: usize, system: System) -> Option<f64> {
        let rates = self.of(point, system).iter();
        let rates: Vec<f64> = rates.map(|measured| measured.per_second).collect();
        median(&rates)
    }

    /// Median of the runs' µs within which half of the messages came, or 99 % of them.
    pub fn within(&self, point: usize, system: System, which: usize) -> Option<f64> {
        let all = self.of(point, system).iter();
        let all: Vec<f64> = all.filter_map(|it| it.within_us[which]).collect();
        median(&all)
    }

    /// Systems in which receivers of a group got other messages, or in another order.
    fn out_of_order(&self) -> Vec<System> {
        let wrong = self.by_point.iter();
        let wrong = wrong.filter(|(_, runs)| runs.iter().any(|run| !run.same_order));
        let mut wrong: Vec<System> = wrong.map(|((_, system), _)| *system).collect();
        wrong.sort();
        wrong.dedup();
        wrong
    }

    /// Claims that all receivers of a group got the same, of the systems that promise it.
    pub fn claim_order(&self, setting: &Setting<'_>, figure: &mut Figure) {
        let mut systems: Vec<System> = self.by_point.keys().map(|(_, system)| *system).collect();
        systems.sort();
        systems.dedup();
        let wrong = self.out_of_order();
        for system in systems
            .into_iter()
            .filter(|system| *system != System::Limit)
        {
            let met = !wrong.contains(&system);
            let name = system.name();
            let claim =
                format!("{name}: all receivers of a group got the same messages in one order");
            if system == System::Stateplane {
                figure.claim(met, claim);
            } else {
                // Others recover nothing, or are late, where the machine has other work too.
                setting.plan.claim(figure, met, claim);
            }
        }
    }
}

/// A system that is up, in a turn.
pub struct Turn<'a> {
    setting: &'a Setting<'a>,
    bed: Bed,
    system: System,
}

impl Turn<'_> {
    /// The system.
    pub fn system(&self) -> System {
        self.system
    }

    /// The network.
    pub fn bed(&self) -> &Bed {
        &self.bed
    }

    /// Makes a load.
    ///
    /// # Errors
    /// Those of [`Bed::load`].
    pub fn load(&mut self, messages: &Messages) -> Result<Measured, EvalError> {
        let measured = self.bed.load(messages, &self.setting.spans());
        self.setting.bar.inc(1);
        measured
    }
}

/// Makes a turn of each of `systems` in each run. A system that cannot be had is named in the figure
/// and left out, as is the rest of a turn in which another system than this project's stops.
///
/// # Errors
/// Those of the turns, and of the first system.
pub fn take(
    setting: &Setting<'_>,
    figure: &mut Figure,
    systems: &[System],
    shape: Shape,
    mut turn: impl FnMut(&mut Turn<'_>) -> Result<(), EvalError>,
) -> Result<(), EvalError> {
    let mut left_out: BTreeMap<System, String> = BTreeMap::new();
    let mut cut_short = Vec::new();
    for &system in systems.iter().filter(|of| !of.takes_groups(shape.groups)) {
        let (name, groups) = (system.name(), shape.groups);
        left_out.insert(
            system,
            format!("{name}, {groups} groups: its prototype has one"),
        );
    }
    for run in 0..setting.plan.runs {
        let mut order = systems.to_vec();
        if run % 2 == 1 {
            order.reverse();
        }
        for system in order {
            series::check_interrupt()?;
            if left_out.contains_key(&system) {
                continue;
            }
            let (id, name) = (figure.id, system.name());
            let (groups, runs) = (shape.groups, setting.plan.runs);
            let run = run + 1;
            setting.bar.set_message(format!(
                "{id}: {name}, groups: {groups}, run {run} of {runs}"
            ));
            let up = Bed::up(setting.place, system, shape, setting.in_flight());
            let bed = match up {
                Ok(bed) => bed,
                Err(EvalError::Nothing { what, reason, .. }) if system != System::Stateplane => {
                    left_out.insert(system, format!("{what}: {reason}"));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let mut at = Turn {
                setting,
                bed,
                system,
            };
            let done = turn(&mut at);
            let down = at.bed.down();
            match done {
                // A loss stops some of the others for good.
                Err(EvalError::Nothing { what, reason, .. }) if system != System::Stateplane => {
                    cut_short.push(format!("{what}, run {run}, from one load on: {reason}"));
                }
                done => done?,
            }
            down?;
        }
    }
    for reason in left_out.into_values().chain(cut_short) {
        if !figure.missing.contains(&reason) {
            figure.missing.push(reason);
        }
    }
    Ok(())
}

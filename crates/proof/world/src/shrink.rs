//! Making a run small to which a checker objects, as long as the objection remains.

use crate::chosen::{Chosen, Numbers};
use std::collections::BTreeSet;

/// A change that leaves less of a scenario; `None` if there is nothing to leave out.
pub type Step<S> = fn(&S) -> Option<S>;

/// Steps that each give a field of a scenario another value, which follows from the scenario.
#[macro_export]
macro_rules! shrinking_steps {
    ($scenario:ident: $($field:ident = $value:expr;)*) => {
        &[$(|scenario: &$scenario| {
            let value: fn(&$scenario) -> _ = $value;
            let changed = $scenario { $field: value(scenario), ..scenario.clone() };
            (changed != *scenario).then_some(changed)
        }),*]
    };
}

/// Runs a scenario with a part of its plan; `None` if it does not begin, or if its objection is
/// another one.
pub type Rerun<'a, S, R, E> = &'a dyn Fn(&S, &Chosen) -> Result<Option<R>, E>;

/// One search for a smaller run.
pub struct Shrinking<'a, S, R, E> {
    rerun: Rerun<'a, S, R, E>,
    scenario: S,
    chosen: Chosen,
    best: R,
    runs: usize,
}

impl<'a, S, R, E> Shrinking<'a, S, R, E> {
    /// A search that begins with the run `best` of `scenario` and `chosen`, in at most `runs`
    /// runs.
    pub fn new(
        rerun: Rerun<'a, S, R, E>,
        scenario: S,
        chosen: Chosen,
        best: R,
        runs: usize,
    ) -> Self {
        Self {
            rerun,
            scenario,
            chosen,
            best,
            runs,
        }
    }

    /// The smallest run.
    pub fn into_best(self) -> R {
        self.best
    }

    /// Runs less, and returns true if the objection remains; the run is then the best so far.
    fn tries(&mut self, scenario: S, chosen: Chosen) -> Result<bool, E> {
        if self.runs == 0 {
            return Ok(false);
        }
        self.runs -= 1;
        let Some(report) = (self.rerun)(&scenario, &chosen)? else {
            return Ok(false);
        };
        (self.scenario, self.chosen, self.best) = (scenario, chosen, report);
        Ok(true)
    }

    /// Takes steps as long as one goes.
    ///
    /// # Errors
    ///
    /// Returns the error of a run.
    fn walk(&mut self, steps: &[Step<S>]) -> Result<(), E> {
        let mut goes_on = true;
        while std::mem::take(&mut goes_on) {
            for step in steps {
                while let Some(scenario) = step(&self.scenario)
                    && self.tries(scenario, self.chosen.clone())?
                {
                    goes_on = true;
                }
            }
        }
        Ok(())
    }

    /// Leaves out of `count` what can be left out, many at once first. `with` puts what is left
    /// into a choice.
    ///
    /// # Errors
    ///
    /// Returns the error of a run.
    fn thin(&mut self, count: usize, with: fn(Chosen, Numbers) -> Chosen) -> Result<(), E>
    where
        S: Clone,
    {
        let mut left: Vec<usize> = (0..count).collect();
        let mut size = count;
        while size > 0 {
            let mut at = 0;
            while at < left.len() {
                let end = left.len().min(at + size);
                let kept: Vec<usize> = [&left[..at], &left[end..]].concat();
                let numbers = Numbers(BTreeSet::from_iter(kept.iter().copied()));
                let chosen = with(self.chosen.clone(), numbers);
                if self.tries(self.scenario.clone(), chosen)? {
                    left = kept
                } else {
                    at = end
                }
            }
            size /= 2;
        }
        Ok(())
    }

    /// Takes all steps: those of `smaller`, after which all is drawn anew, then those of `better`,
    /// which leave the plan as it is. Then parts of the plan are left out; `planned` tells how many
    /// packets and faults a run had.
    ///
    /// # Errors
    ///
    /// Returns the error of a run.
    pub fn search(
        &mut self,
        smaller: &[&[Step<S>]],
        better: &[Step<S>],
        planned: impl Fn(&R) -> (usize, usize),
    ) -> Result<(), E>
    where
        S: Clone,
    {
        // A plan that was thinned already must not be drawn anew.
        if self.chosen.is_all() {
            for steps in smaller {
                self.walk(steps)?;
            }
            self.walk(better)?;
            self.thin_plan(planned(&self.best))?;
        }
        self.walk(better)
    }

    /// Leaves out faults, then packets, of a plan with so many.
    ///
    /// # Errors
    ///
    /// Returns the error of a run.
    fn thin_plan(&mut self, (packets, faults): (usize, usize)) -> Result<(), E>
    where
        S: Clone,
    {
        self.thin(faults, |chosen, faults| Chosen {
            faults: Some(faults),
            ..chosen
        })?;
        self.thin(packets, |chosen, packets| Chosen {
            packets: Some(packets),
            ..chosen
        })
    }
}

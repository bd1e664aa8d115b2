//! Making a run small to which a checker objects: fewer clients, operations and faults, better
//! links.

use crate::options::Options;
use crate::report::Report;
use crate::scenario::Scenario;
use crate::simulator::{SimError, Simulator};
use stateplane_world::{Chosen, LinkQuality, Shrinking, ShrinkingStep, shrinking_steps};

/// A time in µs that is not made shorter.
const SHORTEST: u64 = 200_000;

/// Changes after which all is drawn anew. Groups stay as many as the program was compiled for.
const SMALLER: &[ShrinkingStep<Scenario>] = shrinking_steps! {
    Scenario:
    operations = |s: &Scenario| s.operations.div_ceil(4);
    operations = |s: &Scenario| s.operations.div_ceil(2);
    deaths = |s: &Scenario| s.deaths / 2;
    cuts = |s: &Scenario| s.cuts / 2;
    controller_cuts = |s: &Scenario| s.controller_cuts / 2;
    stalls = |s: &Scenario| s.stalls / 2;
    client_deaths = |_: &Scenario| 0;
    freezes = |s: &Scenario| s.freezes / 2;
    pauses = |s: &Scenario| s.pauses / 2;
    watchers = |s: &Scenario| s.watchers / 2;
    controller_restarts = |s: &Scenario| s.controller_restarts / 2;
    changes = |s: &Scenario| s.changes.div_ceil(2);
    clients = |s: &Scenario| s.clients.div_ceil(2);
    keys = |s: &Scenario| s.keys.div_ceil(2);
    locks = |s: &Scenario| s.locks / 2;
    traffic = |s: &Scenario| (s.traffic / 2).max(s.traffic.min(SHORTEST));
};

/// Changes that leave the plan as it is.
const BETTER: &[ShrinkingStep<Scenario>] = shrinking_steps! {
    Scenario:
    link = |s: &Scenario| s.link.without_faults();
    host_link = |s: &Scenario| s.host_link.without_faults();
    control_link = |s: &Scenario| s.control_link.without_faults();
    link = |s: &Scenario| LinkQuality { loss: 0, ..s.link };
    link = |s: &Scenario| LinkQuality { duplicate: 0, ..s.link };
    link = |s: &Scenario| LinkQuality { straggle: 0, ..s.link };
    drift = |_: &Scenario| 0;
};

impl Simulator {
    /// Makes a run small that a checker objects to, in at most `runs` runs, and gives the
    /// smallest to which it objects alike.
    ///
    /// # Errors
    ///
    /// Returns the error that keeps a world from starting.
    pub fn shrink(&self, report: &Report, runs: usize) -> Result<Report, SimError> {
        let Some(objection) = report.objection() else {
            return Ok(report.clone());
        };
        let rerun = |scenario: &Scenario, chosen: &Chosen| -> Result<Option<Report>, SimError> {
            let options = Options {
                scenario: scenario.clone(),
                chosen: chosen.clone(),
                ..report.options.clone()
            };
            let report = self.run_in(&options, report.seed)?;
            let same = report.objection().as_ref() == Some(&objection);
            Ok(Some(report).filter(|_| same))
        };
        let Options {
            scenario, chosen, ..
        } = report.options.clone();
        let mut search = Shrinking::new(&rerun, scenario, chosen, report.clone(), runs);
        search.search(&[SMALLER], BETTER, |best| best.planned)?;
        Ok(search.into_best())
    }
}

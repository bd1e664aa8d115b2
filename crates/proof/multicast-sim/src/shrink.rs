//! Making a run small to which a checker objects: fewer messages and faults, better links.

use crate::options::Options;
use crate::report::Report;
use crate::scenario::Scenario;
use crate::simulator::{SimError, Simulator};
use stateplane_world::{Chosen, LinkQuality, Shrinking, ShrinkingStep, shrinking_steps};

/// A time in µs that is not made shorter.
const SHORTEST: u64 = 40_000;

/// Changes after which all is drawn anew. Groups and senders stay as many as the program was
/// compiled for.
const SMALLER: &[ShrinkingStep<Scenario>] = shrinking_steps! {
    Scenario:
    messages = |s: &Scenario| s.messages.div_ceil(4);
    messages = |s: &Scenario| s.messages.div_ceil(2);
    depositions = |s: &Scenario| s.depositions / 2;
    hidden_depositions = |s: &Scenario| s.hidden_depositions / 2;
    exchanges = |s: &Scenario| s.exchanges / 2;
    deaths = |s: &Scenario| s.deaths / 2;
    cuts = |s: &Scenario| s.cuts / 2;
    stalls = |s: &Scenario| s.stalls / 2;
    sender_deaths = |s: &Scenario| s.sender_deaths / 2;
    receiver_deaths = |s: &Scenario| s.receiver_deaths / 2;
    evictions = |s: &Scenario| s.evictions / 2;
    joins = |s: &Scenario| s.joins / 2;
    slow = |s: &Scenario| s.slow / 2;
    restarts = |s: &Scenario| s.restarts / 2;
    spares = |s: &Scenario| s.spares / 2;
    receivers = |s: &Scenario| s.receivers.div_ceil(2);
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

//! Making a run small to which a checker objects: fewer clients, operations and faults, better
//! links.

use crate::options::Options;
use crate::report::Report;
use crate::scenario::Scenario;
use crate::simulator::{SimError, Simulator};
use stateplane_world::{Chosen, LinkQuality, Shrinking, ShrinkingStep};

/// A time in µs that is not made shorter.
const SHORTEST: u64 = 200_000;

/// A link that only delays.
fn good(link: LinkQuality) -> LinkQuality {
    LinkQuality {
        loss: 0,
        duplicate: 0,
        jitter: 0,
        straggle: 0,
        ..link
    }
}

macro_rules! steps {
    ($($field:ident = $value:expr;)*) => {
        &[$(|s| {
            let changed = Scenario { $field: $value(s), ..s.clone() };
            (changed != *s).then_some(changed)
        }),*]
    };
}

/// Changes after which all is drawn anew. Groups stay as many as the program was compiled for.
const SMALLER: &[ShrinkingStep<Scenario>] = steps! {
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
const BETTER: &[ShrinkingStep<Scenario>] = steps! {
    link = |s: &Scenario| good(s.link);
    host_link = |s: &Scenario| good(s.host_link);
    control_link = |s: &Scenario| good(s.control_link);
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
        let is_all = chosen.is_all();
        let mut search = Shrinking::new(&rerun, scenario, chosen, report.clone(), runs);
        // A plan that was thinned already must not be drawn anew.
        if is_all {
            search.walk(SMALLER)?;
            search.walk(BETTER)?;
            search.thin_plan(search.best().planned)?;
        }
        search.walk(BETTER)?;
        Ok(search.into_best())
    }
}

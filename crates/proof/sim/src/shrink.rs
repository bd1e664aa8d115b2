//! Making a run small to which a checker objects: fewer nodes, flows, packets and faults,
//! better links, as long as the objection remains.

use crate::chosen::{Chosen, Numbers};
use crate::options::Options;
use crate::report::Report;
use crate::scenario::{Cluster, Disks, Scenario};
use crate::simulator::{SimError, Simulator};
use stateplane_world::LinkQuality;
use std::collections::BTreeSet;

/// A time in µs that is not made shorter.
const SHORTEST: u64 = 100_000;

/// A change that leaves less of a scenario; `None` if there is nothing to leave out.
type Step = fn(&Scenario) -> Option<Scenario>;

/// `changed` if it is another than `scenario`.
fn other(scenario: &Scenario, changed: Scenario) -> Option<Scenario> {
    (changed != *scenario).then_some(changed)
}

fn of_cluster(scenario: &Scenario, change: impl Fn(Cluster) -> Cluster) -> Option<Scenario> {
    let cluster = scenario.cluster.map(change);
    let scenario_with = |cluster| Scenario {
        cluster,
        ..scenario.clone()
    };
    other(scenario, scenario_with(cluster))
}

fn of_disks(scenario: &Scenario, change: fn(Disks) -> Disks) -> Option<Scenario> {
    let disks = scenario.disks.map(change);
    let scenario_with = |disks| Scenario {
        disks,
        ..scenario.clone()
    };
    other(scenario, scenario_with(disks))
}

/// Half of the times for which something lasts that happens `times` times.
fn half_of(times: u64, (least, most): (u64, u64)) -> (u64, u64) {
    match times {
        0 => (least, most),
        _ => (least / 2, most.div_ceil(2)),
    }
}

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
        &[$(|s| other(s, Scenario { $field: $value(s), ..s.clone() })),*]
    };
}

/// Changes after which all is drawn anew.
const SMALLER: &[Step] = steps! {
    disks = |_: &Scenario| None;
    cluster = |_: &Scenario| None;
    bursts = |s: &Scenario| s.bursts.div_ceil(4);
    bursts = |s: &Scenario| s.bursts.div_ceil(2);
    flows = |s: &Scenario| s.flows.min(1);
    flows = |s: &Scenario| s.flows.div_ceil(2);
    deaths = |_: &Scenario| 0;
    deaths = |s: &Scenario| s.deaths / 2;
    cuts = |_: &Scenario| 0;
    cuts = |s: &Scenario| s.cuts / 2;
    stalls = |_: &Scenario| 0;
    stalls = |s: &Scenario| s.stalls / 2;
    reroutes = |_: &Scenario| 0;
    reroutes = |s: &Scenario| s.reroutes / 2;
    burst_length = |s: &Scenario| s.burst_length.min(1);
    outage = |s: &Scenario| half_of(s.deaths, s.outage);
    cut = |s: &Scenario| half_of(s.cuts, (0, s.cut)).1;
    stall = |s: &Scenario| half_of(s.stalls, (0, s.stall)).1;
    switches = |s: &Scenario| s.switches.min((s.switches - 1).max(2));
    traffic = |s: &Scenario| (s.traffic / 2).max(s.traffic.min(SHORTEST));
};

/// Steps that make store servers and disks smaller.
const SMALLER_STORES: &[Step] = &[
    |s| {
        of_cluster(s, |c| Cluster {
            deaths: c.deaths / 2,
            ..c
        })
    },
    |s| {
        of_cluster(s, |c| Cluster {
            pauses: c.pauses / 2,
            ..c
        })
    },
    |s| {
        of_cluster(s, |c| Cluster {
            cuts: c.cuts / 2,
            ..c
        })
    },
    |s| {
        of_cluster(s, |c| Cluster {
            controller_restarts: 0,
            ..c
        })
    },
    |s| of_cluster(s, |c| Cluster { drains: false, ..c }),
    |s| {
        of_cluster(s, |c| Cluster {
            stores: c.stores.min((c.stores - 1).max(s.replicas)),
            ..c
        })
    },
    |s| {
        of_disks(s, |d| Disks {
            deaths: d.deaths / 2,
            ..d
        })
    },
    |s| {
        of_disks(s, |d| Disks {
            power_cuts: d.power_cuts / 2,
            ..d
        })
    },
];

/// Changes that leave the plan as it is.
const BETTER: &[Step] = steps! {
    chain_link = |s: &Scenario| good(s.chain_link);
    host_link = |s: &Scenario| good(s.host_link);
    protocol_link = |s: &Scenario| good(s.protocol_link);
    protocol_link = |s: &Scenario| LinkQuality { loss: 0, ..s.protocol_link };
    protocol_link = |s: &Scenario| LinkQuality { duplicate: 0, ..s.protocol_link };
    protocol_link = |s: &Scenario| LinkQuality { straggle: 0, ..s.protocol_link };
    protocol_link = |s: &Scenario| LinkQuality { jitter: 0, ..s.protocol_link };
    drift = |_: &Scenario| 0;
    service = |_: &Scenario| 0;
    settle = |s: &Scenario| (s.settle / 2).max(s.settle.min(SHORTEST));
};

/// One search for a smaller run.
struct Search<'a> {
    simulator: &'a Simulator,
    objection: String,
    best: Report,
    runs: usize,
}

impl Search<'_> {
    /// Runs `options` and returns true if the run has the same objection; it is then the best so
    /// far.
    fn tries(&mut self, options: Options) -> Result<bool, SimError> {
        if self.runs == 0 {
            return Ok(false);
        }
        self.runs -= 1;
        let report = match self.simulator.run_in(&options, self.best.seed) {
            Ok(report) => report,
            // The store refuses a part of what is left.
            Err(SimError::Store(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        let same = report.objection().as_ref() == Some(&self.objection);
        if same {
            self.best = report;
        }
        Ok(same)
    }

    /// Takes steps as long as one goes.
    fn walk(&mut self, steps: &[Step]) -> Result<(), SimError> {
        let mut goes_on = true;
        while std::mem::take(&mut goes_on) {
            for step in steps {
                while let Some(scenario) = step(&self.best.options.scenario)
                    && self.tries(self.best.options.clone().scenario(scenario))?
                {
                    goes_on = true;
                }
            }
        }
        Ok(())
    }

    /// Leaves out of `count` what can be left out, many at once first. `with` puts what is
    /// left into a choice.
    fn thin(&mut self, count: usize, with: fn(Chosen, Numbers) -> Chosen) -> Result<(), SimError> {
        let mut left: Vec<usize> = (0..count).collect();
        let mut size = count;
        while size > 0 {
            let mut at = 0;
            while at < left.len() {
                let end = left.len().min(at + size);
                let kept: Vec<usize> = [&left[..at], &left[end..]].concat();
                let options = self.best.options.clone();
                let numbers = Numbers(BTreeSet::from_iter(kept.iter().copied()));
                let chosen = with(options.chosen.clone(), numbers);
                if self.tries(options.chosen(chosen))? {
                    left = kept
                } else {
                    at = end
                }
            }
            size /= 2;
        }
        Ok(())
    }
}

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
        let mut search = Search {
            simulator: self,
            objection,
            best: report.clone(),
            runs,
        };
        // A plan that was thinned already must not be drawn anew.
        if report.options.chosen.is_all() {
            search.walk(SMALLER)?;
            search.walk(SMALLER_STORES)?;
            search.walk(BETTER)?;
            let (packets, faults) = search.best.planned;
            search.thin(faults, |chosen, faults| Chosen {
                faults: Some(faults),
                ..chosen
            })?;
            search.thin(packets, |chosen, packets| Chosen {
                packets: Some(packets),
                ..chosen
            })?;
        }
        search.walk(BETTER)?;
        Ok(search.best)
    }
}

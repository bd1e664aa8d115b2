//! Making a run small to which a checker objects: fewer nodes, flows, packets and faults,
//! better links, as long as the objection remains.

use crate::options::Options;
use crate::report::Report;
use crate::scenario::{Cluster, Disks, Scenario};
use crate::simulator::{SimError, Simulator};
use stateplane_world::{Chosen, LinkQuality, Shrinking, shrinking_steps};

/// A time in µs that is not made shorter.
const SHORTEST: u64 = 100_000;

type Step = stateplane_world::ShrinkingStep<Scenario>;

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

/// Changes after which all is drawn anew.
const SMALLER: &[Step] = shrinking_steps! {
    Scenario:
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
const BETTER: &[Step] = shrinking_steps! {
    Scenario:
    chain_link = |s: &Scenario| s.chain_link.without_faults();
    host_link = |s: &Scenario| s.host_link.without_faults();
    protocol_link = |s: &Scenario| s.protocol_link.without_faults();
    protocol_link = |s: &Scenario| LinkQuality { loss: 0, ..s.protocol_link };
    protocol_link = |s: &Scenario| LinkQuality { duplicate: 0, ..s.protocol_link };
    protocol_link = |s: &Scenario| LinkQuality { straggle: 0, ..s.protocol_link };
    protocol_link = |s: &Scenario| LinkQuality { jitter: 0, ..s.protocol_link };
    drift = |_: &Scenario| 0;
    service = |_: &Scenario| 0;
    settle = |s: &Scenario| (s.settle / 2).max(s.settle.min(SHORTEST));
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
        let rerun = |scenario: &Scenario, chosen: &Chosen| {
            let options = report.options.clone().scenario(scenario.clone());
            match self.run_in(&options.chosen(chosen.clone()), report.seed) {
                Ok(report) => {
                    let same = report.objection().as_ref() == Some(&objection);
                    Ok(Some(report).filter(|_| same))
                }
                // The store refuses a part of what is left.
                Err(SimError::Store(_)) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let Options {
            scenario, chosen, ..
        } = report.options.clone();
        let mut search = Shrinking::new(&rerun, scenario, chosen, report.clone(), runs);
        search.search(&[SMALLER, SMALLER_STORES], BETTER, |best| best.planned)?;
        Ok(search.into_best())
    }
}

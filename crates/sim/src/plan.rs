//! What goes wrong in one run, and when: drawn before it starts.

use crate::scenario::{Cluster, Disks, Scenario};
use stateplane_hosts::Random;

/// Switches in the world.
pub(crate) const SWITCHES: usize = 2;
/// Replicas of the store.
pub(crate) const REPLICAS: usize = 3;

/// A node of the cluster: a store server by place, or the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Store(usize),
    Controller,
}

/// A misfortune, or its end. Switches and replicas by place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfortune {
    Die {
        switch: usize,
    },
    Return {
        switch: usize,
    },
    /// Routing sees whether the switch is dead or has its data ports down.
    Look {
        switch: usize,
    },
    /// Nothing passes between switch and store until then.
    Cut {
        switch: usize,
        until: u64,
    },
    StallSwitch {
        switch: usize,
        until: u64,
    },
    StallReplica {
        replica: usize,
        until: u64,
    },
    /// A store server dies until then, unless it is the last to keep a shard.
    StoreDies {
        store: usize,
        until: u64,
    },
    StoreReturns {
        store: usize,
    },
    /// All store servers lose power at once until then, about.
    PowerCut {
        until: u64,
    },
    /// A store server stands still until then.
    StorePauses {
        store: usize,
        until: u64,
    },
    /// Nothing passes from one node to the other until then.
    CutNodes {
        from: Node,
        to: Node,
        until: u64,
    },
    ControllerRestarts,
    /// A store server is to lose its shards, or gets some again.
    Drain {
        store: usize,
        drained: bool,
    },
    /// Flows choose their way again, each with this chance in thousandths.
    Reroute {
        chance: u32,
    },
}

/// The misfortunes of a run with their times, in no order.
pub(crate) fn misfortunes(scenario: &Scenario, random: &mut Random) -> Vec<(u64, Misfortune)> {
    let mut plan = Vec::new();
    let end = scenario.traffic;
    // One death in each part of the run, so that never all switches are dead.
    for number in 0..scenario.deaths {
        let part = end / scenario.deaths;
        let (least, most) = scenario.outage;
        let outage = random.between(least, most.min(part * 3 / 4).max(least));
        let latest = (part * (number + 1)).saturating_sub(outage);
        let at = random.between(
            part * number + part / 8,
            latest.max(part * number + part / 8),
        );
        let switch = random.place(SWITCHES);
        plan.push((at, Misfortune::Die { switch }));
        if outage > 20_000 {
            let noticed = at + random.between(1_000, 20_000);
            plan.push((noticed, Misfortune::Look { switch }));
        }
        plan.push((at + outage, Misfortune::Return { switch }));
    }
    for _ in 0..scenario.cuts {
        let at = random.between(0, end);
        let until = at + random.between(1, scenario.cut);
        let switch = random.place(SWITCHES);
        plan.push((at, Misfortune::Cut { switch, until }));
    }
    for _ in 0..scenario.stalls {
        let at = random.between(0, end);
        let until = at + random.between(1, scenario.stall);
        let replicas = match scenario.cluster {
            None => REPLICAS,
            Some(_) => 0,
        };
        let place = random.place(SWITCHES + replicas);
        plan.push((
            at,
            match place.checked_sub(SWITCHES) {
                None => Misfortune::StallSwitch {
                    switch: place,
                    until,
                },
                // All flows wait for a replica, so it stalls for a shorter time.
                Some(replica) => Misfortune::StallReplica {
                    replica,
                    until: at + (until - at) / 4,
                },
            },
        ));
    }
    for _ in 0..scenario.reroutes {
        let at = random.between(0, end);
        let chance = random.between(20, 600) as u32;
        plan.push((at, Misfortune::Reroute { chance }));
    }
    if let Some(cluster) = &scenario.cluster {
        misfortunes_of_stores(cluster, end, random, &mut plan);
    }
    if let Some(disks) = &scenario.disks {
        misfortunes_of_disks(disks, end, random, &mut plan);
    }
    plan
}

fn misfortunes_of_disks(
    disks: &Disks,
    end: u64,
    random: &mut Random,
    plan: &mut Vec<(u64, Misfortune)>,
) {
    let (least, most) = disks.outage;
    for number in 0..disks.power_cuts + disks.deaths {
        let begin = random.between(0, end);
        let until = begin + random.between(least, most);
        plan.push((
            begin,
            match number < disks.power_cuts {
                true => Misfortune::PowerCut { until },
                false => Misfortune::StoreDies {
                    store: random.place(REPLICAS),
                    until,
                },
            },
        ));
    }
}

/// Time in which the first chains are made, before anything befalls the servers.
const FOUNDING: u64 = 60_000;

fn misfortunes_of_stores(
    cluster: &Cluster,
    end: u64,
    random: &mut Random,
    plan: &mut Vec<(u64, Misfortune)>,
) {
    let stores = usize::from(cluster.stores);
    let at = |random: &mut Random| random.between(FOUNDING, end.max(FOUNDING));
    for _ in 0..cluster.deaths {
        let (least, most) = cluster.outage;
        let begin = at(random);
        let until = begin + random.between(least, most);
        let store = random.place(stores);
        plan.push((begin, Misfortune::StoreDies { store, until }));
    }
    for _ in 0..cluster.pauses {
        let begin = at(random);
        let until = begin + random.between(1, cluster.pause);
        let store = random.place(stores);
        plan.push((begin, Misfortune::StorePauses { store, until }));
    }
    for _ in 0..cluster.cuts {
        let begin = at(random);
        let until = begin + random.between(1, cluster.cut);
        let mut node = || match random.place(stores + 1) {
            store if store < stores => Node::Store(store),
            _ => Node::Controller,
        };
        let (from, to) = (node(), node());
        plan.push((begin, Misfortune::CutNodes { from, to, until }));
        // Half of the cuts are of both ways.
        if random.permille(500) {
            let (from, to) = (to, from);
            plan.push((begin, Misfortune::CutNodes { from, to, until }));
        }
    }
    for _ in 0..cluster.controller_restarts {
        plan.push((at(random), Misfortune::ControllerRestarts));
    }
    if cluster.drains {
        let part = end / (2 * u64::from(cluster.stores) + 2);
        for store in 0..stores {
            let begin = FOUNDING + part * (2 * store as u64 + 1);
            for (at, drained) in [(begin, true), (begin + part, false)] {
                plan.push((at, Misfortune::Drain { store, drained }));
            }
        }
    }
}

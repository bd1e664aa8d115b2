//! What goes wrong in one run, and when: drawn before it starts.

use crate::random::Random;
use crate::scenario::Scenario;

/// Switches in the world.
pub(crate) const SWITCHES: usize = 2;
/// Replicas of the store.
pub(crate) const REPLICAS: usize = 3;

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
        let place = random.place(SWITCHES + REPLICAS);
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
    plan
}

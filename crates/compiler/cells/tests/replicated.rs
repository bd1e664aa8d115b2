//! Locks of the replicated applications: a lock for each bucket of flows, and of what else they
//! keep in registers as little as may be in the way of other flows.

use stateplane_cells::{Grain, LockPlan};
use stateplane_ir::passes::{Whole, guard, optimise};

fn plan(app: &str) -> LockPlan {
    let program = stateplane_compile::shipped(app).program();
    let mut program = program.unwrap_or_else(|refused| panic!("{app}: {refused}"));
    optimise(&mut program);
    guard(&mut program, Whole::Words);
    stateplane_cells::locks(&program)
}

/// The domains in their order: for each its first array, how many it has, and its grain.
fn shown(plan: &LockPlan) -> Vec<String> {
    let domains = plan.domains.iter().map(|domain| {
        let grain = match &domain.grain {
            Grain::Element { length, .. } => format!("{length} elements"),
            Grain::Unit {
                elements, count, ..
            } => format!("{count} units of {elements}"),
            Grain::Whole(reasons) => format!("one lock: {reasons:?}"),
        };
        format!("{} x {}: {grain}", domain.arrays[0], domain.arrays.len())
    });
    domains.collect()
}

#[test]
fn replicated_applications_lock_buckets() {
    let library = [
        "slot_key x 19: 16384 units of 4",
        "replication_claims x 1: 1 elements",
        "replication_heard x 1: 256 elements",
    ];
    for app in [
        "apps/counter/counter.p4",
        "apps/firewall/firewall.p4",
        "apps/heavy-hitter/heavy_hitter.p4",
        "apps/key-value/key_value.p4",
        "apps/load-balancer/load_balancer.p4",
        "apps/nat/nat.p4",
        "apps/object-routing/object_routing.p4",
        "apps/sequencer/sequencer.p4",
        "apps/serving-gateway/serving_gateway.p4",
        "apps/super-spreader/super_spreader.p4",
        "apps/syn-defence/syn_defence.p4",
    ] {
        let plan = plan(app);
        let mut shown = shown(&plan);
        println!("{app}: {shown:#?}");
        for domain in library {
            assert!(shown.iter().any(|it| it == domain), "{app}: {shown:#?}");
            shown.retain(|it| it != domain);
        }
    }
}

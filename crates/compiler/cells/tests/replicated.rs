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
    let apart = [
        "replication_claims x 1: 1 elements",
        "replication_heard x 1: 256 elements",
    ];
    for (app, registers) in [
        ("counter/counter", 16),
        ("firewall/firewall", 17),
        ("key-value/key_value", 16),
        ("load-balancer/load_balancer", 16),
        ("nat/nat", 16),
        ("object-routing/object_routing", 16),
        ("sequencer/sequencer", 16),
        ("serving-gateway/serving_gateway", 16),
        ("super-spreader/super_spreader", 16),
    ] {
        let mut expected = vec![format!("slot_key x {registers}: 16384 units of 4")];
        expected.extend(apart.map(str::to_owned));
        let mut found = shown(&plan(&format!("apps/{app}.p4")));
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{app}");
    }
}

#[test]
fn a_register_on_both_sides_of_the_buckets_has_their_lock() {
    // The SYN defence reads what it knows of a source before it looks for the flow, and writes it behind.
    let found = shown(&plan("apps/syn-defence/syn_defence.p4"));
    let together = found
        .iter()
        .find(|it| it.starts_with("slot_key x 17: one lock"));
    assert!(
        together.is_some_and(|it| it.contains("defence_known")),
        "{found:#?}"
    );
}

#[test]
fn of_sketches_with_snapshots_buckets_are_locked_too() {
    let found = shown(&plan("apps/heavy-hitter/heavy_hitter.p4"));
    let buckets = "slot_key x 16: 16384 units of 4".to_owned();
    assert!(found.contains(&buckets), "{found:#?}");
    // Every packet reads whether a snapshot is on its way.
    let snapshots = "snapshot_active x 7: 1 elements".to_owned();
    assert!(found.contains(&snapshots), "{found:#?}");
}

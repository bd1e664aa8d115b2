//! Store servers under a controller: they die and come back empty, stand still, lose
//! each other, and the controller starts anew; shards move.

mod common;

use common::{all_good, reports, without};
use stateplane_history::Checker;
use stateplane_sim::{Cluster, DETECTION, Options, ProgramKind, Report, Rule, Scenario};

fn run(program: ProgramKind, scenario: Scenario, seeds: u64) {
    let options = Options::new(program).scenario(scenario);
    let (mut deaths, mut snapshots) = (0, 0);
    for report in reports(options, 0..seeds) {
        assert!(report.is_good(), "{report}");
        let coverage = report.coverage;
        assert!(coverage.configurations > 4, "{report}");
        assert!(coverage.outputs * 3 > coverage.inputs, "{report}");
        deaths += coverage.store_deaths;
        snapshots += coverage.snapshots;
    }
    assert!(deaths > seeds, "{deaths} deaths of store servers");
    assert!(snapshots > seeds, "{snapshots} snapshots");
}

#[test]
fn failing_stores_of_the_model() {
    run(ProgramKind::Model, Scenario::failing_stores(), 100);
}

#[test]
fn moving_shards_of_the_model() {
    run(ProgramKind::Model, Scenario::moving_shards(), 50);
}

#[test]
fn failing_stores_of_the_counter() {
    run(ProgramKind::Counter, Scenario::failing_stores(), 30);
}

#[test]
fn failing_stores_of_the_nat() {
    run(ProgramKind::Nat, Scenario::failing_stores(), 30);
}

#[test]
fn moving_shards_of_the_nat() {
    run(ProgramKind::Nat, Scenario::moving_shards(), 20);
}

#[test]
fn answers_resume_within_the_detection_time_and_50_ms() {
    let options = Options::new(ProgramKind::Model).scenario(Scenario::store_failover());
    let mut deaths = 0;
    for report in reports(options, 0..60) {
        assert!(report.is_good(), "{report}");
        deaths += report.coverage.store_deaths;
        let resumed = report.coverage.longest_resumption;
        assert!(resumed <= DETECTION + 50_000, "{report}");
    }
    assert!(deaths > 40, "{deaths}");
}

#[test]
fn equal_seeds_give_equal_traces() {
    let run = || {
        let options = Options::new(ProgramKind::Model).scenario(Scenario::failing_stores());
        let traces = reports(options, 0..3).map(|report| report.trace);
        traces.collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

/// Runs seeds without `rule` until `seen` sees what comes of it; with it, the same seed is
/// good.
fn cluster_without(rule: Rule, seeds: u64, seen: impl Fn(&Report) -> bool) {
    missed_in(Scenario::failing_stores(), rule, seeds, seen);
}

fn missed_in(scenario: Scenario, rule: Rule, seeds: u64, seen: impl Fn(&Report) -> bool) {
    let options = Options::new(ProgramKind::Model).scenario(scenario);
    let mut broken = reports(options.clone().without(rule), 0..seeds);
    let objection = broken.find(|report| seen(report));
    let seed = objection.map(|report| report.seed);
    let seed = seed.unwrap_or_else(|| panic!("nothing misses {rule}"));
    for report in reports(options, seed..seed + 1) {
        assert!(report.is_good(), "{report}");
    }
}

#[test]
fn without_chain_epochs_the_checkers_object() {
    cluster_without(Rule::ChainEpoch, 50, |report| !report.is_good());
}

#[test]
fn without_leases_of_joined_replicas_the_checker_objects() {
    let checkers = [Checker::SingleOwner, Checker::Counter];
    let objects = |report: &Report| checkers.iter().any(|checker| report.objects(*checker));
    cluster_without(Rule::JoinedLeases, 200, objects);
}

#[test]
fn without_kept_updates_the_checkers_object() {
    // What a cut out replica had and its successor lacked is lost only if the one before
    // it, which had it too, goes next.
    let cluster = Cluster {
        deaths: 20,
        pauses: 60,
        cuts: 60,
        ..Cluster::failing()
    };
    let scenario = Scenario {
        cluster: Some(cluster),
        ..Scenario::failing_stores()
    };
    let bad = |report: &Report| !report.is_good();
    missed_in(scenario, Rule::KeptUpdates, 300, bad);
}

#[test]
fn without_whole_joins_the_checkers_object() {
    cluster_without(Rule::WholeJoin, 200, |report| !report.is_good());
}

#[test]
fn without_whole_chain_acknowledgement_the_checker_objects() {
    without(
        Rule::WholeChainAcknowledgement,
        ProgramKind::Model,
        Scenario::store_failover(),
        &[Checker::Durable],
        20,
    );
}

#[test]
fn a_calm_cluster_is_good_for_every_program() {
    for program in [ProgramKind::Counter, ProgramKind::Nat] {
        all_good(program, Scenario::store_failover(), 5);
    }
}

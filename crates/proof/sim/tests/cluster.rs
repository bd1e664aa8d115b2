//! Store servers under a controller: they die and come back empty, stand still, lose
//! each other, and the controller starts anew; shards move.

mod common;

use common::{all_good, reports, without};
use stateplane_history::replication::checkers;
use stateplane_sim::{Cluster, DETECTION, Options, ProgramKind, Rule, Scenario};

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
    run(common::program("counter"), Scenario::failing_stores(), 30);
}

#[test]
fn failing_stores_of_the_nat() {
    run(common::program("nat"), Scenario::failing_stores(), 30);
}

#[test]
fn moving_shards_of_the_nat() {
    run(common::program("nat"), Scenario::moving_shards(), 20);
}

/// A tail that takes over may acknowledge, to a claim of the same epoch, a write that the claim did
/// not make.
#[test]
fn what_a_claim_did_not_write_is_not_acknowledged_to_it() {
    let options = Options::new(ProgramKind::Model).scenario(Scenario::port_churn());
    for seed in [486, 1761] {
        for report in reports(options.clone(), seed..seed + 1) {
            assert!(report.is_good(), "{report}");
        }
    }
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

// What comes of a chain without chain epochs, without neighbours, or without kept updates,
// takes misfortunes in one order, which seeds seldom meet: `chain_faults.txt`, beside the other
// scenarios of crates/systems/replication/store, has them in that order.

/// Servers that are cut out and come back all the time.
const RESTLESS: Scenario = Scenario {
    cluster: Some(Cluster {
        deaths: 20,
        pauses: 60,
        cuts: 60,
        ..Cluster::failing()
    }),
    ..Scenario::failing_stores()
};

#[test]
fn without_whole_joins_the_checkers_object() {
    let checkers = [checkers::DURABLE, checkers::COUNTER];
    let mut dense = Scenario {
        bursts: 4_000,
        burst_length: 1,
        ..RESTLESS
    };
    dense.chain_link.loss = 150;
    let rule = Rule::WholeJoin;
    without(rule, ProgramKind::Model, dense, &checkers, 12);
}

#[test]
fn without_whole_chain_acknowledgement_the_checker_objects() {
    without(
        Rule::WholeChainAcknowledgement,
        ProgramKind::Model,
        Scenario::store_failover(),
        &[checkers::DURABLE],
        6,
    );
}

#[test]
fn a_calm_cluster_is_good_for_every_program() {
    for program in [common::program("counter"), common::program("nat")] {
        all_good(program, Scenario::store_failover(), 5);
    }
}

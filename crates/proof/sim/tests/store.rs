//! The store alone: model switches speak to it over bad links.

mod common;

use common::{LATE, all_good, reports, without};
use stateplane_history::replication::{EventKind, checkers};
use stateplane_sim::{Options, ProgramKind, Rule, Scenario};
use std::collections::BTreeSet;

#[test]
fn mixed_seeds() {
    let options = Options::new(ProgramKind::Model);
    for report in reports(options, 0..200) {
        assert!(report.is_good(), "{report}");
        let coverage = report.coverage;
        assert!(coverage.owner_changes > 0, "{report}");
        assert!(coverage.sequence_wraps > 0, "{report}");
        assert!(coverage.table_full > 0, "{report}");
    }
}

#[test]
fn calm_seeds() {
    all_good(ProgramKind::Model, Scenario::calm(), 50);
}

#[test]
fn echoing_seeds() {
    all_good(ProgramKind::Model, Scenario::echoes(), 100);
}

#[test]
fn seeds_with_a_tug_of_war() {
    all_good(ProgramKind::Model, Scenario::tug_of_war(), 100);
}

#[test]
fn restarting_seeds() {
    all_good(ProgramKind::Model, Scenario::restarts(), 100);
}

#[test]
fn equal_seeds_give_equal_traces() {
    let options = Options::new(ProgramKind::Model);
    let first: Vec<_> = reports(options.clone(), 0..5).collect();
    let second: Vec<_> = reports(options, 0..5).collect();
    for (first, second) in first.iter().zip(&second) {
        assert_eq!(first.trace, second.trace);
        assert_eq!(first.history, second.history);
    }
    let mut traces: Vec<_> = first.iter().map(|report| report.trace).collect();
    traces.sort_unstable();
    traces.dedup();
    assert_eq!(traces.len(), 5);
}

#[test]
fn scenarios_have_any_number_of_switches_and_replicas() {
    for (switches, replicas, base) in [
        (1, 1, Scenario::calm()),
        (3, 5, Scenario::mixed()),
        (5, 2, Scenario::power_cuts()),
        (4, 4, Scenario::moving_shards()),
    ] {
        let scenario = Scenario {
            switches,
            replicas,
            ..base
        };
        let options = Options::new(ProgramKind::Model).scenario(scenario);
        for report in reports(options, 0..8) {
            assert!(report.is_good(), "{report}");
            let calls = report
                .history
                .events
                .iter()
                .filter_map(|event| match event.kind {
                    EventKind::Call { node, .. } => Some(node),
                    _ => None,
                });
            let used: BTreeSet<u32> = calls.collect();
            assert_eq!(used, (1..=switches.into()).collect(), "{report}");
        }
    }
}

fn store_without(rule: Rule, scenario: Scenario, checkers: &[&str]) {
    without(rule, ProgramKind::Model, scenario, checkers, 12);
}

#[test]
fn without_sequence_check_the_checker_objects() {
    store_without(
        Rule::SequenceCheck,
        Scenario::echoes(),
        &[checkers::COUNTER, checkers::DURABLE],
    );
}

#[test]
fn without_epoch_check_the_checker_objects() {
    store_without(
        Rule::EpochCheck,
        LATE,
        &[checkers::COUNTER, checkers::SINGLE_OWNER],
    );
}

#[test]
fn without_whole_chain_acknowledgement_the_checker_objects() {
    store_without(
        Rule::WholeChainAcknowledgement,
        Scenario::calm(),
        &[checkers::DURABLE],
    );
}

#[test]
fn without_lease_expiry_the_checker_objects() {
    store_without(
        Rule::LeaseExpiry,
        Scenario::tug_of_war(),
        &[checkers::SINGLE_OWNER],
    );
}

/// Clocks that drift by five times the default bound of rule 1, terms that are long, and leases that
/// are not recalled.
const ROUGH_CLOCKS: Scenario = Scenario {
    drift: 5_000,
    term: 300_000,
    backing: 600_000,
    recall: false,
    ..Scenario::tug_of_war()
};

#[test]
fn clocks_within_a_bound_that_the_store_is_told_are_good() {
    let scenario = Scenario {
        drift_bound: 5_000,
        ..ROUGH_CLOCKS
    };
    all_good(ProgramKind::Model, scenario, 50);
}

/// The checker is fine enough to tell when the bound is not kept.
#[test]
fn with_clocks_beyond_the_bound_the_checker_objects() {
    let scenario = ROUGH_CLOCKS;
    let options = Options::new(ProgramKind::Model).scenario(scenario);
    let reports = reports(options, 0..30);
    let objections = reports.filter(|report| report.objects(checkers::SINGLE_OWNER));
    let objections = objections.count();
    assert!(objections >= 5, "in {objections} of 30 seeds");
}

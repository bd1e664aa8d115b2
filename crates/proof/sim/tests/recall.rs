//! Leases that move from one switch to another while both live (rule 19).

mod common;

use common::{all_good, reports, without};
use stateplane_history::replication::{EventKind, Released, checkers};
use stateplane_sim::{Options, ProgramKind, Report, Rule, Scenario};
use std::collections::BTreeMap;

/// µs for a request to pass the chain of three and for its answer to come back, on the
/// links of [`Scenario::handover`].
fn round_trip(scenario: &Scenario) -> u64 {
    2 * scenario.protocol_link.delay + 2 * scenario.chain_link.delay
}

/// The longest time in µs from a packet's arrival at a switch until its output left.
fn longest_stall(report: &Report) -> u64 {
    let mut arrived = BTreeMap::new();
    let mut longest = 0;
    for event in &report.history.events {
        match event.kind {
            EventKind::Call {
                operation: packet, ..
            } => {
                arrived.insert(packet, event.at);
            }
            EventKind::Return {
                operation: packet, ..
            } => {
                longest = longest.max(event.at - arrived[&packet]);
            }
            _ => {}
        }
    }
    longest
}

fn stalls(program: ProgramKind, scenario: &Scenario, seeds: u64) -> u64 {
    let options = Options::new(program).scenario(scenario.clone());
    let runs = reports(options, 0..seeds).map(|report| {
        assert!(report.is_good(), "{report}");
        assert!(report.coverage.owner_changes > 20, "{report}");
        longest_stall(&report)
    });
    runs.max().unwrap_or_default()
}

/// Issue and release of a lease take one round trip and a half with the recall between,
/// the write another.
#[test]
fn a_flow_that_moves_stalls_for_two_round_trips_and_a_half() {
    let scenario = Scenario::handover();
    for program in [ProgramKind::Model, common::program("counter")] {
        let stall = stalls(program, &scenario, 20);
        assert_eq!(2 * stall, 5 * round_trip(&scenario), "{program}");
    }
}

#[test]
fn without_recall_it_stalls_until_the_shard_is_withheld_and_outwaited() {
    let scenario = Scenario {
        recall: false,
        ..Scenario::handover()
    };
    let stall = stalls(common::program("counter"), &scenario, 5);
    assert!(stall > u64::from(scenario.term) * 9 / 10, "{stall}");
}

#[test]
fn leases_that_are_only_outwaited() {
    for scenario in [Scenario::mixed(), Scenario::tug_of_war()] {
        let scenario = Scenario {
            recall: false,
            ..scenario
        };
        for program in [ProgramKind::Model, common::program("counter")] {
            all_good(program, scenario.clone(), 20);
        }
    }
}

/// Number of packets of all flows that were never counted.
fn uncounted(report: &Report) -> u64 {
    let mut flows: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for event in &report.history.events {
        match &event.kind {
            EventKind::Call { object: flow, .. } => flows.entry(flow).or_default().0 += 1,
            EventKind::Return {
                object: flow,
                response: Released {
                    value: Some(value), ..
                },
                ..
            } => {
                let (_, greatest) = flows.entry(flow).or_default();
                *greatest = (*greatest).max(*value);
            }
            _ => {}
        }
    }
    flows.values().map(|(came, counted)| came - counted).sum()
}

/// Releases that overtake writes, on links without loss: without the rule such a write is refused,
/// and its count is lost. No output shows the count, so no checker of outputs can find the loss.
#[test]
fn without_release_after_writes_updates_are_lost() {
    let mut scenario = Scenario {
        burst_length: 4,
        burst_gap: 200,
        alternate: 300,
        ..Scenario::handover()
    };
    scenario.protocol_link.jitter = 400;
    for program in [ProgramKind::Model, common::program("counter")] {
        let options = Options::new(program).scenario(scenario.clone());
        let lost = |options| {
            let lost = reports(options, 0..5).map(|report| {
                assert!(report.is_good(), "{report}");
                uncounted(&report)
            });
            lost.sum::<u64>()
        };
        let with = lost(options.clone());
        let without = lost(options.without(Rule::ReleaseAfterWrites));
        assert!(
            without > 2 * with,
            "{program}: {without}, with the rule {with}"
        );
    }
}

#[test]
fn without_recall_stops_the_checker_objects() {
    let checkers = [checkers::SINGLE_OWNER];
    let rule = Rule::RecallStops;
    without(
        rule,
        common::program("counter"),
        Scenario::tug_of_war(),
        &checkers,
        6,
    );
}

//! The applications with a machine of their own, in worlds of every misfortune.

mod common;

use common::{all_good, ordinary_scenarios, reports, without};
use stateplane_history::replication::checkers;
use stateplane_sim::{EngineKind, LinkQuality, Options, Report, Rule, Scenario};

/// Asserts the events that every run must contain to count.
fn covered(report: &Report) {
    assert!(report.is_good(), "{report}");
    let coverage = report.coverage;
    assert!(coverage.owner_changes > 0, "no change of owner: {report}");
    assert!(coverage.deaths > 0, "no death: {report}");
    assert!(
        coverage.outputs * 4 > coverage.inputs,
        "little came out: {report}"
    );
}

fn run(application: &str) {
    let program = common::program(application);
    for report in reports(Options::new(program), 0..12) {
        covered(&report);
    }
    all_good(program, Scenario::calm(), 4);
    all_good(program, Scenario::tug_of_war(), 4);
    all_good(program, Scenario::restarts(), 4);
    let interp = Options::new(program).engine(EngineKind::Interp);
    for (native, interp) in reports(Options::new(program), 0..1).zip(reports(interp, 0..1)) {
        assert_eq!(native.trace, interp.trace);
        assert_eq!(native.history, interp.history);
    }
    // Its checker notices that a flow has the state of another.
    let checkers = [checkers::APPLICATION];
    without(
        Rule::KeyComparison,
        program,
        Scenario::calm(),
        &checkers,
        20,
    );
}

#[test]
fn firewall() {
    run("firewall");
}

#[test]
fn key_value() {
    run("key-value");
}

/// Both switches answer reads of a key, until one of them is to change it.
#[test]
fn shared_leases_of_the_key_value_store() {
    let program = common::program("key-value");
    let scenario = Scenario {
        alternate: 500,
        reroutes: 40,
        buckets: 16,
        ..Scenario::calm()
    };
    let outwaited = Scenario {
        recall: false,
        ..scenario.clone()
    };
    for scenario in [scenario.clone(), outwaited] {
        let options = Options::new(program).scenario(scenario);
        for report in reports(options, 0..12) {
            assert!(report.is_good(), "{report}");
            assert!(report.coverage.shared_grants > 20, "{report}");
        }
    }
    let rule = Rule::LeaseExpiry;
    without(rule, program, scenario, &[checkers::APPLICATION], 40);
}

#[test]
fn sequencer() {
    run("sequencer");
}

#[test]
fn object_routing() {
    run("object-routing");
}

#[test]
fn load_balancer() {
    run("load-balancer");
}

#[test]
fn serving_gateway() {
    run("serving-gateway");
}

#[test]
fn syn_defence() {
    run("syn-defence");
}

#[test]
fn super_spreader() {
    run("super-spreader");
}

fn heavy_hitter(scenario: Scenario) -> Options {
    Options::new(common::program("heavy-hitter")).scenario(scenario)
}

#[test]
fn snapshots_are_what_switches_really_had_within_the_bound() {
    for report in reports(heavy_hitter(Scenario::mixed()), 0..12) {
        assert!(report.is_good(), "{report}");
        assert!(report.coverage.deaths > 0, "{report}");
        assert!(
            report.coverage.outputs * 2 > report.coverage.inputs,
            "{report}"
        );
    }
    for scenario in ordinary_scenarios() {
        for report in reports(heavy_hitter(scenario), 0..3) {
            assert!(report.is_good(), "{report}");
        }
    }
    let interp = heavy_hitter(Scenario::calm()).engine(EngineKind::Interp);
    let native = reports(heavy_hitter(Scenario::calm()), 0..1);
    for (native, interp) in native.zip(reports(interp, 0..1)) {
        assert_eq!(native.trace, interp.trace);
        assert_eq!(native.history, interp.history);
    }
}

/// Recovered state is judged wrong without `rule`, and right with it.
fn snapshots_without(rule: Rule, scenario: Scenario) {
    let options = heavy_hitter(scenario);
    let broken = options.clone().without(rule);
    let objection = reports(broken, 0..60)
        .find(|report| report.anomalies.iter().any(|what| what.contains("tenant")));
    let Some(objection) = objection else {
        panic!("nothing misses {rule} in 60 seeds");
    };
    println!("{objection}");
    for report in reports(options, 0..objection.seed + 1) {
        assert!(report.is_good(), "{report}");
    }
}

#[test]
fn without_synchronising_a_snapshot_is_what_no_switch_had() {
    snapshots_without(Rule::SnapshotSynchronise, Scenario::calm());
}

#[test]
fn without_visiting_every_element_a_snapshot_is_what_no_switch_had() {
    snapshots_without(Rule::SnapshotEveryElement, Scenario::calm());
}

#[test]
fn without_acknowledgement_too_much_is_lost() {
    // Switches that die often, with much under way that did not get through.
    let mixed = Scenario::mixed();
    let scenario = Scenario {
        deaths: 10,
        outage: (20_000, 60_000),
        protocol_link: LinkQuality {
            loss: 250,
            ..mixed.protocol_link
        },
        ..mixed
    };
    snapshots_without(Rule::SnapshotAcknowledged, scenario);
}

#[test]
fn without_the_bound_too_much_is_lost() {
    // Switches that are cut off and die before they come back.
    let scenario = Scenario {
        deaths: 10,
        outage: (20_000, 60_000),
        cuts: 20,
        cut: 400_000,
        ..Scenario::mixed()
    };
    snapshots_without(Rule::SnapshotBound, scenario);
}

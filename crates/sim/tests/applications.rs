//! The applications with a machine of their own, in worlds of every misfortune.

mod common;

use common::{all_good, reports, without};
use stateplane_history::{Application, Checker};
use stateplane_sim::{EngineKind, Options, ProgramKind, Report, Rule, Scenario};

/// What every run must have met to count.
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

fn run(application: Application) {
    let program = ProgramKind::App(application);
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
    let checkers = [Checker::Application];
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
    run(Application::Firewall);
}

#[test]
fn key_value() {
    run(Application::KeyValue);
}

#[test]
fn sequencer() {
    run(Application::Sequencer);
}

#[test]
fn object_routing() {
    run(Application::ObjectRouting);
}

#[test]
fn load_balancer() {
    run(Application::LoadBalancer);
}

#[test]
fn serving_gateway() {
    run(Application::ServingGateway);
}

#[test]
fn syn_defence() {
    run(Application::SynDefence);
}

#[test]
fn super_spreader() {
    run(Application::SuperSpreader);
}

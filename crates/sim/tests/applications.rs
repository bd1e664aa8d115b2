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
        coverage.outputs * 3 > coverage.inputs,
        "little came out: {report}"
    );
}

/// Every scenario but those whose flows are too long to search.
fn run(application: Application) {
    let program = ProgramKind::App(application);
    for report in reports(Options::new(program), 0..25) {
        covered(&report);
    }
    all_good(program, Scenario::calm(), 10);
    all_good(program, Scenario::tug_of_war(), 5);
    all_good(program, Scenario::restarts(), 5);
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

//! Servers with disks that lose power, all or one at a time, in a fixed chain and under a
//! controller: nothing that was acknowledged is lost.

mod common;

use common::reports;
use stateplane_sim::{Options, ProgramKind, Rule, Scenario};

fn run(program: ProgramKind, scenario: Scenario, seeds: u64) {
    let options = Options::new(program).scenario(scenario);
    let (mut deaths, mut snapshots) = (0, 0);
    for report in reports(options, 0..seeds) {
        assert!(report.is_good(), "{report}");
        let coverage = report.coverage;
        assert!(coverage.outputs * 3 > coverage.inputs, "{report}");
        deaths += coverage.store_deaths;
        snapshots += coverage.snapshots;
    }
    assert!(deaths > 8 * seeds, "{deaths} deaths of store servers");
    assert!(snapshots > 3 * seeds, "{snapshots} snapshots");
}

#[test]
fn power_cuts_of_the_model() {
    run(ProgramKind::Model, Scenario::power_cuts(), 150);
}

#[test]
fn power_cuts_of_the_model_under_a_controller() {
    run(ProgramKind::Model, Scenario::cluster_power_cuts(), 150);
}

#[test]
fn power_cuts_of_the_nat_under_a_controller() {
    run(ProgramKind::Nat, Scenario::cluster_power_cuts(), 30);
}

#[test]
fn power_cuts_of_the_counter() {
    run(ProgramKind::Counter, Scenario::power_cuts(), 30);
}

#[test]
fn power_cuts_of_the_nat() {
    run(ProgramKind::Nat, Scenario::power_cuts(), 30);
}

/// Power that is cut all the time, over slow disks: most seeds meet one that lost what it had
/// told others.
#[test]
fn without_saving_first_something_objects() {
    const SEEDS: u64 = 12;
    for (mut scenario, deaths) in [
        (Scenario::power_cuts(), 0),
        (Scenario::cluster_power_cuts(), 20),
    ] {
        (scenario.bursts, scenario.burst_length) = (4_000, 1);
        if let Some(disks) = &mut scenario.disks {
            (disks.power_cuts, disks.deaths, disks.sync) = (20, deaths, 5_000);
        }
        let options = Options::new(ProgramKind::Model).scenario(scenario);
        let broken = reports(options.clone().without(Rule::SaveFirst), 0..SEEDS);
        let objections = broken.filter(|report| !report.is_good()).count();
        println!("{objections} of {SEEDS}");
        assert!(objections >= 3, "in {objections} of {SEEDS} seeds");
        for report in reports(options, 0..SEEDS) {
            assert!(report.is_good(), "{report}");
        }
    }
}

/// In the first a server comes back as tail of a chain whose old grants were answered
/// before; in the other one loses power between a shared grant and its answer.
#[test]
fn grants_of_before_a_power_cut() {
    let balancer = ProgramKind::from_name("load-balancer").unwrap();
    for (program, seed) in [(balancer, 200_021), (ProgramKind::Nat, 5_491)] {
        let options = Options::new(program).scenario(Scenario::cluster_power_cuts());
        for report in reports(options, seed..seed + 1) {
            assert!(report.is_good(), "{report}");
        }
    }
}

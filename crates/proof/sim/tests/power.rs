//! Servers with disks that lose power, all or one at a time, in a fixed chain and under a
//! controller: nothing that was acknowledged is lost.

mod common;

use common::{reports, without};
use stateplane_history::replication::checkers;
use stateplane_sim::{Options, ProgramKind, Rule, Scenario};

fn run(program: ProgramKind, scenario: Scenario, seeds: u64) {
    let options = Options::new(program).scenario(scenario);
    let (mut deaths, mut snapshots) = (0, 0);
    for report in reports(options, 0..seeds) {
        assert!(report.is_good(), "{report}");
        let coverage = report.coverage;
        assert!(coverage.outputs * 4 > coverage.inputs, "{report}");
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
    run(common::program("nat"), Scenario::cluster_power_cuts(), 30);
}

/// A disk that lies, or loses or changes what it had, is found out by itself or by the
/// neighbours, and the server takes a copy of what it kept.
#[test]
fn disks_that_rot_one_at_a_time() {
    let options = Options::new(ProgramKind::Model).scenario(Scenario::rotten_disks());
    let (mut deaths, mut emptied, mut left) = (0, 0, 0);
    for report in reports(options, 0..100) {
        assert!(report.is_good(), "{report}");
        deaths += report.coverage.store_deaths;
        emptied += report.coverage.disks_emptied;
        left += report.coverage.chains_lost;
    }
    assert!(deaths > 120 && emptied > 40, "{deaths} {emptied}");
    assert!(left > 5, "{left} chains left");
}

/// A server dies 2 ms after another whose disk lost the newest records. While that one is away, or
/// lacks them, a third death would leave nobody with what was answered: it has to wait.
#[test]
fn nobody_dies_beside_a_server_whose_disk_rotted() {
    let options = Options::new(common::program("nat")).scenario(Scenario::rotten_disks());
    for report in reports(options, 90..91) {
        assert!(report.is_good(), "{report}");
        assert!(report.coverage.store_deaths > 5, "{report}");
    }
}

/// A server whose disk fails a write ends, and comes back when the disk is sound; one whose
/// disk writes short goes on.
fn run_failing(program: ProgramKind, scenario: Scenario, seeds: u64) {
    let options = Options::new(program).scenario(scenario);
    let (mut ended, mut refused) = (0, 0);
    for report in reports(options, 0..seeds) {
        assert!(report.is_good(), "{report}");
        let coverage = report.coverage;
        assert!(coverage.outputs * 4 > coverage.inputs, "{report}");
        ended += coverage.disk_failures;
        refused += coverage.failed_starts;
    }
    assert!(ended > 3 * seeds, "{ended} servers ended");
    assert!(refused > 3 * seeds, "{refused} starts failed");
}

#[test]
fn failing_disks_of_the_model() {
    run_failing(ProgramKind::Model, Scenario::failing_disks(), 100);
}

#[test]
fn failing_disks_of_the_model_under_a_controller() {
    run_failing(ProgramKind::Model, Scenario::cluster_failing_disks(), 100);
}

/// All disks fail before each has a chain's first configuration. A member of the second one that
/// never took the first would take the chain for lost.
#[test]
fn founders_whose_disks_fail_take_the_first_configuration_before_the_second() {
    let options = Options::new(ProgramKind::Model).scenario(Scenario::cluster_failing_disks());
    for report in reports(options, 557..558) {
        assert!(report.is_good(), "{report}");
        assert_eq!(report.coverage.chains_lost, 0, "{report}");
    }
}

#[test]
fn failing_disks_of_the_nat() {
    run_failing(common::program("nat"), Scenario::failing_disks(), 10);
}

#[test]
fn without_heeding_a_failed_save_the_checker_objects() {
    let checkers = [checkers::DURABLE, checkers::COUNTER];
    for mut scenario in [Scenario::failing_disks(), Scenario::cluster_failing_disks()] {
        if let Some(disks) = &mut scenario.disks {
            (disks.power_cuts, disks.failures) = (20, 30);
            disks.outage = (1_000, 20_000);
        }
        without(
            Rule::FailedSave,
            ProgramKind::Model,
            scenario,
            &checkers,
            12,
        );
    }
}

#[test]
fn power_cuts_of_the_counter() {
    run(common::program("counter"), Scenario::power_cuts(), 30);
}

#[test]
fn power_cuts_of_the_nat() {
    run(common::program("nat"), Scenario::power_cuts(), 30);
}

#[test]
fn without_saving_first_the_checker_objects() {
    let checkers = [checkers::DURABLE, checkers::COUNTER];
    for mut scenario in [Scenario::power_cuts(), Scenario::cluster_power_cuts()] {
        // Power that is cut all the time, and slow disks.
        if let Some(disks) = &mut scenario.disks {
            (disks.power_cuts, disks.deaths, disks.sync) = (20, 40, 1_000);
            disks.outage = (1_000, 20_000);
        }
        without(Rule::SaveFirst, ProgramKind::Model, scenario, &checkers, 12);
    }
}

/// In the first a server comes back as tail of a chain whose old grants were answered
/// before; in the other one loses power between a shared grant and its answer.
#[test]
fn grants_of_before_a_power_cut() {
    let balancer = ProgramKind::from_name("load-balancer").unwrap();
    for (program, seed) in [(balancer, 200_021), (common::program("nat"), 5_491)] {
        let options = Options::new(program).scenario(Scenario::cluster_power_cuts());
        for report in reports(options, seed..seed + 1) {
            assert!(report.is_good(), "{report}");
        }
    }
}

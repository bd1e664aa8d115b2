//! A run to which a checker objects is made small, and its command says all of it.

mod common;

use common::reports;
use stateplane_sim::{Chosen, Options, ProgramKind, Report, Rule, Scenario, Simulator};

/// The first of some seeds to which somebody objects, and what is left when it is made small.
fn shrunk(options: Options, runs: usize) -> (Report, Report) {
    let simulator = Simulator::new(options.clone()).unwrap();
    let bad = reports(options, 0..50).find(|report| !report.is_good());
    let bad = bad.expect("somebody objects");
    let small = simulator.shrink(&bad, runs).unwrap();
    (bad, small)
}

/// Number of events in a run.
fn size(report: &Report) -> usize {
    report.history.events.len() + report.faults.len()
}

#[test]
fn what_is_left_has_the_same_objection_and_can_be_read() {
    // How many times smaller each gets at least: what a join needs takes many entries, and a late
    // write many terms.
    for (rule, scenario, times) in [
        (Rule::LeaseExpiry, Scenario::tug_of_war(), 4),
        (Rule::EpochCheck, Scenario::tug_of_war(), 1),
        (Rule::SequenceCheck, Scenario::echoes(), 4),
        (Rule::WholeJoin, Scenario::failing_stores(), 1),
    ] {
        let options = Options::new(ProgramKind::Model).scenario(scenario);
        let (bad, small) = shrunk(options.clone().without(rule), 400);
        assert_eq!(small.objection(), bad.objection(), "{rule}");
        assert!(size(&small) * times < size(&bad), "{rule}: {small}");
        assert!(!small.to_string().is_empty());
        // It follows from what the report says of it, and from nothing else.
        let again = reports(small.options.clone(), small.seed..small.seed + 1);
        for again in again {
            assert_eq!(again.trace, small.trace);
            assert_eq!(again.objection(), small.objection());
        }
    }
}

#[test]
fn a_good_run_is_left_as_it_is() {
    let options = Options::new(ProgramKind::Model).scenario(Scenario::calm());
    let simulator = Simulator::new(options).unwrap();
    let good = simulator.run(0).unwrap();
    assert_eq!(simulator.shrink(&good, 10).unwrap().trace, good.trace);
}

#[test]
fn commands_say_what_a_test_changed() {
    let options = Options::new(common::program("counter")).scenario(Scenario {
        flows: 3,
        cluster: None,
        ..Scenario::failing_stores()
    });
    let chosen = Chosen {
        packets: Some("1,4-6".parse().unwrap()),
        faults: Some("none".parse().unwrap()),
    };
    let command = options.chosen(chosen).without(Rule::EpochCheck).command(7);
    assert_eq!(
        command,
        "stateplane sim --program counter --scenario failing-stores --seed 7 --set cluster=none \
         --set flows=3 --packets 1,4-6 --faults none --without epoch-check"
    );
}

#[test]
fn a_chosen_part_of_the_plan_is_all_that_happens() {
    let options = Options::new(ProgramKind::Model).scenario(Scenario::mixed());
    let simulator = Simulator::new(options.clone()).unwrap();
    let (packets, faults) = simulator.run(0).unwrap().planned;
    assert!(
        packets > 100 && faults > 10,
        "{packets} packets, {faults} faults"
    );
    let chosen = Chosen {
        packets: Some("0-4".parse().unwrap()),
        faults: Some("2".parse().unwrap()),
    };
    for report in reports(options.chosen(chosen), 0..1) {
        assert!(report.coverage.inputs <= 5, "{report}");
        assert!(
            (1..=3).contains(&report.faults.len()),
            "{:?}",
            report.faults
        );
        assert_eq!(report.planned, (packets, faults));
    }
}

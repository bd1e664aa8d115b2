//! A few seeds of every scenario.

use stateplane_sync_sim::{Coverage, Options, Report, Scenario, Simulator};
use stateplane_world::EngineKind;

fn run(scenario: Scenario, seeds: u64) -> Coverage {
    let simulator = Simulator::new(Options::new(scenario)).expect("a world");
    let mut sum = Coverage::default();
    for seed in 0..seeds {
        let report = simulator.run(seed).expect("a run");
        assert!(report.is_good(), "{report}");
        let of = report.coverage;
        assert!(of.told > 0, "nothing was told: {report}");
        sum.told += of.told;
        sum.repaired += of.repaired;
        sum.windows += of.windows;
        sum.written += of.written;
        sum.staged += of.staged;
        sum.unknown += of.unknown;
        sum.refused += of.refused;
        sum.generations += of.generations;
        sum.led += of.led;
        sum.continued += of.continued;
        sum.discontinuities += of.discontinuities;
        sum.greatest = sum.greatest.max(of.greatest);
    }
    sum
}

#[test]
fn quiet_links_lose_nothing() {
    let coverage = run(Scenario::quiet(), 8);
    assert_eq!((coverage.repaired, coverage.refused), (0, 0));
}

#[test]
fn overload() {
    assert!(run(Scenario::overload(), 8).greatest > 1000);
}

#[test]
fn slow_sweep() {
    run(Scenario::slow_sweep(), 4);
}

#[test]
fn lossy_links_are_repaired() {
    assert!(run(Scenario::lossy(), 12).repaired > 100);
}

#[test]
fn storm() {
    assert!(run(Scenario::storm(), 12).repaired > 100);
}

#[test]
fn totals_of_narrow_counters() {
    let coverage = run(Scenario::continued(), 12);
    assert!(coverage.continued > 12 * 10 && coverage.discontinuities > 12);
    let coverage = run(Scenario::continued_lossy(), 12);
    assert!(coverage.continued > 12 && coverage.discontinuities > 12);
    assert!(run(Scenario::continued_mixed(), 12).discontinuities > 12);
}

#[test]
fn exact_views() {
    run(Scenario::exact(), 8);
}

#[test]
fn restarts() {
    let coverage = run(Scenario::restarts(), 12);
    assert!(coverage.generations > 12 * 4 && coverage.refused > 0);
}

#[test]
fn cuts() {
    assert!(run(Scenario::cuts(), 12).windows > 12 * 4);
}

#[test]
fn writes() {
    let coverage = run(Scenario::writes(), 12);
    assert!(coverage.written > 12 * 10 && coverage.refused > 0);
}

#[test]
fn staged_writes_are_whole_and_made_once() {
    let coverage = run(Scenario::staged(), 12);
    assert!(coverage.staged > 12 * 4 && coverage.refused > 0);
}

#[test]
fn engines_that_stand_by() {
    let coverage = run(Scenario::standby(), 12);
    assert!(coverage.led > 12 * 3 && coverage.written > 12 * 10);
    let coverage = run(Scenario::standby_mixed(), 12);
    assert!(coverage.led > 12 * 3 && coverage.windows > 12 * 2);
}

#[test]
fn mixed() {
    let coverage = run(Scenario::mixed(), 12);
    assert!(coverage.unknown > 0 && coverage.windows > 0);
}

/// A gauge, and a key beside its count, in a program that `stateplane sync` has instrumented.
#[test]
fn gauges_and_opaque_groups_of_an_instrumented_program() {
    let coverage = run(Scenario::kinds(), 12);
    assert!(coverage.windows > 12 * 2 && coverage.repaired > 100);
}

#[test]
fn an_instrumented_program_under_all_faults() {
    let coverage = run(Scenario::kinds_mixed(), 12);
    assert!(coverage.unknown > 0 && coverage.windows > 0 && coverage.generations > 12 * 4);
}

#[test]
fn writes_to_an_instrumented_program() {
    let coverage = run(Scenario::kinds_writes(), 12);
    assert!(coverage.written > 12 * 10 && coverage.refused > 0);
}

#[test]
fn staged_writes_to_an_instrumented_program() {
    let coverage = run(Scenario::kinds_staged(), 12);
    assert!(coverage.staged > 12 * 4);
}

/// Switches whose workers share the registers. Frames go to them by chance, so that also what comes
/// of one frame, as a copy that is held, is met by frames of other workers.
#[test]
fn every_scenario_with_switches_of_several_workers() {
    for scenario in Scenario::ALL {
        let workers = ["workers=3".to_owned()];
        run(scenario.with_settings(&workers).expect("settings"), 1);
    }
}

#[test]
fn equal_seeds_give_equal_traces_on_both_engines() {
    for scenario in [Scenario::mixed(), Scenario::kinds_mixed()] {
        let run = |engine| -> Report {
            let options = Options::new(scenario.clone()).engine(engine);
            let simulator = Simulator::new(options).expect("a world");
            simulator.run(3).expect("a run")
        };
        let native = run(EngineKind::Native);
        let interp = run(EngineKind::Interp);
        assert_eq!(native.trace, run(EngineKind::Native).trace);
        assert_eq!(native.trace, interp.trace);
        assert_eq!(native.coverage, interp.coverage);
    }
}

#[test]
fn scenarios_and_their_settings_are_said_again() {
    for scenario in Scenario::ALL {
        assert_eq!(scenario.settings(), [""; 0]);
        assert_eq!(Scenario::from_name(scenario.name), Some(scenario));
    }
    let changed = ["cuts=1".to_owned(), "link.loss=500".to_owned()];
    let scenario = Scenario::mixed().with_settings(&changed).expect("settings");
    assert_eq!(scenario.settings(), changed);
    for wrong in [
        "locations=12",
        "window=0",
        "window=33",
        "flows=1",
        "turn_us=0",
    ] {
        let wrong = [wrong.to_owned()];
        assert!(
            Scenario::mixed().with_settings(&wrong).is_err(),
            "{wrong:?}"
        );
    }
    assert_eq!(
        Options::new(scenario).command(7),
        "stateplane sim --program sync --scenario mixed --seed 7 --set cuts=1 --set link.loss=500"
    );
}

//! An observer beside servers whose chain changes, under loss, repeats, exchanges and servers that do not
//! know that they were cut out: what it tells is compared with what switches were told. Each rule that is
//! turned off is noticed. `STATEPLANE_OBSERVED` is how many seeds run with all rules, 60 unless set.

mod world;

use stateplane_observe::Faults;
use world::{Off, Report, World};

/// µs of faults in a run.
const LENGTH: u64 = 1_500_000;

/// Seeds within which a rule that is turned off has to be noticed.
const MOST_SEEDS: u64 = 400;

fn run(seed: u64, off: Off) -> Report {
    World::new(seed, off).run(LENGTH)
}

#[test]
fn what_an_observer_tells_is_what_switches_were_told() {
    let seeds = std::env::var("STATEPLANE_OBSERVED");
    let seeds = seeds.map_or(60, |seeds| seeds.parse().expect("a number"));
    let (mut told, mut done, mut configurations) = (0, 0, 0);
    for seed in 0..seeds {
        let report = run(seed, Off::default());
        assert_eq!(report.objection, None, "seed {seed}");
        told += report.told;
        done += report.done;
        configurations += report.configurations;
    }
    // Under faults, too, the view is there most of the time, and changes are made.
    assert!(told > seeds * 10_000, "{told}");
    assert!(done > seeds * 20, "{done}");
    assert!(u64::from(configurations) > seeds * 10, "{configurations}");
}

fn is_noticed(name: &str, off: Off) {
    let noticed = (0..MOST_SEEDS).find_map(|seed| {
        let report = run(seed, off);
        report.objection.map(|objection| (seed, objection))
    });
    let (seed, objection) = noticed.unwrap_or_else(|| panic!("nobody notices {name}"));
    println!("{name}: seed {seed}: {objection}");
}

fn observer(faults: Faults) -> Off {
    Off {
        observer: faults,
        ..Off::default()
    }
}

#[test]
fn a_tail_without_a_probe_may_have_been_cut_out() {
    let unproven = Faults {
        unproven: true,
        ..Faults::default()
    };
    is_noticed("unproven", observer(unproven));
}

#[test]
fn an_answer_says_nothing_of_the_time_since_the_probe() {
    let as_of_answer = Faults {
        as_of_answer: true,
        ..Faults::default()
    };
    is_noticed("as-of-answer", observer(as_of_answer));
}

#[test]
fn an_answer_with_lost_parts_is_none() {
    let first_part = Faults {
        first_part: true,
        ..Faults::default()
    };
    is_noticed("first-part", observer(first_part));
}

#[test]
fn parts_of_two_answers_are_not_one() {
    let mixed_parts = Faults {
        mixed_parts: true,
        ..Faults::default()
    };
    is_noticed("mixed-parts", observer(mixed_parts));
}

#[test]
fn a_write_that_was_refused_after_a_repeat_may_have_been_applied() {
    let write_again = Faults {
        write_again: true,
        ..Faults::default()
    };
    is_noticed("write-again", observer(write_again));
}

fn store(change: impl FnOnce(&mut stateplane_store::Faults)) -> Off {
    let mut off = Off::default();
    change(&mut off.store);
    off
}

#[test]
fn a_tail_whose_successor_may_count_tells_nothing() {
    is_noticed("observe-early", store(|it| it.observe_early = true));
}

#[test]
fn observers_are_told_of_flows_that_are_gone() {
    is_noticed("observe-no-end", store(|it| it.observe_no_end = true));
}

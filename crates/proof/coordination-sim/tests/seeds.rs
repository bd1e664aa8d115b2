//! A few seeds of every scenario, judged by every checker.

use stateplane_coordination_sim::event::{
    ASKED, BEYOND_RING, BLOCKED, BUSY, HANDED_OVER, LEASED_READ, LOWER_REQUEST, OTHER_EPOCH,
    PUSHED, RESENT,
};
use stateplane_coordination_sim::{Coverage, Options, Report, Scenario, Simulator};
use stateplane_world::{Chosen, EngineKind};

fn run(scenario: Scenario, seeds: u64) -> Coverage {
    let simulator = Simulator::new(Options::new(scenario)).expect("a world");
    let mut sum = Coverage::default();
    for seed in 0..seeds {
        let report = simulator.run(seed).expect("a run");
        assert!(report.is_good(), "{report}");
        let Coverage {
            asked,
            answered,
            unknown,
            deaths,
            refounded,
            configurations,
            lost,
            ended,
            told,
            compacted,
            listed,
            events,
        } = report.coverage;
        assert!(answered * 2 > asked, "little was answered: {report}");
        sum.asked += asked;
        sum.answered += answered;
        sum.unknown += unknown;
        sum.deaths += deaths;
        sum.refounded += refounded;
        sum.configurations += configurations;
        sum.lost += lost;
        sum.ended += ended;
        sum.told += told;
        sum.compacted += compacted;
        sum.listed += listed;
        for (sum, count) in sum.events.iter_mut().zip(events) {
            *sum += count;
        }
    }
    sum
}

/// Asserts that what a scenario is about happened in some of its seeds.
fn covers(scenario: Scenario, seeds: u64, events: &[usize]) -> Coverage {
    let name = scenario.name;
    let coverage = run(scenario, seeds);
    for &event in events {
        assert!(
            coverage.events[event] > 0,
            "{name}: event {event} never happened"
        );
    }
    coverage
}

#[test]
fn quiet_links_answer_everything() {
    let coverage = covers(Scenario::quiet(), 6, &[LEASED_READ]);
    assert_eq!(coverage.answered, coverage.asked);
}

#[test]
fn lossy_links() {
    covers(Scenario::lossy(), 8, &[ASKED, RESENT, LOWER_REQUEST]);
}

#[test]
fn failover() {
    let coverage = covers(Scenario::failover(), 8, &[HANDED_OVER]);
    assert!(coverage.deaths > 0);
}

#[test]
fn zombies() {
    let events = [OTHER_EPOCH, BLOCKED, ASKED, HANDED_OVER];
    covers(Scenario::zombies(), 10, &events);
}

#[test]
fn restarts() {
    let coverage = covers(Scenario::restarts(), 6, &[HANDED_OVER]);
    assert!(coverage.deaths > 20);
}

#[test]
fn recovery() {
    let coverage = covers(Scenario::recovery(), 10, &[HANDED_OVER, RESENT]);
    assert!(coverage.configurations > 100);
}

#[test]
fn clocks() {
    covers(Scenario::clocks(), 10, &[LEASED_READ, BLOCKED]);
}

#[test]
fn controller_restarts() {
    covers(Scenario::controller_restarts(), 6, &[HANDED_OVER]);
}

#[test]
fn full_tables() {
    covers(Scenario::full_tables(), 6, &[ASKED]);
}

#[test]
fn small_ring() {
    covers(Scenario::small_ring(), 6, &[BUSY, ASKED, HANDED_OVER]);
}

#[test]
fn last_numbers_end_in_refusals() {
    let coverage = covers(Scenario::last_numbers(), 4, &[ASKED]);
    assert!(coverage.unknown > 0);
}

#[test]
fn mixed() {
    covers(Scenario::mixed(), 8, &[BLOCKED, BUSY, HANDED_OVER]);
}

#[test]
fn chaos() {
    covers(Scenario::chaos(), 8, &[OTHER_EPOCH, BLOCKED, HANDED_OVER]);
}

#[test]
fn groups_go_on_while_a_link_between_members_is_cut() {
    let coverage = covers(Scenario::cut_members(), 6, &[HANDED_OVER]);
    assert!(coverage.configurations > 6);
}

#[test]
fn chains_are_whole_again_while_clients_write_as_fast_as_they_can() {
    covers(Scenario::saturated(), 4, &[BEYOND_RING, BUSY, HANDED_OVER]);
}

#[test]
fn sessions() {
    let coverage = covers(Scenario::sessions(), 8, &[HANDED_OVER]);
    assert!(coverage.ended > 8);
}

#[test]
fn groups_are_founded_anew() {
    let coverage = covers(Scenario::refounding(), 8, &[HANDED_OVER]);
    assert!(coverage.refounded > 8);
}

#[test]
fn watches() {
    let coverage = covers(Scenario::watches(), 8, &[PUSHED, HANDED_OVER]);
    assert!(coverage.told > 1_000 && coverage.compacted > 0);
}

#[test]
fn lists() {
    let coverage = covers(
        Scenario::lists(),
        8,
        &[LEASED_READ, HANDED_OVER, OTHER_EPOCH],
    );
    assert!(coverage.listed > 200, "{}", coverage.listed);
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
    let run = |engine| -> Report {
        let options = Options::new(Scenario::zombies()).engine(engine);
        Simulator::new(options)
            .expect("a world")
            .run(3)
            .expect("a run")
    };
    let native = run(EngineKind::Native);
    let interp = run(EngineKind::Interp);
    assert_eq!(native.trace, run(EngineKind::Native).trace);
    assert_eq!(native.trace, interp.trace);
    assert_eq!(native.history, interp.history);
    assert_eq!(native.coverage, interp.coverage);
}

#[test]
fn scenarios_and_their_settings_are_said_again() {
    for scenario in Scenario::ALL {
        assert_eq!(scenario.settings(), [""; 0]);
        assert_eq!(Scenario::from_name(scenario.name), Some(scenario));
    }
    let changed = ["groups=1".to_owned(), "link.loss=500".to_owned()];
    let scenario = Scenario::mixed().with_settings(&changed).expect("settings");
    assert_eq!(scenario.settings(), changed);
    for wrong in [
        "groups=0",
        "ring=6",
        "replicas=4",
        "flows=1",
        "watchers=5",
        "groups",
    ] {
        assert!(
            Scenario::mixed()
                .with_settings(&[wrong.to_owned()])
                .is_err(),
            "{wrong}"
        );
    }
    let options = Options {
        chosen: Chosen {
            packets: Some("1,4-6".parse().expect("numbers")),
            faults: Some("none".parse().expect("numbers")),
        },
        ..Options::new(scenario)
    };
    assert_eq!(
        options.command(7),
        "stateplane sim --program coordination --scenario mixed --seed 7 --set groups=1 --set \
         link.loss=500 --packets 1,4-6 --faults none"
    );
}

//! A few seeds of every scenario, judged by every checker.

use stateplane_multicast_sim::event::{
    CUT_OFF, FREED, OTHER_EPOCH, OUT_OF_ORDER, REFUSED, REPEATED, RETRANSMITTED, SKIPPED,
};
use stateplane_multicast_sim::{Coverage, Options, Report, Scenario, Simulator};
use stateplane_world::{Chosen, EngineKind};

fn run(scenario: Scenario, seeds: u64) -> Coverage {
    let simulator = Simulator::new(Options::new(scenario)).expect("a world");
    let mut sum = Coverage::default();
    for seed in 0..seeds {
        let report = simulator.run(seed).expect("a run");
        assert!(report.is_good(), "{report}");
        let of = report.coverage;
        assert!(of.completed > 0, "nothing was sent: {report}");
        sum.sent += of.sent;
        sum.completed += of.completed;
        sum.delivered += of.delivered;
        sum.answered += of.answered;
        sum.deaths += of.deaths;
        sum.appointed += of.appointed;
        sum.joined += of.joined;
        sum.lost += of.lost;
        for (sum, count) in sum.events.iter_mut().zip(of.events) {
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
        let count = coverage.events[event];
        assert!(count > 0, "{name}: event {event} never happened");
    }
    coverage
}

#[test]
fn quiet_links_carry_everything() {
    let coverage = covers(Scenario::quiet(), 8, &[FREED]);
    assert_eq!(coverage.completed, coverage.sent);
    assert_eq!(coverage.appointed, 8 * 3);
}

#[test]
fn lossy_links() {
    covers(
        Scenario::lossy(),
        10,
        &[REPEATED, RETRANSMITTED, OUT_OF_ORDER],
    );
}

#[test]
fn leaders_change_at_any_time() {
    let coverage = covers(Scenario::leaders(), 10, &[CUT_OFF, OTHER_EPOCH]);
    assert!(coverage.appointed > 10 * 10);
}

#[test]
fn two_leaders() {
    covers(Scenario::two_leaders(), 10, &[CUT_OFF, OTHER_EPOCH]);
}

#[test]
fn lost_memory() {
    let coverage = covers(Scenario::lost_memory(), 10, &[SKIPPED]);
    assert!(coverage.deaths > 20);
}

#[test]
fn members_are_exchanged() {
    let coverage = covers(Scenario::exchanges(), 8, &[SKIPPED, CUT_OFF]);
    assert!(coverage.appointed > 8 * 10);
}

#[test]
fn receivers_are_slow_and_die_and_join() {
    assert!(run(Scenario::receivers(), 10).joined > 10);
}

#[test]
fn senders_die() {
    let coverage = run(Scenario::dying_senders(), 10);
    assert!(coverage.completed < coverage.sent);
}

#[test]
fn messages_to_several_groups() {
    covers(Scenario::several_groups(), 8, &[RETRANSMITTED]);
}

#[test]
fn indices_begin_again() {
    covers(Scenario::last_numbers(), 8, &[SKIPPED]);
}

#[test]
fn small_windows() {
    covers(Scenario::small_window(), 8, &[REFUSED]);
}

#[test]
fn mixed() {
    let coverage = covers(Scenario::mixed(), 8, &[SKIPPED, CUT_OFF, OTHER_EPOCH]);
    assert!(coverage.deaths > 0 && coverage.joined > 0);
}

#[test]
fn the_store_among_faults() {
    let coverage = covers(Scenario::store(), 8, &[SKIPPED, CUT_OFF, OTHER_EPOCH]);
    assert!(coverage.answered > 8 * 200 && coverage.joined > 8);
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
        let options = Options::new(Scenario::mixed()).engine(engine);
        let simulator = Simulator::new(options).expect("a world");
        simulator.run(4).expect("a run")
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
    for wrong in ["groups=0", "window=24", "members=6", "flows=1", "groups"] {
        let wrong = [wrong.to_owned()];
        assert!(
            Scenario::mixed().with_settings(&wrong).is_err(),
            "{wrong:?}"
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
        "stateplane sim --program multicast --scenario mixed --seed 7 --set groups=1 --set \
         link.loss=500 --packets 1,4-6 --faults none"
    );
}

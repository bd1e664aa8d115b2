//! A few seeds of every scenario, judged by every checker.

use stateplane_multicast_sim::event::{
    CUT_OFF, LED, NO_OP, OLD, REFUSED, REPEATED, RETRANSMITTED, SKIPPED,
};
use stateplane_multicast_sim::{Coverage, Options, Report, Scenario, Simulator};
use stateplane_world::EngineKind;

fn run(scenario: Scenario, seeds: u64) -> Coverage {
    let simulator = Simulator::new(Options::new(scenario)).expect("a world");
    let mut sum = Coverage::default();
    for seed in 0..seeds {
        let report = simulator.run(seed).expect("a run");
        assert!(report.is_good(), "{report}");
        let Coverage {
            sent,
            completed,
            delivered,
            deaths,
            appointed,
            joined,
            lost,
            events,
        } = report.coverage;
        assert!(completed * 2 > sent, "little was complete: {report}");
        sum.sent += sent;
        sum.completed += completed;
        sum.delivered += delivered;
        sum.deaths += deaths;
        sum.appointed += appointed;
        sum.joined += joined;
        sum.lost += lost;
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
fn quiet_links_complete_everything() {
    let coverage = covers(Scenario::quiet(), 4, &[LED, NO_OP]);
    assert_eq!(coverage.completed, coverage.sent);
}

#[test]
fn lossy_links() {
    covers(Scenario::lossy(), 6, &[RETRANSMITTED]);
}

#[test]
fn leaders() {
    let coverage = covers(Scenario::leaders(), 6, &[LED, REFUSED]);
    assert!(coverage.appointed > 60);
}

#[test]
fn two_leaders() {
    covers(Scenario::two_leaders(), 6, &[CUT_OFF, RETRANSMITTED]);
}

#[test]
fn lost_memory() {
    let coverage = covers(Scenario::lost_memory(), 6, &[SKIPPED]);
    assert!(coverage.deaths > 10);
}

#[test]
fn exchanges() {
    covers(Scenario::exchanges(), 6, &[SKIPPED]);
}

#[test]
fn receivers() {
    let coverage = covers(Scenario::receivers(), 6, &[RETRANSMITTED]);
    assert!(coverage.joined > 6);
}

#[test]
fn dying_senders() {
    covers(Scenario::dying_senders(), 6, &[RETRANSMITTED]);
}

#[test]
fn several_groups() {
    covers(Scenario::several_groups(), 6, &[OLD]);
}

#[test]
fn last_numbers() {
    let coverage = covers(Scenario::last_numbers(), 6, &[SKIPPED]);
    assert!(coverage.deaths > 3);
}

#[test]
fn small_window() {
    covers(Scenario::small_window(), 6, &[REPEATED, RETRANSMITTED]);
}

#[test]
fn equal_seeds_give_equal_traces_on_both_engines() {
    let run = |engine| -> Report {
        let options = Options::new(Scenario::mixed()).engine(engine);
        let simulator = Simulator::new(options).expect("a world");
        simulator.run(1).expect("a run")
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
    for wrong in ["groups=0", "window=20", "members=6", "lanes=9", "groups"] {
        let settings = [wrong.to_owned()];
        assert!(
            Scenario::mixed().with_settings(&settings).is_err(),
            "{wrong}"
        );
    }
    assert_eq!(
        Options::new(scenario).command(7),
        "stateplane sim --program multicast --scenario mixed --seed 7 --set groups=1 --set \
         link.loss=500"
    );
}

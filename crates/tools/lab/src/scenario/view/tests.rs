//! The judge on readings that were made up: a clean run, and one for each objection.

use super::judge::{BEGINNING_US, RECOVERY_US, judge};
use super::reader::{Answer, Reading, Seen};
use super::stored::judge_stored;
use super::truth::{Silence, Silences, Truth, location};
use super::{FLOWS, LOCATIONS, SWITCHES, ViewReport};
use crate::scenario::fault::Fault;
use crate::scenario::report::Move;
use stateplane_history::replication::Flow;

const START: u64 = 10_000_000;
/// The switch is killed so long after the start, is started again and is back.
const KILLED: u64 = START + 3_000_000;
const BORN: u64 = START + 4_000_000;
const BACK: u64 = START + 4_200_000;
const END: u64 = START + 8_000_000;
/// Between two packets, and between two readings.
const STEP: u64 = 50_000;
/// Of a view, at each reading.
const AGE: u64 = 5_000;
const PLACE: usize = 33;
const BOUND: u64 = 3;

/// Which switch has the traffic at a time, and in which of its lives.
fn carrier(at: u64) -> (usize, usize) {
    match at {
        ..KILLED => (0, 0),
        KILLED..BACK => (1, 0),
        _ => (0, 1),
    }
}

fn silences() -> Silences {
    Silences(vec![Silence {
        from_us: KILLED - 1_000,
        died_us: Some(KILLED),
        born_us: Some(BORN),
        to_us: Some(BACK),
    }])
}

/// A packet each step, all of which come back after a millisecond.
fn truth() -> Truth {
    let mut truth = Truth::default();
    for at in (START..END - 1_000_000).step_by(STEP as usize) {
        let (switch, life) = carrier(at);
        truth.note_sent(PLACE, at);
        truth.note_received((switch, life, PLACE), at + 1_000);
    }
    truth
}

/// What the views tell that lag by nothing: those of a switch that is dead stay.
fn readings(truth: &Truth) -> Vec<Reading> {
    let mut readings = Vec::new();
    for at in (START..END).step_by(STEP as usize) {
        for (switch, name) in SWITCHES.into_iter().enumerate() {
            let asked_us = at + 10_000;
            let dead = switch == 0 && (KILLED..BACK).contains(&at);
            let life = usize::from(switch == 0 && at >= BACK);
            let mut values = vec![0; LOCATIONS];
            values[PLACE] = truth.received((switch, life, PLACE), asked_us - AGE);
            let age_us = if dead { asked_us - KILLED + AGE } else { AGE };
            readings.push(Reading {
                group: name.to_owned(),
                asked_us,
                answered_us: asked_us + 500,
                answer: Answer::View(Seen {
                    bound: Some(BOUND),
                    all_but: 0,
                    within: BOUND,
                    age_us,
                    generation: life as u64 + 1,
                    incarnation: 100 * switch as u32 + life as u32 + 1,
                    values,
                }),
            });
        }
    }
    readings
}

/// The view in the first reading of a switch at or after a time, to be spoiled.
fn seen(readings: &mut [Reading], switch: usize, at: u64) -> &mut Seen {
    let mut later = readings
        .iter_mut()
        .filter(|it| it.group == SWITCHES[switch] && it.asked_us >= at);
    match &mut later.next().unwrap().answer {
        Answer::View(seen) => seen,
        _ => unreachable!("readings are views"),
    }
}

/// All views of a switch from a time on, to be spoiled.
fn all(readings: &mut [Reading], switch: usize, from: u64, mut spoil: impl FnMut(&mut Seen)) {
    for reading in readings {
        if reading.group == SWITCHES[switch]
            && reading.asked_us >= from
            && let Answer::View(seen) = &mut reading.answer
        {
            spoil(seen);
        }
    }
}

fn refuse(readings: &mut [Reading], switch: usize, from: u64, to: u64) {
    for reading in readings {
        if reading.group == SWITCHES[switch] && (from..to).contains(&reading.asked_us) {
            reading.answer = Answer::Refused("SYNC022".to_owned());
        }
    }
}

/// Objections to the readings once they are spoiled.
fn objections(spoil: impl FnOnce(&mut Vec<Reading>)) -> Vec<String> {
    let truth = truth();
    let mut readings = readings(&truth);
    spoil(&mut readings);
    judge(&readings, &truth, &silences()).1
}

/// Asserts that the readings are objected to, in these words.
fn objects(words: &str, spoil: impl FnOnce(&mut Vec<Reading>)) {
    let wrong = objections(spoil);
    assert!(wrong.iter().any(|it| it.contains(words)), "{wrong:?}");
}

#[test]
fn a_clean_run_has_no_objection() {
    let truth = truth();
    let (report, wrong) = judge(&readings(&truth), &truth, &silences());
    assert_eq!(wrong, [""; 0]);
    assert!(!report.bites(), "nobody read what the store has");
    let (stored, _) = judge_stored(&stored(&truth), &truth, false);
    let report = ViewReport { stored, ..report };
    assert!(report.bites(), "{report:?}");
    let [first, second] = &report.groups[..] else {
        panic!("{report:?}");
    };
    assert_eq!((first.incarnations, second.incarnations), (2, 1));
    assert_eq!((first.told, second.told), (first.received, second.received));
    assert!(first.dead > 0 && second.dead == 0);
    assert_eq!(first.back_within_ms, Some(10.5));
    assert_eq!((first.age_greatest_ms, first.greatest_bound), (5.0, BOUND));
    assert!(!ViewReport::default().bites());
}

#[test]
fn views_of_living_switches_go_on() {
    let from = START + BEGINNING_US;
    objects("were refused", |all| refuse(all, 1, from, END));
    objects("older than 200 ms", |it| {
        all(it, 1, from, |seen| seen.age_us = 250_000);
    });
    objects("unbounded", |it| all(it, 1, from, |seen| seen.bound = None));
    objects("no reading for", |all| {
        all.retain(|it| !(from..from + 2_100_000).contains(&it.asked_us));
    });
    // While the switch is dead and comes back its view may be refused, but not longer.
    let heard = BACK + RECOVERY_US;
    assert_eq!(objections(|all| refuse(all, 0, BORN, heard)), [""; 0]);
    objects("were refused", |all| refuse(all, 0, BORN, END));
}

#[test]
fn the_last_view_of_a_dead_switch_is_told_with_its_age() {
    objects("of a dead switch is refused", |all| {
        refuse(all, 0, KILLED + 100_000, KILLED + 150_001);
    });
    objects("is said to be", |all| {
        seen(all, 0, KILLED + 500_000).age_us = AGE;
    });
}

#[test]
fn no_count_steps_back_and_no_start_is_told_again() {
    objects("steps back from", |all| {
        let seen = seen(all, 0, KILLED + 500_000);
        seen.values[PLACE] -= 1;
    });
    objects("earlier start or generation", |all| {
        let old = seen(all, 0, KILLED - STEP).clone();
        *seen(all, 0, BACK + 500_000) = old;
    });
    objects("earlier start or generation", |all| {
        seen(all, 1, KILLED).generation = 0;
    });
    objects("a start of the switch", |all| {
        seen(all, 1, KILLED).incarnation = 102;
    });
}

#[test]
fn what_had_come_back_is_counted_up_to_the_bound() {
    let at = KILLED - 500_000;
    let lag = |off: u64| {
        move |readings: &mut Vec<Reading>| {
            all(readings, 0, START, |seen| {
                let value = &mut seen.values[PLACE];
                *value = value.saturating_sub(off);
            });
        }
    };
    objects("packets had come back", lag(BOUND + 1));
    // Within the bound only the end has to be exact.
    let wrong = objections(lag(BOUND));
    let ends = wrong.iter().all(|it| it.contains("in the end"));
    assert!(ends && wrong.len() == 1, "{wrong:?}");
    objects("locations are off by more", |all| {
        seen(all, 0, at).values[PLACE] -= BOUND;
        seen(all, 0, at).within = 2;
    });
    assert_eq!(
        objections(|all| {
            let seen = seen(all, 0, START + STEP);
            (seen.within, seen.all_but) = (0, 1);
        }),
        [""; 0]
    );
}

#[test]
fn no_more_is_counted_than_was_sent() {
    // With what the other switch counted: a dead one's counts are not taken for another's.
    objects("packets had been sent", |it| {
        all(it, 1, BACK + 500_000, |seen| seen.values[PLACE] += 4);
    });
    objects("in the end location 33", |it| {
        all(it, 0, END - 500_000, |seen| seen.values[PLACE] -= 1);
    });
}

#[test]
fn silences_are_times_in_which_the_switch_is_dead_or_stands_still() {
    let moved = |began_us: u64, at_us: u64, owner_alive: bool| Move {
        what: String::new(),
        began_us,
        at_us,
        owner_alive,
        left_alone: true,
    };
    let second = 1_000_000;
    let silences = Silences::of(&[
        (Fault::Reroute, moved(second, 2 * second, true)),
        (Fault::StandStill, moved(3 * second, 4 * second, true)),
        (Fault::StandStill, moved(5 * second, 6 * second, false)),
        (Fault::Kill, moved(7 * second, 8 * second, false)),
        (Fault::Restart, moved(9 * second, 10 * second, true)),
        // Killed for it: both began at once.
        (Fault::Restart, moved(11 * second, 12 * second, false)),
        (Fault::Restart, moved(11 * second, 14 * second, true)),
        (Fault::Kill, moved(15 * second, 16 * second, false)),
    ]);
    let births = [0, 9 * second, 12 * second + 500_000];
    assert_eq!(
        (silences.births(0), silences.births(1)),
        (births.to_vec(), vec![0])
    );
    let heard = |at| silences.is_heard(0, at, 0);
    let tenths = [25, 35, 55, 65, 75, 105, 115, 145, 155, 999];
    assert_eq!(
        tenths.map(|tenth| heard(tenth * second / 10)),
        [
            true, false, false, true, false, true, false, true, false, false
        ]
    );
    assert_eq!(silences.dead_since(0, 17 * second), Some(16 * second));
    assert_eq!(silences.dead_since(1, 17 * second), None);
    assert_eq!(silences.dead_since(0, 5 * second), None);
    assert_eq!([0, 1].map(|it| silences.ends_alive(it)), [false, true]);
}

#[test]
fn a_location_follows_from_the_source_port_of_the_key() {
    let of = |name: &str| location(&Flow::new(name));
    let key = "01110a000001c63364090fa0138800".to_owned() + "00";
    assert_eq!(of(&key), Some(0x0fa0 % LOCATIONS));
    assert_eq!(of(&format!("{key}#3")), Some(32));
    assert_eq!((of("a"), of("")), (None, None));
}

/// The store's view in readings that lag by nothing, and a change that is made.
fn stored(truth: &Truth) -> Vec<Reading> {
    let mut readings = Vec::new();
    for at in (START..END).step_by(STEP as usize) {
        let asked_us = at + 10_000;
        let mut values = vec![0; LOCATIONS];
        values[PLACE] = truth.received_at(PLACE, asked_us - AGE);
        let seen = Seen {
            bound: Some(0),
            age_us: AGE,
            values,
            ..Seen::default()
        };
        for answer in [Answer::View(seen), Answer::Changed(None)] {
            readings.push(Reading {
                group: FLOWS.to_owned(),
                asked_us,
                answered_us: asked_us + 500,
                answer,
            });
        }
    }
    readings
}

#[test]
fn each_objection_to_the_view_of_the_store_is_raised() {
    let truth = truth();
    let (report, wrong) = judge_stored(&stored(&truth), &truth, false);
    assert_eq!(wrong, [""; 0]);
    assert!(report.told > 100 && report.late == 0 && report.changes == report.readings);
    let spoiled = |spoil: &dyn Fn(usize, &mut Answer), servers_fail| {
        let mut readings = stored(&truth);
        for (at, reading) in readings.iter_mut().enumerate() {
            spoil(at, &mut reading.answer);
        }
        let (_, wrong) = judge_stored(&readings, &truth, servers_fail);
        wrong.join("; ")
    };
    let view = |spoil: fn(usize, &mut Seen)| {
        move |at: usize, answer: &mut Answer| {
            if let Answer::View(seen) = answer {
                spoil(at, seen);
            }
        }
    };
    let low = view(|at, seen| seen.values[PLACE] -= u64::from(at > 200));
    assert!(spoiled(&low, false).contains("had come back"));
    let high = view(|_, seen| seen.values[PLACE] += 2);
    assert!(spoiled(&high, false).contains("had been sent"));
    // Numbers of a flow that nobody sends.
    let back = view(|at, seen| seen.values[0] = u64::from(at == 100));
    assert!(spoiled(&back, false).contains("step back from 1 to 0"));
    let late = view(|at, seen| seen.age_us += if at > 150 { 300_000 } else { 0 });
    assert!(spoiled(&late, false).contains("older than 200 ms"));
    assert_eq!(spoiled(&late, true), "");
    let refused = |code: &'static str| {
        move |_: usize, answer: &mut Answer| {
            if let Answer::Changed(refused) = answer {
                *refused = Some(format!("{code} it is refused"));
            }
        }
    };
    assert!(spoiled(&refused("SYNC032"), false).contains("a change is refused: SYNC032"));
    assert_eq!(spoiled(&refused("SYNC024"), false), "");
}

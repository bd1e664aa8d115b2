use super::*;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU64;
use std::thread;

/// Repetitions of what scheduling may hide.
const TIMES: u64 = 100;

/// Waits until so many threads wait for the next turn.
fn wait_for<T>(lent: &Lent<T>, waiting: usize) {
    while lent.lock().waiting < waiting {
        thread::yield_now();
    }
}

fn wait_until_wanted<T>(lent: &Lent<T>) {
    while !lent.wanted.load(Ordering::Relaxed) {
        thread::yield_now();
    }
}

#[test]
fn a_look_needs_nothing_of_the_owner() {
    let lent = Lent::new();
    let look = || lent.look(|value| *value);
    let elsewhere = || thread::scope(|scope| scope.spawn(look).join().unwrap());
    let looked = lent.lend(7, || (look(), elsewhere()));
    assert_eq!(looked, (7, (Some(7), Some(7))));
}

#[test]
fn threads_that_wait_are_let_in_within_one_turn() {
    const THREADS: usize = 3;
    let lent = Lent::new();
    for turn in 1..=TIMES {
        let seen = [const { AtomicU64::new(0) }; THREADS];
        thread::scope(|scope| {
            for seen in &seen {
                scope.spawn(|| lent.look(|value| seen.store(*value, Ordering::Relaxed)));
            }
            wait_for(&lent, THREADS);
            lent.lend(turn, || ());
            let seen = seen.each_ref().map(|it| it.load(Ordering::Relaxed));
            assert_eq!(seen, [turn; THREADS], "the owner waits for nothing else");
        });
    }
}

#[test]
fn a_thread_that_looks_again_and_again_leaves_the_owner_its_turn() {
    let lent = Lent::new();
    let looks = AtomicU64::new(0);
    thread::scope(|scope| {
        let seen = scope.spawn(|| {
            let look = |_| {
                lent.look(|value| {
                    looks.fetch_add(1, Ordering::Relaxed);
                    wait_until_wanted(&lent);
                    *value
                })
            };
            (1..=TIMES).map(look).collect::<Vec<_>>()
        });
        for turn in 1..=TIMES {
            let has_begun = || {
                while looks.load(Ordering::Relaxed) < turn {
                    thread::yield_now();
                }
            };
            lent.lend(turn, has_begun);
        }
        let turns: Vec<_> = (1..=TIMES).map(Some).collect();
        assert_eq!(seen.join().unwrap(), turns, "of each turn one look");
    });
}

#[test]
fn the_owner_gets_it_back_after_a_look_that_panics() {
    let lent = Lent::new();
    let fails = || lent.look(|_: &u64| -> u64 { resume_unwind(Box::new(())) });
    let (value, failed) = lent.lend(1, || catch_unwind(AssertUnwindSafe(fails)).is_err());
    assert!(value == 1 && failed);
    thread::scope(|scope| {
        let waits = scope.spawn(fails);
        wait_for(&lent, 1);
        assert_eq!(lent.lend(2, || ()).0, 2);
        assert!(waits.join().is_err());
    });
    let (_, seen) = lent.lend(3, || lent.look(|value| *value));
    assert_eq!(seen, Some(3));
}

#[test]
fn who_waits_is_told_that_it_has_ended() {
    let lent: Lent<u64> = Lent::new();
    lent.lend(1, || ());
    thread::scope(|scope| {
        let waits = scope.spawn(|| lent.look(|value| *value));
        wait_for(&lent, 1);
        lent.end();
        assert_eq!(waits.join().unwrap(), None);
    });
    assert_eq!(lent.look(|value| *value), None);
}

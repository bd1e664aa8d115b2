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

/// A thread has the value by `have` again and again, each time until the owner wants it.
fn of_each_turn_one(have: impl Fn(&Lent<u64>, &dyn Fn(u64) -> u64) -> Option<u64> + Sync) {
    let lent = Lent::new();
    let had = AtomicU64::new(0);
    thread::scope(|scope| {
        let seen = scope.spawn(|| {
            let work = |value| {
                had.fetch_add(1, Ordering::Relaxed);
                wait_until_wanted(&lent);
                value
            };
            (1..=TIMES).map(|_| have(&lent, &work)).collect::<Vec<_>>()
        });
        for turn in 1..=TIMES {
            let has_begun = || {
                while had.load(Ordering::Relaxed) < turn {
                    thread::yield_now();
                }
            };
            lent.lend(turn, has_begun);
        }
        let turns: Vec<_> = (1..=TIMES).map(Some).collect();
        assert_eq!(seen.join().unwrap(), turns);
    });
}

#[test]
fn a_thread_that_looks_again_and_again_leaves_the_owner_its_turn() {
    of_each_turn_one(|lent, work| lent.look(|value| work(*value)));
}

#[test]
fn a_thread_that_does_not_wait_leaves_the_owner_its_turn() {
    of_each_turn_one(|lent, work| {
        loop {
            let done = lent.try_with(|value| work(*value));
            if done.is_some() {
                return done;
            }
            thread::yield_now();
        }
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
fn work_that_does_not_wait_is_done_while_it_is_lent_and_nobody_looks() {
    let lent = Lent::new();
    let add = || {
        lent.try_with(|value| {
            *value += 1;
            *value
        })
    };
    assert_eq!(add(), None, "it is with its owner");
    let (value, ()) = lent.lend(1, || {
        assert_eq!(add(), Some(2));
        assert_eq!(lent.look(|_| add()), Some(None), "a thread looks");
    });
    assert_eq!((value, add()), (2, None));
    lent.end();
    assert_eq!(add(), None);
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

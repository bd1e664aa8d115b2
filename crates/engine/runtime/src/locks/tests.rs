//! The lock under loom, which tries all interleavings and what weak memory allows.

use super::{Flag, Held, flag, take};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU8;
use loom::thread;
use stateplane_ir::MOST_UNITS;

flag!(AtomicU8, |_: u32| thread::yield_now());

/// A number under a lock.
#[derive(Default)]
struct Locked {
    flag: AtomicU8,
    number: UnsafeCell<u32>,
}

impl Locked {
    #[allow(unsafe_code, reason = "loom's cell objects to two threads at once")]
    fn add(&self, by: u32) -> u32 {
        self.number.with_mut(|number| {
            // SAFETY: loom fails the test if another thread is at the number.
            unsafe {
                *number += by;
                *number
            }
        })
    }
}

#[test]
fn one_thread_at_a_time_has_a_lock() {
    loom::model(|| {
        let shared = Arc::new(Locked::default());
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    take(&shared.flag);
                    shared.add(1);
                    shared.flag.release();
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("it ends");
        }
        take(&shared.flag);
        assert_eq!(shared.add(0), 2);
    });
}

#[test]
fn blocks_that_take_two_locks_in_one_order_end_and_see_both_or_neither() {
    loom::model(|| {
        let shared = Arc::new([Locked::default(), Locked::default()]);
        // The second block takes the second lock late, as a block does that finds its index first.
        let block = |shared: &[Locked; 2]| {
            take(&shared[0].flag);
            let first = shared[0].add(1);
            take(&shared[1].flag);
            let second = shared[1].add(1);
            assert_eq!(first, second);
            for locked in shared {
                locked.flag.release();
            }
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || block(&shared))
        };
        block(&shared);
        other.join().expect("it ends");
    });
}

#[test]
fn blocks_that_need_the_same_units_take_them_by_their_places_and_end() {
    loom::model(|| {
        let shared = Arc::new([Locked::default(), Locked::default()]);
        // Units in the order in which a block names them.
        let block = |shared: &[Locked; 2], named: [usize; 2]| {
            let mut wanted = [usize::MAX; MOST_UNITS];
            wanted[..2].copy_from_slice(&named);
            let mut held = Held::default();
            held.take_in_order(wanted, |at| take(&shared[at].flag));
            for at in held.offsets() {
                shared[*at].add(1);
            }
            for at in held.offsets() {
                shared[*at].flag.release();
            }
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || block(&shared, [1, 0]))
        };
        block(&shared, [0, 1]);
        other.join().expect("it ends");
        for locked in &*shared {
            take(&locked.flag);
            assert_eq!(locked.add(0), 2);
        }
    });
}

#[test]
fn blocks_that_name_units_again_let_go_and_end() {
    loom::model(|| {
        let shared = Arc::new([Locked::default(), Locked::default()]);
        // Each has one unit of the two, and then both.
        let block = |shared: &[Locked; 2], first: usize| {
            let mut held = Held::default();
            for named in [[first, usize::MAX], [first, 1 - first]] {
                let mut wanted = [usize::MAX; MOST_UNITS];
                wanted[..2].copy_from_slice(&named);
                let take = |at: usize| take(&shared[at].flag);
                held.change_to(wanted, take, |at| shared[at].flag.release());
                for at in held.offsets() {
                    shared[*at].add(1);
                }
            }
            for at in held.offsets() {
                shared[*at].flag.release();
            }
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || block(&shared, 1))
        };
        block(&shared, 0);
        other.join().expect("it ends");
        for locked in &*shared {
            take(&locked.flag);
            assert_eq!(locked.add(0), 3);
        }
    });
}

#[test]
fn units_that_are_held_are_not_taken_again() {
    let mut held = Held::default();
    held.take_in_order([7, usize::MAX, 3, 9], |_| false);
    for named in [[9, 3, 9, usize::MAX], [usize::MAX; MOST_UNITS]] {
        held.change_to(named, |at| panic!("takes {at}"), |at| panic!("leaves {at}"));
        assert_eq!(held.offsets(), [3, 7, 9]);
    }
    let mut left = Vec::new();
    held.change_to([8, 3, 8, 3], |_| false, |at| left.push(at));
    assert_eq!((held.offsets(), left), (&[3, 8][..], vec![3, 7, 9]));
}

#[test]
fn a_unit_that_is_named_twice_is_taken_once() {
    let mut taken = Vec::new();
    let mut held = Held::default();
    let waits = held.take_in_order([7, usize::MAX, 3, 7], |at| {
        taken.push(at);
        at == 7
    });
    assert_eq!((taken, waits), (vec![3, 7], 1));
    assert_eq!(held.offsets(), [3, 7]);
}

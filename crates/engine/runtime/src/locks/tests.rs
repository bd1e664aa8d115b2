//! Locks under loom, which tries interleavings and what weak memory allows.

/// The same code with the atomics of loom.
#[path = "bias.rs"]
#[allow(
    clippy::duplicate_mod,
    reason = "the one around it has the atomics of std"
)]
#[expect(dead_code, reason = "a few functions are for machine code alone")]
mod bias;

use super::Held;
use bias::{Crew, Member, NONE};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU8;
use loom::thread;
use stateplane_ir::MOST_UNITS;

mod atomics {
    pub(super) use loom::sync::atomic::{
        AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, fence,
    };
}

/// A number under a lock.
#[derive(Default)]
struct Locked {
    cell: AtomicU8,
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

/// An engine, and the biased locks that it holds at each place.
struct Engine {
    member: Member,
    held: [u64; 2],
    by_bias: [bool; 2],
}

impl Engine {
    fn new(crew: &std::sync::Arc<Crew>) -> Engine {
        Engine {
            member: Member::new(crew.clone()),
            held: [NONE; 2],
            by_bias: [false; 2],
        }
    }

    /// Takes the lock at `at`, for the place of the same number.
    fn take(&mut self, shared: &[Locked], at: usize) {
        let lock = at as u64 + 1;
        self.held[at] = lock;
        let taken = self
            .member
            .take(&shared[at].cell, lock, &self.held, |_| thread::yield_now());
        self.by_bias[at] = taken.by_bias;
    }

    fn release(&mut self, shared: &[Locked], at: usize) {
        if !self.by_bias[at] {
            self.member.release(&shared[at].cell);
        }
        self.held[at] = NONE;
    }

    /// A block that adds 1 under the lock at `at`.
    fn add(&mut self, shared: &[Locked], at: usize) {
        self.take(shared, at);
        shared[at].add(1);
        self.release(shared, at);
    }

    /// Passes from one packet to the next.
    fn next_packet(&mut self) {
        self.member.answer(std::iter::empty());
    }
}

/// Locks that become biased when they are taken twice, and engines for them.
fn crew() -> (Arc<[Locked; 2]>, std::sync::Arc<Crew>) {
    (Arc::default(), Crew::with(2, 1, 2))
}

/// The places of two units among those that a block may name.
fn units(named: [usize; 2]) -> [usize; MOST_UNITS] {
    let mut wanted = [usize::MAX; MOST_UNITS];
    wanted[..2].copy_from_slice(&named);
    wanted
}

fn numbers(crew: &std::sync::Arc<Crew>, shared: &[Locked]) -> Vec<u32> {
    let mut engine = Engine::new(crew);
    let number = |(at, locked): (usize, &Locked)| {
        engine.take(shared, at);
        let number = locked.add(0);
        engine.release(shared, at);
        number
    };
    shared.iter().enumerate().map(number).collect()
}

/// Lets another engine of the crew do `work` on a thread of its own.
fn beside(
    (shared, crew): (&Arc<[Locked; 2]>, &std::sync::Arc<Crew>),
    work: impl FnOnce(Engine, &[Locked; 2]) + 'static,
) -> thread::JoinHandle<()> {
    let (shared, engine) = (shared.clone(), Engine::new(crew));
    thread::spawn(move || work(engine, &shared))
}

/// Tries interleavings with at most three switches from a thread that could go on.
fn explore(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(test);
}

#[test]
fn one_thread_at_a_time_has_a_lock() {
    explore(|| {
        let (shared, crew) = crew();
        let other = beside((&shared, &crew), |mut engine, shared| engine.add(shared, 0));
        Engine::new(&crew).add(&*shared, 0);
        other.join().expect("it ends");
        assert_eq!(numbers(&crew, &*shared), [2, 0]);
    });
}

#[test]
fn who_wants_a_biased_lock_gets_it_between_two_packets() {
    explore(|| {
        let (shared, crew) = crew();
        let mut owner = Engine::new(&crew);
        owner.member.begin_burst();
        owner.add(&*shared, 0);
        owner.add(&*shared, 0);
        owner.take(&*shared, 0);
        assert!(owner.by_bias[0]);
        let other = beside((&shared, &crew), |mut engine, shared| engine.add(shared, 0));
        shared[0].add(1);
        owner.release(&*shared, 0);
        owner.next_packet();
        owner.add(&*shared, 0);
        owner.next_packet();
        owner.member.end_burst();
        other.join().expect("it ends");
        assert_eq!(numbers(&crew, &*shared), [5, 0]);
    });
}

#[test]
fn a_lock_of_an_engine_that_rests_is_taken_without_an_answer() {
    explore(|| {
        let (shared, crew) = crew();
        let mut owner = Engine::new(&crew);
        owner.member.begin_burst();
        owner.add(&*shared, 0);
        owner.add(&*shared, 0);
        owner.member.end_burst();
        let other = beside((&shared, &crew), |mut engine, shared| engine.add(shared, 0));
        // It may begin its next burst while the other one looks.
        owner.member.begin_burst();
        owner.add(&*shared, 0);
        owner.next_packet();
        owner.member.end_burst();
        other.join().expect("it ends");
        assert_eq!(numbers(&crew, &*shared), [4, 0]);
    });
}

#[test]
fn engines_that_want_each_others_locks_both_get_them() {
    explore(|| {
        let (shared, crew) = crew();
        let block = |mut engine: Engine, shared: &[Locked; 2], own: usize| {
            engine.member.begin_burst();
            engine.add(shared, own);
            engine.add(shared, own);
            engine.next_packet();
            engine.add(shared, 1 - own);
            engine.next_packet();
            engine.member.end_burst();
        };
        let other = beside((&shared, &crew), move |engine, shared| {
            block(engine, shared, 1)
        });
        block(Engine::new(&crew), &shared, 0);
        other.join().expect("it ends");
        assert_eq!(numbers(&crew, &*shared), [3, 3]);
    });
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "loom explores too much of three threads that wait"
)]
fn an_engine_that_waits_for_a_lock_answers_and_keeps_what_it_holds() {
    use super::{bias, pause};
    use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

    let crew = bias::Crew::with(2, 1, 2);
    let [first, second] = &[(); 2].map(|()| AtomicU8::new(bias::FREE));
    let has_first = &AtomicBool::new(false);
    let [mut owner, mut holder, mut asker] = [(); 3].map(|()| bias::Member::new(crew.clone()));
    owner.begin_burst();
    while !owner.take(first, 1, &[], pause).by_bias {
        owner.release(first);
    }
    holder.take(second, 2, &[], pause);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // It holds the first lock.
            owner.take(second, 2, &[1, 2], pause);
            assert!(!has_first.load(Ordering::Acquire), "two have the lock");
            owner.end_burst();
        });
        scope.spawn(move || {
            asker.take(first, 1, &[], pause);
            has_first.store(true, Ordering::Release);
        });
        // Told that the lock is held, the asker asks again.
        while crew.answers(0) < 2 && !has_first.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
        holder.release(second);
    });
    assert!(has_first.load(Ordering::Acquire));
}

#[test]
fn blocks_that_take_two_locks_in_one_order_end_and_see_both_or_neither() {
    explore(|| {
        let (shared, crew) = crew();
        // The block takes the second lock late, as a block does that finds its index first.
        let block = |mut engine: Engine, shared: &[Locked; 2]| {
            engine.member.begin_burst();
            engine.take(shared, 0);
            let first = shared[0].add(1);
            engine.take(shared, 1);
            let second = shared[1].add(1);
            assert_eq!(first, second);
            engine.release(shared, 0);
            engine.release(shared, 1);
            engine.next_packet();
            engine.member.end_burst();
        };
        let other = beside((&shared, &crew), move |engine, shared| {
            block(engine, shared)
        });
        block(Engine::new(&crew), &shared);
        other.join().expect("it ends");
    });
}

#[test]
fn blocks_that_need_the_same_units_take_them_by_their_places_and_end() {
    explore(|| {
        let (shared, crew) = crew();
        // Units in the order in which a block names them.
        let block = |mut engine: Engine, shared: &[Locked; 2], named: [usize; 2]| {
            let wanted = units(named);
            let mut held = Held::default();
            held.take_in_order(wanted, |at| engine.take(shared, at));
            for at in held.offsets() {
                shared[*at].add(1);
            }
            for at in held.offsets() {
                engine.release(shared, *at);
            }
        };
        let other = beside((&shared, &crew), move |engine, shared| {
            block(engine, shared, [1, 0])
        });
        block(Engine::new(&crew), &shared, [0, 1]);
        other.join().expect("it ends");
        assert_eq!(numbers(&crew, &*shared), [2, 2]);
    });
}

#[test]
fn blocks_that_name_units_again_let_go_and_end() {
    explore(|| {
        let (shared, crew) = crew();
        // Each has one unit of the two, and then both.
        let block = |mut engine: Engine, shared: &[Locked; 2], first: usize| {
            let mut held = Held::default();
            engine.member.begin_burst();
            for named in [[first, usize::MAX], [first, 1 - first]] {
                let wanted = units(named);
                let before = held.let_go_for(&wanted).expect("it has not all of them");
                for at in before.offsets() {
                    engine.release(shared, *at);
                }
                held.take_in_order(wanted, |at| engine.take(shared, at));
                for at in held.offsets() {
                    shared[*at].add(1);
                }
            }
            for at in held.offsets() {
                engine.release(shared, *at);
            }
            engine.next_packet();
            engine.member.end_burst();
        };
        let other = beside((&shared, &crew), move |engine, shared| {
            block(engine, shared, 1)
        });
        block(Engine::new(&crew), &shared, 0);
        other.join().expect("it ends");
        assert_eq!(numbers(&crew, &*shared), [3, 3]);
    });
}

#[test]
fn units_that_are_held_are_not_taken_again() {
    let mut held = Held::default();
    held.take_in_order([7, usize::MAX, 3, 9], |_| {});
    for named in [[9, 3, 9, usize::MAX], [usize::MAX; MOST_UNITS]] {
        assert_eq!(held.let_go_for(&named).as_ref().map(Held::offsets), None);
        assert_eq!(held.offsets(), [3, 7, 9]);
    }
    let before = held.let_go_for(&[8, 3, 8, 3]).expect("it has not all");
    assert_eq!(
        (before.offsets(), held.offsets()),
        (&[3, 7, 9][..], &[][..])
    );
}

#[test]
fn a_unit_that_is_named_twice_is_taken_once() {
    let mut taken = Vec::new();
    let mut held = Held::default();
    held.take_in_order([7, usize::MAX, 3, 7], |at| taken.push(at));
    assert_eq!(taken, [3, 7]);
    assert_eq!(held.offsets(), [3, 7]);
}

#[test]
fn a_lock_is_biased_to_the_engine_that_takes_it_often_until_another_one_does() {
    loom::model(|| {
        let (shared, crew) = (
            Arc::new([Locked::default(), Locked::default()]),
            Crew::with(2, 2, 2),
        );
        let mut engine = Engine::new(&crew);
        engine.member.begin_burst();
        let by_bias = |engine: &mut Engine| {
            engine.take(&*shared, 0);
            engine.release(&*shared, 0);
            engine.by_bias[0]
        };
        let found: Vec<bool> = (0..5).map(|_| by_bias(&mut engine)).collect();
        assert_eq!(found, [false, false, true, true, true]);
        engine.member.end_burst();
        assert!(!by_bias(&mut engine), "no lock is biased outside of bursts");
        engine.member.begin_burst();
        assert!(!by_bias(&mut engine));
        let mut other = Engine::new(&crew);
        other.member.begin_burst();
        assert!(!by_bias(&mut other));
        other.member.end_burst();
        assert!(
            !by_bias(&mut engine),
            "the other one was the last to hold it"
        );
    });
}

//! Locks that are biased: the engine that takes a lock most often enters its blocks without an
//! atomic exchange, and another engine that wants the lock asks it.
//!
//! A biased lock is free to its engine whenever that is in a burst of packets. An engine takes the
//! lock of another one as follows. It marks the cell as taken, by an exchange. Then it asks the other
//! engine, and waits until that has answered or rests. An engine answers between two packets, where it
//! holds nothing, and where it waits for a lock itself; there it tells which biased locks it holds. From
//! an answer on it sees that the cell is no longer its own.
//!
//! So neither side needs a fence in a block: what the engine did before its answer is seen by those
//! that read it, and what they did before they asked is seen by the engine. Only the ends of rests,
//! which nobody answers for, have one.
//!
//! The module uses the atomics of the one around it, so that tests have those of loom.

use super::atomics::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::Arc;

/// A cell whose lock nobody ever took, or whose last holder has no number.
pub(crate) const FREE: u8 = 0;
/// A cell whose lock an engine holds without bias.
pub(crate) const TAKEN: u8 = 1;
/// A free cell that the engine of number 0 held last; those of the next numbers follow.
const LAST: u8 = 2;
/// A cell that is biased to the engine of number 0; those of the next numbers follow.
const BIASED: u8 = LAST + ENGINES;

/// The state of no cell.
pub(crate) const NOBODY: u8 = u8::MAX;

/// Engines with a number. Others take locks as well, and none is biased to them.
const ENGINES: u8 = 126;

/// Takes of locks that the engine was the last to hold, up to one that makes the lock biased, at least: to
/// ask an engine takes as long as some 50 exchanges.
const TAKES: u32 = 64;

/// The same at most, where answers are slow.
const MOST_TAKES: u32 = 1 << 20;

/// Rounds of waiting for an answer after which it is slow: the engine may have lost its core, as happens
/// where others work on it.
const SLOW: u32 = 100;

/// In place of a lock where a held one may be named: no lock lies there.
pub(crate) const NONE: u64 = 0;

/// The desks of all engines of a program, which all of them have.
pub(crate) struct Crew {
    desks: Box<[Desk]>,
    /// Takes up to one that makes a lock biased: many where answers are slow.
    takes: AtomicU32,
}

/// The place at which others ask an engine. It shares no line of the cache with another one.
#[repr(align(128))]
struct Desk {
    /// True if an engine has this number.
    is_taken: AtomicBool,
    /// True if the engine is in no burst: it enters no block by bias.
    rests: AtomicBool,
    /// Questions so far.
    asked: AtomicU64,
    /// Those that are answered.
    answered: AtomicU64,
    /// The biased locks that the engine held at its last answer.
    held: Box<[AtomicU64]>,
}

/// How an engine came by a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The lock is biased to the engine, and nothing is to be released.
    pub(crate) by_bias: bool,
    /// Another engine held it, or had to answer for it.
    pub(crate) waited: bool,
}

/// An engine of a crew.
pub(crate) struct Member {
    crew: Arc<Crew>,
    /// Its number, once it needed one.
    number: Option<u8>,
    in_burst: bool,
    /// Questions that it answered.
    answered: u64,
    /// Takes of locks that it was the last to hold.
    takes: u32,
}

impl Crew {
    /// A crew of engines that hold at most `held` locks at once.
    pub(crate) fn new(held: usize) -> Arc<Crew> {
        Crew::with(ENGINES, TAKES, held)
    }

    /// A crew of at most [`ENGINES`] engines with a number, to which locks become biased after so many
    /// takes.
    pub(super) fn with(engines: u8, takes: u32, held: usize) -> Arc<Crew> {
        let desk = |_| Desk {
            is_taken: AtomicBool::new(false),
            rests: AtomicBool::new(true),
            asked: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            held: (0..held).map(|_| AtomicU64::new(NONE)).collect(),
        };
        Arc::new(Crew {
            desks: (0..engines.min(ENGINES)).map(desk).collect(),
            takes: AtomicU32::new(takes),
        })
    }

    /// Questions that an engine has answered.
    #[cfg(test)]
    pub(super) fn answers(&self, number: usize) -> u64 {
        self.desks[number].answered.load(Ordering::Acquire)
    }

    /// Learns how long an engine took to answer.
    fn learn(&self, rounds: u32) {
        // A change that another engine makes meanwhile may be lost.
        let takes = self.takes.load(Ordering::Relaxed);
        let better = if rounds > SLOW {
            takes.saturating_mul(2).min(MOST_TAKES)
        } else {
            (takes - takes / TAKES).max(takes.min(TAKES))
        };
        self.takes.store(better, Ordering::Relaxed);
    }

    /// A number that no engine has.
    fn number(&self) -> Option<u8> {
        let free = self
            .desks
            .iter()
            .position(|desk| !desk.is_taken.swap(true, Ordering::AcqRel));
        free.and_then(|at| u8::try_from(at).ok())
    }
}

impl Member {
    pub(crate) fn new(crew: Arc<Crew>) -> Member {
        Member {
            crew,
            number: None,
            in_burst: false,
            answered: 0,
            takes: 0,
        }
    }

    /// Another engine of the same crew.
    pub(crate) fn fellow(&self) -> Member {
        Member::new(self.crew.clone())
    }

    fn desk(&self) -> Option<&Desk> {
        self.crew.desks.get(usize::from(self.number?))
    }

    /// Begins a burst, unless it is in one: until its end biased locks are its own.
    pub(crate) fn begin_burst(&mut self) {
        if self.in_burst {
            return;
        }
        if self.number.is_none() {
            self.number = self.crew.number();
            let answered = self
                .desk()
                .map(|desk| desk.answered.load(Ordering::Acquire));
            self.answered = answered.unwrap_or_default();
        }
        if let Some(desk) = self.desk() {
            desk.rests.store(false, Ordering::Relaxed);
            // An engine that saw it at rest marked the cell before, and that is seen here from now on.
            fence(Ordering::SeqCst);
            self.in_burst = true;
        }
    }

    /// Ends the burst: others take the locks that are biased to it without a question.
    pub(crate) fn end_burst(&mut self) {
        if let (true, Some(desk)) = (self.in_burst, self.desk()) {
            desk.rests.store(true, Ordering::Release);
        }
        self.in_burst = false;
    }

    /// The state of a cell whose lock is the engine's own, [`NOBODY`] if there is none.
    pub(crate) fn biased(&self) -> u8 {
        let number = self.number.filter(|_| self.in_burst);
        number.map_or(NOBODY, |number| BIASED + number)
    }

    /// The state of a cell that the engine releases.
    pub(crate) fn released(&self) -> u8 {
        self.number.map_or(FREE, |number| LAST + number)
    }

    /// True if it is in a burst and has questions to answer.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.in_burst
            && self
                .desk()
                .is_some_and(|desk| desk.asked.load(Ordering::Relaxed) != self.answered)
    }

    /// Answers what was asked. It holds the biased locks `held`, each at one place until its release,
    /// and [`NONE`] elsewhere; all are released if there are no places.
    pub(crate) fn answer(&mut self, held: impl Iterator<Item = u64>) {
        let Some(desk) = self.desk() else {
            return;
        };
        let asked = desk.asked.load(Ordering::Acquire);
        if !self.in_burst || asked == self.answered {
            return;
        }
        let held = held.chain(std::iter::repeat(NONE));
        for (place, lock) in desk.held.iter().zip(held) {
            // An engine that finds the lock gone sees all that was done under it.
            place.store(lock, Ordering::Release);
        }
        desk.answered.store(asked, Ordering::Release);
        self.answered = asked;
    }

    /// Takes the lock `lock`, which is not [`NONE`], by its cell. Meanwhile the engine holds the biased
    /// locks `held`, as for [`answer`](Self::answer); the lock itself counts as not held.
    pub(crate) fn take(
        &mut self,
        cell: &AtomicU8,
        lock: u64,
        held: &[u64],
        pause: fn(u32),
    ) -> Taken {
        let held = || held.iter().map(|it| if *it == lock { NONE } else { *it });
        let mut taken = Taken::default();
        let mut rounds = 0;
        loop {
            let found = cell.load(Ordering::Relaxed);
            if found == TAKEN {
                taken.waited = true;
                rounds += 1;
                pause(rounds);
                self.answer(held());
                continue;
            }
            if found == self.biased() {
                taken.by_bias = true;
                return taken;
            }
            if cell
                .compare_exchange(found, TAKEN, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {
                continue;
            }
            let owner = found.checked_sub(BIASED);
            if let Some(owner) = owner.filter(|owner| Some(*owner) != self.number) {
                taken.waited |= self.ask(owner, lock, held, pause);
            } else if owner.is_some() || self.is_due(found) {
                taken.by_bias = self.in_burst;
            }
            if taken.by_bias {
                cell.store(self.biased(), Ordering::Release);
            }
            return taken;
        }
    }

    /// Releases a lock that it did not take by bias.
    pub(crate) fn release(&self, cell: &AtomicU8) {
        cell.store(self.released(), Ordering::Release);
    }

    /// True if a lock whose cell was free is to be biased to the engine.
    fn is_due(&mut self, found: u8) -> bool {
        if !self.in_burst || found != self.released() {
            return false;
        }
        self.takes += 1;
        self.takes
            .is_multiple_of(self.crew.takes.load(Ordering::Relaxed))
    }

    /// Waits until an engine does not hold the lock, whose cell says that it is taken; true if the
    /// engine had to answer.
    fn ask<I: Iterator<Item = u64>>(
        &mut self,
        owner: u8,
        lock: u64,
        held: impl Fn() -> I,
        pause: fn(u32),
    ) -> bool {
        let crew = self.crew.clone();
        let Some(desk) = crew.desks.get(usize::from(owner)) else {
            return false;
        };
        fence(Ordering::SeqCst);
        if desk.rests.load(Ordering::Acquire) {
            return false;
        }
        let ask = || desk.asked.fetch_add(1, Ordering::AcqRel) + 1;
        let mut question = ask();
        let mut rounds = 0;
        loop {
            if desk.answered.load(Ordering::Acquire) >= question {
                let holds = |place: &AtomicU64| place.load(Ordering::Acquire) == lock;
                if !desk.held.iter().any(holds) {
                    break;
                }
                question = ask();
            }
            if desk.rests.load(Ordering::Acquire) {
                break;
            }
            rounds += 1;
            pause(rounds);
            self.answer(held());
        }
        crew.learn(rounds);
        true
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.end_burst();
        if let Some(desk) = self.desk() {
            desk.is_taken.store(false, Ordering::Release);
        }
    }
}

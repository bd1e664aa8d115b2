//! Processors of the threads that forward, their waiting, and their frames.

use super::workers::Spread;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::io;
use std::time::Duration;

/// How the threads that forward run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placing {
    /// True if each stays on a processor of its own.
    pub pin: bool,
    /// Time for which a thread looks for frames again and again before it sleeps.
    pub busy_poll: Duration,
    /// Rule by which frames fall to the threads, if there are several.
    pub spread: Spread,
}

impl Placing {
    /// [`busy_poll`](Self::busy_poll) in µs.
    pub(super) fn busy_poll_us(&self) -> u64 {
        u64::try_from(self.busy_poll.as_micros()).unwrap_or(u64::MAX >> 1)
    }

    /// The processor of thread `number`, if it is to stay on one.
    ///
    /// # Errors
    ///
    /// Error of the operating system.
    pub(super) fn processor(&self, number: usize) -> io::Result<Option<usize>> {
        if !self.pin {
            return Ok(None);
        }
        let allowed = allowed()?;
        Ok(allowed.get(number % allowed.len().max(1)).copied())
    }
}

/// Processors on which the process may run, ascending.
fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    let is_in = |processor: &usize| set.is_set(*processor).unwrap_or(false);
    Ok((0..CpuSet::count()).filter(is_in).collect())
}

/// Keeps the calling thread on `processor`.
///
/// # Errors
///
/// Error of the operating system.
pub(super) fn stay_on(processor: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(processor)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_threads_are_spread_over_the_processors_in_turn() {
        let all = allowed().unwrap();
        let placing = Placing {
            pin: true,
            ..Placing::default()
        };
        let on = |number| placing.processor(number).unwrap().unwrap();
        let first: Vec<usize> = (0..all.len()).map(on).collect();
        assert_eq!(first, all);
        assert_eq!(on(all.len()), all[0], "more threads than processors");
        assert_eq!(Placing::default().processor(0).unwrap(), None);
    }

    #[test]
    fn a_pinned_thread_stays() {
        let last = *allowed().unwrap().last().unwrap();
        std::thread::spawn(move || {
            stay_on(last).unwrap();
            assert_eq!(allowed().unwrap(), [last]);
        })
        .join()
        .unwrap();
    }
}

//! All workers of a switch at once, stopped between two bursts, for a change that no packet of any
//! worker sees half.

use super::Workers;
use super::lane::{Call, Loan};
use super::worker::Worker;
use stateplane_runtime::{Engine, SWEEP_US};
use stateplane_switch::{Fellows, Switch};
use std::sync::mpsc::SyncSender;

/// Gives a switch the program and configuration of the first; the engine before if the program is
/// another one.
pub(super) type Follow<E> = fn(&mut Switch<E>, &mut Switch<E>) -> Option<E>;

/// When entries that age are looked at. No worker knows alone whether one is idle.
#[derive(Default)]
pub(super) struct Sweeps {
    is_aging: bool,
    /// In µs.
    next: u64,
}

impl Sweeps {
    /// When the next one is due, in µs.
    pub(super) fn due(&self) -> Option<u64> {
        self.is_aging.then_some(self.next)
    }
}

/// A worker that has stopped, and the way back to its thread.
struct Stopped<E: Engine> {
    worker: Box<Worker<E>>,
    back: SyncSender<Box<Worker<E>>>,
}

/// All workers, stopped. They go on when this is dropped.
pub(in crate::switch) struct Gathered<E: Engine> {
    first: Option<Stopped<E>>,
    others: Vec<Stopped<E>>,
    follow: Follow<E>,
    /// Engines that others replaced; they are given up when the workers go on.
    replaced: Vec<E>,
}

impl<E: Engine> Gathered<E> {
    /// Does `work` with the first worker's switch; the others then follow it.
    pub(in crate::switch) fn work<T>(
        &mut self,
        work: impl FnOnce(&mut Switch<E>, &mut dyn Fellows<E>) -> T,
    ) -> Option<T> {
        let first = &mut self.first.as_mut()?.worker.switch;
        let mut others = Others {
            stopped: &mut self.others,
            follow: self.follow,
            replaced: &mut self.replaced,
        };
        let result = work(first, &mut others);
        others.follow(first);
        Some(result)
    }
}

impl<E: Engine> Drop for Gathered<E> {
    fn drop(&mut self) {
        for Stopped { worker, back } in self.first.take().into_iter().chain(self.others.drain(..)) {
            // A thread that waits for its worker has not ended.
            let _ = back.send(worker);
        }
    }
}

/// All workers but the first.
struct Others<'a, E: Engine> {
    stopped: &'a mut [Stopped<E>],
    follow: Follow<E>,
    replaced: &'a mut Vec<E>,
}

impl<E: Engine> Fellows<E> for Others<'_, E> {
    fn each(&mut self, work: &mut dyn FnMut(&mut Switch<E>)) {
        for stopped in &mut *self.stopped {
            work(&mut stopped.worker.switch);
        }
    }

    fn follow(&mut self, first: &mut Switch<E>) {
        for stopped in &mut *self.stopped {
            let before = (self.follow)(&mut stopped.worker.switch, first);
            self.replaced.extend(before);
        }
    }
}

impl<E: Engine> Workers<E> {
    /// Stops all workers between two bursts; `None` if one has ended. Outputs until then can be
    /// polled.
    pub(in crate::switch) fn gather(&mut self) -> Option<Gathered<E>> {
        let mut lenders = Vec::new();
        for number in 0..self.lanes.len() {
            let (loan, lender) = Loan::new();
            self.post(number, Call::Lend(loan));
            lenders.push(lender);
        }
        let mut gathered = Gathered {
            first: None,
            others: Vec::new(),
            follow: self.follow,
            replaced: Vec::new(),
        };
        let mut whole = true;
        for (given, back) in lenders {
            let Some(worker) = self.result(&given) else {
                whole = false;
                continue;
            };
            let stopped = Stopped { worker, back };
            match gathered.first {
                None => gathered.first = Some(stopped),
                Some(_) => gathered.others.push(stopped),
            }
        }
        self.take();
        whole.then_some(gathered)
    }

    /// When entries that age are to be looked at, in µs.
    pub(in crate::switch) fn sweep_due(&self) -> Option<u64> {
        self.sweeps.due()
    }

    /// Does `work` with the switches of `gathered` at `now`, in µs, behind what is due there: digests
    /// and the report of idle entries.
    pub(in crate::switch) fn serve<T>(
        &mut self,
        gathered: &mut Gathered<E>,
        now: u64,
        work: impl FnOnce(&mut Switch<E>, &mut dyn Fellows<E>) -> T,
    ) -> Option<T> {
        let (sweeps, learned) = (&mut self.sweeps, &self.learned);
        gathered.work(|first, fellows| {
            let own = first.engine_mut().state_mut();
            fellows.each(&mut |fellow| own.gather_digests(fellow.engine_mut().state_mut()));
            if sweeps.due().is_some_and(|due| due <= now) {
                fellows.each(&mut |fellow| own.gather_ages(fellow.engine_mut().state_mut()));
                own.sweep_idle(now);
                sweeps.next = now + SWEEP_US;
            }
            let program = first.program();
            let result = work(first, fellows);
            sweeps.is_aging = first.engine().state().is_aging();
            if first.program() == program {
                learned.try_again();
            } else {
                learned.forget();
            }
            result
        })
    }
}

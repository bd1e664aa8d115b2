//! All workers of a switch at once, stopped between two bursts, for a change that no packet of any
//! worker sees half.

use super::Workers;
use super::lane::{Call, Loan};
use super::spread::{Rules, Spread};
use super::worker::Worker;
use stateplane_runtime::{Engine, SWEEP_US};
use stateplane_switch::{Fellows, Port, Switch};
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

/// The rules by which frames fall to workers, and the program that they are for.
pub(super) struct Steered {
    pub(super) spread: Spread,
    pub(super) program: u64,
    pub(super) rules: Rules,
}

impl Steered {
    /// The rules for the program of `switch`, which comes first.
    pub(super) fn new<E: Engine>(
        spread: Spread,
        ports: &[Port],
        switch: &mut Switch<E>,
    ) -> Steered {
        let steered = Steered {
            spread,
            program: switch.program(),
            rules: rules(spread, ports, switch),
        };
        steered.rules.tell();
        steered
    }

    /// Gives the workers other rules if their program is another one.
    fn follow<E: Engine>(&mut self, gathered: &mut Gathered<E>, ports: &[Port]) {
        let program = gathered.program();
        if let Some(program) = program.filter(|program| *program != self.program)
            && let Some(rules) = gathered.steer(self.spread, ports)
        {
            self.program = program;
            if rules != self.rules {
                rules.tell();
                self.rules = rules;
            }
        }
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

    /// Number of the first worker's program ([`Switch::program`]).
    fn program(&self) -> Option<u64> {
        Some(self.first.as_ref()?.worker.switch.program())
    }

    /// Lets frames fall to workers by the rules that `spread` asks for with the program; those.
    fn steer(&mut self, spread: Spread, ports: &[Port]) -> Option<Rules> {
        let first = &mut self.first.as_mut()?.worker;
        let rules = rules(spread, ports, &mut first.switch);
        first.steer(rules);
        for stopped in &mut self.others {
            stopped.worker.steer(rules);
        }
        Some(rules)
    }
}

/// The rules that `spread` asks for with the program of `switch`.
pub(super) fn rules<E: Engine>(spread: Spread, ports: &[Port], switch: &mut Switch<E>) -> Rules {
    Rules::new(spread, ports, |port, frame| switch.state_key(port, frame))
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
        let sweeps = &mut self.sweeps;
        let result = gathered.work(|first, fellows| {
            let own = first.engine_mut().state_mut();
            fellows.each(&mut |fellow| own.gather_digests(fellow.engine_mut().state_mut()));
            if sweeps.due().is_some_and(|due| due <= now) {
                fellows.each(&mut |fellow| own.gather_ages(fellow.engine_mut().state_mut()));
                own.sweep_idle(now);
                sweeps.next = now + SWEEP_US;
            }
            let result = work(first, fellows);
            sweeps.is_aging = first.engine().state().is_aging();
            result
        });
        self.steered.follow(gathered, &self.numbers);
        result
    }
}

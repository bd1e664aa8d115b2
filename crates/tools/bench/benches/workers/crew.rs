//! Workers that take turns with others: each on a thread that stays on a processor, as with `run --pin`.

use stateplane_bench::stay_on;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Time for which a crew works before it is another's turn: the machine's speed changes within tenths of a
/// second, and what lasts longer than a slice slows all crews alike.
pub const SLICE: Duration = Duration::from_millis(20);

/// Workers that work at the same time, and rest at the same time.
pub struct Crew<'scope, L> {
    workers: Vec<Worker<'scope, L>>,
    /// Workers that are at their work, or ready for it.
    ready: &'scope AtomicUsize,
}

struct Worker<'scope, L> {
    thread: ScopedJoinHandle<'scope, L>,
    begin: Sender<()>,
    /// Packets a second of each slice.
    rates: Receiver<f64>,
}

impl<'scope, L: Send + 'scope> Crew<'scope, L> {
    /// Starts a worker for each of `lanes`, on the processor of its number. `burst` has a lane work on some
    /// packets, and tells how many. `ready` is for this crew alone.
    pub fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        lanes: Vec<L>,
        ready: &'scope AtomicUsize,
        burst: &'scope (impl Fn(&mut L) -> u64 + Sync),
    ) -> Crew<'scope, L> {
        let crew = lanes.len();
        let workers = lanes.into_iter().enumerate().map(|(number, lane)| {
            let (begin, begun) = channel();
            let (ended, rates) = channel();
            let thread = scope.spawn(move || {
                stay_on(number);
                // On the thread's own stack it shares no line of the cache with another worker's lane.
                let mut lane = lane;
                while let Ok(()) = begun.recv() {
                    ready.fetch_add(1, Ordering::AcqRel);
                    while ready.load(Ordering::Acquire) < crew {
                        std::hint::spin_loop();
                    }
                    let rate = work(|| burst(&mut lane));
                    if ended.send(rate).is_err() {
                        break;
                    }
                }
                lane
            });
            Worker {
                thread,
                begin,
                rates,
            }
        });
        Crew {
            workers: workers.collect(),
            ready,
        }
    }

    /// Has all workers work for a slice: their packets a second, together.
    pub fn slice(&self) -> f64 {
        self.ready.store(0, Ordering::Release);
        for worker in &self.workers {
            worker.begin.send(()).expect("the worker waits");
        }
        let rates = self.workers.iter().map(|worker| worker.rates.recv());
        rates.map(|rate| rate.expect("the worker works")).sum()
    }

    /// Ends the workers, and gives their lanes back.
    pub fn end(self) -> Vec<L> {
        let ended = self.workers.into_iter().map(|worker| {
            drop(worker.begin);
            worker.thread.join().expect("the worker ends well")
        });
        ended.collect()
    }
}

/// Packets a second of `burst` in a slice.
fn work(mut burst: impl FnMut() -> u64) -> f64 {
    let start = Instant::now();
    let mut packets = 0;
    loop {
        packets += burst();
        let spent = start.elapsed();
        if spent >= SLICE {
            return packets as f64 / spent.as_secs_f64();
        }
    }
}

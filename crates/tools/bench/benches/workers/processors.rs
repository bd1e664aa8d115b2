//! Threads that stay on processors, as with `run --pin`.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use stateplane_bench::Sample;

/// Time of `work` on all of `lanes`, which is `packets` packets, each lane on a thread and a processor of
/// its own: what the thread writes is on its own stack, and shares no line of the cache with another's.
/// The results come back, so that what it takes to free them is no part of the time.
pub fn on_processors<L: Send, R: Send>(
    packets: usize,
    lanes: Vec<L>,
    work: impl Fn(L) -> R + Sync,
) -> (Sample, Vec<R>) {
    let mut done = Vec::new();
    let sample = stateplane_bench::timed(|| {
        std::thread::scope(|scope| {
            let work = &work;
            let start = |(number, lane)| {
                scope.spawn(move || {
                    stay_on(number);
                    work(lane)
                })
            };
            let threads: Vec<_> = lanes.into_iter().enumerate().map(start).collect();
            let results = threads.into_iter().map(|thread| thread.join());
            done.extend(results.map(|it| it.expect("the thread ends well")));
        });
        packets as u64
    });
    (sample, done)
}

/// Keeps the calling thread on a processor.
fn stay_on(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor).expect("so many processors");
    sched_setaffinity(Pid::from_raw(0), &set).expect("the processor is allowed");
}

//! Processors that threads stay on.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

/// Keeps the calling thread on a processor.
///
/// # Panics
///
/// If there is no such processor, or this process may not use it.
pub fn stay_on(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor).expect("so many processors");
    sched_setaffinity(Pid::from_raw(0), &set).expect("the processor is allowed");
}

//! Packets that a switch forwards in a while.

use stateplane_bench::Sample;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time for which packets are counted.
const WHILE: Duration = Duration::from_millis(100);

/// Packets that are counted in `forwarded` from now on.
pub fn during(forwarded: &Arc<AtomicU64>) -> Sample {
    let (before, start) = (forwarded.load(Ordering::Relaxed), Instant::now());
    std::thread::sleep(WHILE);
    let items = forwarded.load(Ordering::Relaxed) - before;
    Sample {
        items,
        spent: start.elapsed(),
    }
}

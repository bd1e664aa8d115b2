//! The worker of a switch that takes a frame.

use core::hash::Hasher;
use rustc_hash::FxHasher;

/// Which of a switch's `workers` takes a frame. Real ones share frames by flows; here each frame is on its
/// own, so that a sender's messages also go through different workers, one after the other.
pub fn worker_of(frame: &[u8], workers: usize) -> usize {
    let mut hasher = FxHasher::default();
    hasher.write(frame);
    ((hasher.finish() >> 32) as usize)
        .checked_rem(workers)
        .unwrap_or(0)
}

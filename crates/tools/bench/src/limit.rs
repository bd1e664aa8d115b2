//! The jobs of the benchmarked programs, written by hand: the same headers, checksums
//! and lookup structures, without a switch around them. Their outputs are those of the
//! interpreter, frame by frame.

mod acl;
mod exact;
mod forward;
mod headers;
mod nat;
mod prefixes;
mod sketch;

pub use acl::{Acl, Rule};
pub use exact::Stations;
pub use forward::{Forward, NextHop};
pub use nat::{Lease, Nat};
pub use sketch::{InView, Sketch};

/// A job done to one frame at a time.
pub trait Job {
    /// Takes a frame that came by `port`. What leaves is in `out`, and by which port;
    /// `None` drops it.
    fn frame(&mut self, port: u16, frame: &[u8], out: &mut Vec<u8>) -> Option<u16>;

    /// Tells of a frame of the same burst that will come.
    fn announce(&mut self, port: u16, frame: &[u8]) {
        let _ = (port, frame);
    }
}

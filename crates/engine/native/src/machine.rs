//! State that outlives a packet, and functions of the engine that generated code calls.

use crate::codegen::Site;
use crate::in_flight::InFlight;
use stateplane_runtime::{Color, TargetState};

/// State on which the functions of the engine work. Other workers write to none of its lines of the cache.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Machine {
    pub(crate) state: TargetState,
    pub(crate) sites: Vec<Site>,
    /// The locks that the present block holds, each at its place, 0 at others.
    pub(crate) held_locks: Vec<u64>,
    /// Last result of each direct meter.
    pub(crate) colors: Vec<Color>,
    /// Data of a hash or checksum, and its last byte's free bits.
    pub(crate) data: Vec<u8>,
    pub(crate) data_free: u32,
    /// The record of what an entry runs that an action profile holds.
    pub(crate) held: Vec<u64>,
    /// A header that began within a byte.
    pub(crate) realigned: Vec<u8>,
    /// Bytes that the deparser writes, and the number of free bits in the last one.
    pub(crate) out: Vec<u8>,
    pub(crate) out_free: u32,
    /// Bytes that the deparser writes without asking for room.
    pub(crate) room: usize,
    /// An egress-to-egress clone.
    pub(crate) captured: Option<InFlight>,
    pub(crate) packet_words: usize,
}

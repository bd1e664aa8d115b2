//! Data shared by generated code and the functions that it calls.

use crate::machine::Machine;
use crate::table::View;
use stateplane_runtime::{Count, LockBytes};

/// Requests of a block, as bits of [`Context::requests`].
pub(crate) mod request {
    pub(crate) const INGRESS_CLONE: u64 = 1;
    pub(crate) const EGRESS_CLONE: u64 = 2;
    pub(crate) const RESUBMIT: u64 = 4;
    pub(crate) const RECIRCULATE: u64 = 8;
    /// A clone has a field list.
    pub(crate) const INGRESS_LIST: u64 = 16;
    pub(crate) const EGRESS_LIST: u64 = 32;
}

/// End states of generated code.
pub(crate) mod ended {
    /// The packet waits for egress.
    pub(crate) const INGRESS: u64 = 0;
    /// Egress has run; the frame is deparsed.
    pub(crate) const EGRESS: u64 = 1;
    /// Egress has run and dropped the packet.
    pub(crate) const DROPPED: u64 = 2;
    /// Loops began as many rounds as they may: the packet is given up.
    pub(crate) const GIVEN_UP: u64 = 3;
    /// Egress has run, the output is complete and leaves by the port in the bits from [`PORT_SHIFT`] on;
    /// nothing else was asked for.
    pub(crate) const SENT: u64 = 4;
    pub(crate) const PORT_SHIFT: u32 = 8;
}

/// The one argument of generated code. Pointers are valid while it runs.
///
/// It shares no line of the cache, nor the pair of lines that processors fetch together, with what other
/// workers write.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Context {
    /// The frame, and its length in bytes.
    pub(crate) frame: *const u8,
    pub(crate) frame_length: u64,
    /// Words of the packet between blocks.
    pub(crate) packet: *mut u128,
    /// Words of all other variables.
    pub(crate) locals: *mut u128,
    /// As many zeros as the largest header or element of a register has bytes: where the
    /// fields lie of a header that was never extracted, and what is read past the end of
    /// an array.
    pub(crate) zeros: *const u8,
    /// The memory of all register arrays and locks.
    pub(crate) registers: *mut u8,
    /// For each counter array its first element.
    pub(crate) counters: *const *mut Count,
    /// For each table, what lookups need.
    pub(crate) tables: *const View,
    /// Output buffer of the deparser, with room for all headers.
    pub(crate) out: *mut u8,
    /// Frame that leaves, if the deparser does not use `out`.
    pub(crate) output: *mut Vec<u8>,
    /// Bytes that it wrote.
    pub(crate) out_length: u64,
    /// Byte of the frame behind what was parsed.
    pub(crate) rest: u64,
    /// Bytes that may leave at most.
    pub(crate) limit: u64,
    /// Time in µs.
    pub(crate) now: u64,
    /// True if the words of field lists hold preserved values; otherwise they count as zero.
    pub(crate) preserved: u64,
    /// True if egress may follow ingress at once.
    pub(crate) direct: u64,
    /// True if the frame came by a port, nothing is preserved, and egress may follow at once with
    /// nothing before it in the queue.
    pub(crate) fresh: u64,
    pub(crate) ingress_port: u64,
    pub(crate) instance_type: u64,
    pub(crate) egress_port: u64,
    pub(crate) egress_rid: u64,
    pub(crate) enqueued_at: u64,
    pub(crate) enqueue_depth: u64,
    pub(crate) dequeue_depth: u64,
    /// Results of ingress.
    pub(crate) egress_spec: u64,
    pub(crate) mcast_grp: u64,
    pub(crate) requests: u64,
    pub(crate) ingress_session: u64,
    pub(crate) ingress_list: u64,
    pub(crate) egress_session: u64,
    pub(crate) egress_list: u64,
    pub(crate) resubmit_list: u64,
    pub(crate) recirculate_list: u64,
    /// For the functions that generated code calls.
    pub(crate) machine: *mut Machine,
    /// The cell of a lock that nobody else has, in place of one that there is not or that is biased to
    /// the engine: it may be released without asking.
    pub(crate) own_lock: u64,
    /// The lock that the present block holds at each place, 0 at others.
    pub(crate) held_locks: *mut u64,
    /// State of a cell whose lock is biased to the engine.
    pub(crate) biased: u8,
    /// State of a cell that the engine releases.
    pub(crate) released: u8,
}

impl Context {
    /// A context whose pointers are to be set, of an engine with these states of locks.
    pub(crate) fn new(bytes: LockBytes) -> Context {
        Context {
            frame: std::ptr::null(),
            packet: std::ptr::null_mut(),
            locals: std::ptr::null_mut(),
            zeros: std::ptr::null(),
            registers: std::ptr::null_mut(),
            counters: std::ptr::null(),
            tables: std::ptr::null(),
            out: std::ptr::null_mut(),
            output: std::ptr::null_mut(),
            machine: std::ptr::null_mut(),
            frame_length: 0,
            out_length: 0,
            rest: 0,
            limit: 0,
            now: 0,
            preserved: 0,
            direct: 0,
            fresh: 0,
            ingress_port: 0,
            instance_type: 0,
            egress_port: 0,
            egress_rid: 0,
            enqueued_at: 0,
            enqueue_depth: 0,
            dequeue_depth: 0,
            egress_spec: 0,
            mcast_grp: 0,
            requests: 0,
            ingress_session: 0,
            ingress_list: 0,
            egress_session: 0,
            egress_list: 0,
            resubmit_list: 0,
            recirculate_list: 0,
            own_lock: 0,
            held_locks: std::ptr::null_mut(),
            biased: bytes.biased,
            released: bytes.released,
        }
    }

    /// Sets the states of locks of an engine.
    pub(crate) fn set_lock_bytes(&mut self, bytes: LockBytes) {
        self.biased = bytes.biased;
        self.released = bytes.released;
    }
}

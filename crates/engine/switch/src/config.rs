//! Configuration of a switch.

use stateplane_runtime::Port;
use std::collections::BTreeMap;

/// Shortest frame of an Ethernet: its header.
pub const MIN_FRAME: usize = 14;

/// Longest frame that is received or transmitted, in bytes.
pub const MAX_FRAME: usize = 65_535;

/// Greatest batch of a packet generator.
pub const MAX_BATCH: u32 = 1 << 16;

/// Longest hold of a mirror session and longest period of a generator: one day.
pub const MAX_HOLD_US: u64 = 24 * 3600 * 1_000_000;

/// EtherType of the frames that [`Generator::with_content`] makes, one for local experiments (IEEE
/// Std 802): `ETHERTYPE_GENERATED` of the library (`p4/lib/headers.p4`).
pub const ETHERTYPE_GENERATED: u16 = 0x88b5;

/// Configuration of a [`Switch`](crate::Switch).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SwitchConfig {
    /// Ports that carry frames, each from 0 to 510. A program may also send to other numbers up to
    /// 510: such packets pass egress, where they can be recirculated, and are dropped as
    /// [`UnknownPort`](crate::DropReason::UnknownPort) at transmission.
    pub ports: Vec<Port>,
    /// Bounds.
    pub limits: Limits,
    /// Mirror sessions by number.
    pub mirror_sessions: BTreeMap<u32, MirrorSession>,
    /// Multicast groups by number, from 1.
    pub multicast_groups: BTreeMap<u16, Vec<Replica>>,
    /// Packet generators.
    pub generators: Vec<Generator>,
    /// Register watches.
    pub watches: Vec<Watch>,
}

/// Bounds of queues and of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the shortest frame that is received or transmitted; shorter ones are
    /// counted and dropped.
    pub shortest_frame: u32,
    /// Packets in the egress queue of one port, at least 1; more are dropped at the
    /// tail.
    pub queue: u32,
    /// Frames of one port that wait for [`poll_transmit`](crate::Switch::poll_transmit).
    pub transmit: u32,
    /// Copies held by mirror sessions.
    pub held: u32,
    /// Bytes held by mirror sessions, by the length of the frames copied.
    pub held_bytes: u64,
    /// Frames that wait for recirculation.
    pub recirculation: u32,
    /// Frames that wait for resubmission.
    pub resubmission: u32,
    /// Resubmissions of one frame; a program that asks for more loses the frame.
    pub resubmits_per_frame: u32,
    /// Passes of ingress, egress or parser in one call, besides that of the frame
    /// given to [`handle_frame`](crate::Switch::handle_frame).
    pub work: u32,
    /// Mirror sessions.
    pub mirror_sessions: u32,
    /// Multicast groups.
    pub multicast_groups: u32,
    /// Replicas of one multicast group.
    pub replicas: u32,
    /// Packet generators.
    pub generators: u32,
    /// Register watches.
    pub watches: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            shortest_frame: MIN_FRAME as u32,
            queue: 1024,
            transmit: 4096,
            held: 65_536,
            held_bytes: 256 << 20,
            recirculation: 1024,
            resubmission: 1024,
            resubmits_per_frame: 16,
            work: 4096,
            mirror_sessions: 4096,
            multicast_groups: 4096,
            replicas: 4096,
            generators: 64,
            watches: 1024,
        }
    }
}

/// Destinations of a session's clones: a port, the replicas of a multicast group, or both; the
/// group's replicas are sent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MirrorSession {
    /// Port at whose egress a copy arrives, 0 to 510.
    pub egress_port: Option<Port>,
    /// Multicast group of whose replicas each gets a copy, as it stands when the packet
    /// is cloned; from 1.
    pub multicast_group: Option<u16>,
    /// Length in bytes to which the copy's frame is cut, if it is longer; at
    /// least [`MIN_FRAME`].
    pub truncate: Option<u32>,
    /// Microseconds for which the copy waits before egress, at most
    /// [`MAX_HOLD_US`].
    pub hold_us: u64,
}

/// One copy made by a multicast group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Egress port, 0 to 510.
    pub port: Port,
    /// `egress_rid` of the copy.
    pub rid: u16,
}

/// Injects a batch of frames at ingress, first when the switch first sees the time and
/// then once a period. Periods that were missed are skipped; a batch that takes longer
/// than a period is finished first. A batch may be spread over its period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generator {
    /// `ingress_port` of the frame, 0 to 510; it need not carry frames otherwise.
    pub port: Port,
    /// Microseconds between batches, from 1 to [`MAX_HOLD_US`].
    pub period_us: u64,
    /// Frames of a batch, from 1 to [`MAX_BATCH`].
    pub batch: u32,
    /// Offset of the frame's batch index, from 0: the first of four bytes, big-endian, all within
    /// the frame. `None`: all frames are equal.
    pub index_at: Option<usize>,
    /// True if the frames of a batch are injected one by one, a period's equal parts of at least 1 µs
    /// apart; missed parts are skipped, and no frame.
    pub spread: bool,
    /// The frame, [`MIN_FRAME`] to [`MAX_FRAME`] bytes.
    pub frame: Vec<u8>,
}

impl Generator {
    /// A generator of frames of [`ETHERTYPE_GENERATED`] with `content`; if they are `indexed`, the
    /// batch index follows it.
    pub fn with_content(
        port: Port,
        period_us: u64,
        batch: u32,
        content: &[u8],
        indexed: bool,
    ) -> Generator {
        let mut frame = vec![0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2];
        frame.extend_from_slice(&ETHERTYPE_GENERATED.to_be_bytes());
        frame.extend_from_slice(content);
        let index_at = indexed.then_some(frame.len());
        if indexed {
            frame.extend_from_slice(&[0; 4]);
        }
        Generator {
            port,
            period_us,
            batch,
            index_at,
            spread: false,
            frame,
        }
    }
}

/// Ties ports to the freshness of a register: the program stores the time at which
/// it last saw a sign of life, and while that is too old the ports are down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Name of the register array, whole or an unambiguous suffix.
    pub register: String,
    /// Element: a time in µs as `ingress_global_timestamp` gives it (48 bits), or 0
    /// for never, which is too old.
    pub index: u64,
    /// Age in µs beyond which the ports are down, from 1 to [`MAX_HOLD_US`].
    pub max_age_us: u64,
    /// The ports; each must be one of the switch.
    pub ports: Vec<Port>,
}

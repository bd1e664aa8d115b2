//! The interface between the switch and an engine that executes the program.
//!
//! A switch owns ports, queues, mirror sessions and time; an engine owns the
//! program, its tables and its registers. The engine sees one packet at a time:
//! [`Engine::ingress`] parses a frame and runs ingress, [`Engine::egress`] runs
//! egress on what ingress left and deparses. Between the two the packet is an
//! opaque [`Engine::InFlight`], which the switch queues, holds and clones.

use crate::TargetState;
use smallvec::SmallVec;

/// A v1model port number, below 512.
pub type Port = u16;

/// Ports from 0 to 510 carry packets; 511 is v1model's drop port.
pub const DROP_PORT: Port = 511;

/// `standard_metadata.instance_type`, with BMv2's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum InstanceType {
    /// From a port.
    #[default]
    Normal = 0,
    /// An ingress clone, in egress.
    IngressClone = 1,
    /// An egress clone, in egress.
    EgressClone = 2,
    /// Recirculated.
    Recirculated = 4,
    /// A multicast copy.
    Replication = 5,
    /// Resubmitted.
    Resubmitted = 6,
}

/// User metadata preserved across clone, resubmit and recirculate: the values of the fields of one
/// field list.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Preserved {
    /// Field list number; `None` where nothing is preserved.
    pub field_list: Option<u32>,
    /// The values one behind the other in the order of the list, without gaps, the lowest bits first; a
    /// varbit's length, of 32 bits, comes before it.
    pub bits: SmallVec<[u64; 4]>,
}

/// Input of ingress.
#[derive(Clone, Debug)]
pub struct IngressInput<'a> {
    /// The frame from its first byte.
    pub frame: &'a [u8],
    /// The port by which it came (of a recirculated packet: its egress port).
    pub port: Port,
    /// Why it is here.
    pub instance_type: InstanceType,
    /// Metadata carried over by resubmit or recirculate.
    pub preserved: &'a Preserved,
    /// `ingress_global_timestamp` in µs, 48 bits.
    pub now: u64,
}

/// Outcome of ingress.
#[derive(Clone, Debug)]
pub struct IngressOutcome<P> {
    /// The packet.
    pub packet: P,
    /// `egress_spec`; [`DROP_PORT`] drops.
    pub egress_spec: Port,
    /// `mcast_grp`; 0 is no multicast.
    pub mcast_grp: u16,
    /// Ingress-to-egress clone, if asked for: session and preserved metadata.
    pub clone: Option<CloneRequest>,
    /// Resubmission of the frame as it came, if asked for.
    pub resubmit: Option<Preserved>,
}

/// A clone to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloneRequest {
    /// Mirror session number.
    pub session: u32,
    /// Metadata carried into the clone.
    pub preserved: Preserved,
}

/// Input of egress besides the packet.
#[derive(Clone, Copy, Debug)]
pub struct EgressInput {
    /// `egress_port`.
    pub port: Port,
    /// `egress_rid` of a multicast copy, else 0.
    pub rid: u16,
    /// Why it is here.
    pub instance_type: InstanceType,
    /// `enq_timestamp` in µs.
    pub enqueued_at: u64,
    /// `enq_qdepth` in packets.
    pub enqueue_depth: u32,
    /// `deq_qdepth` in packets.
    pub dequeue_depth: u32,
    /// `egress_global_timestamp` in µs, 48 bits.
    pub now: u64,
}

/// Outcome of egress.
#[derive(Clone, Debug)]
pub struct EgressOutcome<P> {
    /// True if egress dropped the packet (`egress_spec` is 511 at its end).
    pub dropped: bool,
    /// Egress-to-egress clone, if asked for: the copy has the headers as they
    /// stand at the end of egress, before ComputeChecksum.
    pub clone: Option<(CloneRequest, P)>,
    /// Recirculation of the deparsed frame, if asked for: its metadata.
    pub recirculate: Option<Preserved>,
}

/// Outcome for a frame that was to be forwarded.
#[derive(Clone, Debug)]
pub enum Forwarded<P> {
    /// The frame leaves by this port, and nothing else is to be done.
    Sent(Port),
    /// Egress has run as well.
    Done {
        /// The port that ingress chose.
        port: Port,
        /// Outcome of egress; the frame is deparsed unless it was dropped.
        outcome: EgressOutcome<P>,
    },
    /// Ingress dropped the packet, and nothing else is to be done.
    Dropped,
    /// The packet waits for what ingress decided.
    Waits(IngressOutcome<P>),
}

/// Step of a switch with a packet between and after the runs of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchEvent<'a> {
    /// The packet waits for egress by this port.
    Queued {
        /// The port.
        port: Port,
        /// `egress_rid`: of a multicast copy, else 0.
        rid: u16,
    },
    /// The packet ends here.
    Dropped {
        /// Why, as the switch's counters name it.
        reason: &'a str,
    },
    /// The packet is copied to the replicas of a multicast group.
    Multicast {
        /// The group.
        group: u16,
        /// Number of replicas.
        replicas: usize,
    },
    /// A clone is made for a mirror session.
    Mirrored {
        /// The session.
        session: u32,
        /// The multicast group whose replicas get copies.
        group: Option<u16>,
        /// The port that gets a copy.
        port: Option<Port>,
        /// Time in µs for which the packet is held.
        hold_us: u64,
    },
    /// The frame as it came goes back to ingress.
    Resubmitted,
    /// The frame as deparsed goes back to ingress.
    Recirculated {
        /// The frame.
        frame: &'a [u8],
    },
    /// The packet leaves.
    Transmitted {
        /// The port.
        port: Port,
        /// The frame.
        frame: &'a [u8],
    },
}

/// Executes one v1model program.
pub trait Engine {
    /// A packet between ingress and egress. A clone shares nothing that a later
    /// run can change.
    type InFlight: Clone;

    /// Parses `input.frame`, verifies checksums and runs ingress.
    ///
    /// A parser error does not drop: it is in `standard_metadata.parser_error`
    /// for the program to see, as in BMv2.
    fn ingress(&mut self, input: &IngressInput<'_>) -> IngressOutcome<Self::InFlight>;

    /// Runs ingress and, if it does nothing but choose a port below [`DROP_PORT`], at once
    /// egress, as of a packet that was alone in its queue; `frame` is then what
    /// [`Engine::egress`] makes it. An engine may always leave egress to its caller.
    fn forward(
        &mut self,
        input: &IngressInput<'_>,
        frame: &mut Vec<u8>,
    ) -> Forwarded<Self::InFlight> {
        frame.clear();
        Forwarded::Waits(self.ingress(input))
    }

    /// Prefetch hint: a frame will probably come by `port` soon; may be ignored. The frame may not
    /// come, and others may come before it.
    fn announce(&mut self, port: Port, frame: &[u8]) {
        let _ = (port, frame);
    }

    /// Key of the state that a frame that comes by `port` will lock, as the program computes it from
    /// the frame: frames with equal state have equal keys. `None` if the frame locks nothing by a
    /// key, or if the key does not follow from the frame.
    fn state_key(&mut self, port: Port, frame: &[u8]) -> Option<u16> {
        let _ = (port, frame);
        None
    }

    /// Parses `input.frame` alone, with `preserved` in the metadata: the packet of
    /// an ingress-to-egress clone.
    fn parse(&mut self, input: &IngressInput<'_>) -> Self::InFlight;

    /// A clone of a packet, in memory that the engine has at hand.
    fn duplicate(&mut self, packet: &Self::InFlight) -> Self::InFlight {
        packet.clone()
    }

    /// Tells that a packet waits for long before egress: an engine may keep it in less memory.
    fn set_aside(&mut self, packet: &mut Self::InFlight) {
        let _ = packet;
    }

    /// Prefetch hint: a packet that was set aside will come to egress after `others`; may be ignored. What
    /// waited for milliseconds is in no near cache.
    fn expect(&self, packet: &Self::InFlight, others: usize) {
        let _ = (packet, others);
    }

    /// Takes back a packet that ends between ingress and egress, for its memory.
    fn release(&mut self, packet: Self::InFlight) {
        drop(packet);
    }

    /// Prepares an egress clone for its own run of egress: user metadata is reset
    /// but for `preserved`; standard metadata is reset.
    fn restore(&mut self, packet: &mut Self::InFlight, preserved: &Preserved);

    /// True if the last run of the program gave its packet up, since the loops of one of its blocks
    /// would have begun more than [`LOOP_LIMIT`](stateplane_ir::LOOP_LIMIT) rounds. What that run
    /// decided is then that the packet is dropped, and nothing else.
    fn gave_up(&self) -> bool {
        false
    }

    /// Limits the frame that `packet` deparses to, to `bytes` (mirror sessions).
    fn truncate(&mut self, packet: &mut Self::InFlight, bytes: u32);

    /// Runs egress, computes checksums and deparses into `frame`, which is cleared
    /// first. Nothing is deparsed if egress drops.
    fn egress(
        &mut self,
        packet: Self::InFlight,
        input: &EgressInput,
        frame: &mut Vec<u8>,
    ) -> EgressOutcome<Self::InFlight>;

    /// Begins a burst of packets, unless one has begun. Up to its end an engine with fellows takes the
    /// locks that it takes most without an atomic exchange, and fellows that want one of those wait for
    /// its next packet: it is not to wait for anything but locks before the end.
    fn begin_burst(&mut self) {}

    /// Ends a burst of packets, if one has begun.
    fn end_burst(&mut self) {}

    /// Hears what the switch does with the packet that the engine worked on last. An engine
    /// that shows its work overrides this; for others it is nothing.
    fn note(&mut self, event: SwitchEvent<'_>) {
        let _ = event;
    }

    /// Length in bytes of the frame that `packet` came from (queue accounting).
    fn length(&self, packet: &Self::InFlight) -> usize;

    /// Tables, registers and counters, for the control plane.
    fn state(&self) -> &TargetState;

    /// Tables, registers and counters, for the control plane.
    fn state_mut(&mut self) -> &mut TargetState;
}

/// An engine of which several run one program, each on a core of its own
/// ([`TargetState::fellow`]). Its program is guarded
/// ([`guard`](stateplane_ir::passes::guard())).
pub trait Fellow: Engine + Sized {
    /// Another engine for the same program, with the same registers and meters, and the same
    /// entries.
    fn fellow(&mut self, seed: u64) -> Self;

    /// The engine, and behind it fellows: `workers` in all, at least one.
    fn with_fellows(mut self, workers: usize) -> Vec<Self> {
        let fellows: Vec<Self> = (1..workers as u64).map(|seed| self.fellow(seed)).collect();
        let mut engines = vec![self];
        engines.extend(fellows);
        engines
    }
}

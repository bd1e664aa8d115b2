//! Packet counters of a switch.

use std::fmt;

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why a packet ended without being transmitted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DropReason {
            $($(#[$doc])* $variant,)*
        }

        impl DropReason {
            /// All reasons, in the order in which they are shown.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Name as counters show it, in snake case.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

drop_reasons! {
    /// Shorter than an Ethernet header on arrival.
    Runt = "runt",
    /// Longer than [`MAX_FRAME`](crate::MAX_FRAME) on arrival.
    Oversize = "oversize",
    /// From or to a port that the switch does not have.
    UnknownPort = "unknown_port",
    /// From or to a port that is down.
    PortDown = "port_down",
    /// By the program in ingress (`mark_to_drop`, `egress_spec` 511).
    Ingress = "ingress",
    /// By the program in egress.
    Egress = "egress",
    /// Its loops would have begun more rounds than a packet may
    /// ([`LOOP_LIMIT`](stateplane_ir::LOOP_LIMIT)).
    LoopLimit = "loop_limit",
    /// The egress queue of the port is full.
    QueueFull = "queue_full",
    /// Too many copies held by mirror sessions, or too many bytes.
    HeldFull = "held_full",
    /// Clone to a mirror session that is not configured.
    UnknownMirrorSession = "unknown_mirror_session",
    /// Multicast to a group that is not configured.
    UnknownMulticastGroup = "unknown_multicast_group",
    /// Too many frames wait for recirculation.
    RecirculationFull = "recirculation_full",
    /// Too many frames wait for resubmission.
    ResubmissionFull = "resubmission_full",
    /// One frame was resubmitted too often.
    ResubmitLimit = "resubmit_limit",
    /// The frame that left egress is shorter than an Ethernet header.
    EgressRunt = "egress_runt",
    /// The frame that left egress is longer than [`MAX_FRAME`](crate::MAX_FRAME).
    EgressOversize = "egress_oversize",
    /// Another program was loaded while the packet waited.
    ProgramReplaced = "program_replaced",
    /// Frames for the port are not fetched for transmission as fast as they come.
    TransmitFull = "transmit_full",
    /// An invariant of the switch broke.
    BrokenInvariant = "broken_invariant",
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Counts since the switch was made.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Frames given to [`handle_frame`](crate::Switch::handle_frame), also bad ones.
    pub received: u64,
    /// Frames injected by packet generators, and by the host
    /// ([`handle_made`](crate::Switch::handle_made)).
    pub generated: u64,
    /// Clones asked for by ingress.
    pub ingress_clones: u64,
    /// Clones asked for by egress.
    pub egress_clones: u64,
    /// Copies made by multicast groups.
    pub replicas: u64,
    /// Packets that ended as the original of multicast copies.
    pub replicated: u64,
    /// Frames fetched by [`poll_transmit`](crate::Switch::poll_transmit).
    pub transmitted: u64,
    /// Times that a frame was taken up for recirculation.
    pub recirculated: u64,
    /// Times that a frame was taken up for resubmission.
    pub resubmitted: u64,
    /// Periods that packet generators skipped because the switch was called late.
    pub generator_skipped: u64,
    drops: [u64; DropReason::ALL.len()],
}

impl Counters {
    /// Packets dropped for `reason`.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// Every reason with its count, zeros included.
    pub fn drops(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL
            .iter()
            .map(|&reason| (reason, self.dropped(reason)))
    }

    /// Packets that ever came to be.
    pub fn born(&self) -> u64 {
        self.received + self.generated + self.ingress_clones + self.egress_clones + self.replicas
    }

    /// Packets that ended: transmitted, dropped or replicated.
    pub fn ended(&self) -> u64 {
        self.transmitted + self.replicated + self.drops.iter().sum::<u64>()
    }

    pub(crate) fn drop(&mut self, reason: DropReason) {
        self.drops[reason as usize] += 1;
    }
}

impl std::ops::AddAssign<&Counters> for Counters {
    /// Adds what another worker of the same switch counted.
    fn add_assign(&mut self, other: &Counters) {
        self.received += other.received;
        self.generated += other.generated;
        self.ingress_clones += other.ingress_clones;
        self.egress_clones += other.egress_clones;
        self.replicas += other.replicas;
        self.replicated += other.replicated;
        self.transmitted += other.transmitted;
        self.recirculated += other.recirculated;
        self.resubmitted += other.resubmitted;
        self.generator_skipped += other.generator_skipped;
        for (sum, count) in self.drops.iter_mut().zip(other.drops) {
            *sum += count;
        }
    }
}

/// Packets that are in the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Occupancy {
    /// In egress queues.
    pub queued: u64,
    /// Held by mirror sessions.
    pub held: u64,
    /// Waiting for recirculation.
    pub recirculating: u64,
    /// Waiting for resubmission.
    pub resubmitting: u64,
    /// Waiting for [`poll_transmit`](crate::Switch::poll_transmit).
    pub transmit: u64,
}

impl Occupancy {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.queued + self.held + self.recirculating + self.resubmitting + self.transmit
    }
}

impl std::ops::AddAssign for Occupancy {
    /// Adds what is in another worker of the same switch.
    fn add_assign(&mut self, other: Occupancy) {
        self.queued += other.queued;
        self.held += other.held;
        self.recirculating += other.recirculating;
        self.resubmitting += other.resubmitting;
        self.transmit += other.transmit;
    }
}

/// Counts of one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PortCounters {
    /// Frames received and given to the program.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames fetched for transmission.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
}

impl std::ops::AddAssign for PortCounters {
    /// Adds what another worker of the same switch counted.
    fn add_assign(&mut self, other: PortCounters) {
        self.rx_packets += other.rx_packets;
        self.rx_bytes += other.rx_bytes;
        self.tx_packets += other.tx_packets;
        self.tx_bytes += other.tx_bytes;
    }
}

//! Events where state is replicated: leases, and the ports of a NAT.

use crate::event::{EventKind as AnyEvent, Object, System};
use crate::replication::application::Application;
use core::convert::Infallible;
use core::net::Ipv4Addr;
use std::fmt;

/// A flow is an object: in a history of the counter its name is the five-tuple or any
/// other word.
pub type Flow = Object;
/// An event's kind in a history of replication.
pub type EventKind = AnyEvent<Replication>;
/// An event in a history of replication.
pub type Event = crate::event::Event<Replication>;
/// A history of replication.
pub type History = crate::event::History<Replication>;
/// An objection of a checker of replication.
pub type Violation = crate::checker::Violation<Replication>;

/// Protocol of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP, IP protocol 6.
    Tcp,
    /// UDP, IP protocol 17.
    Udp,
    /// ICMP, IP protocol 1: the identifier of an echo stands where others have a port.
    Icmp,
}

impl Protocol {
    /// By IP protocol number.
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            6 => Some(Self::Tcp),
            17 => Some(Self::Udp),
            1 => Some(Self::Icmp),
            _ => None,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Icmp => "icmp",
        })
    }
}

/// An address, a port and the protocol whose port it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// IPv4 address.
    pub address: Ipv4Addr,
    /// TCP or UDP port.
    pub port: u16,
    /// Transport protocol.
    pub protocol: Protocol,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}", self.address, self.port, self.protocol)
    }
}

/// Way of a packet through a NAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the inside to the outside: its source becomes the public endpoint.
    Outbound,
    /// From the outside to the inside: its destination becomes the inside endpoint.
    Inbound,
}

/// One start of one switch; it holds leases and loses them with its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Occupant {
    /// Number of the switch.
    pub switch: u32,
    /// Which start of it.
    pub incarnation: u32,
}

impl fmt::Display for Occupant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "switch {} (start {})", self.switch, self.incarnation)
    }
}

/// Writes that the replicas held at the moment at which an output left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Durability {
    /// Sequence number of the state that the output depends on.
    pub sequence: u32,
    /// For each replica from head to tail, the sequence number that it held; `None`
    /// without a record of the flow.
    pub held: Vec<Option<u32>>,
}

/// Output of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Released {
    /// The counter's value that the output carries, if it carries one; in the
    /// history of an [`Application`], what it makes of the packet.
    pub value: Option<u64>,
    /// The writes that were durable then, if the output depends on replicated state.
    pub durability: Option<Durability>,
}

/// Events of leases and of public ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateEvent {
    /// The store's tail granted a lease, or repeated a grant.
    Granted {
        /// To whom.
        to: Occupant,
        /// The flow.
        flow: Flow,
        /// Epoch of the grant.
        epoch: u32,
        /// True if others may hold one too.
        shared: bool,
    },
    /// A switch took a grant or a renewal for valid.
    Accepted {
        /// Who.
        by: Occupant,
        /// The flow.
        flow: Flow,
        /// Epoch of the grant.
        epoch: u32,
        /// True if others may hold one too.
        shared: bool,
        /// First µs of true time at which the holder's clock has reached its
        /// deadline.
        until: u64,
    },
    /// A switch processed a packet under a lease.
    Used {
        /// Who.
        by: Occupant,
        /// The flow.
        flow: Flow,
        /// Epoch of the grant.
        epoch: u32,
    },
    /// A switch gave its slot up before the lease had run out.
    Ended {
        /// Who.
        by: Occupant,
        /// The flow.
        flow: Flow,
    },
    /// A NAT rewrote a packet and released it.
    Translated {
        /// Number of the switch.
        switch: u32,
        /// Which way it went.
        direction: Direction,
        /// The endpoint inside.
        inside: Endpoint,
        /// The public endpoint.
        public: Endpoint,
        /// The one remote endpoint that the mapping serves; none of a mapping that serves all.
        remote: Option<Endpoint>,
    },
    /// A replica took a public endpoint out of the pool for a new mapping.
    Taken {
        /// Position of the replica.
        replica: u8,
        /// The endpoint inside.
        inside: Endpoint,
        /// The public endpoint.
        public: Endpoint,
        /// The one remote endpoint that the mapping serves; none of a mapping that serves all.
        remote: Option<Endpoint>,
    },
    /// A replica ended a mapping and gave its public endpoint back.
    Freed {
        /// Position of the replica.
        replica: u8,
        /// The public endpoint.
        public: Endpoint,
        /// The one remote endpoint that the mapping serves; none of a mapping that serves all.
        remote: Option<Endpoint>,
    },
    /// At the end, a replica has this mapping.
    Mapped {
        /// Position of the replica.
        replica: u8,
        /// The endpoint inside.
        inside: Endpoint,
        /// The public endpoint.
        public: Endpoint,
        /// The one remote endpoint that the mapping serves; none of a mapping that serves all.
        remote: Option<Endpoint>,
    },
    /// At the end, so many ports of an address are free.
    Remaining {
        /// Position of the replica.
        replica: u8,
        /// The public address.
        address: Ipv4Addr,
        /// Whose ports.
        protocol: Protocol,
        /// How many are free.
        free: u64,
    },
    /// At the end, a live switch has this flow in a slot, links having been whole
    /// long enough for every retransmission.
    Kept {
        /// Number of the switch.
        switch: u32,
        /// The flow.
        flow: Flow,
        /// Number of its newest state.
        sequence: u32,
        /// Number of its newest state that the store has acknowledged.
        acknowledged: u32,
    },
}

impl StateEvent {
    /// The flow that it is about, if it is about one.
    pub fn flow(&self) -> Option<&Flow> {
        match self {
            Self::Granted { flow, .. }
            | Self::Accepted { flow, .. }
            | Self::Used { flow, .. }
            | Self::Ended { flow, .. }
            | Self::Kept { flow, .. } => Some(flow),
            Self::Translated { .. }
            | Self::Taken { .. }
            | Self::Freed { .. }
            | Self::Mapped { .. }
            | Self::Remaining { .. } => None,
        }
    }

    /// The public endpoint that it is about, if it is about one.
    pub fn public(&self) -> Option<Endpoint> {
        match self {
            Self::Translated { public, .. }
            | Self::Taken { public, .. }
            | Self::Freed { public, .. }
            | Self::Mapped { public, .. } => Some(*public),
            _ => None,
        }
    }

    /// The inside endpoint that it is about, if it is about one.
    pub fn inside(&self) -> Option<Endpoint> {
        match self {
            Self::Translated { inside, .. }
            | Self::Taken { inside, .. }
            | Self::Mapped { inside, .. } => Some(*inside),
            _ => None,
        }
    }
}

/// Public ports from which mappings are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolRange {
    /// The public address.
    pub address: Ipv4Addr,
    /// Whose ports.
    pub protocol: Protocol,
    /// First port.
    pub first: u16,
    /// Last port.
    pub last: u16,
}

impl PoolRange {
    /// True if `endpoint` belongs to it.
    pub fn contains(&self, endpoint: &Endpoint) -> bool {
        endpoint.address == self.address
            && endpoint.protocol == self.protocol
            && (self.first..=self.last).contains(&endpoint.port)
    }

    /// How many ports it has.
    pub fn size(&self) -> u64 {
        (u64::from(self.last) + 1).saturating_sub(self.first.into())
    }
}

/// Facts of a run of switches whose state is replicated.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Replication {
    /// The pools of public ports. Where one is named, every translation needs a
    /// port that was taken from it.
    pub pools: Vec<PoolRange>,
    /// The application of the switches, where inputs have requests.
    pub application: Option<Application>,
}

/// Subject of a violation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A flow.
    Flow(Flow),
    /// An inside or public endpoint.
    Endpoint(Endpoint),
    /// A replica of the store.
    Replica(u8),
}

impl From<Flow> for Subject {
    fn from(flow: Flow) -> Self {
        Self::Flow(flow)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flow(flow) => write!(f, "flow {flow}"),
            Self::Endpoint(endpoint) => write!(f, "endpoint {endpoint}"),
            Self::Replica(replica) => write!(f, "replica {replica}"),
        }
    }
}

/// A call is a packet that a switch received (I_p of RedPlane, Definition 2), a return the
/// packet that it released for it (O_p). A duplicate made by the network is another packet.
impl System for Replication {
    /// The packet's request, in the terms of the history's [`Application`].
    type Request = Option<u64>;
    type Response = Released;
    type Message = Infallible;
    type Event = StateEvent;
    type Subject = Subject;

    fn concerns(subject: &Subject, event: &EventKind) -> bool {
        use StateEvent::{Freed, Mapped, Remaining, Taken};
        let state = match event {
            EventKind::Of(event) => Some(event),
            _ => None,
        };
        match subject {
            Subject::Flow(flow) => {
                let of_state = state.and_then(StateEvent::flow);
                event.object().or(of_state) == Some(flow)
            }
            Subject::Endpoint(endpoint) => state.is_some_and(|event| {
                let named = [event.public(), event.inside()];
                named.contains(&Some(*endpoint))
            }),
            Subject::Replica(of) => matches!(
                state,
                Some(
                    Taken { replica, .. }
                    | Freed { replica, .. }
                    | Mapped { replica, .. }
                    | Remaining { replica, .. }
                ) if replica == of
            ),
        }
    }
}

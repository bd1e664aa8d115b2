//! Classes of flows, and what makes the first state of one.

use std::collections::{BTreeMap, BTreeSet};

use core::net::Ipv4Addr;

use crate::creator::creator_of;
use crate::quota::Quota;
use crate::service::ServiceAt;

/// Settings of one flow class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassConfig {
    /// First byte of the keys of this class.
    pub class: u8,
    /// Bytes of state of each record.
    pub state_length: u16,
    /// Source of the state that a flow's first lease request gets.
    pub first_lease: FirstLease,
    /// True if all leases of the class are shared (rule 18).
    pub shared_only: bool,
    /// Times after which idle records expire.
    pub idle: IdleTimeouts,
    /// Maximum number of records of each tenant; `None`: limited by the room of the store alone.
    pub quota: Option<Quota>,
}

/// Source of the state of a flow that has no record when its lease is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstLease {
    /// A record of zero state is made.
    Zero,
    /// A public port is taken, and this record and the inbound one are made.
    NatOutbound {
        /// Class of the inbound record's key.
        inbound_class: u8,
    },
    /// The same for one remote endpoint alone, which both keys name: a public port serves many of
    /// them at once (rules 27 to 29).
    NatDependent {
        /// Class of the inbound record's key.
        inbound_class: u8,
        /// µs without a grant, renewal or write for which a mapping of TCP lives whose connection
        /// is not open, or has ended; one that is open lives for as long as the class says of TCP.
        tcp_transitory: u64,
    },
    /// A record is made whose state begins with the address and port of a server of the
    /// service that the key names, or of zero state if that service is not configured.
    /// Without a healthy server that has room, the request is refused with
    /// POOL_EXHAUSTED.
    Server {
        /// Position of the service's endpoint in the key.
        service_at: ServiceAt,
    },
    /// The request is refused with NO_RECORD.
    None,
}

/// Time for which a record lives without a grant, renewal or write, in µs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleTimeouts {
    /// Time for protocols that `by_protocol` does not list; `None`: unlimited.
    pub default: Option<u64>,
    /// By IP protocol, byte 1 of a NAT key.
    pub by_protocol: BTreeMap<u8, u64>,
    /// By what the state says, as far as a connection has come for instance. The first
    /// that matches counts before all others.
    pub in_state: Vec<StateTimeout>,
}

/// Time for which records with certain states live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateTimeout {
    /// Only with this IP protocol; `None`: with any.
    pub protocol: Option<u8>,
    /// Index of the state's byte that is compared, from 0.
    pub byte: u16,
    /// The values that it has then.
    pub values: BTreeSet<u8>,
    /// µs without a grant, renewal or write.
    pub timeout: u64,
}

impl IdleTimeouts {
    /// TCP 2 h 4 min (RFC 5382 REQ-5), everything else 5 min (RFC 4787 REQ-5).
    pub fn nat() -> IdleTimeouts {
        IdleTimeouts {
            default: Some(300_000_000),
            by_protocol: BTreeMap::from([(6, 7_440_000_000)]),
            in_state: Vec::new(),
        }
    }

    /// Never.
    pub fn never() -> IdleTimeouts {
        IdleTimeouts {
            default: None,
            by_protocol: BTreeMap::new(),
            in_state: Vec::new(),
        }
    }

    /// The timeout of `protocol` and `state` in µs; `None`: never.
    pub fn of(&self, protocol: u8, state: &[u8]) -> Option<u64> {
        let matches = |of: &&StateTimeout| {
            of.protocol.is_none_or(|only| only == protocol)
                && state
                    .get(usize::from(of.byte))
                    .is_some_and(|value| of.values.contains(value))
        };
        let in_state = self.in_state.iter().find(matches).map(|of| of.timeout);
        let by_protocol = || self.by_protocol.get(&protocol).copied();
        in_state.or_else(by_protocol).or(self.default)
    }
}

impl ClassConfig {
    /// True if the lifetime of a record or its assigned server depends on the written state.
    pub(crate) fn follows_state(&self) -> bool {
        !self.idle.in_state.is_empty()
            || creator_of(self).is_some_and(|creator| creator.follows_state())
    }
}

/// The public endpoints from which mappings are made (rule 22).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatPool {
    /// Public addresses.
    pub addresses: Vec<Ipv4Addr>,
    /// First port of each address and protocol, from 1.
    pub first_port: u16,
    /// Last port of each address and protocol.
    pub last_port: u16,
}

//! The applications that have no checker of their own: each is a small machine.
//!
//! A request and an output are numbers whose meaning the machine's module tells. An
//! input without a request belongs to no machine.

mod firewall;
mod key_value;
mod load_balancer;
mod object;
mod serving_gateway;
mod super_spreader;
mod syn_defence;

use crate::search::Program;
use std::fmt;

/// A program whose outputs can be told from its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Application {
    /// `apps/firewall`. A request has the TCP control bits (RFC 9293 3.1) in its
    /// lowest byte, bit 8 if the packet comes from outside, bit 9 if it is UDP. The
    /// output is 1: the packet passed.
    Firewall,
    /// `apps/key-value`. The two highest bits of a request are the operation (1
    /// read, 2 update, 3 delete), the others the value. The output is the value, with
    /// the highest bit set if there is one.
    KeyValue,
    /// `apps/sequencer`. Requests say nothing; the output is the number.
    Sequencer,
    /// `apps/object-routing`. The two highest bits of a request are the operation
    /// (1 read, 2 write, 3 held); bits 40 to 47 are the server that has the object from
    /// the start, of a read; bits 32 to 39 the server and bits 0 to 31 the version that
    /// it has, of what a server says. The output is the server in bits 32 to 39 and the
    /// version below. There are eight servers.
    ObjectRouting,
    /// `apps/load-balancer`. A request is 1 if it opens a connection, else 0. The
    /// output is the number of the server, from 1 to 8; those above 4 drain at one of
    /// the switches.
    LoadBalancer,
    /// `apps/serving-gateway`. The three highest bits of a request are 1 to create a
    /// session, 2 to move it, 3 to delete it, 4 for data from a base station and 5 for
    /// data to one; of the tunnels that are signalled, that to the base station is in
    /// bits 28 to 55, the other one below. The output of signalling is its status; that
    /// of data the tunnel, with bit 32 set.
    ServingGateway,
    /// `apps/syn-defence`. A request is 1 for a SYN, 2 for an acknowledgement that
    /// shows the cookie, 0 for other packets. The output is 1 for what passed, 2 for
    /// an answer with a cookie, 3 for a reset.
    SynDefence,
    /// `apps/super-spreader`. A request is the hash of the destination, below 64;
    /// the output is 1 for packets of sources with more than four of them, else 0.
    SuperSpreader,
    /// `apps/heavy-hitter`, whose packets neither wait nor read what is replicated:
    /// the output is 1. A request names the flow, by its tenant in the upper half and the
    /// CRC-32 of its five-tuple in the lower. What is recovered is not judged here.
    HeavyHitter,
}

/// The names for a message.
pub(crate) const APPLICATION_NAMES: &str = "firewall, key-value, sequencer, object-routing, load-balancer, serving-gateway, syn-defence, super-spreader and heavy-hitter";

impl Application {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Firewall,
        Self::KeyValue,
        Self::Sequencer,
        Self::ObjectRouting,
        Self::LoadBalancer,
        Self::ServingGateway,
        Self::SynDefence,
        Self::SuperSpreader,
        Self::HeavyHitter,
    ];

    /// Its name in texts, and of its folder in `apps`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Firewall => "firewall",
            Self::KeyValue => "key-value",
            Self::Sequencer => "sequencer",
            Self::ObjectRouting => "object-routing",
            Self::LoadBalancer => "load-balancer",
            Self::ServingGateway => "serving-gateway",
            Self::SynDefence => "syn-defence",
            Self::SuperSpreader => "super-spreader",
            Self::HeavyHitter => "heavy-hitter",
        }
    }

    /// The application of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.name() == name)
    }
}

impl fmt::Display for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Program for Application {
    type State = u128;
    type Input = u64;
    /// `None`: no packet leaves.
    type Output = Option<u64>;

    fn start(&self) -> u128 {
        0
    }

    fn steps(&self, state: &u128, request: &u64) -> Vec<(Option<u64>, u128)> {
        match self {
            Self::Firewall => vec![firewall::step(*state, *request)],
            Self::KeyValue => vec![key_value::step(*state, *request)],
            Self::Sequencer => vec![(Some((state + 1) as u64), state + 1)],
            Self::ObjectRouting => object::steps(*state, *request),
            Self::LoadBalancer => load_balancer::steps(*state, *request),
            Self::ServingGateway => vec![serving_gateway::step(*state, *request)],
            Self::SynDefence => syn_defence::steps(*state, *request),
            Self::SuperSpreader => vec![super_spreader::step(*state, *request)],
            Self::HeavyHitter => vec![(Some(1), 0)],
        }
    }
}

//! The frames of the port towards the store that a greeter has to see.

use std::net::Ipv4Addr;

use stateplane_switch::Port;
use stateplane_wire::greeting::is_greeting;
use stateplane_wire::{ipv4, replication};

use super::{ICMP, IP, MESSAGE, UDP};
use crate::switch::neighbours::Arp;

/// A frame at the port towards the store, as a greeter sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::switch) enum FrameKind {
    /// The program's alone.
    Other,
    /// It tells something of a head, and the program gets it too.
    Arp,
    /// As [`FrameKind::Arp`].
    Icmp,
    /// A greeting, which the program must not see.
    Greeting,
}

/// Tells apart which frames a greeter has to see, on threads that do not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::switch) struct GreetingFilter {
    /// Port towards the store.
    pub port: Port,
    /// The switch's address there.
    pub address: Ipv4Addr,
}

impl GreetingFilter {
    /// The kind of `frame`, which came to the port.
    pub(in crate::switch) fn kind_of(&self, frame: &[u8]) -> FrameKind {
        if Arp::of(frame).is_some() {
            return FrameKind::Arp;
        }
        if frame.len() < MESSAGE || frame[12..14] != [8, 0] || frame[IP] != 0x45 {
            return FrameKind::Other;
        }
        let protocol = frame[IP + 9];
        if protocol == ICMP {
            return FrameKind::Icmp;
        }
        let port = replication::PORT.to_be_bytes();
        let greets = protocol == ipv4::PROTOCOL_UDP
            && frame[UDP..UDP + 2] == port
            && frame[UDP + 2..UDP + 4] == port
            && frame[IP + 16..IP + 20] == self.address.octets()
            && is_greeting(&frame[MESSAGE..]);
        if greets {
            FrameKind::Greeting
        } else {
            FrameKind::Other
        }
    }
}

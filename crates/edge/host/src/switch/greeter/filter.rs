//! The frames of the port towards the store that a greeter has to see.

use std::net::Ipv4Addr;

use stateplane_switch::Port;
use stateplane_wire::greeting::is_greeting;
use stateplane_wire::replication::older;
use stateplane_wire::term::is_term;
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
    /// The answer to a heartbeat, or one of an older store, which the program must not see.
    Beat,
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
        let is_message = protocol == ipv4::PROTOCOL_UDP
            && frame[UDP..UDP + 2] == port
            && frame[UDP + 2..UDP + 4] == port
            && frame[IP + 16..IP + 20] == self.address.octets();
        let message = &frame[MESSAGE..];
        if is_message && is_greeting(message) {
            FrameKind::Greeting
        } else if is_message && (is_term(message) || message.first() == Some(&older::VERSION)) {
            FrameKind::Beat
        } else {
            FrameKind::Other
        }
    }
}

/// The sender of a frame that is a [`FrameKind::Greeting`] or [`FrameKind::Beat`], and the datagram.
pub(in crate::switch) fn datagram(frame: &[u8]) -> Option<(Ipv4Addr, &[u8])> {
    let length = usize::from(u16::from_be_bytes([frame[UDP + 4], frame[UDP + 5]]));
    let from = Ipv4Addr::new(
        frame[IP + 12],
        frame[IP + 13],
        frame[IP + 14],
        frame[IP + 15],
    );
    Some((from, frame.get(MESSAGE..UDP + length)?))
}

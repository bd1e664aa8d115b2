//! Datagrams of an engine as frames at the switch's control port, and back.

use stateplane_bench::frame;
use stateplane_wire::{ethernet, ipv4, sync, udp};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Address of the switch in the protocol.
pub const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);

/// A datagram that an engine sent, as a frame.
pub fn wrap(from: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
    frame::datagram(from, SocketAddrV4::new(SWITCH, sync::PORT), payload)
}

/// Receiver and payload of a datagram in a frame of the switch.
pub fn unwrap(frame: &[u8]) -> Option<(SocketAddrV4, &[u8])> {
    let ethernet = ethernet::Packet::new_checked(frame).ok()?;
    let datagram = ipv4::Packet::new_checked(ethernet.payload()).ok()?;
    let to = datagram.destination();
    let segment = udp::Packet::new_checked(datagram.payload()).ok()?;
    let to = SocketAddrV4::new(to, segment.destination_port());
    Some((to, segment.payload()))
}

//! Datagrams of an engine as frames at the switch's control port, and back.

use super::programs::SWITCH;
use stateplane_wire::{ethernet, ipv4, sync, udp};
use std::net::SocketAddrV4;

/// A datagram of the engine at `from`, as a frame; `None` if it is too long for one.
pub(super) fn wrap(from: SocketAddrV4, payload: &[u8]) -> Option<Vec<u8>> {
    let datagram = udp::Repr {
        source_port: from.port(),
        destination_port: sync::PORT,
        payload,
    };
    let datagram = datagram.to_vec(*from.ip(), SWITCH).ok()?;
    let packet = ipv4::Repr::new(*from.ip(), SWITCH, ipv4::PROTOCOL_UDP, &datagram);
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend_from_slice(&ethernet::TYPE_IPV4.to_be_bytes());
    frame.extend_from_slice(&packet.to_vec().ok()?);
    Some(frame)
}

/// Receiver and payload of the datagram in a frame of the switch.
pub(super) fn unwrap(frame: &[u8]) -> Option<(SocketAddrV4, &[u8])> {
    let ethernet = ethernet::Packet::new_checked(frame).ok()?;
    let packet = ipv4::Packet::new_checked(ethernet.payload()).ok()?;
    let datagram = udp::Packet::new_checked(packet.payload()).ok()?;
    let to = SocketAddrV4::new(packet.destination(), datagram.destination_port());
    Some((to, datagram.payload()))
}

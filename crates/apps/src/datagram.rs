//! Datagrams in frames, as hosts of simulations send and take them.

use core::net::SocketAddrV4;
use stateplane_wire::{ethernet, ipv4, udp};

/// A frame with a datagram.
pub fn frame(from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
    let datagram = udp::Repr {
        source_port: from.port(),
        destination_port: to.port(),
        payload,
    };
    let segment = datagram.to_vec(*from.ip(), *to.ip()).unwrap_or_default();
    let packet = ipv4::Repr::new(*from.ip(), *to.ip(), ipv4::PROTOCOL_UDP, &segment);
    let mut frame = vec![2; 12];
    frame.extend_from_slice(&ethernet::TYPE_IPV4.to_be_bytes());
    frame.extend(packet.to_vec().unwrap_or_default());
    frame
}

/// Sender, destination and bytes of the datagram in a frame; `None` if a host would not take it.
pub fn datagram(frame: &[u8]) -> Option<(SocketAddrV4, SocketAddrV4, &[u8])> {
    let ethernet = ethernet::Packet::new_checked(frame).ok()?;
    if ethernet.ethertype() != ethernet::TYPE_IPV4 {
        return None;
    }
    let packet = ipv4::Packet::new_checked(ethernet.payload()).ok()?;
    if !packet.verify_checksum() || packet.protocol() != ipv4::PROTOCOL_UDP {
        return None;
    }
    let (from, to) = (packet.source(), packet.destination());
    let segment = udp::Packet::new_checked(packet.payload()).ok()?;
    if !segment.verify_checksum(from, to) {
        return None;
    }
    Some((
        SocketAddrV4::new(from, segment.source_port()),
        SocketAddrV4::new(to, segment.destination_port()),
        segment.payload(),
    ))
}

//! Frames of hosts, and of the store to a switch.

use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_wire::{ethernet, ipv4, replication, tcp, udp};

const HOST: [u8; 6] = [2, 0, 0, 0, 0xb1, 1];
const SWITCH: [u8; 6] = [2, 0, 0, 0, 0xa1, 0];

/// A frame whose datagram carries `payload`.
fn frame(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let datagram = ipv4::Repr::new(from, to, protocol, payload)
        .to_vec()
        .expect("a datagram fits");
    let mut frame = Vec::with_capacity(ethernet::HEADER_LENGTH + datagram.len());
    frame.extend_from_slice(&SWITCH);
    frame.extend_from_slice(&HOST);
    frame.extend_from_slice(&ethernet::TYPE_IPV4.to_be_bytes());
    frame.extend_from_slice(&datagram);
    frame
}

/// A TCP segment of an open connection in a frame of `length` bytes, at least 54.
pub fn tcp(source: SocketAddrV4, destination: SocketAddrV4, length: usize) -> Vec<u8> {
    let headers = ethernet::HEADER_LENGTH + ipv4::HEADER_LENGTH + tcp::HEADER_LENGTH;
    let payload = vec![0x5a; length.saturating_sub(headers)];
    let segment = tcp::Repr {
        source_port: source.port(),
        destination_port: destination.port(),
        sequence: 1000,
        acknowledgement: 2000,
        control: tcp::control::ACK,
        window: 8192,
        urgent: 0,
        options: &[],
        payload: &payload,
    };
    let (from, to) = (*source.ip(), *destination.ip());
    let segment = segment.to_vec(from, to).expect("a segment fits");
    frame(from, to, ipv4::PROTOCOL_TCP, &segment)
}

/// A UDP datagram in a frame of `length` bytes, at least 42.
pub fn udp(source: SocketAddrV4, destination: SocketAddrV4, length: usize) -> Vec<u8> {
    let headers = ethernet::HEADER_LENGTH + ipv4::HEADER_LENGTH + udp::HEADER_LENGTH;
    let payload = vec![0x5a; length.saturating_sub(headers)];
    let datagram = udp::Repr {
        source_port: source.port(),
        destination_port: destination.port(),
        payload: &payload,
    };
    let (from, to) = (*source.ip(), *destination.ip());
    let datagram = datagram.to_vec(from, to).expect("a datagram fits");
    frame(from, to, ipv4::PROTOCOL_UDP, &datagram)
}

/// A message of the store at `from` to a switch.
pub fn message(from: Ipv4Addr, to: SocketAddrV4, message: &[u8]) -> Vec<u8> {
    datagram(SocketAddrV4::new(from, replication::PORT), to, message)
}

/// A UDP datagram with `payload`.
pub fn datagram(from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
    let datagram = udp::Repr {
        source_port: from.port(),
        destination_port: to.port(),
        payload,
    };
    let (from, to) = (*from.ip(), *to.ip());
    let datagram = datagram.to_vec(from, to).expect("a datagram fits");
    frame(from, to, ipv4::PROTOCOL_UDP, &datagram)
}

/// Sender of the message in a frame to the store, and the message.
///
/// # Panics
///
/// If there is none.
pub fn message_in(frame: &[u8]) -> (SocketAddrV4, &[u8]) {
    let ethernet = ethernet::Packet::new_checked(frame).expect("Ethernet");
    let datagram = ipv4::Packet::new_checked(ethernet.payload()).expect("IPv4");
    let segment = udp::Packet::new_checked(datagram.payload()).expect("UDP");
    assert_eq!(segment.destination_port(), replication::PORT);
    let from = SocketAddrV4::new(datagram.source(), segment.source_port());
    (from, segment.payload())
}

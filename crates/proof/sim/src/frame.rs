//! Frames as hosts, switches and the store send them, and the addresses of all.

use core::net::{Ipv4Addr, SocketAddrV4};
pub(crate) use stateplane_apps::{INSIDE_PORT, OUTSIDE_PORT, number_in};
use stateplane_apps::{Segment, number_mark};
use stateplane_wire::replication::{PORT, Packet};
use stateplane_wire::{ethernet, ipv4, tcp, udp};

/// Port of a switch that faces the store; programs have the ports below [`DATA_PORTS`].
pub(crate) const STORE_PORT: u16 = 300;
/// Ports that programs may have for their hosts.
pub(crate) const DATA_PORTS: u16 = 256;
/// MTU of the path to the store, in bytes.
pub(crate) const STORE_MTU: u16 = 1700;

/// Address of the first store server, which is the head where the chain is fixed.
pub(crate) const HEAD_ADDRESS: Ipv4Addr = store_address(0);
pub(crate) const HOST_MAC: [u8; 6] = [2, 0, 0, 0, 2, 1];
/// Offset of the message in a frame between switch and store.
pub(crate) const MESSAGE_AT: usize =
    ethernet::HEADER_LENGTH + ipv4::HEADER_LENGTH + udp::HEADER_LENGTH;
/// The NAT's public address.
pub(crate) const PUBLIC_ADDRESS: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);

/// Address of a store server for switches.
pub(crate) const fn store_address(store: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 255, 1, store as u8 + 1)
}

/// The Ethernet address of the server at `address`.
pub(crate) const fn store_mac(address: Ipv4Addr) -> [u8; 6] {
    let [.., number] = address.octets();
    [2, 0, 0, 0, 1, number]
}

/// Address of a switch in the protocol network.
pub(crate) const fn switch_address(switch: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 255, 0, switch as u8)
}

pub(crate) const fn switch_mac(switch: u32) -> [u8; 6] {
    [2, 0, 0, 0, 0, switch as u8]
}

fn in_ethernet(destination: [u8; 6], source: [u8; 6], datagram: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(ethernet::HEADER_LENGTH + datagram.len());
    frame.extend_from_slice(&destination);
    frame.extend_from_slice(&source);
    frame.extend_from_slice(&ethernet::TYPE_IPV4.to_be_bytes());
    frame.extend_from_slice(datagram);
    frame
}

fn in_ipv4(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    ipv4::Repr::new(from, to, protocol, payload)
        .to_vec()
        .unwrap_or_default()
}

/// A frame with a message from the store server at `from` to a switch.
pub(crate) fn message_to_switch(from: Ipv4Addr, to: SocketAddrV4, message: &[u8]) -> Vec<u8> {
    let datagram = udp::Repr {
        source_port: PORT,
        destination_port: to.port(),
        payload: message,
    };
    let segment = datagram.to_vec(from, *to.ip()).unwrap_or_default();
    let [.., switch] = to.ip().octets();
    in_ethernet(
        switch_mac(switch.into()),
        store_mac(from),
        &in_ipv4(from, *to.ip(), ipv4::PROTOCOL_UDP, &segment),
    )
}

/// A frame with a message from a switch to the store server at `to`.
pub(crate) fn message_to_store(switch: u32, to: Ipv4Addr, message: &[u8]) -> Vec<u8> {
    let from = switch_address(switch);
    let datagram = udp::Repr {
        source_port: PORT,
        destination_port: PORT,
        payload: message,
    };
    let segment = datagram.to_vec(from, to).unwrap_or_default();
    in_ethernet(
        store_mac(to),
        switch_mac(switch),
        &in_ipv4(from, to, ipv4::PROTOCOL_UDP, &segment),
    )
}

/// The sender, the address it is for, and the bytes of the message in a frame between
/// switch and store; `None` if a host would not take the frame for one.
pub(crate) fn message_in(frame: &[u8]) -> Option<(SocketAddrV4, Ipv4Addr, &[u8])> {
    let ethernet = ethernet::Packet::new_checked(frame).ok()?;
    if ethernet.ethertype() != ethernet::TYPE_IPV4 {
        return None;
    }
    let datagram = ipv4::Packet::new_checked(ethernet.payload()).ok()?;
    let (from, to) = (datagram.source(), datagram.destination());
    if !datagram.verify_checksum() || datagram.protocol() != ipv4::PROTOCOL_UDP {
        return None;
    }
    let segment = udp::Packet::new_checked(datagram.payload()).ok()?;
    if segment.destination_port() != PORT || !segment.verify_checksum(from, to) {
        return None;
    }
    Some((
        SocketAddrV4::new(from, segment.source_port()),
        to,
        segment.payload(),
    ))
}

/// Like [`message_in`], with the message parsed.
pub(crate) fn checked_message_in(frame: &[u8]) -> Option<(SocketAddrV4, Packet<'_>)> {
    let (from, _, message) = message_in(frame)?;
    Some((from, Packet::new_checked(message).ok()?))
}

/// Bytes of payload of each packet between hosts.
pub(crate) const PAYLOAD_LENGTH: usize = 24;

/// Payload of a packet between hosts: the packet's number, and room for a number that a sequencer
/// writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HostPacket {
    pub(crate) protocol: u8,
    pub(crate) source: SocketAddrV4,
    pub(crate) destination: SocketAddrV4,
    /// First 8 bytes of the payload.
    pub(crate) value: u64,
    /// The packet's number, in the second and, inverted, in the last 8 bytes.
    pub(crate) number: u64,
}

/// A frame with `datagram` from a host to a switch, with or without an IEEE 802.1Q tag.
pub(crate) fn host_frame(switch: u32, tag: &[u8], datagram: &[u8]) -> Vec<u8> {
    let mut frame = in_ethernet(switch_mac(switch), HOST_MAC, datagram);
    let kind = ethernet::HEADER_LENGTH - 2;
    frame.splice(kind..kind, tag.iter().copied());
    frame
}

impl HostPacket {
    pub(crate) fn to_frame(self, switch: u32) -> Vec<u8> {
        let mut payload = Vec::with_capacity(PAYLOAD_LENGTH);
        payload.extend_from_slice(&self.value.to_be_bytes());
        payload.extend_from_slice(&number_mark(self.number));
        let segment = Segment {
            protocol: self.protocol,
            source: self.source,
            destination: self.destination,
            control: tcp::control::ACK | tcp::control::PSH,
            sequence: self.number as u32,
            acknowledgement: 0,
            payload,
        };
        host_frame(switch, &[], &segment.to_datagram())
    }

    /// Reads the packet in `frame`; `None` if a host would drop it, wrong checksums included.
    pub(crate) fn read(frame: &[u8]) -> Option<Self> {
        let segment = Segment::read(frame)?;
        let payload: [u8; PAYLOAD_LENGTH] = segment.payload.try_into().ok()?;
        let (value, _) = payload.split_first_chunk::<8>()?;
        Some(Self {
            protocol: segment.protocol,
            source: segment.source,
            destination: segment.destination,
            value: u64::from_be_bytes(*value),
            number: number_in(&payload)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_and_messages_are_read_back() {
        for protocol in [ipv4::PROTOCOL_TCP, ipv4::PROTOCOL_UDP] {
            let packet = HostPacket {
                protocol,
                source: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4000),
                destination: SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 1), 5000),
                value: 3,
                number: 77,
            };
            let mut frame = packet.to_frame(1);
            assert_eq!(HostPacket::read(&frame), Some(packet));
            let last = frame.len() - 1;
            frame[last] ^= 1;
            assert_eq!(HostPacket::read(&frame), None);
        }
        let to = SocketAddrV4::new(switch_address(2), PORT);
        let frame = message_to_switch(HEAD_ADDRESS, to, b"message");
        let from = SocketAddrV4::new(HEAD_ADDRESS, PORT);
        assert_eq!(message_in(&frame), Some((from, *to.ip(), &b"message"[..])));
        let store = store_address(1);
        let frame = message_to_store(2, store, b"question");
        assert_eq!(message_in(&frame), Some((to, store, &b"question"[..])));
    }
}

//! Datagrams as hosts send and read them.

use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_wire::{checksum, ethernet, ipv4, tcp, udp};

/// Types of ICMP messages (RFC 792).
const ECHO_REPLY: u8 = 0;
const ECHO: u8 = 8;
/// Bytes of ICMP in front of what an echo carries.
const ECHO_HEADER: usize = 8;

/// A TCP segment, a UDP datagram, or an ICMP echo or its reply in IPv4, as hosts send and read it.
/// The identifier of an echo is the port of its sender; the other port is 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// IP protocol number.
    pub protocol: u8,
    /// Source of the segment.
    pub source: SocketAddrV4,
    /// Destination of the segment.
    pub destination: SocketAddrV4,
    /// Control bits of TCP, 0 in UDP.
    pub control: u8,
    /// TCP's sequence number; this and the next are 0 in UDP.
    pub sequence: u32,
    /// Next sequence number that the sender expects.
    pub acknowledgement: u32,
    /// Payload of the segment.
    pub payload: Vec<u8>,
}

impl Segment {
    /// The datagram that carries it.
    pub fn to_datagram(&self) -> Vec<u8> {
        let (from, to) = (*self.source.ip(), *self.destination.ip());
        let segment = if self.protocol == ipv4::PROTOCOL_TCP {
            let segment = tcp::Repr {
                source_port: self.source.port(),
                destination_port: self.destination.port(),
                sequence: self.sequence,
                acknowledgement: self.acknowledgement,
                control: self.control,
                window: 8192,
                urgent: 0,
                options: &[],
                payload: &self.payload,
            };
            segment.to_vec(from, to)
        } else if self.protocol == ipv4::PROTOCOL_ICMP {
            Ok(self.to_echo())
        } else {
            let datagram = udp::Repr {
                source_port: self.source.port(),
                destination_port: self.destination.port(),
                payload: &self.payload,
            };
            datagram.to_vec(from, to)
        };
        in_ipv4(from, to, self.protocol, &segment.unwrap_or_default())
    }

    /// Reply to the port that the request names.
    fn to_echo(&self) -> Vec<u8> {
        let (kind, identifier) = match self.source.port() {
            0 => (ECHO_REPLY, self.destination.port()),
            asking => (ECHO, asking),
        };
        let mut message = vec![0; ECHO_HEADER];
        message[0] = kind;
        message[4..6].copy_from_slice(&identifier.to_be_bytes());
        message.extend_from_slice(&self.payload);
        let checksum = checksum::of(&message);
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        message
    }

    /// An echo or its reply.
    fn read_echo(from: Ipv4Addr, to: Ipv4Addr, message: &[u8]) -> Option<Self> {
        let (header, payload) = message.split_first_chunk::<ECHO_HEADER>()?;
        if checksum::of(message) != 0 || header[1] != 0 {
            return None;
        }
        let identifier = u16::from_be_bytes([header[4], header[5]]);
        let (asking, asked) = match header[0] {
            ECHO => (identifier, 0),
            ECHO_REPLY => (0, identifier),
            _ => return None,
        };
        Some(Self {
            protocol: ipv4::PROTOCOL_ICMP,
            source: SocketAddrV4::new(from, asking),
            destination: SocketAddrV4::new(to, asked),
            control: 0,
            sequence: 0,
            acknowledgement: 0,
            payload: payload.to_vec(),
        })
    }

    /// Reads `frame`; `None` if a host would drop it, wrong checksums included.
    pub fn read(frame: &[u8]) -> Option<Self> {
        let ethernet = ethernet::Packet::new_checked(frame).ok()?;
        if ethernet.ethertype() != ethernet::TYPE_IPV4 {
            return None;
        }
        Self::read_datagram(ethernet.payload())
    }

    /// Reads an IPv4 datagram; see [`read`](Self::read).
    pub fn read_datagram(datagram: &[u8]) -> Option<Self> {
        let datagram = ipv4::Packet::new_checked(datagram).ok()?;
        let datagram = ipv4::Repr::parse(&datagram).ok()?;
        let (from, to) = (datagram.source, datagram.destination);
        let protocol = datagram.protocol;
        match protocol {
            ipv4::PROTOCOL_TCP => {
                let segment = tcp::Packet::new_checked(datagram.payload).ok()?;
                let segment = tcp::Repr::parse(&segment, from, to).ok()?;
                Some(Self {
                    protocol,
                    source: SocketAddrV4::new(from, segment.source_port),
                    destination: SocketAddrV4::new(to, segment.destination_port),
                    control: segment.control,
                    sequence: segment.sequence,
                    acknowledgement: segment.acknowledgement,
                    payload: segment.payload.to_vec(),
                })
            }
            ipv4::PROTOCOL_UDP => {
                let segment = udp::Packet::new_checked(datagram.payload).ok()?;
                let segment = udp::Repr::parse(&segment, from, to).ok()?;
                Some(Self {
                    protocol,
                    source: SocketAddrV4::new(from, segment.source_port),
                    destination: SocketAddrV4::new(to, segment.destination_port),
                    control: 0,
                    sequence: 0,
                    acknowledgement: 0,
                    payload: segment.payload.to_vec(),
                })
            }
            ipv4::PROTOCOL_ICMP => Self::read_echo(from, to, datagram.payload),
            _ => None,
        }
    }
}

/// The end of every payload: the packet's number, and the same inverted.
pub fn number_mark(number: u64) -> [u8; 16] {
    let mut mark = [0; 16];
    mark[..8].copy_from_slice(&number.to_be_bytes());
    mark[8..].copy_from_slice(&(!number).to_be_bytes());
    mark
}

/// The number of a host's packet by the mark at the end of its frame.
pub fn number_in(frame: &[u8]) -> Option<u64> {
    let (_, mark) = frame.split_last_chunk::<16>()?;
    let (number, _) = mark.split_first_chunk::<8>()?;
    let number = u64::from_be_bytes(*number);
    (*mark == number_mark(number)).then_some(number)
}

fn in_ipv4(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    ipv4::Repr::new(from, to, protocol, payload)
        .to_vec()
        .unwrap_or_default()
}

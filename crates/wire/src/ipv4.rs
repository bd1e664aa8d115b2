//! IPv4 (RFC 791).

use core::net::Ipv4Addr;

use crate::error::{at_least, exactly, split};
use crate::table::header;
use crate::value::Value;
use crate::{Error, Header, checksum};

header! {
    layout pub LAYOUT = "IPv4", then "options, up to the header's length; then the payload";
    length pub HEADER_LENGTH = 20;
    /// Meaning of a datagram.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Repr<'a> {
        /// True if fragmenting is forbidden.
        dont_fragment: bool,
        /// True if fragments follow.
        more_fragments: bool,
        /// Options, a multiple of 4 and at most 40 bytes.
        options: &'a [u8],
        /// Payload of the datagram.
        payload: &'a [u8],
    }
    offsets field;
    view Packet;
    may_not_fit Ipv4;
    fields {
        VERSION          4 (version: u8)         => "4";
        IHL              4 (ihl: usize)          => "header length in 32-bit words";
        DIFFSERV         8  traffic_class: u8    =>
            "differentiated services and congestion notification";
        TOTAL_LENGTH    16 (total_length: usize) => "bytes of header and payload";
        IDENTIFICATION  16  identification: u16  => "identification of the datagram's fragments";
        FLAGS            3 (flags: u8)           => "0, don't fragment, more fragments";
        FRAGMENT_OFFSET 13  fragment_offset: u16 =>
            "place of the payload in the whole datagram, in units of 8 bytes";
        TTL              8  ttl: u8              => "hops left";
        PROTOCOL         8  protocol: u8         => "protocol of the payload";
        CHECKSUM        16 (checksum: u16)       => "checksum of the header";
        SOURCE          32  source: Ipv4Addr     => "source address";
        DESTINATION     32  destination: Ipv4Addr => "destination address";
    }
}

/// Protocol number of ICMP.
pub const PROTOCOL_ICMP: u8 = 1;

/// Protocol number of TCP.
pub const PROTOCOL_TCP: u8 = 6;

/// Protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;

const DONT_FRAGMENT: u8 = 2;
const MORE_FRAGMENTS: u8 = 1;

/// A view over one datagram. Bytes after the total length (a frame's padding)
/// are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    header: &'a [u8; HEADER_LENGTH],
}

impl<'a> Packet<'a> {
    /// Checks version and lengths, not the checksum.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`], [`Error::Version`] or [`Error::LengthField`].
    pub fn new_checked(bytes: &'a [u8]) -> Result<Packet<'a>, Error> {
        let header = Header::Ipv4;
        let packet = Packet {
            bytes,
            header: split(header, bytes)?.0,
        };
        let version = packet.version();
        if version != 4 {
            return Err(Error::Version {
                header,
                found: version,
            });
        }
        let header_length = packet.header_length();
        if header_length < HEADER_LENGTH {
            return Err(Error::LengthField {
                header,
                stated: header_length,
                least: HEADER_LENGTH,
            });
        }
        let total_length = packet.total_length();
        if total_length < header_length {
            return Err(Error::LengthField {
                header,
                stated: total_length,
                least: header_length,
            });
        }
        at_least(header, bytes, total_length)?;
        Ok(Packet {
            bytes: &bytes[..total_length],
            ..packet
        })
    }

    fn header_length(&self) -> usize {
        self.ihl() * 4
    }

    /// True if fragmenting is forbidden.
    pub fn dont_fragment(&self) -> bool {
        self.flags() & DONT_FRAGMENT != 0
    }

    /// True if fragments follow.
    pub fn more_fragments(&self) -> bool {
        self.flags() & MORE_FRAGMENTS != 0
    }

    /// Options, with their padding.
    pub fn options(&self) -> &'a [u8] {
        &self.bytes[HEADER_LENGTH..self.header_length()]
    }

    /// Payload of the datagram.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_length()..]
    }

    /// True if the header's checksum is right.
    pub fn verify_checksum(&self) -> bool {
        checksum::of(&self.bytes[..self.header_length()]) == 0
    }
}

impl<'a> Repr<'a> {
    /// A whole datagram without options, with a time to live of 64.
    pub fn new(
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: u8,
        payload: &'a [u8],
    ) -> Repr<'a> {
        Repr {
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            protocol,
            source,
            destination,
            options: &[],
            payload,
        }
    }

    /// Reads every field of a checked datagram. The reserved flag is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] if the header's checksum is wrong.
    pub fn parse(packet: &Packet<'a>) -> Result<Repr<'a>, Error> {
        if !packet.verify_checksum() {
            return Err(Error::Checksum {
                header: Header::Ipv4,
            });
        }
        Ok(Repr::from_header(
            packet.header,
            packet.dont_fragment(),
            packet.more_fragments(),
            packet.options(),
            packet.payload(),
        ))
    }

    /// Bytes of the datagram.
    pub fn buffer_len(&self) -> usize {
        HEADER_LENGTH + self.options.len() + self.payload.len()
    }

    /// Writes the datagram into `buffer`, with its checksum.
    ///
    /// # Errors
    ///
    /// [`Error::Buffer`] unless `buffer` is [`Repr::buffer_len`] long;
    /// [`Error::Unrepresentable`] for a total of more than 65535 bytes, a
    /// fragment offset beyond 13 bits, or options of a wrong length.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let header = Header::Ipv4;
        exactly(header, buffer, self.buffer_len())?;
        if !self.options.len().is_multiple_of(4) || self.options.len() > 40 {
            return Err(Error::Unrepresentable {
                header,
                field: "ihl",
            });
        }
        let header_length = HEADER_LENGTH + self.options.len();
        let flags = (u8::from(self.dont_fragment) * DONT_FRAGMENT)
            | (u8::from(self.more_fragments) * MORE_FRAGMENTS);
        let fixed = self.header_bytes(4, header_length / 4, buffer.len(), flags, 0)?;
        buffer[..HEADER_LENGTH].copy_from_slice(&fixed);
        buffer[HEADER_LENGTH..header_length].copy_from_slice(self.options);
        buffer[header_length..].copy_from_slice(self.payload);
        let sum = checksum::of(&buffer[..header_length]);
        sum.write(buffer, field::CHECKSUM * 8, 16);
        Ok(())
    }

    /// The datagram as bytes of its own.
    ///
    /// # Errors
    ///
    /// As [`Repr::emit`].
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; self.buffer_len()];
        self.emit(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn example() -> Repr<'static> {
        Repr::new(
            Ipv4Addr::new(10, 0, 0, 1),
            Ipv4Addr::new(203, 0, 113, 9),
            PROTOCOL_UDP,
            b"payload",
        )
    }

    #[test]
    fn padding_after_the_total_length_is_left_out() {
        let mut bytes = example().to_vec().unwrap();
        bytes.extend([0; 9]);
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!(Repr::parse(&packet), Ok(example()));
    }

    #[test]
    fn a_changed_header_bit_is_seen() {
        let bytes = example().to_vec().unwrap();
        for bit in 0..HEADER_LENGTH * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let refused = match Packet::new_checked(&changed) {
                Ok(packet) => Repr::parse(&packet).is_err(),
                Err(_) => true,
            };
            assert!(refused, "bit {bit}");
        }
    }

    #[test]
    fn every_truncation_is_refused() {
        let bytes = example().to_vec().unwrap();
        for length in 0..bytes.len() {
            assert_eq!(
                Packet::new_checked(&bytes[..length]).unwrap_err().code(),
                "WIRE001"
            );
        }
    }

    #[test]
    fn lengths_that_contradict_are_refused() {
        let mut bytes = example().to_vec().unwrap();
        bytes[field::VERSION] = 0x44;
        assert_eq!(Packet::new_checked(&bytes).unwrap_err().code(), "WIRE005");
        bytes[field::VERSION] = 0x4f;
        assert_eq!(Packet::new_checked(&bytes).unwrap_err().code(), "WIRE005");
        bytes[field::VERSION] = 0x65;
        assert_eq!(Packet::new_checked(&bytes).unwrap_err().code(), "WIRE003");
    }

    #[test]
    fn what_does_not_fit_is_not_emitted() {
        let long = vec![0; 65_536];
        for wrong in [
            Repr {
                payload: &long,
                ..example()
            },
            Repr {
                fragment_offset: 0x2000,
                ..example()
            },
            Repr {
                options: &[0; 3],
                ..example()
            },
            Repr {
                options: &[0; 44],
                ..example()
            },
        ] {
            assert_eq!(wrong.to_vec().unwrap_err().code(), "WIRE007");
        }
        assert_eq!(example().emit(&mut [0; 5]).unwrap_err().code(), "WIRE008");
    }

    proptest! {
        #[test]
        fn parse_of_emit_is_the_same(
            traffic_class: u8, identification: u16, dont_fragment: bool, more_fragments: bool,
            fragment_offset in 0u16..0x2000, ttl: u8, protocol: u8, source: u32, destination: u32,
            words in 0..=10usize, payload in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let options = vec![1; words * 4];
            let repr = Repr {
                traffic_class, identification, dont_fragment, more_fragments, fragment_offset, ttl,
                protocol, source: source.into(), destination: destination.into(),
                options: &options, payload: &payload,
            };
            let bytes = repr.to_vec().unwrap();
            prop_assert_eq!(Repr::parse(&Packet::new_checked(&bytes).unwrap()), Ok(repr));
        }

        #[test]
        fn any_bytes_give_a_view_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..80), first: bool) {
            let mut bytes = bytes;
            if first && !bytes.is_empty() {
                bytes[0] = 0x45;
            }
            if let Ok(packet) = Packet::new_checked(&bytes) {
                let _ = Repr::parse(&packet);
                let _ = (packet.options(), packet.payload());
            }
        }
    }
}

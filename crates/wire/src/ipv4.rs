//! IPv4 (RFC 791).

use core::net::Ipv4Addr;

use crate::big_endian::{get_array, get_u16, put};
use crate::error::{at_least, exactly};
use crate::{Error, Header, checksum};

/// Length in bytes of a header without options.
pub const HEADER_LENGTH: usize = 20;

/// Protocol number of ICMP.
pub const PROTOCOL_ICMP: u8 = 1;

/// Protocol number of TCP.
pub const PROTOCOL_TCP: u8 = 6;

/// Protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;

/// Where each field begins, in bytes.
pub mod field {
    /// 1 byte: version (4) and header length in 32-bit words.
    pub const VERSION_LENGTH: usize = 0;
    /// 1 byte: differentiated services and congestion notification.
    pub const TRAFFIC_CLASS: usize = 1;
    /// 2 bytes: bytes of header and payload.
    pub const TOTAL_LENGTH: usize = 2;
    /// 2 bytes: identification.
    pub const IDENTIFICATION: usize = 4;
    /// 2 bytes: three flags and the fragment offset in units of 8 bytes.
    pub const FRAGMENT: usize = 6;
    /// 1 byte: time to live.
    pub const TTL: usize = 8;
    /// 1 byte: protocol of the payload.
    pub const PROTOCOL: usize = 9;
    /// 2 bytes: header checksum.
    pub const CHECKSUM: usize = 10;
    /// 4 bytes: source address.
    pub const SOURCE: usize = 12;
    /// 4 bytes: destination address.
    pub const DESTINATION: usize = 16;
    /// Options, up to the header's length; then the payload.
    pub const OPTIONS: usize = 20;
}

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;

/// A view over one datagram. Bytes after the total length (a frame's padding)
/// are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    header_length: usize,
}

impl<'a> Packet<'a> {
    /// Checks version and lengths, not the checksum.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`], [`Error::Version`] or [`Error::LengthField`].
    pub fn new_checked(bytes: &'a [u8]) -> Result<Packet<'a>, Error> {
        let header = Header::Ipv4;
        at_least(header, bytes, HEADER_LENGTH)?;
        let version = bytes[field::VERSION_LENGTH] >> 4;
        if version != 4 {
            return Err(Error::Version {
                header,
                found: version,
            });
        }
        let header_length = usize::from(bytes[field::VERSION_LENGTH] & 0xf) * 4;
        if header_length < HEADER_LENGTH {
            return Err(Error::LengthField {
                header,
                stated: header_length,
                least: HEADER_LENGTH,
            });
        }
        let total_length = usize::from(get_u16(bytes, field::TOTAL_LENGTH));
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
            header_length,
        })
    }

    /// Differentiated services and congestion notification.
    pub fn traffic_class(&self) -> u8 {
        self.bytes[field::TRAFFIC_CLASS]
    }

    /// Identification of the datagram's fragments.
    pub fn identification(&self) -> u16 {
        get_u16(self.bytes, field::IDENTIFICATION)
    }

    /// Whether fragmenting is forbidden.
    pub fn dont_fragment(&self) -> bool {
        get_u16(self.bytes, field::FRAGMENT) & DONT_FRAGMENT != 0
    }

    /// Whether fragments follow.
    pub fn more_fragments(&self) -> bool {
        get_u16(self.bytes, field::FRAGMENT) & MORE_FRAGMENTS != 0
    }

    /// Place of the payload in the whole datagram, in units of 8 bytes.
    pub fn fragment_offset(&self) -> u16 {
        get_u16(self.bytes, field::FRAGMENT) & OFFSET_MASK
    }

    /// Hops left.
    pub fn ttl(&self) -> u8 {
        self.bytes[field::TTL]
    }

    /// Protocol of the payload.
    pub fn protocol(&self) -> u8 {
        self.bytes[field::PROTOCOL]
    }

    /// Source address.
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from(get_array::<4>(self.bytes, field::SOURCE))
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from(get_array::<4>(self.bytes, field::DESTINATION))
    }

    /// Options, with their padding.
    pub fn options(&self) -> &'a [u8] {
        &self.bytes[field::OPTIONS..self.header_length]
    }

    /// What the datagram carries.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_length..]
    }

    /// Whether the header's checksum is right.
    pub fn verify_checksum(&self) -> bool {
        checksum::of(&self.bytes[..self.header_length]) == 0
    }
}

/// What a datagram means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr<'a> {
    /// Differentiated services and congestion notification.
    pub traffic_class: u8,
    /// Identification of the datagram's fragments.
    pub identification: u16,
    /// Whether fragmenting is forbidden.
    pub dont_fragment: bool,
    /// Whether fragments follow.
    pub more_fragments: bool,
    /// Place of the payload in the whole datagram, in units of 8 bytes, below 8192.
    pub fragment_offset: u16,
    /// Hops left.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Options, a multiple of 4 and at most 40 bytes.
    pub options: &'a [u8],
    /// What the datagram carries.
    pub payload: &'a [u8],
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
        Ok(Repr {
            traffic_class: packet.traffic_class(),
            identification: packet.identification(),
            dont_fragment: packet.dont_fragment(),
            more_fragments: packet.more_fragments(),
            fragment_offset: packet.fragment_offset(),
            ttl: packet.ttl(),
            protocol: packet.protocol(),
            source: packet.source(),
            destination: packet.destination(),
            options: packet.options(),
            payload: packet.payload(),
        })
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
        let unrepresentable = |field| Error::Unrepresentable { header, field };
        let total_length =
            u16::try_from(buffer.len()).map_err(|_| unrepresentable("total length"))?;
        if self.fragment_offset > OFFSET_MASK {
            return Err(unrepresentable("fragment offset"));
        }
        if !self.options.len().is_multiple_of(4) || self.options.len() > 40 {
            return Err(unrepresentable("header length"));
        }
        let header_length = HEADER_LENGTH + self.options.len();
        let mut fragment = self.fragment_offset;
        if self.dont_fragment {
            fragment |= DONT_FRAGMENT;
        }
        if self.more_fragments {
            fragment |= MORE_FRAGMENTS;
        }
        buffer[field::VERSION_LENGTH] = 0x40 | (header_length / 4) as u8;
        buffer[field::TRAFFIC_CLASS] = self.traffic_class;
        put(buffer, field::TOTAL_LENGTH, &total_length.to_be_bytes());
        put(
            buffer,
            field::IDENTIFICATION,
            &self.identification.to_be_bytes(),
        );
        put(buffer, field::FRAGMENT, &fragment.to_be_bytes());
        buffer[field::TTL] = self.ttl;
        buffer[field::PROTOCOL] = self.protocol;
        put(buffer, field::CHECKSUM, &[0, 0]);
        put(buffer, field::SOURCE, &self.source.octets());
        put(buffer, field::DESTINATION, &self.destination.octets());
        put(buffer, field::OPTIONS, self.options);
        put(buffer, header_length, self.payload);
        let sum = checksum::of(&buffer[..header_length]);
        put(buffer, field::CHECKSUM, &sum.to_be_bytes());
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
        bytes[field::VERSION_LENGTH] = 0x44;
        assert_eq!(Packet::new_checked(&bytes).unwrap_err().code(), "WIRE005");
        bytes[field::VERSION_LENGTH] = 0x4f;
        assert_eq!(Packet::new_checked(&bytes).unwrap_err().code(), "WIRE005");
        bytes[field::VERSION_LENGTH] = 0x65;
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
            fragment_offset in 0..=OFFSET_MASK, ttl: u8, protocol: u8, source: u32, destination: u32,
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

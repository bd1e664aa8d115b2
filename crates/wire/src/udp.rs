//! UDP over IPv4 (RFC 768).

use core::net::Ipv4Addr;

use crate::error::{at_least, exactly, split};
use crate::table::header;
use crate::value::Value;
use crate::{Error, Header, checksum, ipv4};

header! {
    layout pub LAYOUT = "UDP", then "the payload";
    length pub HEADER_LENGTH = 8;
    /// Meaning of a datagram.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Repr<'a> {
        /// Payload of the datagram.
        payload: &'a [u8],
    }
    offsets field;
    view Packet;
    may_not_fit Udp;
    fields {
        SOURCE_PORT      16  source_port: u16      => "source port";
        DESTINATION_PORT 16  destination_port: u16 => "destination port";
        LENGTH           16 (length: usize)        => "bytes of header and payload";
        CHECKSUM         16 (checksum: u16)        => "checksum, 0 if the sender made none";
    }
}

/// A view over one datagram. Bytes after the stated length are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    header: &'a [u8; HEADER_LENGTH],
}

impl<'a> Packet<'a> {
    /// Checks the length, not the checksum.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] or [`Error::LengthField`].
    pub fn new_checked(bytes: &'a [u8]) -> Result<Packet<'a>, Error> {
        let header = Header::Udp;
        let packet = Packet {
            bytes,
            header: split(header, bytes)?.0,
        };
        let length = packet.length();
        if length < HEADER_LENGTH {
            return Err(Error::LengthField {
                header,
                stated: length,
                least: HEADER_LENGTH,
            });
        }
        at_least(header, bytes, length)?;
        Ok(Packet {
            bytes: &bytes[..length],
            ..packet
        })
    }

    /// Payload of the datagram.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER_LENGTH..]
    }

    /// True if the checksum is right, or was not made.
    pub fn verify_checksum(&self, source: Ipv4Addr, destination: Ipv4Addr) -> bool {
        self.checksum() == 0
            || checksum::Sum::new()
                .over_pseudo_header(
                    source,
                    destination,
                    ipv4::PROTOCOL_UDP,
                    self.bytes.len() as u16,
                )
                .over(self.bytes)
                .finish()
                == 0
    }
}

impl<'a> Repr<'a> {
    /// Reads every field of a checked datagram between the two addresses.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] if there is a checksum and it is wrong.
    pub fn parse(
        packet: &Packet<'a>,
        source: Ipv4Addr,
        destination: Ipv4Addr,
    ) -> Result<Repr<'a>, Error> {
        if !packet.verify_checksum(source, destination) {
            return Err(Error::Checksum {
                header: Header::Udp,
            });
        }
        Ok(Repr::from_header(packet.header, packet.payload()))
    }

    /// Bytes of the datagram.
    pub fn buffer_len(&self) -> usize {
        HEADER_LENGTH + self.payload.len()
    }

    /// Writes the datagram into `buffer`, with its checksum; a computed 0 is sent
    /// as 0xffff, since 0 means "none".
    ///
    /// # Errors
    ///
    /// [`Error::Buffer`] unless `buffer` is [`Repr::buffer_len`] long;
    /// [`Error::Unrepresentable`] for more than 65535 bytes.
    pub fn emit(
        &self,
        buffer: &mut [u8],
        source: Ipv4Addr,
        destination: Ipv4Addr,
    ) -> Result<(), Error> {
        let length = self.buffer_len();
        exactly(Header::Udp, buffer, length)?;
        let (header, payload) = buffer.split_at_mut(HEADER_LENGTH);
        header.copy_from_slice(&self.header_bytes(length, 0)?);
        payload.copy_from_slice(self.payload);
        let sum = checksum::Sum::new()
            .over_pseudo_header(source, destination, ipv4::PROTOCOL_UDP, length as u16)
            .over(buffer)
            .finish();
        let sum = if sum == 0 { 0xffff } else { sum };
        sum.write(buffer, field::CHECKSUM * 8, 16);
        Ok(())
    }

    /// The datagram as bytes of its own.
    ///
    /// # Errors
    ///
    /// As [`Repr::emit`].
    pub fn to_vec(&self, source: Ipv4Addr, destination: Ipv4Addr) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; self.buffer_len()];
        self.emit(&mut bytes, source, destination)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    #[test]
    fn an_absent_checksum_is_accepted_and_a_wrong_one_is_not() {
        let repr = Repr {
            source_port: 4793,
            destination_port: 53,
            payload: b"odd",
        };
        let mut bytes = repr.to_vec(A, B).unwrap();
        bytes[field::CHECKSUM] ^= 1;
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!(Repr::parse(&packet, A, B).unwrap_err().code(), "WIRE006");
        bytes[field::CHECKSUM..HEADER_LENGTH].fill(0);
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!(Repr::parse(&packet, A, B), Ok(repr));
    }

    #[test]
    fn every_truncation_is_refused() {
        let repr = Repr {
            source_port: 1,
            destination_port: 2,
            payload: &[7; 20],
        };
        let bytes = repr.to_vec(A, B).unwrap();
        for length in 0..bytes.len() {
            assert_eq!(
                Packet::new_checked(&bytes[..length]).unwrap_err().code(),
                "WIRE001"
            );
        }
        let mut short = bytes;
        short[field::LENGTH..field::CHECKSUM].copy_from_slice(&[0, 7]);
        assert_eq!(Packet::new_checked(&short).unwrap_err().code(), "WIRE005");
    }

    proptest! {
        #[test]
        fn parse_of_emit_is_the_same(
            source_port: u16, destination_port: u16, from: u32, to: u32,
            payload in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let repr = Repr { source_port, destination_port, payload: &payload };
            let bytes = repr.to_vec(from.into(), to.into()).unwrap();
            let packet = Packet::new_checked(&bytes).unwrap();
            prop_assert_ne!(packet.checksum(), 0);
            prop_assert_eq!(Repr::parse(&packet, from.into(), to.into()), Ok(repr));
        }

        #[test]
        fn any_bytes_give_a_view_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(packet) = Packet::new_checked(&bytes) {
                let _ = Repr::parse(&packet, A, B);
            }
        }
    }
}

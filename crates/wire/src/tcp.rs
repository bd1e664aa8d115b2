//! TCP segments over IPv4 (RFC 9293).

use core::net::Ipv4Addr;

use crate::error::{at_least, exactly, split};
use crate::table::header;
use crate::value::Value;
use crate::{Error, Header, checksum, ipv4};

header! {
    layout pub LAYOUT = "TCP", then "options, up to the header's length; then the payload";
    length pub HEADER_LENGTH = 20;
    /// Meaning of a segment.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Repr<'a> {
        /// Control bits; see [`control`].
        control: u8,
        /// Options, a multiple of 4 and at most 40 bytes.
        options: &'a [u8],
        /// Payload of the segment.
        payload: &'a [u8],
    }
    offsets field;
    view Packet;
    may_not_fit Tcp;
    fields {
        SOURCE_PORT      16  source_port: u16      => "source port";
        DESTINATION_PORT 16  destination_port: u16 => "destination port";
        SEQUENCE         32  sequence: u32         => "sequence number";
        ACKNOWLEDGEMENT  32  acknowledgement: u32  => "acknowledgement number";
        DATA_OFFSET       4 (data_offset: usize)   => "header length in 32-bit words";
        FLAGS            12 (flags: u16)           => "4 reserved bits, 8 control bits";
        WINDOW           16  window: u16           => "window";
        CHECKSUM         16 (checksum: u16)        => "checksum";
        URGENT_POINTER   16  urgent: u16           => "urgent pointer";
    }
}

/// Control bits.
pub mod control {
    /// No more data from the sender.
    pub const FIN: u8 = 1 << 0;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 1 << 1;
    /// Reset the connection.
    pub const RST: u8 = 1 << 2;
    /// Push.
    pub const PSH: u8 = 1 << 3;
    /// The acknowledgement number counts.
    pub const ACK: u8 = 1 << 4;
    /// The urgent pointer counts.
    pub const URG: u8 = 1 << 5;
    /// Echo of a congestion mark (RFC 3168).
    pub const ECE: u8 = 1 << 6;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 1 << 7;
}

/// A view over one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    header: &'a [u8; HEADER_LENGTH],
}

impl<'a> Packet<'a> {
    /// Checks the header's length, not the checksum.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] or [`Error::LengthField`].
    pub fn new_checked(bytes: &'a [u8]) -> Result<Packet<'a>, Error> {
        let header = Header::Tcp;
        let packet = Packet {
            bytes,
            header: split(header, bytes)?.0,
        };
        let header_length = packet.header_length();
        if header_length < HEADER_LENGTH {
            return Err(Error::LengthField {
                header,
                stated: header_length,
                least: HEADER_LENGTH,
            });
        }
        at_least(header, bytes, header_length)?;
        Ok(packet)
    }

    fn header_length(&self) -> usize {
        self.data_offset() * 4
    }

    /// Control bits; see [`control`].
    pub fn control(&self) -> u8 {
        self.flags() as u8
    }

    /// Options, with their padding.
    pub fn options(&self) -> &'a [u8] {
        &self.bytes[HEADER_LENGTH..self.header_length()]
    }

    /// Payload of the segment.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_length()..]
    }

    /// True if the checksum is right.
    pub fn verify_checksum(&self, source: Ipv4Addr, destination: Ipv4Addr) -> bool {
        let Ok(length) = u16::try_from(self.bytes.len()) else {
            return false;
        };
        checksum::Sum::new()
            .over_pseudo_header(source, destination, ipv4::PROTOCOL_TCP, length)
            .over(self.bytes)
            .finish()
            == 0
    }
}

impl<'a> Repr<'a> {
    /// Reads every field of a checked segment between the two addresses. The
    /// four reserved bits are dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] if the checksum is wrong.
    pub fn parse(
        packet: &Packet<'a>,
        source: Ipv4Addr,
        destination: Ipv4Addr,
    ) -> Result<Repr<'a>, Error> {
        if !packet.verify_checksum(source, destination) {
            return Err(Error::Checksum {
                header: Header::Tcp,
            });
        }
        Ok(Repr::from_header(
            packet.header,
            packet.control(),
            packet.options(),
            packet.payload(),
        ))
    }

    /// Bytes of the segment.
    pub fn buffer_len(&self) -> usize {
        HEADER_LENGTH + self.options.len() + self.payload.len()
    }

    /// Writes the segment into `buffer`, with its checksum.
    ///
    /// # Errors
    ///
    /// [`Error::Buffer`] unless `buffer` is [`Repr::buffer_len`] long;
    /// [`Error::Unrepresentable`] for more than 65535 bytes or options of a
    /// wrong length.
    pub fn emit(
        &self,
        buffer: &mut [u8],
        source: Ipv4Addr,
        destination: Ipv4Addr,
    ) -> Result<(), Error> {
        let header = Header::Tcp;
        exactly(header, buffer, self.buffer_len())?;
        let unrepresentable = |field| Error::Unrepresentable { header, field };
        let length = u16::try_from(buffer.len()).map_err(|_| unrepresentable("length"))?;
        if !self.options.len().is_multiple_of(4) || self.options.len() > 40 {
            return Err(unrepresentable("data offset"));
        }
        let words = (HEADER_LENGTH + self.options.len()) / 4;
        let (header, rest) = buffer.split_at_mut(HEADER_LENGTH);
        header.copy_from_slice(&self.header_bytes(words, self.control.into(), 0)?);
        let (options, payload) = rest.split_at_mut(self.options.len());
        options.copy_from_slice(self.options);
        payload.copy_from_slice(self.payload);
        let sum = checksum::Sum::new()
            .over_pseudo_header(source, destination, ipv4::PROTOCOL_TCP, length)
            .over(buffer)
            .finish();
        sum.write(buffer, field::CHECKSUM * 8, 16);
        Ok(())
    }

    /// The segment as bytes of its own.
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
    fn a_changed_bit_is_seen() {
        let repr = Repr {
            source_port: 40_000,
            destination_port: 80,
            sequence: 1,
            acknowledgement: 2,
            control: control::SYN | control::ACK,
            window: 65_535,
            urgent: 0,
            options: &[2, 4, 5, 0xb4],
            payload: b"odd",
        };
        let bytes = repr.to_vec(A, B).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let refused = match Packet::new_checked(&changed) {
                Ok(packet) => Repr::parse(&packet, A, B).is_err(),
                Err(_) => true,
            };
            assert!(refused, "bit {bit}");
        }
        for length in 0..24 {
            assert_eq!(
                Packet::new_checked(&bytes[..length]).unwrap_err().code(),
                "WIRE001"
            );
        }
    }

    proptest! {
        #[test]
        fn parse_of_emit_is_the_same(
            source_port: u16, destination_port: u16, sequence: u32, acknowledgement: u32,
            control: u8, window: u16, urgent: u16, from: u32, to: u32, words in 0..=10usize,
            payload in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let options = vec![1; words * 4];
            let repr = Repr {
                source_port, destination_port, sequence, acknowledgement, control, window, urgent,
                options: &options, payload: &payload,
            };
            let bytes = repr.to_vec(from.into(), to.into()).unwrap();
            let packet = Packet::new_checked(&bytes).unwrap();
            prop_assert_eq!(Repr::parse(&packet, from.into(), to.into()), Ok(repr));
        }

        #[test]
        fn any_bytes_give_a_view_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(packet) = Packet::new_checked(&bytes) {
                let _ = Repr::parse(&packet, A, B);
                let _ = (packet.options(), packet.payload());
            }
        }
    }
}

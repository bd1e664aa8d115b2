//! Ethernet II frames without tags (IEEE 802.3), as ports give them: no preamble
//! and no frame check sequence.

use core::fmt;

use crate::error::{exactly, split};
use crate::table::header;
use crate::value::Value;
use crate::{Error, Header};

header! {
    layout pub LAYOUT = "Ethernet", then "the payload";
    length pub HEADER_LENGTH = 14;
    /// Meaning of a frame.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Repr<'a> {
        /// Payload of the frame.
        payload: &'a [u8],
    }
    offsets field;
    view Packet;
    fields {
        DESTINATION 48 destination: Address => "destination address";
        SOURCE      48 source: Address      => "source address";
        ETHER_TYPE  16 ethertype: u16       => "EtherType of the payload";
    }
}

/// EtherType of IPv4.
pub const TYPE_IPV4: u16 = 0x0800;

/// EtherType of ARP.
pub const TYPE_ARP: u16 = 0x0806;

/// A 48-bit station address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Address(pub [u8; 6]);

impl Address {
    /// Every station.
    pub const BROADCAST: Address = Address([0xff; 6]);
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl Value for Address {
    const BITS: usize = 48;

    #[inline(always)]
    fn read(header: &[u8], at: usize, bits: usize) -> Address {
        Address(Value::read(header, at, bits))
    }

    #[inline(always)]
    fn write(self, header: &mut [u8], at: usize, bits: usize) {
        self.0.write(header, at, bits);
    }
}

/// A view over one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    header: &'a [u8; HEADER_LENGTH],
    payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Checks that the header is there.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`].
    pub fn new_checked(bytes: &'a [u8]) -> Result<Packet<'a>, Error> {
        let (header, payload) = split(Header::Ethernet, bytes)?;
        Ok(Packet { header, payload })
    }

    /// Payload of the frame, padding included.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

impl<'a> Repr<'a> {
    /// Reads every field of a checked frame.
    pub fn parse(packet: &Packet<'a>) -> Repr<'a> {
        Repr::from_header(packet.header, packet.payload)
    }

    /// Bytes of the frame.
    pub fn buffer_len(&self) -> usize {
        HEADER_LENGTH + self.payload.len()
    }

    /// Writes the frame into `buffer`.
    ///
    /// # Errors
    ///
    /// [`Error::Buffer`] unless `buffer` is [`Repr::buffer_len`] long.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        exactly(Header::Ethernet, buffer, self.buffer_len())?;
        let (header, payload) = buffer.split_at_mut(HEADER_LENGTH);
        header.copy_from_slice(&self.header_bytes());
        payload.copy_from_slice(self.payload);
        Ok(())
    }

    /// The frame as bytes of its own.
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

    #[test]
    fn fields_lie_where_the_standard_says() {
        let frame = Repr {
            destination: Address([2, 0, 0, 0, 0, 1]),
            source: Address([2, 0, 0, 0, 0, 2]),
            ethertype: TYPE_IPV4,
            payload: &[0xaa],
        };
        assert_eq!(
            frame.to_vec().unwrap(),
            [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0xaa]
        );
    }

    proptest! {
        #[test]
        fn every_frame_survives_parse_and_emit(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            match Packet::new_checked(&bytes) {
                Ok(packet) => prop_assert_eq!(Repr::parse(&packet).to_vec().unwrap(), bytes),
                Err(error) => {
                    prop_assert_eq!(error.code(), "WIRE001");
                    prop_assert!(bytes.len() < HEADER_LENGTH);
                }
            }
        }
    }
}

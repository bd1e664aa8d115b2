//! Ethernet II frames without tags (IEEE 802.3), as ports give them: no preamble
//! and no frame check sequence.

use core::fmt;

use crate::big_endian::{get_array, get_u16, put};
use crate::error::{at_least, exactly};
use crate::{Error, Header};

/// Length in bytes of the header.
pub const HEADER_LENGTH: usize = 14;

/// EtherType of IPv4.
pub const TYPE_IPV4: u16 = 0x0800;

/// EtherType of ARP.
pub const TYPE_ARP: u16 = 0x0806;

/// Where each field begins, in bytes.
pub mod field {
    /// 6 bytes: destination address.
    pub const DESTINATION: usize = 0;
    /// 6 bytes: source address.
    pub const SOURCE: usize = 6;
    /// 2 bytes: EtherType.
    pub const ETHERTYPE: usize = 12;
    /// The payload.
    pub const PAYLOAD: usize = 14;
}

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

/// A view over one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    bytes: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Checks that the header is there.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`].
    pub fn new_checked(bytes: &'a [u8]) -> Result<Packet<'a>, Error> {
        at_least(Header::Ethernet, bytes, HEADER_LENGTH)?;
        Ok(Packet { bytes })
    }

    /// Destination address.
    pub fn destination(&self) -> Address {
        Address(get_array(self.bytes, field::DESTINATION))
    }

    /// Source address.
    pub fn source(&self) -> Address {
        Address(get_array(self.bytes, field::SOURCE))
    }

    /// EtherType of the payload.
    pub fn ethertype(&self) -> u16 {
        get_u16(self.bytes, field::ETHERTYPE)
    }

    /// What the frame carries, padding included.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[field::PAYLOAD..]
    }
}

/// What a frame means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr<'a> {
    /// Destination address.
    pub destination: Address,
    /// Source address.
    pub source: Address,
    /// EtherType of the payload.
    pub ethertype: u16,
    /// What the frame carries.
    pub payload: &'a [u8],
}

impl<'a> Repr<'a> {
    /// Reads every field of a checked frame.
    pub fn parse(packet: &Packet<'a>) -> Repr<'a> {
        Repr {
            destination: packet.destination(),
            source: packet.source(),
            ethertype: packet.ethertype(),
            payload: packet.payload(),
        }
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
        put(buffer, field::DESTINATION, &self.destination.0);
        put(buffer, field::SOURCE, &self.source.0);
        put(buffer, field::ETHERTYPE, &self.ethertype.to_be_bytes());
        put(buffer, field::PAYLOAD, self.payload);
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

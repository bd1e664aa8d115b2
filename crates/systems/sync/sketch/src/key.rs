//! Keys of flows.

use core::fmt;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::str::FromStr;

/// Key of a flow: four words, those that a program does not hash being 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub [u32; 4]);

impl Key {
    /// A flow of five fields. Ports are 0 in packets without.
    pub fn flow(
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: u8,
        source_port: u16,
        destination_port: u16,
    ) -> Key {
        let ports = u32::from(source_port) << 16 | u32::from(destination_port);
        Key([
            source.to_bits(),
            destination.to_bits(),
            ports,
            u32::from(protocol),
        ])
    }

    /// All packets from, or to, an address.
    pub fn address(address: Ipv4Addr) -> Key {
        Key([address.to_bits(), 0, 0, 0])
    }

    /// Packets from one address to another.
    pub fn pair(source: Ipv4Addr, destination: Ipv4Addr) -> Key {
        Key([source.to_bits(), destination.to_bits(), 0, 0])
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Key([source, destination, ports, protocol]) = *self;
        let source = Ipv4Addr::from_bits(source);
        if (destination, ports, protocol) == (0, 0, 0) {
            return write!(f, "{source}");
        }
        let destination = Ipv4Addr::from_bits(destination);
        if (ports, protocol) == (0, 0) {
            return write!(f, "{source}>{destination}");
        }
        let (from, to) = (ports >> 16, ports & 0xffff);
        write!(f, "{source}:{from}>{destination}:{to}/{protocol}")
    }
}

/// Text that is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key is ADDRESS, SOURCE>DESTINATION, or SOURCE:PORT>DESTINATION:PORT/PROTOCOL")]
pub struct KeyError;

impl FromStr for Key {
    type Err = KeyError;

    /// Reads what [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Key, KeyError> {
        let address = |text: &str| text.parse::<Ipv4Addr>().map_err(|_| KeyError);
        let Some((source, rest)) = text.split_once('>') else {
            return address(text).map(Key::address);
        };
        let Some((destination, protocol)) = rest.split_once('/') else {
            return Ok(Key::pair(address(source)?, address(rest)?));
        };
        let end = |text: &str| text.parse::<SocketAddrV4>().map_err(|_| KeyError);
        let (source, destination) = (end(source)?, end(destination)?);
        Ok(Key::flow(
            *source.ip(),
            *destination.ip(),
            protocol.parse().map_err(|_| KeyError)?,
            source.port(),
            destination.port(),
        ))
    }
}

//! Addresses as topology files write them.

use serde::{Deserialize, Deserializer, de::Error as _};
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// An Ethernet address, written `02:00:00:00:00:01`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// True if it may be a station's own address: not a group address, not zero.
    pub fn is_station(self) -> bool {
        self.0[0] & 1 == 0 && self.0 != [0; 6]
    }
}

impl FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("`{text}` is not an Ethernet address such as 02:00:00:00:00:01");
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().ok_or_else(refused)?;
            if part.len() != 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(refused());
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| refused())?;
        }
        match parts.next() {
            None => Ok(Self(bytes)),
            Some(_) => Err(refused()),
        }
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// An IPv4 address with the length of its network, written `10.0.1.2/24`; `default`
/// is `0.0.0.0/0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    /// The address, host bits included.
    pub address: Ipv4Addr,
    /// Bits of the network, 0 to 32.
    pub length: u8,
}

impl Prefix {
    fn mask(self) -> u32 {
        u32::MAX
            .checked_shl(32 - u32::from(self.length))
            .unwrap_or(0)
    }

    /// True if `address` lies in the network.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        (u32::from(address) ^ u32::from(self.address)) & self.mask() == 0
    }

    /// The network: the same prefix without host bits.
    pub fn network(self) -> Self {
        Self {
            address: Ipv4Addr::from(u32::from(self.address) & self.mask()),
            length: self.length,
        }
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "default" {
            return Ok(Self {
                address: Ipv4Addr::UNSPECIFIED,
                length: 0,
            });
        }
        let refused =
            || format!("`{text}` is not an IPv4 address with a prefix length such as 10.0.1.2/24");
        let (address, length) = text.split_once('/').ok_or_else(refused)?;
        let address = address.parse().map_err(|_| refused())?;
        let length: u8 = length.parse().map_err(|_| refused())?;
        if length > 32 {
            return Err(refused());
        }
        Ok(Self { address, length })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

macro_rules! deserialize_from_str {
    ($($name:ty),*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    )*};
}
deserialize_from_str!(Mac, Prefix);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prefixes_contain_their_network() {
        let prefix: Prefix = "10.1.2.3/30".parse().unwrap();
        assert!(prefix.contains("10.1.2.0".parse().unwrap()));
        assert!(!prefix.contains("10.1.2.4".parse().unwrap()));
        assert_eq!(prefix.network().to_string(), "10.1.2.0/30");
        let all: Prefix = "default".parse().unwrap();
        assert!(all.contains("192.0.2.1".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn any_mac_reads_back(bytes: [u8; 6]) {
            let mac = Mac(bytes);
            prop_assert_eq!(mac.to_string().parse::<Mac>(), Ok(mac));
        }

        #[test]
        fn any_prefix_reads_back(bits: u32, length in 0u8..=32) {
            let prefix = Prefix { address: Ipv4Addr::from(bits), length };
            prop_assert_eq!(prefix.to_string().parse::<Prefix>(), Ok(prefix));
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = text.parse::<Mac>();
            let _ = text.parse::<Prefix>();
        }
    }
}

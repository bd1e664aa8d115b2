//! Keys of state and locks: fields that packets have in common.

use crate::HazardError;
use core::net::IpAddr;
use indexmap::IndexMap;
use std::fmt;
use std::str::FromStr;

/// Addresses and ports of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// Source address.
    pub source: IpAddr,
    /// Further fields that the traffic tells; `None` where it counts packets by source only.
    pub rest: Option<Rest>,
}

/// Destination, protocol and ports of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rest {
    /// Destination address.
    pub destination: IpAddr,
    /// Protocol of IPv4, or next header of IPv6.
    pub protocol: u8,
    /// Source and destination port; 0 where the packet has none.
    pub ports: (u16, u16),
}

/// Fields that packets on the same state, or under the same lock, have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Nothing: all packets share one state.
    Global,
    /// Addresses, protocol and ports.
    FiveTuple,
    /// Source and destination address.
    Addresses,
    /// Source address.
    Source,
    /// So many leading bits of the source address, 1 to 128; an address of fewer bits counts
    /// whole.
    Prefix(u8),
}

impl Flow {
    /// The flow of an IPv4 or IPv6 packet, of which the first bytes may be all that was kept. Ports
    /// are those of TCP, UDP, UDP-Lite, DCCP and SCTP directly behind the header; 0 in fragments
    /// but the first, where they were not kept, and behind extension headers. `None` if the
    /// header was not kept, or is of no version of IP.
    pub fn of_ip(packet: &[u8]) -> Option<Self> {
        let (source, destination, protocol, payload): (IpAddr, IpAddr, u8, _) =
            match packet.first()? >> 4 {
                4 => {
                    let source: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
                    let destination: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
                    let is_first = u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff == 0;
                    let header = usize::from(packet[0] & 0xf) * 4;
                    let payload = packet.get(header..).filter(|_| is_first && header >= 20);
                    (source.into(), destination.into(), packet[9], payload)
                }
                6 => {
                    let source: [u8; 16] = packet.get(8..24)?.try_into().ok()?;
                    let destination: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
                    let payload = packet.get(40..);
                    (source.into(), destination.into(), packet[6], payload)
                }
                _ => return None,
            };
        let ports = match (protocol, payload) {
            (6 | 17 | 33 | 132 | 136, Some([a, b, c, d, ..])) => {
                (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]))
            }
            _ => (0, 0),
        };
        Some(Self {
            source,
            rest: Some(Rest {
                destination,
                protocol,
                ports,
            }),
        })
    }
}

impl Key {
    /// A dense number from 0 for each flow, equal for flows with equal keys. Packets without IP
    /// header (`None`) share one number of their own.
    ///
    /// # Errors
    ///
    /// [`HazardError::Key`] if a flow does not tell the key.
    pub fn numbers(self, flows: &[Option<Flow>]) -> Result<Vec<u32>, HazardError> {
        let mut numbers: IndexMap<Option<Flow>, u32> = IndexMap::new();
        let mut of_flows = Vec::with_capacity(flows.len());
        for flow in flows {
            let key = match (self, flow) {
                (Self::Global, _) | (_, None) => None,
                (_, Some(flow)) => Some(self.of(*flow)?),
            };
            let following = numbers.len() as u32;
            of_flows.push(*numbers.entry(key).or_insert(following));
        }
        Ok(of_flows)
    }

    /// The flow reduced to what the key has of it.
    fn of(self, flow: Flow) -> Result<Flow, HazardError> {
        let rest = || {
            flow.rest.ok_or_else(|| HazardError::Key {
                key: self.to_string(),
                known: "global, source, prefix:N",
            })
        };
        Ok(match self {
            Self::Global | Self::Source => Flow { rest: None, ..flow },
            Self::FiveTuple => Flow {
                rest: Some(rest()?),
                ..flow
            },
            Self::Addresses => Flow {
                rest: Some(Rest {
                    destination: rest()?.destination,
                    protocol: 0,
                    ports: (0, 0),
                }),
                ..flow
            },
            Self::Prefix(bits) => Flow {
                source: prefix(flow.source, bits),
                rest: None,
            },
        })
    }
}

fn prefix(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let rest = 32_u32.saturating_sub(bits.into());
            let mask = u32::MAX.checked_shl(rest).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let rest = 128_u32.saturating_sub(bits.into());
            let mask = u128::MAX.checked_shl(rest).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("global"),
            Self::FiveTuple => f.write_str("5-tuple"),
            Self::Addresses => f.write_str("addresses"),
            Self::Source => f.write_str("source"),
            Self::Prefix(bits) => write!(f, "prefix:{bits}"),
        }
    }
}

impl FromStr for Key {
    type Err = HazardError;

    fn from_str(text: &str) -> Result<Self, HazardError> {
        let bits = text
            .strip_prefix("prefix:")
            .and_then(|bits| bits.parse().ok());
        match (text, bits) {
            ("global", _) => Ok(Self::Global),
            ("5-tuple", _) => Ok(Self::FiveTuple),
            ("addresses", _) => Ok(Self::Addresses),
            ("source", _) => Ok(Self::Source),
            (_, Some(bits @ 1..=128)) => Ok(Self::Prefix(bits)),
            _ => Err(HazardError::Setting(format!(
                "key {text:?}: give global, 5-tuple, addresses, source, or prefix:N with N from 1 \
                 to 128"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(source: [u8; 4], destination: [u8; 4], port: u16) -> Option<Flow> {
        Some(Flow {
            source: source.into(),
            rest: Some(Rest {
                destination: destination.into(),
                protocol: 6,
                ports: (port, 80),
            }),
        })
    }

    #[test]
    fn flows_with_equal_keys_have_equal_numbers() {
        let flows = [
            flow([10, 0, 0, 1], [1, 1, 1, 1], 1),
            flow([10, 0, 0, 1], [1, 1, 1, 1], 2),
            flow([10, 0, 0, 1], [2, 2, 2, 2], 1),
            flow([10, 0, 9, 9], [1, 1, 1, 1], 1),
            None,
        ];
        let numbers = |key: &str| key.parse::<Key>().unwrap().numbers(&flows).unwrap();
        assert_eq!(numbers("global"), [0, 0, 0, 0, 0]);
        assert_eq!(numbers("5-tuple"), [0, 1, 2, 3, 4]);
        assert_eq!(numbers("addresses"), [0, 0, 1, 2, 3]);
        assert_eq!(numbers("source"), [0, 0, 0, 1, 2]);
        assert_eq!(numbers("prefix:16"), [0, 0, 0, 0, 1]);
        assert_eq!(numbers("prefix:128"), numbers("source"));
    }

    #[test]
    fn flows_of_packets_are_read_from_what_was_kept() {
        let mut packet = [0; 24];
        packet[0] = 0x45;
        packet[9] = 17;
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet[20..].copy_from_slice(&[0x1f, 0x90, 0, 80]);
        let ports = |packet: &[u8]| Flow::of_ip(packet)?.rest.map(|rest| rest.ports);
        assert_eq!(ports(&packet), Some((8080, 80)));
        assert_eq!(ports(&packet[..23]), Some((0, 0)));
        assert_eq!(ports(&packet[..19]), None);
        let flow = Flow::of_ip(&packet).unwrap();
        assert_eq!(flow.source, IpAddr::from([10, 0, 0, 1]));
        assert_eq!(flow.rest.unwrap().destination, IpAddr::from([10, 0, 0, 2]));
        // A later fragment has no ports, nor has ICMP.
        packet[7] = 1;
        assert_eq!(ports(&packet), Some((0, 0)));
        packet[7] = 0;
        packet[9] = 1;
        assert_eq!(ports(&packet), Some((0, 0)));
        packet[0] = 0x41;
        assert_eq!(ports(&packet), Some((0, 0)));
        packet[0] = 0x55;
        assert_eq!(Flow::of_ip(&packet), None);

        let mut packet = [0; 44];
        packet[0] = 0x60;
        packet[6] = 6;
        packet[40..].copy_from_slice(&[0, 22, 0, 23]);
        assert_eq!(ports(&packet), Some((22, 23)));
        assert_eq!(ports(&packet[..39]), None);
        assert_eq!(Flow::of_ip(&[]), None);
    }

    #[test]
    fn a_key_that_the_traffic_does_not_tell_is_refused() {
        let source = core::net::Ipv4Addr::LOCALHOST.into();
        let flows = [Some(Flow { source, rest: None })];
        assert_eq!(Key::FiveTuple.numbers(&flows).unwrap_err().code(), "HZ005");
        assert_eq!(Key::Addresses.numbers(&flows).unwrap_err().code(), "HZ005");
        assert_eq!(Key::Source.numbers(&flows), Ok(vec![0]));
    }

    #[test]
    fn names_of_keys_are_read_back() {
        for text in ["global", "5-tuple", "addresses", "source", "prefix:24"] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
        }
        for text in ["", "prefix", "prefix:0", "prefix:129", "flow"] {
            assert_eq!(text.parse::<Key>().unwrap_err().code(), "HZ001");
        }
    }
}

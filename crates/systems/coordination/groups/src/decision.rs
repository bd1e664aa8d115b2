//! What the controller decides, as it is stored.

use core::net::Ipv4Addr;

use stateplane_membership::{Start, Version};
use stateplane_wire::coordination_control::Lanes;

/// A switch as a configuration names it: one start of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// Number of the switch.
    pub switch: u32,
    /// Which start of it; one that starts anew is empty (rule 16).
    pub incarnation: u32,
    /// Its address.
    pub address: Ipv4Addr,
}

impl Start for Member {
    fn server(&self) -> u32 {
        self.switch
    }

    fn incarnation(&self) -> u32 {
        self.incarnation
    }
}

/// One configuration of the chain of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupConfig {
    /// The group.
    pub group: u16,
    /// Which founding of the group, from 1 (rule 17).
    pub generation: u16,
    /// Configuration number, from 1; it grows with each change (rule 9).
    pub epoch: u32,
    /// True if the members begin empty.
    pub founds: bool,
    /// Key of the hash that places the group's keys in buckets; drawn at its founding.
    pub hash_key: [u8; 16],
    /// The members, head first.
    pub members: Vec<Member>,
    /// The switch that the tail copies to, until it answers and can be a member.
    pub joining: Option<Member>,
}

impl GroupConfig {
    /// The members, and the one that joins.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Member> {
        self.members.iter().chain(&self.joining)
    }
}

/// Lanes that are handed out to a session, or that came back from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The session and its lanes.
    pub lanes: Lanes,
    /// The number that the client drew when it asked.
    pub nonce: u64,
    /// True if the session was ended: the lanes have the next incarnation.
    pub closed: bool,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// A configuration of a group's chain.
    Group(GroupConfig),
    /// Lanes of a session.
    Lanes(Range),
}

/// First byte of a stored configuration.
const GROUP: u8 = 1;

/// First byte of stored lanes.
const LANES: u8 = 2;

/// Most numbers of sessions: a version tells the end of a session from its begin.
pub(crate) const MOST_SESSIONS: u32 = u32::MAX >> 1;

/// First number of a range of lanes: behind all groups.
const FIRST_RANGE: u32 = 1 << 16;

impl Version for Decision {
    fn number(&self) -> u32 {
        match self {
            Decision::Group(config) => config.group.into(),
            Decision::Lanes(range) => FIRST_RANGE + u32::from(range.lanes.first),
        }
    }

    fn version(&self) -> u32 {
        match self {
            Decision::Group(config) => config.epoch,
            Decision::Lanes(range) => range.lanes.session << 1 | u32::from(range.closed),
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn truth(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn member(&mut self) -> Option<Member> {
        Some(Member {
            switch: self.u32()?,
            incarnation: self.u32()?,
            address: Ipv4Addr::from(self.u32()?),
        })
    }
}

impl Decision {
    /// The decision as bytes, big-endian.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Decision::Group(config) => {
                bytes.push(GROUP);
                bytes.extend(config.group.to_be_bytes());
                bytes.extend(config.generation.to_be_bytes());
                bytes.extend(config.epoch.to_be_bytes());
                bytes.push(config.founds.into());
                bytes.extend(config.hash_key);
                bytes.push(config.joining.is_some().into());
                for member in config.all() {
                    bytes.extend(member.switch.to_be_bytes());
                    bytes.extend(member.incarnation.to_be_bytes());
                    bytes.extend(member.address.octets());
                }
            }
            Decision::Lanes(range) => {
                bytes.push(LANES);
                bytes.extend(range.lanes.session.to_be_bytes());
                for number in [
                    range.lanes.first,
                    range.lanes.count,
                    range.lanes.incarnation,
                ] {
                    bytes.extend(number.to_be_bytes());
                }
                bytes.extend(range.nonce.to_be_bytes());
                bytes.push(range.closed.into());
            }
        }
        bytes
    }

    /// Reads what [`Decision::to_vec`] gave; `None` if `bytes` are something else.
    pub fn parse(bytes: &[u8]) -> Option<Decision> {
        let mut reader = Reader(bytes);
        let decision = match reader.byte()? {
            GROUP => {
                let (group, generation) = (reader.u16()?, reader.u16()?);
                let (epoch, founds) = (reader.u32()?, reader.truth()?);
                let hash_key = reader.take()?;
                let joins = reader.truth()?;
                let mut members = Vec::new();
                while !reader.0.is_empty() {
                    members.push(reader.member()?);
                }
                let joining = if joins { Some(members.pop()?) } else { None };
                Decision::Group(GroupConfig {
                    group,
                    generation,
                    epoch,
                    founds,
                    hash_key,
                    members,
                    joining,
                })
            }
            LANES => Decision::Lanes(Range {
                lanes: Lanes {
                    session: reader.u32()?,
                    first: reader.u16()?,
                    count: reader.u16()?,
                    incarnation: reader.u16()?,
                },
                nonce: reader.take().map(u64::from_be_bytes)?,
                closed: reader.truth()?,
            }),
            _ => return None,
        };
        reader.0.is_empty().then_some(decision)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn member() -> impl Strategy<Value = Member> {
        any::<[u32; 3]>().prop_map(|[switch, incarnation, address]| Member {
            switch,
            incarnation,
            address: address.into(),
        })
    }

    fn decision() -> impl Strategy<Value = Decision> {
        let numbers = any::<(u16, u16, u32, bool, [u8; 16])>();
        let joining = proptest::option::of(member());
        prop_oneof![
            (numbers, vec(member(), 0..4), joining).prop_map(
                |((group, generation, epoch, founds, hash_key), members, joining)| {
                    Decision::Group(GroupConfig {
                        group,
                        generation,
                        epoch,
                        founds,
                        hash_key,
                        members,
                        joining,
                    })
                }
            ),
            any::<(u32, [u16; 3], u64, bool)>().prop_map(
                |(session, [first, count, incarnation], nonce, closed)| {
                    Decision::Lanes(Range {
                        lanes: Lanes {
                            session,
                            first,
                            count,
                            incarnation,
                        },
                        nonce,
                        closed,
                    })
                }
            ),
        ]
    }

    proptest! {
        #[test]
        fn decisions_survive_a_log(decision in decision()) {
            let bytes = decision.to_vec();
            prop_assert_eq!(Decision::parse(&bytes), Some(decision.clone()));
            if let Decision::Lanes(_) = decision {
                for cut in 0..bytes.len() {
                    prop_assert_eq!(Decision::parse(&bytes[..cut]), None);
                }
            }
            let mut long = bytes;
            long.push(0);
            prop_assert_eq!(Decision::parse(&long), None);
        }

        #[test]
        fn any_bytes_give_a_decision_or_none(bytes in vec(any::<u8>(), 0..80), kind in 0u8..4) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            if let Some(decision) = Decision::parse(&bytes) {
                prop_assert_eq!(decision.to_vec(), bytes);
            }
        }
    }

    #[test]
    fn the_end_of_a_session_is_newer_than_its_begin_and_older_than_the_next() {
        let range = |session, closed| {
            Decision::Lanes(Range {
                lanes: Lanes {
                    session,
                    first: 7,
                    count: 1,
                    incarnation: 0,
                },
                nonce: 0,
                closed,
            })
        };
        let versions = [range(4, false), range(4, true), range(5, false)];
        let versions = versions.map(|range| (range.number(), range.version()));
        assert_eq!(versions, [(0x1_0007, 8), (0x1_0007, 9), (0x1_0007, 10)]);
    }
}

//! Decisions of the controller, as they are stored.

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

/// A session that has lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenSession {
    /// The session and its lanes.
    pub lanes: Lanes,
    /// The number that the client drew when it asked.
    pub nonce: u64,
}

/// Free lanes that lie together and have one incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneRun {
    /// The first lane.
    pub first: u16,
    /// Number of lanes.
    pub count: u16,
    /// Their incarnation.
    pub incarnation: u16,
}

/// All sessions with their lanes, and the incarnations of the free lanes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaneBook {
    /// Grows with each change.
    pub version: u32,
    /// The greatest number of a session so far: none returns.
    pub last: u32,
    /// The sessions that are not closed, by number.
    pub sessions: Vec<OpenSession>,
    /// The free lanes; those that nobody ever had, of incarnation 0, are left out.
    pub free: Vec<LaneRun>,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// A configuration of a group's chain.
    Group(GroupConfig),
    /// Lanes, by session.
    Lanes(LaneBook),
}

/// First byte of a stored configuration.
const GROUP: u8 = 1;

/// First byte of stored lanes.
const LANES: u8 = 2;

/// Number of the lanes: behind all groups.
const NUMBER_OF_LANES: u32 = 1 << 16;

impl Version for Decision {
    fn number(&self) -> u32 {
        match self {
            Decision::Group(config) => config.group.into(),
            Decision::Lanes(_) => NUMBER_OF_LANES,
        }
    }

    fn version(&self) -> u32 {
        match self {
            Decision::Group(config) => config.epoch,
            Decision::Lanes(book) => book.version,
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

    fn session(&mut self) -> Option<OpenSession> {
        let lanes = Lanes {
            session: self.u32()?,
            first: self.u16()?,
            count: self.u16()?,
            incarnation: self.u16()?,
        };
        let nonce = self.take().map(u64::from_be_bytes)?;
        Some(OpenSession { lanes, nonce })
    }

    fn member(&mut self) -> Option<Member> {
        Some(Member {
            switch: self.u32()?,
            incarnation: self.u32()?,
            address: Ipv4Addr::from(self.u32()?),
        })
    }
}

fn append_u16(bytes: &mut Vec<u8>, numbers: [u16; 3]) {
    bytes.extend(numbers.into_iter().flat_map(u16::to_be_bytes));
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
            Decision::Lanes(book) => {
                bytes.push(LANES);
                bytes.extend(book.version.to_be_bytes());
                bytes.extend(book.last.to_be_bytes());
                bytes.extend((book.sessions.len() as u32).to_be_bytes());
                for OpenSession { lanes, nonce } in &book.sessions {
                    bytes.extend(lanes.session.to_be_bytes());
                    append_u16(&mut bytes, [lanes.first, lanes.count, lanes.incarnation]);
                    bytes.extend(nonce.to_be_bytes());
                }
                for run in &book.free {
                    append_u16(&mut bytes, [run.first, run.count, run.incarnation]);
                }
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
            LANES => {
                let (version, last) = (reader.u32()?, reader.u32()?);
                let mut sessions = Vec::new();
                for _ in 0..reader.u32()? {
                    sessions.push(reader.session()?);
                }
                let mut free = Vec::new();
                while !reader.0.is_empty() {
                    free.push(LaneRun {
                        first: reader.u16()?,
                        count: reader.u16()?,
                        incarnation: reader.u16()?,
                    });
                }
                Decision::Lanes(LaneBook {
                    version,
                    last,
                    sessions,
                    free,
                })
            }
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

    fn session() -> impl Strategy<Value = OpenSession> {
        any::<(u32, [u16; 3], u64)>().prop_map(|(session, [first, count, incarnation], nonce)| {
            let lanes = Lanes {
                session,
                first,
                count,
                incarnation,
            };
            OpenSession { lanes, nonce }
        })
    }

    fn run() -> impl Strategy<Value = LaneRun> {
        any::<[u16; 3]>().prop_map(|[first, count, incarnation]| LaneRun {
            first,
            count,
            incarnation,
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
            (any::<(u32, u32)>(), vec(session(), 0..4), vec(run(), 0..4)).prop_map(
                |((version, last), sessions, free)| {
                    Decision::Lanes(LaneBook {
                        version,
                        last,
                        sessions,
                        free,
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
            for cut in 0..bytes.len() {
                prop_assert_ne!(Decision::parse(&bytes[..cut]), Some(decision.clone()));
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
}

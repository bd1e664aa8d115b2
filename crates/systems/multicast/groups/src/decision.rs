//! Decisions of the controller, as they are stored.

use core::net::Ipv4Addr;

use stateplane_membership::{Start, Version};

/// A switch as a configuration names it: one start of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// Number in the group, from 0 to 7.
    pub number: u8,
    /// Number of the switch.
    pub switch: u32,
    /// Which start of it; one that starts anew has lost its log (rule 5).
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

/// A receiver on the list of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// Number in the list, from 0 to 7.
    pub number: u8,
    /// Its address.
    pub address: Ipv4Addr,
    /// The number that it drew when it asked.
    pub nonce: u64,
}

/// All that is decided of a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupConfig {
    /// The group.
    pub group: u8,
    /// Number of the decision, from 1; it grows with each.
    pub record: u32,
    /// The epoch, from 1 (rule 6).
    pub epoch: u32,
    /// Number of the member that leads in the epoch, once one is appointed.
    pub leader: Option<u8>,
    /// Members of each configuration since the last that is established, that one first and the
    /// present one last (rule 11).
    pub configs: Vec<Vec<Member>>,
    /// No leader was ever appointed with the present configuration: nothing is committed by it, and
    /// it may be left for the one before (rule 11).
    pub untried: bool,
    /// The switch that learns (rule 12).
    pub learner: Option<Member>,
    /// Starts that are in no configuration any more and may not know it: their numbers are taken.
    pub former: Vec<Member>,
    /// Version of the list of receivers (rule 26).
    pub list: u16,
    /// The receivers.
    pub receivers: Vec<Listed>,
}

impl GroupConfig {
    /// Members of the present configuration.
    pub fn members(&self) -> &[Member] {
        self.configs.last().map_or(&[], Vec::as_slice)
    }

    /// Members of all configurations that are not settled, each once, those of the present one
    /// first.
    pub fn voters(&self) -> Vec<Member> {
        let mut voters: Vec<Member> = Vec::new();
        for member in self.configs.iter().rev().flatten() {
            if !voters.contains(member) {
                voters.push(*member);
            }
        }
        voters
    }

    /// All starts that have a number: voters, the learner, former ones.
    pub fn holders(&self) -> Vec<Member> {
        let mut holders = self.voters();
        holders.extend(self.learner);
        holders.extend(&self.former);
        holders
    }

    /// The member that leads.
    pub fn leading(&self) -> Option<Member> {
        let leader = self.leader?;
        let mut members = self.members().iter();
        members.find(|member| member.number == leader).copied()
    }
}

/// State of a session's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SlotState {
    /// No session has it, and no log holds an entry of one.
    #[default]
    Free,
    /// A session has it.
    Open {
        /// Lanes granted.
        lanes: u8,
        /// The number that the sender drew when it asked.
        nonce: u64,
    },
    /// Its session is ended, and logs may hold entries of it (rule 21).
    Ended {
        /// Lanes that it had, which are not granted to another before (rule 22).
        lanes: u8,
    },
}

/// A slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slot {
    /// Incarnation of its last session, 0 before the first.
    pub incarnation: u16,
    /// Its state.
    pub state: SlotState,
}

/// All slots of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlotBook {
    /// Grows with each change.
    pub version: u32,
    /// The slots, by number.
    pub slots: Vec<Slot>,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Epoch, members and receivers of a group.
    Group(GroupConfig),
    /// The session that has each slot.
    Slots(SlotBook),
}

/// First byte of a stored group.
const GROUP: u8 = 1;

/// First byte of stored slots.
const SLOTS: u8 = 2;

/// Number of the slots: behind all groups.
const NUMBER_OF_SLOTS: u32 = 1 << 8;

impl Version for Decision {
    fn number(&self) -> u32 {
        match self {
            Decision::Group(config) => config.group.into(),
            Decision::Slots(_) => NUMBER_OF_SLOTS,
        }
    }

    fn version(&self) -> u32 {
        match self {
            Decision::Group(config) => config.record,
            Decision::Slots(book) => book.version,
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

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn address(&mut self) -> Option<Ipv4Addr> {
        self.u32().map(Ipv4Addr::from)
    }

    fn member(&mut self) -> Option<Member> {
        Some(Member {
            number: self.byte()?,
            switch: self.u32()?,
            incarnation: self.u32()?,
            address: self.address()?,
        })
    }

    fn members(&mut self) -> Option<Vec<Member>> {
        let count = self.byte()?;
        (0..count).map(|_| self.member()).collect()
    }

    fn listed(&mut self) -> Option<Listed> {
        Some(Listed {
            number: self.byte()?,
            address: self.address()?,
            nonce: self.u64()?,
        })
    }

    fn slot(&mut self) -> Option<Slot> {
        let incarnation = self.u16()?;
        let state = match self.byte()? {
            0 => SlotState::Free,
            1 => SlotState::Open {
                lanes: self.byte()?,
                nonce: self.u64()?,
            },
            2 => SlotState::Ended {
                lanes: self.byte()?,
            },
            _ => return None,
        };
        Some(Slot { incarnation, state })
    }

    fn group(&mut self) -> Option<GroupConfig> {
        let (group, record, epoch) = (self.byte()?, self.u32()?, self.u32()?);
        let leader = match self.byte()? {
            NOBODY => None,
            leader => Some(leader),
        };
        let configs = self.byte()?;
        let configs = (0..configs)
            .map(|_| self.members())
            .collect::<Option<_>>()?;
        let untried = match self.byte()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let learner = self.members()?;
        if learner.len() > 1 {
            return None;
        }
        let former = self.members()?;
        let list = self.u16()?;
        let receivers = self.byte()?;
        let receivers = (0..receivers)
            .map(|_| self.listed())
            .collect::<Option<_>>()?;
        Some(GroupConfig {
            group,
            record,
            epoch,
            leader,
            configs,
            untried,
            learner: learner.first().copied(),
            former,
            list,
            receivers,
        })
    }
}

/// Stored number of the leader while there is none.
const NOBODY: u8 = u8::MAX;

fn append_members(bytes: &mut Vec<u8>, members: &[Member]) {
    bytes.push(members.len() as u8);
    for member in members {
        bytes.push(member.number);
        bytes.extend(member.switch.to_be_bytes());
        bytes.extend(member.incarnation.to_be_bytes());
        bytes.extend(member.address.octets());
    }
}

impl Decision {
    /// The decision as bytes, big-endian. Lists have fewer than 256 elements.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Decision::Group(config) => {
                bytes.extend([GROUP, config.group]);
                bytes.extend(config.record.to_be_bytes());
                bytes.extend(config.epoch.to_be_bytes());
                bytes.push(config.leader.unwrap_or(NOBODY));
                bytes.push(config.configs.len() as u8);
                for members in &config.configs {
                    append_members(&mut bytes, members);
                }
                bytes.push(config.untried.into());
                append_members(&mut bytes, config.learner.as_slice());
                append_members(&mut bytes, &config.former);
                bytes.extend(config.list.to_be_bytes());
                bytes.push(config.receivers.len() as u8);
                for receiver in &config.receivers {
                    bytes.push(receiver.number);
                    bytes.extend(receiver.address.octets());
                    bytes.extend(receiver.nonce.to_be_bytes());
                }
            }
            Decision::Slots(book) => {
                bytes.push(SLOTS);
                bytes.extend(book.version.to_be_bytes());
                for slot in &book.slots {
                    bytes.extend(slot.incarnation.to_be_bytes());
                    match slot.state {
                        SlotState::Free => bytes.push(0),
                        SlotState::Open { lanes, nonce } => {
                            bytes.extend([1, lanes]);
                            bytes.extend(nonce.to_be_bytes());
                        }
                        SlotState::Ended { lanes } => bytes.extend([2, lanes]),
                    }
                }
            }
        }
        bytes
    }

    /// Reads what [`Decision::to_vec`] gave; `None` if `bytes` are something else.
    pub fn parse(bytes: &[u8]) -> Option<Decision> {
        let mut reader = Reader(bytes);
        let decision = match reader.byte()? {
            GROUP => Decision::Group(reader.group()?),
            SLOTS => {
                let version = reader.u32()?;
                let mut slots = Vec::new();
                while !reader.0.is_empty() {
                    slots.push(reader.slot()?);
                }
                Decision::Slots(SlotBook { version, slots })
            }
            _ => return None,
        };
        reader.0.is_empty().then_some(decision)
    }
}

#[cfg(test)]
mod tests;

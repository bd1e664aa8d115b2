//! The messages, and their bytes.

use core::net::Ipv4Addr;

use super::{
    BeatFront, CloseFront, ClosedFront, FRONT_LENGTH, Front, GROUP_LENGTH, GroupFront, JoinFront,
    Joined, LEADER_LENGTH, LEADERS_LENGTH, LEADS, LEARN_LENGTH, Leader, LeadersFront, Learn, MAGIC,
    MEMBER_LENGTH, MOST_NUMBERS, Member, OpenFront, Opened, RECEIVER_LENGTH, Receiver,
    SESSION_LENGTH, Session, Standing, VIEW_LENGTH, ViewFront, joined, reason, role, slot,
};
use crate::multicast::MAX_GROUPS;
use crate::reader::{Reader, zeros};
use crate::{Error, Header};

/// The host of a switch tells that the switch lives, and what it follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// Number of the switch.
    pub switch: u32,
    /// Which start of it.
    pub incarnation: u32,
    /// Counted by the start.
    pub number: u64,
    /// The controller's start that counted the version.
    pub controller: u32,
    /// Version of the view that the switch follows.
    pub version: u64,
    /// Slots of ended sessions of which a log holds an entry ([`Beat::holds`]).
    pub held: [u8; 32],
    /// Groups of which the switch has anything, at most [`MAX_GROUPS`].
    pub standings: Vec<Standing>,
    /// Bytes of zeros behind.
    pub room: u16,
}

impl Beat {
    /// True if a log of the switch holds an entry of `slot`, whose session is ended.
    pub fn holds(&self, slot: u16) -> bool {
        let byte = self.held.get(usize::from(slot / 8));
        byte.is_some_and(|byte| byte & (0x80 >> (slot % 8)) != 0)
    }

    /// Says that a log of the switch holds an entry of `slot`.
    pub fn set_holds(&mut self, slot: u16) {
        if let Some(byte) = self.held.get_mut(usize::from(slot / 8)) {
            *byte |= 0x80 >> (slot % 8);
        }
    }
}

impl Standing {
    /// Index up to which each receiver has all.
    pub fn received_by(&self) -> impl Iterator<Item = u32> {
        let words = self.received.chunks_exact(4);
        words.map(|word| word.iter().fold(0, |all, byte| all << 8 | u32::from(*byte)))
    }

    /// Sets up to which index each receiver has all; those beyond [`MOST_NUMBERS`] are left out.
    pub fn set_received_by(&mut self, received: impl IntoIterator<Item = u32>) {
        self.received = [0; 32];
        for (word, index) in self.received.chunks_exact_mut(4).zip(received) {
            word.copy_from_slice(&index.to_be_bytes());
        }
    }
}

/// Configuration of a group, as switches follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The group.
    pub group: u8,
    /// Number of the controller's decision.
    pub record: u32,
    /// Its epoch.
    pub epoch: u32,
    /// Address of the leader, unspecified while there is none.
    pub leader: Ipv4Addr,
    /// Version of the list of receivers.
    pub list: u16,
    /// The members, at most 255.
    pub members: Vec<Member>,
    /// The receivers, at most 255.
    pub receivers: Vec<Receiver>,
}

/// A part of what switches follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// Configuration of a group.
    Group(Group),
    /// Lanes of a session's slot.
    Session(Session),
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Host of a switch to controller.
    Beat(Beat),
    /// Controller to host of a switch: what changed.
    View {
        /// Which start of the controller counts the versions.
        controller: u32,
        /// Version after which these rows changed.
        after: u64,
        /// Version of the last of these rows.
        version: u64,
        /// The rows, in the order of their versions, at most 255.
        rows: Vec<Row>,
    },
    /// Sender or receiver to controller.
    Learn(Learn),
    /// Controller to sender or receiver: the leader of each group.
    Leaders {
        /// Which start of the controller.
        controller: u32,
        /// Slot of the LEARN.
        slot: u16,
        /// Incarnation of the LEARN.
        incarnation: u16,
        /// True if that session is open.
        open: bool,
        /// The leaders, at most [`MAX_GROUPS`].
        leaders: Vec<Leader>,
    },
    /// Sender to controller: a session.
    Open {
        /// Drawn by the sender.
        nonce: u64,
        /// Lanes wanted.
        lanes: u8,
    },
    /// Controller to sender.
    Opened(Opened),
    /// Sender to controller: its session is to end.
    Close {
        /// Slot of the session.
        slot: u16,
        /// Its incarnation.
        incarnation: u16,
    },
    /// Controller to sender: the session is ended.
    Closed {
        /// Slot of the session.
        slot: u16,
        /// Its incarnation.
        incarnation: u16,
    },
    /// Receiver to controller: it is to be listed, or is and lives.
    Join {
        /// Drawn by the receiver.
        nonce: u64,
        /// The group.
        group: u8,
        /// Its number in the list, [`NO_NUMBER`] before it has one.
        number: u8,
        /// Index up to which it has all.
        position: u32,
        /// True if it is to be taken off the list.
        leaves: bool,
    },
    /// Controller to receiver.
    Joined(Joined),
}

/// Room that a LEARN needs for an answer of `groups` rows, at most [`MAX_GROUPS`].
pub const fn room_for_leaders(groups: u8) -> u16 {
    let groups = if groups < MAX_GROUPS {
        groups
    } else {
        MAX_GROUPS
    };
    (LEADERS_LENGTH - LEARN_LENGTH + groups as usize * LEADER_LENGTH) as u16
}

/// Rows of a LEADERS that is not longer than a request of `length` bytes.
pub const fn leaders_within(length: usize) -> usize {
    length.saturating_sub(FRONT_LENGTH + LEADERS_LENGTH) / LEADER_LENGTH
}

/// Bytes that rows of a VIEW may have which is not longer than a BEAT of `length` bytes.
pub const fn rows_within(length: usize) -> usize {
    length.saturating_sub(FRONT_LENGTH + VIEW_LENGTH)
}

const NAME: Header = Header::MulticastControl;

fn unknown(field: &'static str, found: u32) -> Error {
    Error::Unknown {
        header: NAME,
        field,
        found,
    }
}

/// Refuses a number beyond the greatest that has a meaning.
fn up_to(greatest: u8, field: &'static str, found: u8) -> Result<u8, Error> {
    if found > greatest {
        return Err(unknown(field, found.into()));
    }
    Ok(found)
}

fn truth(field: &'static str, found: u8) -> Result<bool, Error> {
    up_to(1, field, found).map(|found| found == 1)
}

impl Row {
    /// Bytes of the row in a VIEW.
    pub fn length(&self) -> usize {
        match self {
            Row::Group(group) => {
                let (members, receivers) = (group.members.len(), group.receivers.len());
                1 + GROUP_LENGTH + members * MEMBER_LENGTH + receivers * RECEIVER_LENGTH
            }
            Row::Session(_) => 1 + SESSION_LENGTH,
        }
    }

    fn parse(reader: &mut Reader<'_>) -> Result<Row, Error> {
        let [kind] = *reader.take()?;
        match kind {
            1 => {
                let front = GroupFront::from_header(reader.take()?);
                let mut members = Vec::new();
                for _ in 0..front.members {
                    let member = Member::from_header(reader.take()?);
                    up_to(role::FORMER, "role", member.role)?;
                    up_to(MOST_NUMBERS - 1, "number", member.number)?;
                    members.push(member);
                }
                let mut receivers = Vec::new();
                for _ in 0..front.receivers {
                    let receiver = Receiver::from_header(reader.take()?);
                    up_to(MOST_NUMBERS - 1, "number", receiver.number)?;
                    receivers.push(receiver);
                }
                Ok(Row::Group(Group {
                    group: up_to(MAX_GROUPS - 1, "group", front.group)?,
                    record: front.record,
                    epoch: front.epoch,
                    leader: front.leader,
                    list: front.list,
                    members,
                    receivers,
                }))
            }
            2 => {
                let session = Session::from_header(reader.take()?);
                up_to(slot::ENDED, "state", session.state)?;
                Ok(Row::Session(session))
            }
            found => Err(unknown("row", found.into())),
        }
    }

    fn append(&self, bytes: &mut Vec<u8>) {
        match self {
            Row::Group(group) => {
                let (members, member_count) = countable(&group.members);
                let (receivers, receiver_count) = countable(&group.receivers);
                let front = GroupFront {
                    group: group.group,
                    record: group.record,
                    epoch: group.epoch,
                    leader: group.leader,
                    list: group.list,
                    members: member_count,
                    receivers: receiver_count,
                };
                bytes.push(1);
                bytes.extend(front.header_bytes());
                bytes.extend(members.iter().flat_map(Member::header_bytes));
                bytes.extend(receivers.iter().flat_map(Receiver::header_bytes));
            }
            Row::Session(session) => {
                bytes.push(2);
                bytes.extend(session.header_bytes());
            }
        }
    }
}

/// As many of `rows` as a count of 8 bits says, and their number.
fn countable<T>(rows: &[T]) -> (&[T], u8) {
    let count = rows.len().min(u8::MAX.into());
    (&rows[..count], count as u8)
}

impl Message {
    /// True if `bytes` begin as a message of this kind does.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`], [`Error::TrailingBytes`], or [`Error::Unknown`] for another magic, a
    /// type, number or state without meaning, padding that is not 0, and too many rows.
    pub fn parse(bytes: &[u8]) -> Result<Message, Error> {
        let mut reader = Reader::new(NAME, bytes);
        let front = Front::from_header(reader.take()?);
        if front.magic != MAGIC {
            return Err(unknown("magic", u32::from_be_bytes(front.magic)));
        }
        let message = match front.message_type {
            1 => Message::Beat(beat(&mut reader)?),
            2 => {
                let front = ViewFront::from_header(reader.take()?);
                let rows = (0..front.count).map(|_| Row::parse(&mut reader));
                Message::View {
                    rows: rows.collect::<Result<_, _>>()?,
                    controller: front.controller,
                    after: front.after,
                    version: front.version,
                }
            }
            3 => {
                let learn = Learn::from_header(reader.take()?);
                reader.room(learn.room, room_for_leaders(0))?;
                Message::Learn(learn)
            }
            4 => leaders(&mut reader)?,
            5 => {
                let front = OpenFront::from_header(reader.take()?);
                zeros(NAME, &front.padding)?;
                let OpenFront { nonce, lanes, .. } = front;
                Message::Open { nonce, lanes }
            }
            6 => {
                let opened = Opened::from_header(reader.take()?);
                up_to(reason::NO_LANE, "reason", opened.reason)?;
                Message::Opened(opened)
            }
            7 => {
                let front = CloseFront::from_header(reader.take()?);
                zeros(NAME, &front.padding)?;
                let (slot, incarnation) = (front.slot, front.incarnation);
                Message::Close { slot, incarnation }
            }
            8 => {
                let front = ClosedFront::from_header(reader.take()?);
                zeros(NAME, &front.padding)?;
                let (slot, incarnation) = (front.slot, front.incarnation);
                Message::Closed { slot, incarnation }
            }
            9 => {
                let front = JoinFront::from_header(reader.take()?);
                zeros(NAME, &front.padding)?;
                Message::Join {
                    nonce: front.nonce,
                    group: front.group,
                    number: front.number,
                    position: front.position,
                    leaves: truth("leaves", front.leaves)?,
                }
            }
            10 => {
                let joined = Joined::from_header(reader.take()?);
                up_to(joined::NO_GROUP, "state", joined.state)?;
                Message::Joined(joined)
            }
            found => return Err(unknown("type", found.into())),
        };
        reader.end()?;
        Ok(message)
    }

    fn message_type(&self) -> u8 {
        match self {
            Message::Beat(_) => 1,
            Message::View { .. } => 2,
            Message::Learn(_) => 3,
            Message::Leaders { .. } => 4,
            Message::Open { .. } => 5,
            Message::Opened(_) => 6,
            Message::Close { .. } => 7,
            Message::Closed { .. } => 8,
            Message::Join { .. } => 9,
            Message::Joined(_) => 10,
        }
    }

    /// The message as bytes. Lists are cut at as many elements as they may have, and a LEARN has at
    /// least the room of an answer without rows.
    pub fn to_vec(&self) -> Vec<u8> {
        let front = Front {
            magic: MAGIC,
            message_type: self.message_type(),
        };
        let mut bytes = front.header_bytes().to_vec();
        match self {
            Message::Beat(beat) => append_beat(beat, &mut bytes),
            Message::View {
                controller,
                after,
                version,
                rows,
            } => {
                let (rows, count) = countable(rows);
                let front = ViewFront {
                    controller: *controller,
                    after: *after,
                    version: *version,
                    count,
                };
                bytes.extend(front.header_bytes());
                rows.iter().for_each(|row| row.append(&mut bytes));
            }
            Message::Learn(learn) => {
                let room = learn.room.max(room_for_leaders(0));
                bytes.extend(Learn { room, ..*learn }.header_bytes());
                bytes.resize(bytes.len() + usize::from(room), 0);
            }
            Message::Leaders {
                controller,
                slot,
                incarnation,
                open,
                leaders,
            } => {
                let count = leaders.len().min(MAX_GROUPS.into());
                let front = LeadersFront {
                    controller: *controller,
                    slot: *slot,
                    incarnation: *incarnation,
                    open: (*open).into(),
                    padding: [0; 9],
                    count: count as u8,
                };
                bytes.extend(front.header_bytes());
                bytes.extend(leaders[..count].iter().flat_map(Leader::header_bytes));
            }
            Message::Open { nonce, lanes } => {
                let front = OpenFront {
                    nonce: *nonce,
                    lanes: *lanes,
                    padding: [0; 15],
                };
                bytes.extend(front.header_bytes());
            }
            Message::Opened(opened) => bytes.extend(opened.header_bytes()),
            Message::Close { slot, incarnation } => {
                let (slot, incarnation, padding) = (*slot, *incarnation, [0; 15]);
                let front = CloseFront {
                    slot,
                    incarnation,
                    padding,
                };
                bytes.extend(front.header_bytes());
            }
            Message::Closed { slot, incarnation } => {
                let (slot, incarnation, padding) = (*slot, *incarnation, [0; 15]);
                let front = ClosedFront {
                    slot,
                    incarnation,
                    padding,
                };
                bytes.extend(front.header_bytes());
            }
            Message::Join {
                nonce,
                group,
                number,
                position,
                leaves,
            } => {
                let front = JoinFront {
                    nonce: *nonce,
                    group: *group,
                    number: *number,
                    position: *position,
                    leaves: (*leaves).into(),
                    padding: [0; 14],
                };
                bytes.extend(front.header_bytes());
            }
            Message::Joined(joined) => bytes.extend(joined.header_bytes()),
        }
        bytes
    }
}

fn beat(reader: &mut Reader<'_>) -> Result<Beat, Error> {
    let front = BeatFront::from_header(reader.take()?);
    let mut standings = Vec::new();
    for _ in 0..up_to(MAX_GROUPS, "count", front.count)? {
        let standing = Standing::from_header(reader.take()?);
        up_to(MAX_GROUPS - 1, "group", standing.group)?;
        up_to(LEADS, "flags", standing.flags)?;
        standings.push(standing);
    }
    reader.room(front.room, 0)?;
    Ok(Beat {
        switch: front.switch,
        incarnation: front.incarnation,
        number: front.number,
        controller: front.controller,
        version: front.version,
        held: front.held,
        standings,
        room: front.room,
    })
}

fn append_beat(beat: &Beat, bytes: &mut Vec<u8>) {
    let count = beat.standings.len().min(MAX_GROUPS.into());
    let front = BeatFront {
        switch: beat.switch,
        incarnation: beat.incarnation,
        number: beat.number,
        controller: beat.controller,
        version: beat.version,
        held: beat.held,
        count: count as u8,
        room: beat.room,
    };
    bytes.extend(front.header_bytes());
    bytes.extend(
        beat.standings[..count]
            .iter()
            .flat_map(Standing::header_bytes),
    );
    bytes.resize(bytes.len() + usize::from(beat.room), 0);
}

fn leaders(reader: &mut Reader<'_>) -> Result<Message, Error> {
    let front = LeadersFront::from_header(reader.take()?);
    zeros(NAME, &front.padding)?;
    let mut leaders = Vec::new();
    for _ in 0..up_to(MAX_GROUPS, "count", front.count)? {
        let leader = Leader::from_header(reader.take()?);
        up_to(MAX_GROUPS - 1, "group", leader.group)?;
        leaders.push(leader);
    }
    Ok(Message::Leaders {
        controller: front.controller,
        slot: front.slot,
        incarnation: front.incarnation,
        open: truth("open", front.open)?,
        leaders,
    })
}

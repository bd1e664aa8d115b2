//! Messages between the clients of the coordination service and its controller.
//!
//! One UDP datagram each: [`MAGIC`], one byte of type, then the fields of the message in order,
//! big-endian. `docs/message-layouts.md` has the tables, `docs/coordination-protocol.md` the rules.
//! They go to the controller's port ([`crate::control::PORT`]).
//!
//! An answer is never longer than its request, so that a forged source address gains nothing: a
//! request is padded to the length of the answer, or to that of as many rows as the asker wants at
//! once.

use core::net::Ipv4Addr;

use crate::coordination::{Address, MAX_CHAIN};
use crate::reader::{Reader, zeros};
use crate::table::header;
use crate::{Error, Header};

/// First bytes of every message.
pub const MAGIC: [u8; 4] = *b"SPG1";

/// Most rows of a CHAINS, or of a SESSIONS.
pub const MOST_ROWS: usize = 32;

/// Value of `next` when nothing follows.
pub const END_OF_GROUPS: u16 = u16::MAX;

/// Value of `next` when nothing follows.
pub const END_OF_SESSIONS: u32 = u32::MAX;

header! {
    layout pub LAYOUT = "coordination control message",
        then "what its type says, in the tables below";
    length FRONT_LENGTH = 5;
    #[derive(Debug, Clone, Copy)]
    struct Front {}
    fields {
        MAGIC 32 magic: [u8; 4]   => "`SPG1`";
        TYPE   8 message_type: u8 =>
            "1 LEARN, 2 CHAINS, 3 OPEN, 4 OPENED, 5 CLOSE, 6 ENDED, 7 LIST, 8 SESSIONS";
    }
}

header! {
    layout pub LEARN_LAYOUT = "LEARN, behind the type", then "room bytes of zeros";
    length LEARN_LENGTH = 16;
    /// A client asks for the chains that changed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Learn {}
    fields {
        CONTROLLER 32 controller: u32 =>
            "the controller's start that counted the version; 0 if none is known";
        VERSION    64 version: u64    => "the version that the client has of all chains";
        GROUP      16 group: u16      => "the first group asked for";
        ROOM       16 room: u16       =>
            "bytes of zeros behind, as room for rows of the answer, at least 3";
    }
}

header! {
    layout pub CHAINS_LAYOUT = "CHAINS, behind the type", then "the rows";
    length CHAINS_LENGTH = 19;
    #[derive(Debug, Clone, Copy)]
    struct ChainsFront {}
    fields {
        CONTROLLER 32 controller: u32 => "which start of the controller counts the versions";
        VERSION    64 version: u64    => "version of all chains as it is at the controller";
        GROUPS     16 groups: u16     => "number of groups of the service";
        SLOTS      16 slots: u16      => "slots of each group";
        NEXT       16 next: u16       =>
            "the group to ask for next, as not all rows had room; 65,535 if they had";
        COUNT       8 count: u8       => "number of rows";
    }
}

header! {
    layout pub CHAIN_LAYOUT = "row in a CHAINS";
    length CHAIN_LENGTH = 26;
    /// The chain of a group.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Chain {}
    fields {
        GROUP      16 group: u16       => "number of the group";
        GENERATION 16 generation: u16  => "which founding of the group (rule 17)";
        EPOCH      32 epoch: u32       => "configuration number of its chain (rule 9)";
        FLAGS       8 flags: u8        =>
            "1 the last one joins; 2 no member lives, so that the group is down";
        MEMBERS     8 members: u8      => "members in the chain, without the one that joins";
        CHAIN_1    32 chain_1: Address =>
            "the chain IP list, head first; 0 behind the last";
        CHAIN_2    32 chain_2: Address => "the second of the list";
        CHAIN_3    32 chain_3: Address => "the third of the list";
        CHAIN_4    32 chain_4: Address => "the fourth of the list";
    }
}

header! {
    layout pub OPEN_LAYOUT = "OPEN, behind the type";
    length OPEN_LENGTH = 28;
    #[derive(Debug, Clone, Copy)]
    struct OpenFront {}
    fields {
        NONCE    64 nonce: u64          => "drawn by the client: a repeated OPEN has the same";
        LANES    16 lanes: u16          => "lanes wanted, at least 1";
        PADDING 144 padding: [u8; 18]   => "0";
    }
}

header! {
    layout pub OPENED_LAYOUT = "OPENED, behind the type";
    length OPENED_LENGTH = 28;
    /// A session and its lanes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Opened {}
    fields {
        NONCE            64 nonce: u64            => "of the OPEN";
        SESSION          32 session: u32          =>
            "number of the session, which never returns; 0: no lane is free";
        FIRST_LANE       16 first_lane: u16       => "its first lane";
        COUNT            16 count: u16            =>
            "its lanes, one behind the other: at most as many as wanted, and fewer if no more \
             free ones of one incarnation lie together";
        LANE_INCARNATION 16 lane_incarnation: u16 =>
            "incarnation of its lanes; who ends the session moves them to the next (rule 19)";
        GROUPS           16 groups: u16           => "number of groups of the service";
        LANES            16 lanes: u16            => "lanes of each group";
        SLOTS            16 slots: u16            => "slots of each group";
        TTL_MS           32 ttl_ms: u32           =>
            "ms without a keepalive after which the session may be ended (rule 19)";
    }
}

header! {
    layout pub CLOSE_LAYOUT = "CLOSE, behind the type";
    length CLOSE_LENGTH = 19;
    #[derive(Debug, Clone, Copy)]
    struct CloseFront {}
    fields {
        SESSION          32 session: u32          => "the session that was ended";
        FIRST_LANE       16 first_lane: u16       => "its first lane";
        COUNT            16 count: u16            => "its lanes";
        LANE_INCARNATION 16 lane_incarnation: u16 =>
            "their incarnation in the session; in each group they have the next";
        PADDING          72 padding: [u8; 9]      => "0";
    }
}

header! {
    layout pub ENDED_LAYOUT = "ENDED, behind the type";
    length ENDED_LENGTH = 19;
    #[derive(Debug, Clone, Copy)]
    struct EndedFront {}
    fields {
        SESSION  32 session: u32         => "the session whose lanes may be handed out again";
        PADDING 120 padding: [u8; 15]    => "0";
    }
}

header! {
    layout pub LIST_LAYOUT = "LIST, behind the type", then "room bytes of zeros";
    length LIST_LENGTH = 6;
    #[derive(Debug, Clone, Copy)]
    struct ListFront {}
    fields {
        SESSION 32 session: u32 => "the first session asked for";
        ROOM    16 room: u16    =>
            "bytes of zeros behind, as room for rows of the answer, at least 13";
    }
}

header! {
    layout pub SESSIONS_LAYOUT = "SESSIONS, behind the type", then "the rows";
    length SESSIONS_LENGTH = 19;
    #[derive(Debug, Clone, Copy)]
    struct SessionsFront {}
    fields {
        CONTROLLER 32 controller: u32 => "which start of the controller";
        SESSIONS   16 sessions: u16   => "sessions that are not closed";
        FREE_LANES 32 free_lanes: u32 => "lanes that are free";
        TTL_MS     32 ttl_ms: u32     => "as in OPENED";
        NEXT       32 next: u32       =>
            "the session to ask for next, as not all rows had room; 4,294,967,295 if they had";
        COUNT       8 count: u8       => "number of rows";
    }
}

header! {
    layout pub SESSION_LAYOUT = "row in a SESSIONS";
    length SESSION_LENGTH = 14;
    /// A session that is not closed, whether its record was made or not.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Session {}
    fields {
        SESSION          32 session: u32          => "its number";
        FIRST_LANE       16 first_lane: u16       => "its first lane";
        COUNT            16 count: u16            => "its lanes";
        LANE_INCARNATION 16 lane_incarnation: u16 => "their incarnation";
        AGE_MS           32 age_ms: u32           =>
            "ms since it was opened, or since this controller knows of it";
    }
}

/// Flag of a [`Chain`]: the last one joins.
pub const JOINS: u8 = 1;

/// Flag of a [`Chain`]: no member lives.
pub const DOWN: u8 = 2;

/// Room of a LEARN whose answer has no row: with it the message has the 24 bytes below which
/// nothing is authenticated (`docs/message-authentication.md`).
pub const LEAST_ROOM_OF_LEARN: u16 = room_for_chains(0);

/// Room of a LIST whose answer has no row, for the same reason.
pub const LEAST_ROOM_OF_LIST: u16 = room_for_sessions(0);

/// The lanes of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lanes {
    /// Number of the session.
    pub session: u32,
    /// Its first lane.
    pub first: u16,
    /// Number of lanes.
    pub count: u16,
    /// Incarnation of all of them.
    pub incarnation: u16,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Client to controller: the chains that changed.
    Learn(Learn),
    /// Controller to client.
    Chains {
        /// Which start of the controller counts the versions.
        controller: u32,
        /// Version of all chains.
        version: u64,
        /// Number of groups of the service.
        groups: u16,
        /// Slots of each group.
        slots: u16,
        /// The group to ask for next, [`END_OF_GROUPS`] if there is none.
        next: u16,
        /// Chains that changed, in the order of groups, at most [`MOST_ROWS`].
        chains: Vec<Chain>,
    },
    /// Client to controller: a session with lanes.
    Open {
        /// Drawn by the client.
        nonce: u64,
        /// Lanes wanted.
        lanes: u16,
    },
    /// Controller to client.
    Opened(Opened),
    /// From the reaper that ended a session, to the controller: its lanes have the next incarnation in each group.
    Close(Lanes),
    /// Controller to who ended a session.
    Ended {
        /// The session.
        session: u32,
    },
    /// Reaper to controller: which sessions there are.
    List {
        /// The first session asked for.
        session: u32,
        /// Bytes of padding, at least [`LEAST_ROOM_OF_LIST`].
        room: u16,
    },
    /// Controller to reaper.
    Sessions {
        /// Which start of the controller.
        controller: u32,
        /// Sessions that are not closed.
        sessions: u16,
        /// Lanes that are free.
        free_lanes: u32,
        /// Time in ms without a keepalive after which a session may be ended.
        ttl_ms: u32,
        /// The session to ask for next, [`END_OF_SESSIONS`] if there is none.
        next: u32,
        /// The sessions, in the order of numbers, at most [`MOST_ROWS`].
        rows: Vec<Session>,
    },
}

/// Rows of a CHAINS that is not longer than a request of `length` bytes.
pub const fn chains_within(length: usize) -> usize {
    rows_within(length, FRONT_LENGTH + CHAINS_LENGTH, CHAIN_LENGTH)
}

/// Rows of a SESSIONS that is not longer than a request of `length` bytes.
pub const fn sessions_within(length: usize) -> usize {
    rows_within(length, FRONT_LENGTH + SESSIONS_LENGTH, SESSION_LENGTH)
}

const fn rows_within(length: usize, front: usize, row: usize) -> usize {
    let rows = length.saturating_sub(front) / row;
    if rows < MOST_ROWS { rows } else { MOST_ROWS }
}

/// Room that a LEARN needs for an answer of `rows` rows, at most [`MOST_ROWS`].
pub const fn room_for_chains(rows: usize) -> u16 {
    let rows = if rows < MOST_ROWS { rows } else { MOST_ROWS };
    (CHAINS_LENGTH - LEARN_LENGTH + rows * CHAIN_LENGTH) as u16
}

/// Room that a LIST needs for an answer of `rows` rows, at most [`MOST_ROWS`].
pub const fn room_for_sessions(rows: usize) -> u16 {
    let rows = if rows < MOST_ROWS { rows } else { MOST_ROWS };
    (SESSIONS_LENGTH - LIST_LENGTH + rows * SESSION_LENGTH) as u16
}

impl Chain {
    /// The members, head first, and the one that joins.
    pub fn switches(&self) -> impl Iterator<Item = Ipv4Addr> + use<> {
        [self.chain_1, self.chain_2, self.chain_3, self.chain_4]
            .into_iter()
            .map_while(Address::get)
    }

    /// Sets the members, head first, and the one that joins; switches beyond [`MAX_CHAIN`] are left
    /// out.
    pub fn set_switches(&mut self, switches: impl IntoIterator<Item = Ipv4Addr>) {
        let mut all = [Address::NONE; MAX_CHAIN];
        for (place, switch) in all.iter_mut().zip(switches) {
            *place = Address(switch);
        }
        [self.chain_1, self.chain_2, self.chain_3, self.chain_4] = all;
    }
}

const NAME: Header = Header::CoordinationControl;

fn unknown(field: &'static str, found: u32) -> Error {
    Error::Unknown {
        header: NAME,
        field,
        found,
    }
}

/// Refuses a number of rows beyond [`MOST_ROWS`].
fn rows(count: u8) -> Result<u8, Error> {
    if usize::from(count) > MOST_ROWS {
        return Err(unknown("count", count.into()));
    }
    Ok(count)
}

/// At most [`MOST_ROWS`] of `rows`, and their number.
fn countable<T>(rows: &[T]) -> (&[T], u8) {
    let count = rows.len().min(MOST_ROWS);
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
    /// type or flags without meaning, padding that is not 0, and too many rows.
    pub fn parse(bytes: &[u8]) -> Result<Message, Error> {
        let mut reader = Reader::new(NAME, bytes);
        let front = Front::from_header(reader.take()?);
        if front.magic != MAGIC {
            return Err(unknown("magic", u32::from_be_bytes(front.magic)));
        }
        let message = match front.message_type {
            1 => {
                let learn = Learn::from_header(reader.take()?);
                reader.room(learn.room, LEAST_ROOM_OF_LEARN)?;
                Message::Learn(learn)
            }
            2 => {
                let front = ChainsFront::from_header(reader.take()?);
                Message::Chains {
                    chains: (0..rows(front.count)?)
                        .map(|_| chain(Chain::from_header(reader.take()?)))
                        .collect::<Result<_, _>>()?,
                    controller: front.controller,
                    version: front.version,
                    groups: front.groups,
                    slots: front.slots,
                    next: front.next,
                }
            }
            3 => {
                let front = OpenFront::from_header(reader.take()?);
                zeros(NAME, &front.padding)?;
                let OpenFront { nonce, lanes, .. } = front;
                Message::Open { nonce, lanes }
            }
            4 => Message::Opened(Opened::from_header(reader.take()?)),
            5 => {
                let front = CloseFront::from_header(reader.take()?);
                zeros(NAME, &front.padding)?;
                Message::Close(Lanes {
                    session: front.session,
                    first: front.first_lane,
                    count: front.count,
                    incarnation: front.lane_incarnation,
                })
            }
            6 => {
                let front = EndedFront::from_header(reader.take()?);
                zeros(NAME, &front.padding)?;
                let session = front.session;
                Message::Ended { session }
            }
            7 => {
                let ListFront { session, room } = ListFront::from_header(reader.take()?);
                reader.room(room, LEAST_ROOM_OF_LIST)?;
                Message::List { session, room }
            }
            8 => {
                let front = SessionsFront::from_header(reader.take()?);
                Message::Sessions {
                    rows: (0..rows(front.count)?)
                        .map(|_| reader.take().map(Session::from_header))
                        .collect::<Result<_, _>>()?,
                    controller: front.controller,
                    sessions: front.sessions,
                    free_lanes: front.free_lanes,
                    ttl_ms: front.ttl_ms,
                    next: front.next,
                }
            }
            found => return Err(unknown("type", found.into())),
        };
        reader.end()?;
        Ok(message)
    }

    fn message_type(&self) -> u8 {
        match self {
            Message::Learn(_) => 1,
            Message::Chains { .. } => 2,
            Message::Open { .. } => 3,
            Message::Opened(_) => 4,
            Message::Close(_) => 5,
            Message::Ended { .. } => 6,
            Message::List { .. } => 7,
            Message::Sessions { .. } => 8,
        }
    }

    /// The message as bytes. Lists are cut at [`MOST_ROWS`] elements, and requests with room have
    /// at least the least.
    pub fn to_vec(&self) -> Vec<u8> {
        let front = Front {
            magic: MAGIC,
            message_type: self.message_type(),
        };
        let mut bytes = front.header_bytes().to_vec();
        match *self {
            Message::Learn(learn) => {
                let room = learn.room.max(LEAST_ROOM_OF_LEARN);
                bytes.extend_from_slice(&Learn { room, ..learn }.header_bytes());
                bytes.resize(bytes.len() + usize::from(room), 0);
            }
            Message::Chains {
                controller,
                version,
                groups,
                slots,
                next,
                ref chains,
            } => {
                let (chains, count) = countable(chains);
                let front = ChainsFront {
                    controller,
                    version,
                    groups,
                    slots,
                    next,
                    count,
                };
                bytes.extend_from_slice(&front.header_bytes());
                bytes.extend(chains.iter().flat_map(Chain::header_bytes));
            }
            Message::Open { nonce, lanes } => {
                let padding = [0; 18];
                let front = OpenFront {
                    nonce,
                    lanes,
                    padding,
                };
                bytes.extend_from_slice(&front.header_bytes());
            }
            Message::Opened(opened) => bytes.extend_from_slice(&opened.header_bytes()),
            Message::Close(lanes) => {
                let front = CloseFront {
                    session: lanes.session,
                    first_lane: lanes.first,
                    count: lanes.count,
                    lane_incarnation: lanes.incarnation,
                    padding: [0; 9],
                };
                bytes.extend_from_slice(&front.header_bytes());
            }
            Message::Ended { session } => {
                let padding = [0; 15];
                bytes.extend_from_slice(&EndedFront { session, padding }.header_bytes());
            }
            Message::List { session, room } => {
                let room = room.max(LEAST_ROOM_OF_LIST);
                bytes.extend_from_slice(&ListFront { session, room }.header_bytes());
                bytes.resize(bytes.len() + usize::from(room), 0);
            }
            Message::Sessions {
                controller,
                sessions,
                free_lanes,
                ttl_ms,
                next,
                ref rows,
            } => {
                let (rows, count) = countable(rows);
                let front = SessionsFront {
                    controller,
                    sessions,
                    free_lanes,
                    ttl_ms,
                    next,
                    count,
                };
                bytes.extend_from_slice(&front.header_bytes());
                bytes.extend(rows.iter().flat_map(Session::header_bytes));
            }
        }
        bytes
    }
}

/// Refuses flags that have no meaning, and a list that does not fit its count.
fn chain(chain: Chain) -> Result<Chain, Error> {
    if chain.flags & !(JOINS | DOWN) != 0 {
        return Err(unknown("flags", chain.flags.into()));
    }
    let listed = chain.switches().count();
    if listed != usize::from(chain.members) + usize::from(chain.flags & JOINS) {
        return Err(unknown("members", chain.members.into()));
    }
    Ok(chain)
}

#[cfg(test)]
mod tests;

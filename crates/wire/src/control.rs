//! Messages between the controller and store servers or switches.
//!
//! One UDP datagram each: [`MAGIC`], one byte of type, then the fields of the
//! message in order, big-endian. `docs/replication-protocol.md` has the tables.

use core::net::SocketAddrV4;

use crate::error::split;
use crate::table::header;
use crate::value::Value;
use crate::{Error, Header};

/// UDP port of the controller, unless configured otherwise.
pub const PORT: u16 = 4795;

/// First bytes of every control message.
pub const MAGIC: [u8; 4] = *b"SPK1";

/// Most statuses, or rows, in one message: it fits 1,400 bytes.
pub const MOST_ROWS: usize = 32;

header! {
    layout pub LAYOUT = "control message", then "what its type says, in the tables below";
    length HEADER_LENGTH = 5;
    #[derive(Debug, Clone, Copy)]
    struct Front {}
    fields {
        MAGIC 32 magic: [u8; 4]   => "`SPK1`";
        TYPE   8 message_type: u8 => "1 HEARTBEAT, 2 CONFIGURE, 3 SUBSCRIBE, 4 ROWS";
    }
}

header! {
    layout pub MEMBER_LAYOUT = "member of a chain";
    length MEMBER_LENGTH = 20;
    /// A replica as its chain's configuration names it: one start of one server.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct Member {}
    fields {
        SERVER      32 server: u32            => "number of the server";
        INCARNATION 32 incarnation: u32       =>
            "which start of the server; one that starts anew has lost its state";
        REQUESTS    48 requests: SocketAddrV4 => "address and port where switches reach it";
        LINKS       48 links: SocketAddrV4    =>
            "address and port where its neighbours reach it";
    }
}

impl Value for Member {
    const BITS: usize = 8 * MEMBER_LENGTH;

    fn read(header: &[u8], at: usize, bits: usize) -> Member {
        Member::from_header(&Value::read(header, at, bits))
    }

    fn write(self, header: &mut [u8], at: usize, bits: usize) {
        self.header_bytes().write(header, at, bits);
    }
}

header! {
    layout pub HEARTBEAT_LAYOUT = "HEARTBEAT, behind the type", then "the statuses";
    length HEARTBEAT_LENGTH = 29;
    #[derive(Debug, Clone, Copy)]
    struct HeartbeatFront {}
    fields {
        FROM    160 from: Member => "the server, as a member of a chain";
        NUMBER   64 number: u64  => "counted by the server";
        COUNT     8 count: u8    => "number of statuses";
    }
}

header! {
    layout pub STATUS_LAYOUT = "status in a HEARTBEAT";
    length STATUS_LENGTH = 23;
    #[derive(Debug, Clone, Copy)]
    struct Status {}
    fields {
        FLAGS    8 flags: u8    =>
            "1 joined; 2 hears nothing from its successor; 4 has left the chain, since its \
             disk lost entries of it";
        CHAIN   16 chain: u16   => "number of the chain";
        EPOCH   32 epoch: u32   => "configuration that the server follows";
        APPLIED 64 applied: u64 => "number of the last entry applied";
        BASE    64 base: u64    =>
            "number of the entry up to which every replica has all, as the server knows";
    }
}

header! {
    layout pub CONFIGURE_LAYOUT = "CONFIGURE, behind the type", then "the configuration";
    length CONFIGURE_LENGTH = 4;
    #[derive(Debug, Clone, Copy)]
    struct ConfigureFront {}
    fields {
        CONTROLLER 32 controller: u32 => "which start of the controller";
    }
}

header! {
    layout pub CONFIG_LAYOUT = "configuration of a chain",
        then "the members, head first, then the one that joins";
    length CONFIG_LENGTH = 8;
    #[derive(Debug, Clone, Copy)]
    struct ConfigFront {}
    fields {
        FLAGS  8 flags: u8  => "1 one joins";
        CHAIN 16 chain: u16 => "number of the chain";
        EPOCH 32 epoch: u32 => "configuration number; it grows with each change (rule 21)";
        COUNT  8 count: u8  => "number of members, without the one that joins";
    }
}

header! {
    layout pub SUBSCRIBE_LAYOUT = "SUBSCRIBE, behind the type";
    length SUBSCRIBE_LENGTH = 19;
    #[derive(Debug, Clone, Copy)]
    struct Subscribe {}
    fields {
        SWITCH_ID  32 switch: u32     => "number of the switch";
        CONTROLLER 32 controller: u32 =>
            "the controller's start that counted the version; 0 if none is known";
        VERSION    64 version: u64    => "the last version known";
        PADDING    24 padding: [u8; 3] => "0";
    }
}

header! {
    layout pub ROWS_LAYOUT = "ROWS, behind the type", then "the rows";
    length ROWS_LENGTH = 21;
    #[derive(Debug, Clone, Copy)]
    struct RowsFront {}
    fields {
        CONTROLLER 32 controller: u32 => "which start of the controller counts the versions";
        AFTER      64 after: u64      => "version after which these rows changed";
        VERSION    64 version: u64    => "version of the last of these rows";
        COUNT       8 count: u8       => "number of rows";
    }
}

header! {
    layout pub ROW_LAYOUT = "row in a ROWS";
    length ROW_LENGTH = 12;
    /// Address of the head of a shard's chain.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Row {}
    fields {
        SHARD 16 shard: u16         => "number of the shard";
        EPOCH 32 epoch: u32         => "configuration number of its chain";
        HEAD  48 head: SocketAddrV4 => "address and port of the head";
    }
}

/// One configuration of one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainConfig {
    /// The chain: the number of the shard that it keeps.
    pub chain: u16,
    /// Configuration number; it grows with each change (rule 21).
    pub epoch: u32,
    /// The replicas, head first.
    pub members: Vec<Member>,
    /// The replica that the tail feeds, until it is as the tail and can be one.
    pub joining: Option<Member>,
}

/// A server's report of one of its chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainStatus {
    /// The chain.
    pub chain: u16,
    /// Configuration that the server follows.
    pub epoch: u32,
    /// As tail: the joining replica has all that was ever answered.
    pub joined: bool,
    /// It sends to its successor, or to the joining replica, and hears nothing.
    pub suspects: bool,
    /// It has left the chain in this configuration, although it has a place: its disk has
    /// lost entries that others have.
    pub lost: bool,
    /// Number of the last entry applied.
    pub applied: u64,
    /// Number of the entry up to which every replica has all, as it knows.
    pub base: u64,
}

/// A server is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// Who, and where it is reached.
    pub from: Member,
    /// Counted by the server: one that is late is not taken for a newer one.
    pub number: u64,
    /// No statuses of more chains follow than [`MOST_ROWS`]; the others have their
    /// turn in later messages.
    pub statuses: Vec<ChainStatus>,
}

/// A control message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Store server to controller.
    Heartbeat(Heartbeat),
    /// Controller to store server: one configuration.
    Configure {
        /// Which start of the controller.
        controller: u32,
        /// The configuration.
        config: ChainConfig,
    },
    /// Switch to controller: it wants to know of all rows after `version`.
    Subscribe {
        /// Number of the switch.
        switch: u32,
        /// The controller's start that counted `version`; 0 if none is known.
        controller: u32,
        /// The last version known.
        version: u64,
    },
    /// Controller to switch: what changed.
    Rows {
        /// Which start of the controller counts the versions.
        controller: u32,
        /// Version after which these rows changed.
        after: u64,
        /// Version of the last of these rows.
        version: u64,
        /// The rows, at most [`MOST_ROWS`].
        rows: Vec<Row>,
    },
}

/// Behind a subscription: what authenticates it answers only messages that are no shorter
/// than the answer, of 24 bytes (`docs/message-authentication.md`).
const PADDING: [u8; 3] = [0; 3];

/// Flags of a status.
const JOINED: u8 = 1;
const SUSPECTS: u8 = 2;
const LOST: u8 = 4;

/// Flag of a configuration.
const JOINING: u8 = 1;

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], Error> {
        let (taken, rest) = split(Header::Control, self.rest)?;
        self.rest = rest;
        Ok(taken)
    }

    fn member(&mut self) -> Result<Member, Error> {
        self.take().map(Member::from_header)
    }

    fn status(&mut self) -> Result<ChainStatus, Error> {
        let status = Status::from_header(self.take()?);
        let flags = known(status.flags, JOINED | SUSPECTS | LOST)?;
        Ok(ChainStatus {
            joined: flags & JOINED != 0,
            suspects: flags & SUSPECTS != 0,
            lost: flags & LOST != 0,
            chain: status.chain,
            epoch: status.epoch,
            applied: status.applied,
            base: status.base,
        })
    }

    fn config(&mut self) -> Result<ChainConfig, Error> {
        let front = ConfigFront::from_header(self.take()?);
        let flags = known(front.flags, JOINING)?;
        let members = (0..front.count)
            .map(|_| self.member())
            .collect::<Result<_, _>>()?;
        let joining = (flags & JOINING != 0).then(|| self.member()).transpose()?;
        Ok(ChainConfig {
            chain: front.chain,
            epoch: front.epoch,
            members,
            joining,
        })
    }

    fn end(&self) -> Result<(), Error> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(Error::TrailingBytes {
            header: Header::Control,
            extra: self.rest.len(),
        })
    }
}

/// Refuses flags that have no meaning.
fn known(flags: u8, known: u8) -> Result<u8, Error> {
    if flags & !known != 0 {
        return Err(unknown("flags", flags));
    }
    Ok(flags)
}

fn unknown(field: &'static str, found: u8) -> Error {
    Error::Unknown {
        header: Header::Control,
        field,
        found: found.into(),
    }
}

/// At most 255 of `elements`, which a byte counts, and their number.
fn countable<T>(elements: &[T]) -> (&[T], u8) {
    let count = elements.len().min(255);
    (&elements[..count], count as u8)
}

impl ChainStatus {
    fn header_bytes(&self) -> [u8; STATUS_LENGTH] {
        Status {
            flags: (u8::from(self.joined) * JOINED)
                | (u8::from(self.suspects) * SUSPECTS)
                | (u8::from(self.lost) * LOST),
            chain: self.chain,
            epoch: self.epoch,
            applied: self.applied,
            base: self.base,
        }
        .header_bytes()
    }
}

impl ChainConfig {
    /// Reads a configuration that [`ChainConfig::append`] wrote, and nothing else.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`], [`Error::TrailingBytes`] or [`Error::Unknown`].
    pub fn parse(bytes: &[u8]) -> Result<ChainConfig, Error> {
        let mut reader = Reader { rest: bytes };
        let config = reader.config()?;
        reader.end()?;
        Ok(config)
    }

    /// Appends the configuration to `bytes`. Of more than 255 members, the first
    /// 255 are written.
    pub fn append(&self, bytes: &mut Vec<u8>) {
        let (members, count) = countable(&self.members);
        let front = ConfigFront {
            flags: u8::from(self.joining.is_some()) * JOINING,
            chain: self.chain,
            epoch: self.epoch,
            count,
        };
        bytes.extend_from_slice(&front.header_bytes());
        for member in members.iter().chain(&self.joining) {
            bytes.extend_from_slice(&member.header_bytes());
        }
    }
}

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`], [`Error::TrailingBytes`], or [`Error::Unknown`] for
    /// another magic, a type or flags without meaning.
    pub fn parse(bytes: &[u8]) -> Result<Message, Error> {
        let mut reader = Reader { rest: bytes };
        let Front {
            magic,
            message_type,
        } = Front::from_header(reader.take()?);
        if magic != MAGIC {
            return Err(Error::Unknown {
                header: Header::Control,
                field: "magic",
                found: u32::from_be_bytes(magic),
            });
        }
        let message = match message_type {
            1 => {
                let front = HeartbeatFront::from_header(reader.take()?);
                let statuses = (0..front.count).map(|_| reader.status());
                Message::Heartbeat(Heartbeat {
                    statuses: statuses.collect::<Result<_, _>>()?,
                    from: front.from,
                    number: front.number,
                })
            }
            2 => Message::Configure {
                controller: ConfigureFront::from_header(reader.take()?).controller,
                config: reader.config()?,
            },
            3 => {
                let Subscribe {
                    switch,
                    controller,
                    version,
                    padding,
                } = Subscribe::from_header(reader.take()?);
                if let Some(found) = padding.into_iter().find(|byte| *byte != 0) {
                    return Err(unknown("padding", found));
                }
                Message::Subscribe {
                    switch,
                    controller,
                    version,
                }
            }
            4 => {
                let front = RowsFront::from_header(reader.take()?);
                let rows = (0..front.count).map(|_| reader.take().map(Row::from_header));
                Message::Rows {
                    rows: rows.collect::<Result<_, _>>()?,
                    controller: front.controller,
                    after: front.after,
                    version: front.version,
                }
            }
            found => return Err(unknown("type", found)),
        };
        reader.end()?;
        Ok(message)
    }

    /// The message as bytes. Lists are cut at 255 elements.
    pub fn to_vec(&self) -> Vec<u8> {
        let message_type = match self {
            Message::Heartbeat(_) => 1,
            Message::Configure { .. } => 2,
            Message::Subscribe { .. } => 3,
            Message::Rows { .. } => 4,
        };
        let front = Front {
            magic: MAGIC,
            message_type,
        };
        let mut bytes = front.header_bytes().to_vec();
        match *self {
            Message::Heartbeat(Heartbeat {
                from,
                number,
                ref statuses,
            }) => {
                let (statuses, count) = countable(statuses);
                let front = HeartbeatFront {
                    from,
                    number,
                    count,
                };
                bytes.extend_from_slice(&front.header_bytes());
                bytes.extend(statuses.iter().flat_map(|status| status.header_bytes()));
            }
            Message::Configure {
                controller,
                ref config,
            } => {
                bytes.extend_from_slice(&ConfigureFront { controller }.header_bytes());
                config.append(&mut bytes);
            }
            Message::Subscribe {
                switch,
                controller,
                version,
            } => {
                let subscribe = Subscribe {
                    switch,
                    controller,
                    version,
                    padding: PADDING,
                };
                bytes.extend_from_slice(&subscribe.header_bytes());
            }
            Message::Rows {
                controller,
                after,
                version,
                ref rows,
            } => {
                let (rows, count) = countable(rows);
                let front = RowsFront {
                    controller,
                    after,
                    version,
                    count,
                };
                bytes.extend_from_slice(&front.header_bytes());
                bytes.extend(rows.iter().flat_map(Row::header_bytes));
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests;

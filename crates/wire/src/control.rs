//! Messages between the controller and store servers or switches.
//!
//! One UDP datagram each: [`MAGIC`], one byte of type, then the fields of the
//! message in order, big-endian. `docs/replication-protocol.md` has the tables.

use core::net::{Ipv4Addr, SocketAddrV4};

use crate::error::at_least;
use crate::{Error, Header};

/// UDP port of the controller, unless configured otherwise.
pub const PORT: u16 = 4795;

/// First bytes of every control message.
pub const MAGIC: [u8; 4] = *b"SPK1";

/// Most statuses, or rows, in one message: it fits 1,400 bytes.
pub const MOST_ROWS: usize = 32;

/// A replica as its chain's configuration names it: one start of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// Number of the server.
    pub server: u32,
    /// Which start of the server; one that starts anew has lost its state.
    pub incarnation: u32,
    /// Where switches reach it.
    pub requests: SocketAddrV4,
    /// Where its neighbours reach it.
    pub links: SocketAddrV4,
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

/// What a server says of one of its chains.
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

/// Where the head of a shard's chain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The shard.
    pub shard: u16,
    /// Configuration number of its chain.
    pub epoch: u32,
    /// Address and port of the head.
    pub head: SocketAddrV4,
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

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        at_least(Header::Control, self.rest, N)?;
        let (taken, rest) = self.rest.split_at(N);
        self.rest = rest;
        let mut array = [0; N];
        array.copy_from_slice(taken);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.take::<1>()?[0])
    }

    fn u16(&mut self) -> Result<u16, Error> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Error> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, Error> {
        self.take().map(u64::from_be_bytes)
    }

    fn address(&mut self) -> Result<SocketAddrV4, Error> {
        let ip = Ipv4Addr::from(self.take::<4>()?);
        Ok(SocketAddrV4::new(ip, self.u16()?))
    }

    fn flags(&mut self, known: u8) -> Result<u8, Error> {
        let flags = self.u8()?;
        if flags & !known != 0 {
            return Err(unknown("flags", flags));
        }
        Ok(flags)
    }

    fn member(&mut self) -> Result<Member, Error> {
        Ok(Member {
            server: self.u32()?,
            incarnation: self.u32()?,
            requests: self.address()?,
            links: self.address()?,
        })
    }

    fn status(&mut self) -> Result<ChainStatus, Error> {
        let flags = self.flags(7)?;
        Ok(ChainStatus {
            joined: flags & 1 != 0,
            suspects: flags & 2 != 0,
            lost: flags & 4 != 0,
            chain: self.u16()?,
            epoch: self.u32()?,
            applied: self.u64()?,
            base: self.u64()?,
        })
    }

    fn row(&mut self) -> Result<Row, Error> {
        Ok(Row {
            shard: self.u16()?,
            epoch: self.u32()?,
            head: self.address()?,
        })
    }

    fn config(&mut self) -> Result<ChainConfig, Error> {
        let flags = self.flags(1)?;
        let chain = self.u16()?;
        let epoch = self.u32()?;
        let count = self.u8()?;
        let members = (0..count)
            .map(|_| self.member())
            .collect::<Result<_, _>>()?;
        let joining = (flags & 1 != 0).then(|| self.member()).transpose()?;
        Ok(ChainConfig {
            chain,
            epoch,
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

fn unknown(field: &'static str, found: u8) -> Error {
    Error::Unknown {
        header: Header::Control,
        field,
        found: found.into(),
    }
}

fn put_address(bytes: &mut Vec<u8>, address: SocketAddrV4) {
    bytes.extend_from_slice(&address.ip().octets());
    bytes.extend_from_slice(&address.port().to_be_bytes());
}

impl Member {
    fn append(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.server.to_be_bytes());
        bytes.extend_from_slice(&self.incarnation.to_be_bytes());
        put_address(bytes, self.requests);
        put_address(bytes, self.links);
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
        let count = self.members.len().min(255);
        bytes.push(u8::from(self.joining.is_some()));
        bytes.extend_from_slice(&self.chain.to_be_bytes());
        bytes.extend_from_slice(&self.epoch.to_be_bytes());
        bytes.push(count as u8);
        for member in self.members[..count].iter().chain(&self.joining) {
            member.append(bytes);
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
        let magic = reader.take::<4>()?;
        if magic != MAGIC {
            return Err(Error::Unknown {
                header: Header::Control,
                field: "magic",
                found: u32::from_be_bytes(magic),
            });
        }
        let message = match reader.u8()? {
            1 => {
                let from = reader.member()?;
                let number = reader.u64()?;
                let count = reader.u8()?;
                let statuses = (0..count)
                    .map(|_| reader.status())
                    .collect::<Result<_, _>>();
                Message::Heartbeat(Heartbeat {
                    from,
                    number,
                    statuses: statuses?,
                })
            }
            2 => Message::Configure {
                controller: reader.u32()?,
                config: reader.config()?,
            },
            3 => {
                let subscribe = Message::Subscribe {
                    switch: reader.u32()?,
                    controller: reader.u32()?,
                    version: reader.u64()?,
                };
                let padding = reader.take::<{ PADDING.len() }>()?;
                if let Some(found) = padding.into_iter().find(|byte| *byte != 0) {
                    return Err(unknown("padding", found));
                }
                subscribe
            }
            4 => {
                let (controller, after, version) = (reader.u32()?, reader.u64()?, reader.u64()?);
                let count = reader.u8()?;
                let rows = (0..count).map(|_| reader.row()).collect::<Result<_, _>>()?;
                Message::Rows {
                    controller,
                    after,
                    version,
                    rows,
                }
            }
            found => return Err(unknown("type", found)),
        };
        reader.end()?;
        Ok(message)
    }

    /// The message as bytes. Lists are cut at 255 elements.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        match self {
            Message::Heartbeat(Heartbeat {
                from,
                number,
                statuses,
            }) => {
                bytes.push(1);
                from.append(&mut bytes);
                bytes.extend_from_slice(&number.to_be_bytes());
                let count = statuses.len().min(255);
                bytes.push(count as u8);
                for status in &statuses[..count] {
                    let flags = [status.joined, status.suspects, status.lost];
                    let flags = flags.iter().rev();
                    bytes.push(flags.fold(0, |all, flag| all << 1 | u8::from(*flag)));
                    bytes.extend_from_slice(&status.chain.to_be_bytes());
                    bytes.extend_from_slice(&status.epoch.to_be_bytes());
                    for field in [status.applied, status.base] {
                        bytes.extend_from_slice(&field.to_be_bytes());
                    }
                }
            }
            Message::Configure { controller, config } => {
                bytes.push(2);
                bytes.extend_from_slice(&controller.to_be_bytes());
                config.append(&mut bytes);
            }
            Message::Subscribe {
                switch,
                controller,
                version,
            } => {
                bytes.push(3);
                bytes.extend_from_slice(&switch.to_be_bytes());
                bytes.extend_from_slice(&controller.to_be_bytes());
                bytes.extend_from_slice(&version.to_be_bytes());
                bytes.extend_from_slice(&PADDING);
            }
            Message::Rows {
                controller,
                after,
                version,
                rows,
            } => {
                bytes.push(4);
                bytes.extend_from_slice(&controller.to_be_bytes());
                bytes.extend_from_slice(&after.to_be_bytes());
                bytes.extend_from_slice(&version.to_be_bytes());
                let count = rows.len().min(255);
                bytes.push(count as u8);
                for row in &rows[..count] {
                    bytes.extend_from_slice(&row.shard.to_be_bytes());
                    bytes.extend_from_slice(&row.epoch.to_be_bytes());
                    put_address(&mut bytes, row.head);
                }
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests;

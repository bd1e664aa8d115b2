//! The message between two neighbours of a chain, and the entries that it carries.
//!
//! A chain message is one UDP datagram: a header of [`HEADER_LENGTH`] bytes and,
//! in an UPDATE, entries one behind the other, each behind its length. An entry is
//! the decision that the head made and the request that caused it, so that the tail
//! can answer (rules 11 and 20 of `docs/replication-protocol.md`). A SNAPSHOT
//! carries [`Item`]s instead. All integers are big-endian.

mod entry;
mod item;

use crate::big_endian::{get_u16, get_u32, get_u64, put};
use crate::error::{at_least, exactly};
use crate::{Error, Header};

pub use entry::{Creation, Decision, ENTRY_HEADER_LENGTH, Entry, entry_field, entry_flag};
pub use item::{ITEM_HOLDER_LENGTH, Item, ItemHolder, ItemHolders, ItemPorts, LeaseKind};

/// UDP port on which a replica hears its neighbours, unless configured otherwise.
pub const PORT: u16 = 4794;

/// First bytes of every chain message.
pub const MAGIC: [u8; 4] = *b"SPC2";

/// Length in bytes of the header.
pub const HEADER_LENGTH: usize = 32;

/// Bytes before each entry of an UPDATE: its length.
pub const ENTRY_PREFIX: usize = 2;

/// Where each field of the header begins, in bytes.
pub mod field {
    /// 4 bytes: [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// 1 byte: [`super::Kind`].
    pub const KIND: usize = 4;
    /// 1 byte: sender's position in the chain, 0 is the head.
    pub const REPLICA: usize = 5;
    /// 2 bytes: number of the chain.
    pub const CHAIN: usize = 6;
    /// 4 bytes: configuration number of the chain.
    pub const CHAIN_EPOCH: usize = 8;
    /// 4 bytes: incarnation of the end of the link that sends updates.
    pub const INCARNATION: usize = 12;
    /// 8 bytes: number of an entry, or of a part of a snapshot.
    pub const NUMBER: usize = 16;
    /// 8 bytes: the entry up to which every replica has all, or the one up to which
    /// a snapshot goes.
    pub const BASE: usize = 24;
    /// Entries or items.
    pub const BODY: usize = 32;
}

/// What a chain message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Entries, to the successor.
    Update = 1,
    /// An acknowledgement, to the predecessor.
    Ack = 2,
    /// A part of the state, to a replica that joins behind the tail.
    Snapshot = 3,
    /// An acknowledgement of parts, to the tail.
    SnapshotAck = 4,
    /// What should I have? From a replica that came back from its disk, to a neighbour.
    Compare = 5,
    /// The answer.
    Compared = 6,
}

impl Kind {
    /// Whether something follows the header.
    fn has_body(self) -> bool {
        matches!(self, Kind::Update | Kind::Snapshot)
    }
}

/// A view over the bytes of one chain message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    kind: Kind,
}

impl<'a> Packet<'a> {
    /// Checks the header; what the body holds is checked by [`Entry::parse`] and
    /// [`Item::parse`].
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`]; [`Error::Unknown`] for another magic or a kind without
    /// meaning; [`Error::TrailingBytes`] for an acknowledgement with a body.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Packet<'a>, Error> {
        let header = Header::Chain;
        at_least(header, bytes, HEADER_LENGTH)?;
        if bytes[..MAGIC.len()] != MAGIC {
            return Err(Error::Unknown {
                header,
                field: "magic",
                found: get_u32(bytes, field::MAGIC),
            });
        }
        let kind = match bytes[field::KIND] {
            1 => Kind::Update,
            2 => Kind::Ack,
            3 => Kind::Snapshot,
            4 => Kind::SnapshotAck,
            5 => Kind::Compare,
            6 => Kind::Compared,
            found => {
                return Err(Error::Unknown {
                    header,
                    field: "kind",
                    found: found.into(),
                });
            }
        };
        if !kind.has_body() && bytes.len() > HEADER_LENGTH {
            return Err(Error::TrailingBytes {
                header,
                extra: bytes.len() - HEADER_LENGTH,
            });
        }
        Ok(Packet { bytes, kind })
    }

    /// What the message is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Sender's position in the chain.
    pub fn replica(&self) -> u8 {
        self.bytes[field::REPLICA]
    }

    /// Configuration number of the chain.
    pub fn chain_epoch(&self) -> u32 {
        get_u32(self.bytes, field::CHAIN_EPOCH)
    }

    /// Incarnation of the end of the link that sends updates; an ACK repeats the
    /// incarnation of the updates that it acknowledges.
    pub fn incarnation(&self) -> u32 {
        get_u32(self.bytes, field::INCARNATION)
    }

    /// Number of the chain: a server may have a place in many.
    pub fn chain(&self) -> u16 {
        get_u16(self.bytes, field::CHAIN)
    }

    /// UPDATE: number of the first entry, counted by the heads from 1; ACK: of the
    /// last entry received in order and applied; SNAPSHOT: of the part, from 1;
    /// SNAPSHOT_ACK: of the last part received in order.
    pub fn number(&self) -> u64 {
        get_u64(self.bytes, field::NUMBER)
    }

    /// UPDATE and ACK: number of the entry up to which, as the sender knows, every
    /// replica has all; SNAPSHOT and SNAPSHOT_ACK: of the last entry that is part of
    /// the snapshot.
    pub fn base(&self) -> u64 {
        get_u64(self.bytes, field::BASE)
    }

    /// What follows the header: entries or items.
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[field::BODY..]
    }

    /// The entries of an UPDATE, not yet looked into, in the order of their numbers.
    /// One that is cut off ends the list with an error.
    pub fn entries(&self) -> Entries<'a> {
        Entries { rest: self.body() }
    }
}

/// The entries of an UPDATE; see [`Packet::entries`].
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<&'a [u8], Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let rest = core::mem::take(&mut self.rest);
        let header = Header::Chain;
        if let Err(error) = at_least(header, rest, ENTRY_PREFIX) {
            return Some(Err(error));
        }
        let end = ENTRY_PREFIX + usize::from(get_u16(rest, 0));
        if let Err(error) = at_least(header, rest, end) {
            return Some(Err(error));
        }
        self.rest = &rest[end..];
        Some(Ok(&rest[ENTRY_PREFIX..end]))
    }
}

/// What a chain message means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr<'a> {
    /// What the message is.
    pub kind: Kind,
    /// Sender's position in the chain.
    pub replica: u8,
    /// Number of the chain.
    pub chain: u16,
    /// Configuration number of the chain.
    pub chain_epoch: u32,
    /// Incarnation of the end of the link that sends updates.
    pub incarnation: u32,
    /// As [`Packet::number`].
    pub number: u64,
    /// As [`Packet::base`].
    pub base: u64,
    /// Entries or items; empty in acknowledgements.
    pub body: &'a [u8],
}

impl<'a> Repr<'a> {
    /// Reads every field of a checked message.
    pub fn parse(packet: &Packet<'a>) -> Repr<'a> {
        Repr {
            kind: packet.kind(),
            replica: packet.replica(),
            chain: packet.chain(),
            chain_epoch: packet.chain_epoch(),
            incarnation: packet.incarnation(),
            number: packet.number(),
            base: packet.base(),
            body: packet.body(),
        }
    }

    /// Bytes of the message.
    pub fn buffer_len(&self) -> usize {
        HEADER_LENGTH + self.body.len()
    }

    /// Writes the message into `buffer`.
    ///
    /// # Errors
    ///
    /// [`Error::Buffer`] unless `buffer` is [`Repr::buffer_len`] long;
    /// [`Error::Unrepresentable`] for an acknowledgement with a body.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        exactly(Header::Chain, buffer, self.buffer_len())?;
        self.emit_header(buffer)?;
        put(buffer, field::BODY, self.body);
        Ok(())
    }

    /// Writes the header alone into the first [`HEADER_LENGTH`] bytes of
    /// `buffer`, for a body that already lies behind it. `self.body` is not
    /// written.
    ///
    /// # Errors
    ///
    /// [`Error::Buffer`] if `buffer` is shorter than the header;
    /// [`Error::Unrepresentable`] for an acknowledgement with a body.
    pub fn emit_header(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let header = Header::Chain;
        if buffer.len() < HEADER_LENGTH {
            return Err(Error::Buffer {
                header,
                needed: HEADER_LENGTH,
                found: buffer.len(),
            });
        }
        if !self.kind.has_body() && !self.body.is_empty() {
            return Err(Error::Unrepresentable {
                header,
                field: "body of an acknowledgement",
            });
        }
        put(buffer, field::MAGIC, &MAGIC);
        buffer[field::KIND] = self.kind as u8;
        buffer[field::REPLICA] = self.replica;
        put(buffer, field::CHAIN, &self.chain.to_be_bytes());
        put(buffer, field::CHAIN_EPOCH, &self.chain_epoch.to_be_bytes());
        put(buffer, field::INCARNATION, &self.incarnation.to_be_bytes());
        put(buffer, field::NUMBER, &self.number.to_be_bytes());
        put(buffer, field::BASE, &self.base.to_be_bytes());
        Ok(())
    }

    /// The message as bytes of its own.
    ///
    /// # Errors
    ///
    /// As [`Repr::emit`].
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; self.buffer_len()];
        self.emit(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;

//! The message between two neighbours of a chain, and the entries that it carries.
//!
//! A chain message is one UDP datagram: a header of [`HEADER_LENGTH`] bytes and,
//! in an UPDATE, entries one behind the other, each behind its length. An entry is
//! the decision that the head made and the request that caused it, so that the tail
//! can answer (rules 11 and 20 of `docs/replication-protocol.md`). A SNAPSHOT
//! carries [`Item`]s instead. All integers are big-endian.

mod entry;
mod item;

use crate::big_endian::get_u16;
use crate::error::{at_least, exactly, split};
use crate::table::header;
use crate::{Error, Header};

pub use entry::{
    Creation, Decision, ENTRY_HEADER_LENGTH, ENTRY_LAYOUT, Entry, HolderPlace, LAST_PLACE,
    entry_field, entry_flag,
};
pub use item::{
    END_LAYOUT, HOLDER_LAYOUT, ITEM_HOLDER_LENGTH, Item, ItemHolder, ItemHolders, ItemPorts,
    LeaseKind, POOL_LAYOUT, RECORD_LAYOUT, SHARD_LAYOUT,
};

/// UDP port on which a replica hears its neighbours, unless configured otherwise.
pub const PORT: u16 = 4794;

/// First bytes of every chain message.
pub const MAGIC: [u8; 4] = *b"SPC3";

/// Bytes before each entry of an UPDATE: its length.
pub const ENTRY_PREFIX: usize = 2;

header! {
    layout pub LAYOUT = "chain message", then "entries or items";
    length pub HEADER_LENGTH = 32;
    /// Meaning of a chain message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Repr<'a> {
        /// Kind of the message.
        kind: Kind,
        /// Entries or items; empty in acknowledgements.
        body: &'a [u8],
    }
    offsets field;
    view Packet;
    fields {
        MAGIC         32 (magic: [u8; 4])       => "`SPC3`";
        KIND           8 (kind_number: u8) =>
            "1 UPDATE (to the successor), 2 ACK (to the predecessor), 3 SNAPSHOT (from the tail \
             to a replica that joins), 4 SNAPSHOT_ACK, 5 COMPARE (to both neighbours, from a \
             replica that came back from its disk), 6 COMPARED (the answer)";
        REPLICA        8  replica: u8 =>
            "sender's position in the chain, 0 is the head; the number of members for a replica \
             that joins";
        CHAIN         16  chain: u16 =>
            "number of the chain: 0 if it is fixed, else that of its shard";
        CHAIN_EPOCH   32  chain_epoch: u32 => "configuration number of the chain (rule 21)";
        INCARNATION   32  incarnation: u32 =>
            "of the replica that sends updates or parts, also in their acknowledgements (0: not \
             heard yet): a receiver accepts one incarnation in each chain epoch, the first that \
             begins with the number that it lacks";
        NUMBER        64  number: u64 =>
            "UPDATE: of the first entry; ACK: of the last entry received in order *and applied*; \
             SNAPSHOT: of the part, from 1; SNAPSHOT_ACK: of the last part received in order; \
             COMPARE, COMPARED: of the start that asks";
        BASE          64  base: u64 =>
            "UPDATE, ACK: the entry up to which, as the sender knows, every replica has all; \
             SNAPSHOT, SNAPSHOT_ACK: the last entry that the snapshot contains; COMPARED: to the \
             predecessor the last entry applied, to the successor as in an UPDATE";
    }
}

/// Kind of a chain message.
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
    /// Question for the entries that a replica should have, from one that came back from its disk, to a neighbour.
    Compare = 5,
    /// The answer.
    Compared = 6,
}

impl Kind {
    /// True if a body follows the header.
    fn has_body(self) -> bool {
        matches!(self, Kind::Update | Kind::Snapshot)
    }
}

/// A view over the bytes of one chain message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    header: &'a [u8; HEADER_LENGTH],
    kind: Kind,
    body: &'a [u8],
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
        let (fixed, body) = split(header, bytes)?;
        let mut packet = Packet {
            header: fixed,
            kind: Kind::Ack,
            body,
        };
        if packet.magic() != MAGIC {
            return Err(Error::Unknown {
                header,
                field: "magic",
                found: u32::from_be_bytes(packet.magic()),
            });
        }
        packet.kind = match packet.kind_number() {
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
        if !packet.kind.has_body() && !body.is_empty() {
            return Err(Error::TrailingBytes {
                header,
                extra: body.len(),
            });
        }
        Ok(packet)
    }

    /// Kind of the message.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Bytes behind the header: entries or items.
    pub fn body(&self) -> &'a [u8] {
        self.body
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

impl<'a> Repr<'a> {
    /// Reads every field of a checked message.
    pub fn parse(packet: &Packet<'a>) -> Repr<'a> {
        Repr::from_header(packet.header, packet.kind, packet.body)
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
        buffer[HEADER_LENGTH..].copy_from_slice(self.body);
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
        let found = buffer.len();
        let Some(buffer) = buffer.first_chunk_mut() else {
            return Err(Error::Buffer {
                header,
                needed: HEADER_LENGTH,
                found,
            });
        };
        if !self.kind.has_body() && !self.body.is_empty() {
            return Err(Error::Unrepresentable {
                header,
                field: "body of an acknowledgement",
            });
        }
        *buffer = self.header_bytes(MAGIC, self.kind as u8);
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

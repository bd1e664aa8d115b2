//! The message between two neighbours of a chain, and the entry that it carries.
//!
//! A chain message is one UDP datagram: a header of [`HEADER_LENGTH`] bytes and,
//! in an UPDATE, one entry. An entry is the decision that the head made and the
//! request that caused it, so that the tail can answer (rules 11 and 20 of
//! `docs/replication-protocol.md`). All integers are big-endian.

mod entry;

use crate::big_endian::{get_array, get_u32, get_u64, put};
use crate::error::{at_least, exactly};
use crate::{Error, Header};

pub use entry::{Creation, Decision, ENTRY_HEADER_LENGTH, Entry, entry_field, entry_flag};

/// UDP port on which a replica hears its neighbours, unless configured otherwise.
pub const PORT: u16 = 4794;

/// First bytes of every chain message.
pub const MAGIC: [u8; 4] = *b"SPC1";

/// Length in bytes of the header.
pub const HEADER_LENGTH: usize = 24;

/// Where each field of the header begins, in bytes.
pub mod field {
    /// 4 bytes: [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// 1 byte: [`super::Kind`].
    pub const KIND: usize = 4;
    /// 1 byte: sender's position in the chain, 0 is the head.
    pub const REPLICA: usize = 5;
    /// 2 bytes: 0.
    pub const RESERVED: usize = 6;
    /// 4 bytes: configuration number of the chain.
    pub const CHAIN_EPOCH: usize = 8;
    /// 4 bytes: incarnation of the end of the link that sends updates.
    pub const INCARNATION: usize = 12;
    /// 8 bytes: position on the link.
    pub const NUMBER: usize = 16;
    /// An UPDATE's entry.
    pub const BODY: usize = 24;
}

/// What a chain message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// An entry, to the successor.
    Update = 1,
    /// An acknowledgement, to the predecessor.
    Ack = 2,
}

/// A view over the bytes of one chain message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    kind: Kind,
}

impl<'a> Packet<'a> {
    /// Checks the header; the body of an UPDATE is checked by [`Entry::parse`].
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`]; [`Error::Unknown`] for another magic, a kind without
    /// meaning or reserved bits that are set; [`Error::TrailingBytes`] for an ACK
    /// with a body.
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
            found => {
                return Err(Error::Unknown {
                    header,
                    field: "kind",
                    found: found.into(),
                });
            }
        };
        let reserved = get_array::<2>(bytes, field::RESERVED);
        if reserved != [0, 0] {
            return Err(Error::Unknown {
                header,
                field: "reserved",
                found: u16::from_be_bytes(reserved).into(),
            });
        }
        if kind == Kind::Ack && bytes.len() > HEADER_LENGTH {
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

    /// UPDATE: position on the link, from 1; ACK: highest number received in
    /// order and applied.
    pub fn number(&self) -> u64 {
        get_u64(self.bytes, field::NUMBER)
    }

    /// What follows the header: an UPDATE's entry.
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[field::BODY..]
    }
}

/// What a chain message means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr<'a> {
    /// What the message is.
    pub kind: Kind,
    /// Sender's position in the chain.
    pub replica: u8,
    /// Configuration number of the chain.
    pub chain_epoch: u32,
    /// Incarnation of the end of the link that sends updates.
    pub incarnation: u32,
    /// UPDATE: position on the link, from 1; ACK: highest number applied.
    pub number: u64,
    /// An UPDATE's entry, as [`Entry::emit`] wrote it; empty in an ACK.
    pub body: &'a [u8],
}

impl<'a> Repr<'a> {
    /// Reads every field of a checked message.
    pub fn parse(packet: &Packet<'a>) -> Repr<'a> {
        Repr {
            kind: packet.kind(),
            replica: packet.replica(),
            chain_epoch: packet.chain_epoch(),
            incarnation: packet.incarnation(),
            number: packet.number(),
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
    /// [`Error::Unrepresentable`] for an ACK with a body.
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
    /// [`Error::Unrepresentable`] for an ACK with a body.
    pub fn emit_header(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let header = Header::Chain;
        if buffer.len() < HEADER_LENGTH {
            return Err(Error::Buffer {
                header,
                needed: HEADER_LENGTH,
                found: buffer.len(),
            });
        }
        if self.kind == Kind::Ack && !self.body.is_empty() {
            return Err(Error::Unrepresentable {
                header,
                field: "body of an ACK",
            });
        }
        put(buffer, field::MAGIC, &MAGIC);
        buffer[field::KIND] = self.kind as u8;
        buffer[field::REPLICA] = self.replica;
        put(buffer, field::RESERVED, &[0, 0]);
        put(buffer, field::CHAIN_EPOCH, &self.chain_epoch.to_be_bytes());
        put(buffer, field::INCARNATION, &self.incarnation.to_be_bytes());
        put(buffer, field::NUMBER, &self.number.to_be_bytes());
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

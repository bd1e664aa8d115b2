//! The message between a switch and the state store.
//!
//! `docs/replication-protocol.md` says what the fields mean and when each
//! message is sent; [`LAYOUT`] says where they lie. One UDP
//! datagram holds one message: a fixed header, the flow's state, and perhaps a
//! packet (a whole Ethernet frame). All integers are big-endian.

pub mod older;

use core::fmt;

use crate::checksum::Sum;
use crate::error::{at_least, exactly, split};
use crate::table::header;
use crate::value::Value;
use crate::{Error, Header};

/// UDP port of the message, on the switch's side and on the store's.
pub const PORT: u16 = 4793;

/// The version of the message format, the value of [`field::VERSION`].
pub const VERSION: u8 = 2;

/// Length in bytes of a flow key.
pub const KEY_LENGTH: usize = 16;

/// First value of `send_time` that its 48 bits cannot hold, in µs.
pub const SEND_TIME_END: u64 = 1 << 48;

header! {
    layout pub LAYOUT = "replication message",
        then "the flow's state, state_length bytes; then the packet if `PACKET` is set";
    length pub HEADER_LENGTH = 72;
    /// Meaning of a message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Repr<'a> {
        /// Type of the message.
        message_type: MessageType,
        /// True if the lease asked for or granted is shared.
        shared: bool,
        /// The flow's state, at most 65535 bytes.
        state: &'a [u8],
        /// The packet on board: a whole Ethernet frame, if there is one.
        packet: Option<&'a [u8]>,
    }
    offsets field;
    view Packet;
    may_not_fit Replication;
    fields {
        VERSION        8 (version: u8)          => "2";
        TYPE           8 (type_number: u8)      => "type of message, see below";
        CODE           8  code: u8              => "refusals: why; otherwise 0";
        FLAGS          8 (flags: u8) =>
            "bit 0 `PACKET` a packet is on board; bit 1 `SHARED` the lease is shared";
        CHAIN_EPOCH   32  chain_epoch: u32 =>
            "configuration number of the shard's chain (rule 21)";
        SHARD         16  shard: u16            => "which part of the key space the key belongs to";
        CHECKSUM      16 (checksum: u16) =>
            "RFC 1071 over header and state, without the packet";
        SWITCH_ID     32  switch_id: u32        => "the switch that asks";
        INCARNATION   32  incarnation: u32 =>
            "drawn anew at each start of that switch, never 0 (rule 6)";
        CLAIM         32  claim: u32 =>
            "number of the slot claim, counted by the switch (rule 2)";
        REQUEST       32  request: u32 =>
            "number of the packet request within the slot, from 1, also after it has wrapped \
             (rule 4)";
        SEND_TIME     48  send_time: u64 =>
            "switch clock in µs at *this* transmission (rule 1)";
        INGRESS_PORT  16  ingress_port: u16     => "port by which the packet on board came";
        KEY          128  key: Key =>
            "flow key, made by the program; byte 0 is the flow class";
        LEASE_EPOCH   32  lease_epoch: u32 =>
            "requests: epoch held; in lease requests the one that the slot gave up, or 0; \
             replies: epoch of the grant, or the present epoch in a refusal";
        SEQUENCE      32  sequence: u32 =>
            "requests: of the state on board; in release requests, and lease requests with a \
             lease_epoch, of the last write under that; replies: of the state that the tail holds";
        AGE           64  age: u64 =>
            "IDLE: µs for which a lease must have been unused; USED, RELEASE_REQUEST: µs since the \
             lease was last used, of a release without a slot 0 (rule 22)";
        ATTEMPT       16  attempt: u16 =>
            "requests: 0 for the first transmission, counted up by retransmission; replies echo it";
        STATE_LENGTH  16 (state_length: usize)  => "bytes of state that follow";
    }
}

/// Bits of the flags field. Bits without a name are ignored by a receiver and
/// sent as 0.
pub mod flag {
    crate::numbers::flags! {
        /// A packet follows the state.
        PACKET = 1 << 0,
        /// The lease asked for or granted is shared.
        SHARED = 1 << 1,
    }
}

/// Type of a message. The values below 0x10 go to a store, the others to a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum MessageType {
    /// A switch asks for a lease, perhaps with the packet that needs it.
    LeaseRequest = 0x01,
    /// A switch writes the flow's state, perhaps with the output packet.
    WriteRequest = 0x02,
    /// A reader's packet goes by the store, to leave behind those in front of it (rule 26).
    RenewRequest = 0x03,
    /// A switch asks whether the whole chain is alive.
    ProbeRequest = 0x04,
    /// A switch gives a lease up (rule 19).
    ReleaseRequest = 0x05,
    /// A switch has used a lease since the time that an [`Idle`](Self::Idle) names (rule 22).
    Used = 0x06,
    /// A lease was granted; carries the flow's state.
    LeaseReply = 0x11,
    /// Every replica has the write.
    WriteReply = 0x12,
    /// The packet comes back.
    RenewReply = 0x13,
    /// The whole chain is alive.
    ProbeReply = 0x14,
    /// The store asks a holder to give its lease up (rule 19). The head sends it,
    /// in answer to nothing.
    Recall = 0x15,
    /// The store asks a holder whether it has used its lease of late, and to give it up if it
    /// has not (rule 22). The head sends it, in answer to nothing.
    Idle = 0x16,
    /// The request was refused; the code says why.
    Refusal = 0x1f,
}

impl MessageType {
    /// Every type, in the order of the values.
    pub const ALL: [MessageType; 13] = [
        MessageType::LeaseRequest,
        MessageType::WriteRequest,
        MessageType::RenewRequest,
        MessageType::ProbeRequest,
        MessageType::ReleaseRequest,
        MessageType::Used,
        MessageType::LeaseReply,
        MessageType::WriteReply,
        MessageType::RenewReply,
        MessageType::ProbeReply,
        MessageType::Recall,
        MessageType::Idle,
        MessageType::Refusal,
    ];

    /// The type of value `value`, if there is one.
    pub fn from_u8(value: u8) -> Option<MessageType> {
        MessageType::ALL.into_iter().find(|t| *t as u8 == value)
    }

    /// True if a switch sends it to a store.
    pub fn is_request(self) -> bool {
        (self as u8) < 0x10
    }
}

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum RefusalCode {
    /// Another grant is newer: `lease_epoch` is the present epoch and `sequence`
    /// echoes the request's lease epoch (rule 12).
    Fenced = 1,
    /// The class never creates state by request and there is none.
    NoRecord = 2,
    /// Too many requests wait for this flow or on this server (rule 23).
    ParkingFull = 3,
    /// No port is left in the shard's range (rule 22).
    PoolExhausted = 4,
    /// This server is not the head of that shard's chain (rule 21).
    WrongServer = 5,
    /// The request's chain epoch is not the present one (rule 21).
    WrongChainEpoch = 6,
    /// The state's length is not what the class declares, or the class is unknown.
    BadState = 7,
    /// No room for another record or another holder.
    StoreFull = 8,
    /// A write, or an exclusive lease, where only shared leases exist (rule 18).
    NotWritable = 9,
    /// The tenant has as many records as its quota allows.
    QuotaExceeded = 10,
}

impl RefusalCode {
    /// Every code, in the order of the values.
    pub const ALL: [RefusalCode; 10] = [
        RefusalCode::Fenced,
        RefusalCode::NoRecord,
        RefusalCode::ParkingFull,
        RefusalCode::PoolExhausted,
        RefusalCode::WrongServer,
        RefusalCode::WrongChainEpoch,
        RefusalCode::BadState,
        RefusalCode::StoreFull,
        RefusalCode::NotWritable,
        RefusalCode::QuotaExceeded,
    ];

    /// The code of value `value`, if there is one.
    pub fn from_u8(value: u8) -> Option<RefusalCode> {
        RefusalCode::ALL.into_iter().find(|c| *c as u8 == value)
    }
}

/// A flow's name, made by the program; its first byte is the flow class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Key(pub [u8; KEY_LENGTH]);

impl Key {
    /// The flow class, which the store's configuration gives a meaning.
    pub fn class(&self) -> u8 {
        self.0[0]
    }
}

impl Value for Key {
    const BITS: usize = 8 * KEY_LENGTH;

    #[inline(always)]
    fn read(header: &[u8], at: usize, bits: usize) -> Key {
        Key(Value::read(header, at, bits))
    }

    #[inline(always)]
    fn write(self, header: &mut [u8], at: usize, bits: usize) {
        self.0.write(header, at, bits);
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// A view over the bytes of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    header: &'a [u8; HEADER_LENGTH],
    message_type: MessageType,
}

impl<'a> Packet<'a> {
    /// Checks that `bytes` are one message of a known version and type, whose
    /// state lies within, which ends where it says, and whose header and state are
    /// what was sent.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`], [`Error::Version`], [`Error::Unknown`] (the type),
    /// [`Error::TrailingBytes`] (bytes after the state without a packet) or
    /// [`Error::Checksum`].
    pub fn new_checked(bytes: &'a [u8]) -> Result<Packet<'a>, Error> {
        let packet = Packet::new_unsummed(bytes)?;
        match Sum::new().over(&bytes[..packet.state_end()]).finish() {
            0 => Ok(packet),
            _ => Err(Error::Checksum {
                header: Header::Replication,
            }),
        }
    }

    /// As [`new_checked`](Self::new_checked), but for the checksum: for a first look at
    /// what is checked later.
    ///
    /// # Errors
    ///
    /// As [`new_checked`](Self::new_checked), without [`Error::Checksum`].
    pub fn new_unsummed(bytes: &'a [u8]) -> Result<Packet<'a>, Error> {
        let header = Header::Replication;
        let (fixed, _) = split(header, bytes)?;
        let mut packet = Packet {
            bytes,
            header: fixed,
            message_type: MessageType::Refusal,
        };
        Error::unless_spoken(header, packet.version(), VERSION)?;
        let number = packet.type_number();
        let known = MessageType::from_u8(number);
        packet.message_type = Error::unless_known(header, "type", number, known)?;
        let end = packet.state_end();
        at_least(header, bytes, end)?;
        if packet.flags() & flag::PACKET == 0 && bytes.len() > end {
            return Err(Error::TrailingBytes {
                header,
                extra: bytes.len() - end,
            });
        }
        Ok(packet)
    }

    /// The bytes of the whole message.
    #[inline]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Type of the message.
    #[inline]
    pub fn message_type(&self) -> MessageType {
        self.message_type
    }

    /// True if the lease asked for or granted is shared.
    #[inline]
    pub fn shared(&self) -> bool {
        self.flags() & flag::SHARED != 0
    }

    /// The flow's state.
    #[inline]
    pub fn state(&self) -> &'a [u8] {
        &self.bytes[HEADER_LENGTH..self.state_end()]
    }

    /// The packet on board: a whole Ethernet frame, if there is one.
    #[inline]
    pub fn packet(&self) -> Option<&'a [u8]> {
        (self.flags() & flag::PACKET != 0).then(|| &self.bytes[self.state_end()..])
    }

    #[inline]
    fn state_end(&self) -> usize {
        HEADER_LENGTH + self.state_length()
    }
}

impl<'a> Repr<'a> {
    /// A message of type `message_type` about `key`, with every other field zero
    /// or empty.
    pub fn new(message_type: MessageType, key: Key) -> Repr<'a> {
        Repr {
            key,
            ..Repr::from_header(&[0; HEADER_LENGTH], message_type, false, &[], None)
        }
    }

    /// Reads every field of a checked message. Flag bits without a name are
    /// dropped.
    #[inline]
    pub fn parse(packet: &Packet<'a>) -> Repr<'a> {
        Repr::from_header(
            packet.header,
            packet.message_type(),
            packet.shared(),
            packet.state(),
            packet.packet(),
        )
    }

    /// Bytes of the message: header, state and packet.
    pub fn buffer_len(&self) -> usize {
        HEADER_LENGTH + self.state.len() + self.packet.map_or(0, <[u8]>::len)
    }

    /// Writes the message into `buffer`.
    ///
    /// # Errors
    ///
    /// [`Error::Buffer`] unless `buffer` is [`Repr::buffer_len`] long;
    /// [`Error::Unrepresentable`] if the state is longer than 65535 bytes or the
    /// send time does not fit 48 bits.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        exactly(Header::Replication, buffer, self.buffer_len())?;
        let (header, rest) = buffer.split_at_mut(HEADER_LENGTH);
        header.copy_from_slice(&self.header()?);
        let (state, packet) = rest.split_at_mut(self.state.len());
        state.copy_from_slice(self.state);
        packet.copy_from_slice(self.packet.unwrap_or_default());
        Ok(())
    }

    /// The bytes before the state.
    fn header(&self) -> Result<[u8; HEADER_LENGTH], Error> {
        let mut flags = 0;
        if self.packet.is_some() {
            flags |= flag::PACKET;
        }
        if self.shared {
            flags |= flag::SHARED;
        }
        let kind = self.message_type as u8;
        let mut buffer = self.header_bytes(VERSION, kind, flags, 0, self.state.len())?;
        let checksum = Sum::new().over(&buffer).over(self.state).finish();
        checksum.write(&mut buffer, field::CHECKSUM * 8, 16);
        Ok(buffer)
    }

    /// The message as bytes of its own.
    ///
    /// # Errors
    ///
    /// As [`Repr::emit`].
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::with_capacity(self.buffer_len());
        bytes.extend_from_slice(&self.header()?);
        bytes.extend_from_slice(self.state);
        bytes.extend_from_slice(self.packet.unwrap_or_default());
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;

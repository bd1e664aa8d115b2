//! The message between a switch and the state store.
//!
//! `docs/replication-protocol.md` says what the fields mean and when each
//! message is sent; the constants of [`field`] say where they lie. One UDP
//! datagram holds one message: a fixed header, the flow's state, and perhaps a
//! packet (a whole Ethernet frame). All integers are big-endian.

use core::fmt;

use crate::big_endian::{get_array, get_u16, get_u32, get_u48, put};
use crate::checksum::Sum;
use crate::error::{at_least, exactly};
use crate::{Error, Header};

/// UDP port of the message, on the switch's side and on the store's.
pub const PORT: u16 = 4793;

/// The version of the message format, the value of [`field::VERSION`].
pub const VERSION: u8 = 1;

/// Length in bytes of the fixed header, from the version to the state's length.
pub const HEADER_LENGTH: usize = 72;

/// Length in bytes of a flow key.
pub const KEY_LENGTH: usize = 16;

/// First value of `send_time` that its 48 bits cannot hold, in µs.
pub const SEND_TIME_END: u64 = 1 << 48;

/// Where each field begins, in bytes from the start of the message.
///
/// `p4/lib` declares the same header; a test compares the two.
pub mod field {
    /// 1 byte: version of the format, [`super::VERSION`].
    pub const VERSION: usize = 0;
    /// 1 byte: [`super::MessageType`].
    pub const TYPE: usize = 1;
    /// 1 byte: [`super::RefusalCode`] of a refusal, otherwise 0.
    pub const CODE: usize = 2;
    /// 1 byte: [`super::flag`].
    pub const FLAGS: usize = 3;
    /// 4 bytes: configuration number of the shard's chain.
    pub const CHAIN_EPOCH: usize = 4;
    /// 2 bytes: part of the key space that the key belongs to.
    pub const SHARD: usize = 8;
    /// 2 bytes: RFC 1071 over header and state, without the packet.
    pub const CHECKSUM: usize = 10;
    /// 4 bytes: the switch that asks.
    pub const SWITCH_ID: usize = 12;
    /// 4 bytes: drawn anew at each start of that switch, never 0.
    pub const INCARNATION: usize = 16;
    /// 4 bytes: number of the slot claim, counted by the switch.
    pub const CLAIM: usize = 20;
    /// 4 bytes: number of the packet request within the slot.
    pub const REQUEST: usize = 24;
    /// 6 bytes: switch clock in µs at this transmission.
    pub const SEND_TIME: usize = 28;
    /// 2 bytes: port by which the packet on board came.
    pub const INGRESS_PORT: usize = 34;
    /// 16 bytes: flow key; its first byte is the flow class.
    pub const KEY: usize = 36;
    /// 4 bytes: lease epoch held (requests), granted or present (replies).
    pub const LEASE_EPOCH: usize = 52;
    /// 4 bytes: number of the state on board (requests) or held (replies).
    pub const SEQUENCE: usize = 56;
    /// 4 bytes: µs for which the request waited at the store.
    pub const PARKED: usize = 60;
    /// 4 bytes: µs of lease granted or renewed, 0 if not renewed.
    pub const PERIOD: usize = 64;
    /// 2 bytes: number of the transmission, 0 for the first.
    pub const ATTEMPT: usize = 68;
    /// 2 bytes: bytes of state that follow the header.
    pub const STATE_LENGTH: usize = 70;
    /// The flow's state, then the packet if [`super::flag::PACKET`] is set.
    pub const STATE: usize = 72;
}

/// Bits of the flags field. Bits without a name are ignored by a receiver and
/// sent as 0.
pub mod flag {
    /// A packet follows the state.
    pub const PACKET: u8 = 1 << 0;
    /// The lease asked for or granted is shared.
    pub const SHARED: u8 = 1 << 1;
}

/// What a message is. The values below 0x10 go to a store, the others to a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum MessageType {
    /// A switch asks for a lease, perhaps with the packet that needs it.
    LeaseRequest = 0x01,
    /// A switch writes the flow's state, perhaps with the output packet.
    WriteRequest = 0x02,
    /// A reader asks for more lease time.
    RenewRequest = 0x03,
    /// A switch asks whether the whole chain is alive.
    ProbeRequest = 0x04,
    /// A switch gives a lease up (rule 19).
    ReleaseRequest = 0x05,
    /// A lease was granted; carries the flow's state.
    LeaseReply = 0x11,
    /// Every replica has the write.
    WriteReply = 0x12,
    /// The lease was renewed, or not, as the period says.
    RenewReply = 0x13,
    /// The whole chain is alive.
    ProbeReply = 0x14,
    /// The store asks a holder to give its lease up (rule 19). The head sends it,
    /// in answer to nothing.
    Recall = 0x15,
    /// The request was refused; the code says why.
    Refusal = 0x1f,
}

impl MessageType {
    /// Every type, in the order of the values.
    pub const ALL: [MessageType; 11] = [
        MessageType::LeaseRequest,
        MessageType::WriteRequest,
        MessageType::RenewRequest,
        MessageType::ProbeRequest,
        MessageType::ReleaseRequest,
        MessageType::LeaseReply,
        MessageType::WriteReply,
        MessageType::RenewReply,
        MessageType::ProbeReply,
        MessageType::Recall,
        MessageType::Refusal,
    ];

    /// The type of value `value`, if there is one.
    pub fn from_u8(value: u8) -> Option<MessageType> {
        MessageType::ALL.into_iter().find(|t| *t as u8 == value)
    }

    /// Whether a switch sends it to a store.
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
        let Some(fixed) = bytes.first_chunk() else {
            return Err(Error::Truncated {
                header,
                needed: HEADER_LENGTH,
                found: bytes.len(),
            });
        };
        if bytes[field::VERSION] != VERSION {
            return Err(Error::Version {
                header,
                found: bytes[field::VERSION],
            });
        }
        let message_type =
            MessageType::from_u8(bytes[field::TYPE]).ok_or_else(|| Error::Unknown {
                header,
                field: "type",
                found: bytes[field::TYPE].into(),
            })?;
        let end = HEADER_LENGTH + usize::from(get_u16(bytes, field::STATE_LENGTH));
        at_least(header, bytes, end)?;
        if bytes[field::FLAGS] & flag::PACKET == 0 && bytes.len() > end {
            return Err(Error::TrailingBytes {
                header,
                extra: bytes.len() - end,
            });
        }
        Ok(Packet {
            bytes,
            header: fixed,
            message_type,
        })
    }

    /// The bytes of the whole message.
    #[inline]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What the message is.
    #[inline]
    pub fn message_type(&self) -> MessageType {
        self.message_type
    }

    /// All flag bits; see [`flag`].
    #[inline]
    pub fn flags(&self) -> u8 {
        self.header[field::FLAGS]
    }

    /// Whether the lease asked for or granted is shared.
    #[inline]
    pub fn shared(&self) -> bool {
        self.flags() & flag::SHARED != 0
    }

    /// Configuration number of the shard's chain.
    #[inline]
    pub fn chain_epoch(&self) -> u32 {
        get_u32(self.header, field::CHAIN_EPOCH)
    }

    /// Part of the key space that the key belongs to.
    #[inline]
    pub fn shard(&self) -> u16 {
        get_u16(self.header, field::SHARD)
    }

    /// Why a request was refused, as a number; 0 in other messages.
    #[inline]
    pub fn code(&self) -> u8 {
        self.header[field::CODE]
    }

    /// The switch that asks.
    #[inline]
    pub fn switch_id(&self) -> u32 {
        get_u32(self.header, field::SWITCH_ID)
    }

    /// Which start of that switch asks.
    #[inline]
    pub fn incarnation(&self) -> u32 {
        get_u32(self.header, field::INCARNATION)
    }

    /// Number of the slot claim.
    #[inline]
    pub fn claim(&self) -> u32 {
        get_u32(self.header, field::CLAIM)
    }

    /// Number of the packet request within the slot.
    #[inline]
    pub fn request(&self) -> u32 {
        get_u32(self.header, field::REQUEST)
    }

    /// Switch clock in µs at this transmission, below [`SEND_TIME_END`].
    #[inline]
    pub fn send_time(&self) -> u64 {
        get_u48(self.header, field::SEND_TIME)
    }

    /// Port by which the packet on board came.
    #[inline]
    pub fn ingress_port(&self) -> u16 {
        get_u16(self.header, field::INGRESS_PORT)
    }

    /// The flow's key.
    #[inline]
    pub fn key(&self) -> Key {
        Key(get_array(self.header, field::KEY))
    }

    /// Lease epoch held (requests), granted or present (replies).
    #[inline]
    pub fn lease_epoch(&self) -> u32 {
        get_u32(self.header, field::LEASE_EPOCH)
    }

    /// Number of the state on board (requests) or held by the tail (replies).
    #[inline]
    pub fn sequence(&self) -> u32 {
        get_u32(self.header, field::SEQUENCE)
    }

    /// µs for which the request waited at the store.
    #[inline]
    pub fn parked(&self) -> u32 {
        get_u32(self.header, field::PARKED)
    }

    /// µs of lease granted or renewed; 0: not renewed.
    #[inline]
    pub fn period(&self) -> u32 {
        get_u32(self.header, field::PERIOD)
    }

    /// Number of the transmission, 0 for the first.
    #[inline]
    pub fn attempt(&self) -> u16 {
        get_u16(self.header, field::ATTEMPT)
    }

    /// The flow's state.
    #[inline]
    pub fn state(&self) -> &'a [u8] {
        &self.bytes[field::STATE..self.state_end()]
    }

    /// The packet on board: a whole Ethernet frame, if there is one.
    #[inline]
    pub fn packet(&self) -> Option<&'a [u8]> {
        (self.flags() & flag::PACKET != 0).then(|| &self.bytes[self.state_end()..])
    }

    #[inline]
    fn state_end(&self) -> usize {
        field::STATE + usize::from(get_u16(self.header, field::STATE_LENGTH))
    }
}

/// What a message means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr<'a> {
    /// What the message is.
    pub message_type: MessageType,
    /// Whether the lease asked for or granted is shared.
    pub shared: bool,
    /// Configuration number of the shard's chain.
    pub chain_epoch: u32,
    /// Part of the key space that the key belongs to.
    pub shard: u16,
    /// Why a request was refused ([`RefusalCode`]); otherwise 0.
    pub code: u8,
    /// The switch that asks.
    pub switch_id: u32,
    /// Which start of that switch asks; never 0.
    pub incarnation: u32,
    /// Number of the slot claim.
    pub claim: u32,
    /// Number of the packet request within the slot.
    pub request: u32,
    /// Switch clock in µs at this transmission, below [`SEND_TIME_END`].
    pub send_time: u64,
    /// Port by which the packet on board came.
    pub ingress_port: u16,
    /// The flow's key.
    pub key: Key,
    /// Lease epoch held (requests), granted or present (replies).
    pub lease_epoch: u32,
    /// Number of the state on board (requests) or held by the tail (replies).
    pub sequence: u32,
    /// µs for which the request waited at the store.
    pub parked: u32,
    /// µs of lease granted or renewed; 0: not renewed.
    pub period: u32,
    /// Number of the transmission, 0 for the first.
    pub attempt: u16,
    /// The flow's state, at most 65535 bytes.
    pub state: &'a [u8],
    /// The packet on board: a whole Ethernet frame, if there is one.
    pub packet: Option<&'a [u8]>,
}

impl<'a> Repr<'a> {
    /// A message of type `message_type` about `key`, with every other field zero
    /// or empty.
    pub fn new(message_type: MessageType, key: Key) -> Repr<'a> {
        Repr {
            message_type,
            shared: false,
            chain_epoch: 0,
            shard: 0,
            code: 0,
            switch_id: 0,
            incarnation: 0,
            claim: 0,
            request: 0,
            send_time: 0,
            ingress_port: 0,
            key,
            lease_epoch: 0,
            sequence: 0,
            parked: 0,
            period: 0,
            attempt: 0,
            state: &[],
            packet: None,
        }
    }

    /// Reads every field of a checked message. Flag bits without a name are
    /// dropped.
    #[inline]
    pub fn parse(packet: &Packet<'a>) -> Repr<'a> {
        Repr {
            message_type: packet.message_type(),
            shared: packet.shared(),
            chain_epoch: packet.chain_epoch(),
            shard: packet.shard(),
            code: packet.code(),
            switch_id: packet.switch_id(),
            incarnation: packet.incarnation(),
            claim: packet.claim(),
            request: packet.request(),
            send_time: packet.send_time(),
            ingress_port: packet.ingress_port(),
            key: packet.key(),
            lease_epoch: packet.lease_epoch(),
            sequence: packet.sequence(),
            parked: packet.parked(),
            period: packet.period(),
            attempt: packet.attempt(),
            state: packet.state(),
            packet: packet.packet(),
        }
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
        let header = Header::Replication;
        let state_length = u16::try_from(self.state.len()).map_err(|_| Error::Unrepresentable {
            header,
            field: "state_length",
        })?;
        if self.send_time >= SEND_TIME_END {
            return Err(Error::Unrepresentable {
                header,
                field: "send_time",
            });
        }
        let mut flags = 0;
        if self.packet.is_some() {
            flags |= flag::PACKET;
        }
        if self.shared {
            flags |= flag::SHARED;
        }
        let mut buffer = [0; HEADER_LENGTH];
        buffer[field::VERSION] = VERSION;
        buffer[field::TYPE] = self.message_type as u8;
        buffer[field::CODE] = self.code;
        buffer[field::FLAGS] = flags;
        put(
            &mut buffer,
            field::CHAIN_EPOCH,
            &self.chain_epoch.to_be_bytes(),
        );
        put(&mut buffer, field::SHARD, &self.shard.to_be_bytes());
        put(&mut buffer, field::SWITCH_ID, &self.switch_id.to_be_bytes());
        put(
            &mut buffer,
            field::INCARNATION,
            &self.incarnation.to_be_bytes(),
        );
        put(&mut buffer, field::CLAIM, &self.claim.to_be_bytes());
        put(&mut buffer, field::REQUEST, &self.request.to_be_bytes());
        put(
            &mut buffer,
            field::SEND_TIME,
            &self.send_time.to_be_bytes()[2..],
        );
        put(
            &mut buffer,
            field::INGRESS_PORT,
            &self.ingress_port.to_be_bytes(),
        );
        put(&mut buffer, field::KEY, &self.key.0);
        put(
            &mut buffer,
            field::LEASE_EPOCH,
            &self.lease_epoch.to_be_bytes(),
        );
        put(&mut buffer, field::SEQUENCE, &self.sequence.to_be_bytes());
        put(&mut buffer, field::PARKED, &self.parked.to_be_bytes());
        put(&mut buffer, field::PERIOD, &self.period.to_be_bytes());
        put(&mut buffer, field::ATTEMPT, &self.attempt.to_be_bytes());
        put(
            &mut buffer,
            field::STATE_LENGTH,
            &state_length.to_be_bytes(),
        );
        let checksum = Sum::new().over(&buffer).over(self.state).finish();
        put(&mut buffer, field::CHECKSUM, &checksum.to_be_bytes());
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

//! The message of the coordination service: between clients and switches, among the switches of
//! a chain, and between the controller and switches.
//!
//! `docs/coordination-protocol.md` says what the fields mean and when each message is sent;
//! [`LAYOUT`] says where they lie (NetChain §4.1 and Fig. 2(b), and what its rules need besides).
//! One UDP datagram holds one message: a fixed header and a value, which is padded with zeros to
//! whole chunks of [`CHUNK_LENGTH`] bytes; one longer than [`SHORT_VALUE`], to a multiple of
//! [`PART_LENGTH`]. All integers are big-endian.

use core::fmt;
use core::net::{Ipv4Addr, SocketAddrV4};

use crate::checksum::Sum;
use crate::error::{at_least, exactly, split};
use crate::numbers::numbers;
use crate::replication::KEY_LENGTH;
use crate::table::header;
use crate::value::Value;
use crate::{Error, Header};

/// UDP port of switches; a client's port is its own.
pub const PORT: u16 = 4797;

/// The version of the message format, the value of [`field::VERSION`].
pub const VERSION: u8 = 1;

/// Bytes of a chunk: values are padded to whole ones on the wire.
pub const CHUNK_LENGTH: usize = 16;

/// Bytes of a value that lie in chunks, which the message's checksum covers.
pub const SHORT_VALUE: usize = 128;

/// Bytes of a part: those of a value behind [`SHORT_VALUE`] are padded to whole ones on the wire,
/// and have a checksum of their own.
pub const PART_LENGTH: usize = 128;

/// Longest value, in bytes.
pub const MAX_VALUE: usize = 1024;

/// Longest value that a condition compares in the switch, in bytes.
pub const MAX_OPERAND: usize = 16;

/// Most switches that a message names: the members of a chain and the one that joins.
pub const MAX_CHAIN: usize = 4;

/// First value of `send_time` that its 48 bits cannot hold, in µs.
pub const SEND_TIME_END: u64 = 1 << 48;

/// Bits of a number below the generation.
pub const COUNT_BITS: u32 = 48;

header! {
    layout pub LAYOUT = "coordination message",
        then "the value, value_length bytes, and zeros up to a multiple of 16, of a value longer than \
            128 bytes up to a multiple of 128";
    length pub HEADER_LENGTH = 160;
    /// Meaning of a message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Repr<'a> {
        /// Type of the message.
        message_type: MessageType,
        /// The value, at most [`MAX_VALUE`] bytes.
        value: &'a [u8],
    }
    offsets field;
    view Packet;
    may_not_fit Coordination;
    fields {
        VERSION            8 (version: u8)             => "1";
        TYPE               8 (type_number: u8)         => "type of message, see below";
        OPERATION          8  operation: u8            =>
            "operation of the client, also in all that follows from it; otherwise 0";
        OUTCOME            8  outcome: u8              =>
            "what became of the operation, 0 before it is decided";
        FLAGS              8  flags: u8                =>
            "1 LEASED the answerer alone may answer; CONFIGURED: a promise or lease lasts; 2 WAIT \
             a lock's request may queue; \
             4 JOINS the last of the chain joins; 8 FOUNDS the group begins empty; \
             16 JOINED the sender answers as the one that joins; 32 MORE more follows; \
             64 STALE the member that is asked answers from what it has";
        HOPS               8  hops: u8                 =>
            "requests: addresses of the chain behind the first (SC in NetChain); \
             otherwise: members in the chain";
        REDIRECTS          8  redirects: u8            =>
            "how often a switch sent the request on, 0 to 2 (rule 10)";
        KIND               8  kind: u8                 =>
            "the record: 0 none, 1 value, 2 lock, 3 kept empty for its token (rule 21)";
        GROUP             16  group: u16               => "virtual group of the key";
        GENERATION        16  generation: u16          =>
            "which founding of the group (rule 17): the top 16 bits of its numbers";
        EPOCH             32  epoch: u32               =>
            "configuration number of the group's chain (rule 9)";
        CHECKSUM          16 (checksum: u16)           =>
            "RFC 1071 over header and the first 128 bytes of the value";
        VALUE_LENGTH      16 (value_length: usize)     => "bytes of the value, 0 to 1024";
        CHAIN_1           32  chain_1: Address         =>
            "the chain IP list: in requests in the order in which the sender would try them, \
             otherwise head first; 0 behind the last";
        CHAIN_2           32  chain_2: Address         => "the second of the list";
        CHAIN_3           32  chain_3: Address         => "the third of the list";
        CHAIN_4           32  chain_4: Address         => "the fourth of the list";
        CLIENT_ADDRESS    32  client_address: Address  =>
            "where the answer goes; LEASE: the answerer";
        CLIENT_PORT       16  client_port: u16         => "its UDP port";
        LANE              16  lane: u16                => "lane of the request (rule 5)";
        LANE_INCARNATION  16  lane_incarnation: u16    =>
            "which life of the lane; ended ones are refused (rule 19)";
        SLOT              16  slot: u16                =>
            "place of the record within its group, which the head chooses (rule 8); SCAN: the \
             place from which it searches; LANE_NEXT: the lane that is moved on";
        REQUEST           32  request: u32             =>
            "number of the request within its lane, from 1";
        NUMBER            64  number: u64              =>
            "number of the entry: version, revision and token in one (rule 1); WATCH: the first \
             entry that is missing, 0 for none (rule 23)";
        NEWEST            64  newest: u64              =>
            "number of the newest entry that the sender has (rule 2)";
        RECORD            64  record: u64              =>
            "number of the entry that last changed the record; ASK: the last number asked for; \
             WATCH's reply: the oldest entry that the answerer has";
        KEY              128  key: Key                 => "the key";
        CONDITION          8  condition: u8            =>
            "of a write: 0 none, 1 absent, 2 present, 3 its number is the operand, 4 its value is \
             the operand";
        OPERAND_LENGTH     8  operand_length: u8       => "bytes of a value as operand, 0 to 16";
        GUARD_CONDITION    8  guard_condition: u8      =>
            "of the guard's record: 0 no guard, 1 absent, 2 present, 3 its number, 5 it is a lock \
             whose token is guard_number (rule 21)";
        PADDING            8 (padding: u8)             => "0";
        OPERAND          128  operand: Operand         =>
            "what the condition compares: a number in the last 8 bytes, or a value with zeros \
             behind it; CONFIGURE: key of the group's hash";
        GUARD_KEY        128  guard_key: Key           => "the guard: another key of the group";
        GUARD_NUMBER      64  guard_number: u64        =>
            "what the guard's condition compares; BEGIN's answer, COPY, COPIED, HAND_OVER: number \
             of BEGIN, which names the round of the copy (rule 15)";
        TOKEN             64  token: u64               =>
            "requests: fencing token, 0 without; replies about a lock: the owner's; COPY: the \
             highest that the record has seen";
        SESSION           32  session: u32             =>
            "session of the client, which owns what it writes or acquires, 0 without";
        HANDLE            32  handle: u32              =>
            "which of the session's holders acquires or releases; replies about a write: the \
             lane's last request that was no RESOLVE; CONFIGURE, PING, PONG: incarnation of the \
             switch; LANE_NEXT: the lane's new incarnation; WATCH, EVENT: the subscription's \
             number, 0 to end it";
        SEND_TIME         48  send_time: u64           =>
            "LEASE: clock of the answerer in µs when the round began (rule 14); requests: the \
             client's, which replies echo";
        REST_CHECKSUM     16 (rest_checksum: u16)      =>
            "RFC 1071 over the value behind its first 128 bytes; 0 of a value that ends there";
    }
}

/// Bits of the flags field. Bits without a name are ignored by a receiver and sent as 0.
pub mod flag {
    crate::numbers::flags! {
        /// The answerer alone may answer the read (rule 14).
        LEASED = 1 << 0,
        /// A request for a lock may wait in its queue (rule 20).
        WAIT = 1 << 1,
        /// The last switch of the chain joins (rule 15).
        JOINS = 1 << 2,
        /// The group begins empty (rule 17).
        FOUNDS = 1 << 3,
        /// The sender answers as the switch that joins (rule 15).
        JOINED = 1 << 4,
        /// SCAN: a further record may follow; ASK: the sender lacks more than it asks for.
        MORE = 1 << 5,
        /// The member that is asked answers the read from what it has (rule 14).
        STALE = 1 << 6,
    }
}

numbers! {
    /// Type of a message.
    MessageType {
        /// A client asks a switch.
        Request = 0x01,
        /// A switch answers a client, or refuses.
        Reply = 0x02,
        /// An entry, from the answerer to a client that watches the group (rule 23).
        Event = 0x03,
        /// A decided operation, to the next switch of the chain (rule 2).
        Entry = 0x11,
        /// A request that was decided before passes the chain (rule 5).
        Question = 0x12,
        /// A read passes the chain (rule 14).
        Pass = 0x13,
        /// A switch asks its predecessor for the entries `number` to `record` (rule 2).
        Ask = 0x14,
        /// The head asks how far the chain is; passes the chain (rule 2).
        Probe = 0x15,
        /// The answerer tells the head that all have the entries up to `number`.
        Ack = 0x16,
        /// The answerer asks all others for a lease; passes the chain (rule 14).
        Lease = 0x17,
        /// The tail begins to copy: entries from `number` on follow (rule 15).
        Begin = 0x21,
        /// A slot or a lane, from the tail to the switch that joins (rule 15).
        Copy = 0x22,
        /// The joining switch has the copy of place `slot`.
        Copied = 0x23,
        /// The tail answers nothing more; the joining switch does, once it has `number`.
        HandOver = 0x24,
        /// The joining switch has the hand-over.
        Handed = 0x25,
        /// The controller tells a switch its place in a chain (rule 9).
        Configure = 0x31,
        /// The configuration that a switch follows.
        Configured = 0x32,
        /// The controller asks whether a switch lives.
        Ping = 0x33,
        /// The switch lives.
        Pong = 0x34,
        /// The controller names a failed switch whose requests go on to the next of their list
        /// (rule 11; NetChain Algorithm 2): place `slot` of few, address `chain_1`, 0 for none.
        Redirect = 0x35,
        /// The switch redirects so.
        Redirected = 0x36,
    }
}

numbers! {
    /// Operation that a client asks for.
    Operation {
        /// The value of a key.
        Read = 1,
        /// A new value, if condition, token and guard hold.
        Write = 2,
        /// No value, if condition, token and guard hold.
        Delete = 3,
        /// A lock (rule 20).
        Acquire = 4,
        /// A lock is given up, or its queue left (rule 20).
        Release = 5,
        /// Asks for the fate of the lane's last request, which is shut out (rule 6).
        Resolve = 6,
        /// The next incarnation of a lane (rule 19).
        LaneNext = 7,
        /// The first record at or behind a place.
        Scan = 8,
        /// The group's entries from now on, and those from `number` on (rule 23).
        Watch = 9,
    }
}

numbers! {
    /// Outcome of a request. Those below 0x80 were numbered, and are final.
    Outcome {
        /// Done, or, of a read, found.
        Done = 1,
        /// The condition does not hold; the reply has the record.
        Mismatch = 2,
        /// There is no such record.
        Absent = 3,
        /// The lock has another owner.
        Taken = 4,
        /// The request waits in the lock's queue.
        Queued = 5,
        /// No slot is free in the key's buckets, or no place in the lock's queue.
        Full = 6,
        /// The record has seen a higher token.
        StaleToken = 7,
        /// The guard's condition does not hold.
        Guarded = 8,
        /// The lock is not that holder's.
        NotOwner = 9,
        /// A lock where a value is asked for, or the reverse.
        WrongKind = 10,
        /// Of a watch: the answerer has the group's entries from `record` on alone (rule 23).
        Compacted = 11,
        /// Not numbered: too many entries are on their way; ask again.
        Busy = 0x81,
        /// Not numbered: the switch is not in the group's chain, or the list it got leads in a
        /// circle; ask by a newer list.
        Moved = 0x82,
        /// Not numbered: the lane's incarnation ended.
        LaneEnded = 0x83,
        /// Not numbered: the group was founded anew.
        WrongGeneration = 0x84,
        /// Not numbered: no such group, lane or operation, or fields that contradict each other.
        Malformed = 0x85,
        /// Not numbered: no number is left (rule 18).
        Exhausted = 0x86,
    }
}

impl Outcome {
    /// True if the outcome has a number, and repeating the request gives the same.
    pub fn is_final(self) -> bool {
        (self as u8) < 0x80
    }
}

numbers! {
    /// Kind of a record.
    Kind {
        /// There is none.
        None = 0,
        /// A value.
        Value = 1,
        /// A lock with an owner.
        Lock = 2,
        /// Deleted, and kept for its token.
        Empty = 3,
    }
}

numbers! {
    /// Condition on a record for a write.
    Condition {
        /// Nothing.
        None = 0,
        /// There is no record.
        Absent = 1,
        /// There is a record.
        Present = 2,
        /// The record's number is the operand.
        Number = 3,
        /// The record's value is the operand.
        Value = 4,
        /// Of a guard: the record is a lock with this token.
        Token = 5,
    }
}

/// A key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Key(pub [u8; KEY_LENGTH]);

/// Operand of a condition: a number or a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Operand(pub [u8; MAX_OPERAND]);

/// An IPv4 address; 0.0.0.0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub Ipv4Addr);

impl Default for Address {
    fn default() -> Address {
        Address::NONE
    }
}

impl Address {
    /// No address.
    pub const NONE: Address = Address(Ipv4Addr::UNSPECIFIED);

    /// The address, if it is one.
    pub fn get(self) -> Option<Ipv4Addr> {
        (!self.0.is_unspecified()).then_some(self.0)
    }
}

impl From<Ipv4Addr> for Address {
    fn from(address: Ipv4Addr) -> Address {
        Address(address)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Operand {
    /// The operand of [`Condition::Number`].
    pub fn number(number: u64) -> Operand {
        let mut bytes = [0; MAX_OPERAND];
        bytes[MAX_OPERAND - 8..].copy_from_slice(&number.to_be_bytes());
        Operand(bytes)
    }

    /// The operand of [`Condition::Value`], to which `operand_length` belongs; `None` if `value`
    /// is longer than [`MAX_OPERAND`].
    pub fn value(value: &[u8]) -> Option<Operand> {
        let mut bytes = [0; MAX_OPERAND];
        bytes.get_mut(..value.len())?.copy_from_slice(value);
        Some(Operand(bytes))
    }
}

macro_rules! bytes_value {
    ($($type:ident($bytes:expr, $length:literal)),*) => {$(
        impl Value for $type {
            const BITS: usize = 8 * $length;

            #[inline(always)]
            fn read(header: &[u8], at: usize, bits: usize) -> $type {
                $type(<[u8; $length]>::read(header, at, bits).into())
            }

            #[inline(always)]
            fn write(self, header: &mut [u8], at: usize, bits: usize) {
                let bytes: [u8; $length] = $bytes(self);
                bytes.write(header, at, bits);
            }
        }
    )*};
}

bytes_value!(
    Key(|key: Key| key.0, 16),
    Operand(|operand: Operand| operand.0, 16),
    Address(|address: Address| address.0.octets(), 4)
);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

impl fmt::Debug for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operand({})", Key(self.0))
    }
}

/// Bytes that a value of `length` bytes takes on the wire.
pub const fn padded(length: usize) -> usize {
    if length > SHORT_VALUE {
        length.next_multiple_of(PART_LENGTH)
    } else {
        length.next_multiple_of(CHUNK_LENGTH)
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
    /// Checks that `bytes` are one message of a known version and type, with a value that is
    /// neither too long nor cut off, and are what was sent.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`], [`Error::Version`], [`Error::Unknown`] (type or value length),
    /// [`Error::TrailingBytes`] or [`Error::Checksum`].
    pub fn new_checked(bytes: &'a [u8]) -> Result<Packet<'a>, Error> {
        let name = Header::Coordination;
        let (header, _) = split(name, bytes)?;
        let mut packet = Packet {
            bytes,
            header,
            message_type: MessageType::Request,
        };
        Error::unless_spoken(name, packet.version(), VERSION)?;
        let number = packet.type_number();
        let known = MessageType::from_u8(number);
        packet.message_type = Error::unless_known(name, "type", number, known)?;
        let length = packet.value_length();
        if length > MAX_VALUE {
            return Err(Error::Unknown {
                header: name,
                field: "value_length",
                found: length as u32,
            });
        }
        let end = HEADER_LENGTH + padded(length);
        at_least(name, bytes, end)?;
        if bytes.len() > end {
            return Err(Error::TrailingBytes {
                header: name,
                extra: bytes.len() - end,
            });
        }
        let (front, rest) = bytes.split_at(bytes.len().min(HEADER_LENGTH + SHORT_VALUE));
        let whole = Sum::new().over(front).finish() == 0
            && (rest.is_empty() || Sum::new().over(rest).finish() == packet.rest_checksum());
        if whole {
            Ok(packet)
        } else {
            Err(Error::Checksum { header: name })
        }
    }

    /// Type of the message.
    #[inline]
    pub fn message_type(&self) -> MessageType {
        self.message_type
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> &'a [u8] {
        &self.bytes[HEADER_LENGTH..][..self.value_length()]
    }
}

impl<'a> Repr<'a> {
    /// A message of type `message_type`, with every other field zero or empty.
    pub fn new(message_type: MessageType) -> Repr<'a> {
        Repr::from_header(&[0; HEADER_LENGTH], message_type, &[])
    }

    /// Reads every field of a checked message.
    #[inline]
    pub fn parse(packet: &Packet<'a>) -> Repr<'a> {
        Repr::from_header(packet.header, packet.message_type(), packet.value())
    }

    /// The chain IP list, up to its first gap.
    pub fn chain(&self) -> impl Iterator<Item = Ipv4Addr> + use<> {
        [self.chain_1, self.chain_2, self.chain_3, self.chain_4]
            .into_iter()
            .map_while(Address::get)
    }

    /// Sets the chain IP list; switches beyond [`MAX_CHAIN`] are left out.
    pub fn set_chain(&mut self, chain: impl IntoIterator<Item = Ipv4Addr>) {
        let mut chain = chain.into_iter().map(Address);
        let mut next = || chain.next().unwrap_or_default();
        (self.chain_1, self.chain_2) = (next(), next());
        (self.chain_3, self.chain_4) = (next(), next());
    }

    /// Address and port of the client, or of the controller.
    pub fn client(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.client_address.0, self.client_port)
    }

    /// Sets address and port of the client, or of the controller.
    pub fn set_client(&mut self, client: SocketAddrV4) {
        self.client_address = Address(*client.ip());
        self.client_port = client.port();
    }

    /// Bytes of the message: header and padded value.
    pub fn buffer_len(&self) -> usize {
        HEADER_LENGTH + padded(self.value.len())
    }

    /// Writes the message into `buffer`.
    ///
    /// # Errors
    ///
    /// [`Error::Buffer`] unless `buffer` is [`Repr::buffer_len`] long;
    /// [`Error::Unrepresentable`] if the value is longer than [`MAX_VALUE`] or the send time does
    /// not fit 48 bits.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let name = Header::Coordination;
        exactly(name, buffer, self.buffer_len())?;
        if self.value.len() > MAX_VALUE {
            return Err(Error::Unrepresentable {
                header: name,
                field: "value_length",
            });
        }
        let kind = self.message_type as u8;
        let (value, padding) = buffer[HEADER_LENGTH..].split_at_mut(self.value.len());
        value.copy_from_slice(self.value);
        padding.fill(0);
        let (front, rest) = buffer.split_at_mut(buffer.len().min(HEADER_LENGTH + SHORT_VALUE));
        let rest_checksum = match rest {
            [] => 0,
            rest => Sum::new().over(rest).finish(),
        };
        let header = self.header_bytes(VERSION, kind, 0, self.value.len(), 0, rest_checksum)?;
        front[..HEADER_LENGTH].copy_from_slice(&header);
        let checksum = Sum::new().over(front).finish();
        checksum.write(front, field::CHECKSUM * 8, 16);
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

//! The message of multicast: between senders, the members and leaders of groups, receivers and the
//! controller.
//!
//! `docs/multicast-protocol.md` says what the fields mean and when each message is sent;
//! [`LAYOUT`] says where they lie. One UDP datagram holds one message: a fixed header, and behind
//! it the payload if the flag [`flag::PAYLOAD`] is set. All integers are big-endian.

use crate::error::{exactly, split};
use crate::numbers::numbers;
use crate::table::header;
use crate::{Error, Header};

/// UDP port of switches and receivers; a sender's and the controller's port is their own.
pub const PORT: u16 = 4799;

/// The version of the message format, the value of [`field::VERSION`].
pub const VERSION: u8 = 1;

/// Most bytes of a payload: an MTU of 9,000 bytes less 100 (rule 27).
pub const MAX_PAYLOAD: usize = 8900;

/// Most groups of a deployment: the map of destinations has a bit for each (rule 16).
pub const MAX_GROUPS: u8 = 32;

/// Value of [`field::LEARNER`] that names nobody.
pub const NO_LEARNER: u8 = 0xff;

/// First number of a message that its 40 bits cannot hold (rule 21).
pub const NUMBER_END: u64 = 1 << 40;

/// Greatest step of a group's clock that one message may ask for (rule 2).
pub const MAX_JUMP: u64 = 1 << 40;

header! {
    layout pub LAYOUT = "multicast message", then "the payload, if the flag PAYLOAD is set";
    length pub HEADER_LENGTH = 72;
    /// Meaning of a message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Repr<'a> {
        /// Type of the message.
        message_type: MessageType,
        /// The payload, empty unless the flag [`flag::PAYLOAD`] is set.
        payload: &'a [u8],
    }
    offsets field;
    view Packet;
    may_not_fit Multicast;
    fields {
        VERSION         8 (version: u8)        => "1";
        TYPE            8 (type_number: u8)    => "type of message, see below";
        CODE            8  code: u8            => "REFUSED: why";
        FLAGS           8  flags: u8           => "see below";
        GROUP           8  group: u8           => "group for which, or of which, the message is";
        ORIGIN          8  origin: u8          =>
            "HINT, DECIDED, DONE, OLD, START of a leader: the group from which it comes; PROMISE, \
             ACK, LEADING: the member; RECEIVED: the receiver";
        LIST_VERSION   16  list_version: u16   =>
            "version of the list of receivers (rule 26)";
        EPOCH          32  epoch: u32          => "epoch in which it is said (rules 6, 9)";
        INCARNATION    32  incarnation: u32    =>
            "which start of the member: to a member that for which the message is, from a member \
             its own (rules 5, 6)";
        DESTINATIONS   32  destinations: u32   =>
            "map of the groups that are addressed, bit g for group g; LEAD: map of the members";
        SESSION        16  session: u16        => "the message's id: slot of the session (rule 21)";
        LANE            8  lane: u8            => "the message's id: lane of the session";
        NUMBER         40  number: u64         =>
            "the message's id: number in the lane, from 1";
        INDEX          32  index: u32          =>
            "place of the entry in the group's log; ACK: up to which the log matches; RECEIVED: up \
             to which all came; PROMISE: the last; SKIP: the base; LEADING: the leader's first own";
        TERM           32  term: u32           => "epoch in which that entry was appended";
        BEFORE         32  before: u32         =>
            "PROP: term of the entry before; LEAD: map of the receivers; LEADING: the last index; \
             of leaders to leaders: the index in the log of `origin` up to which it is done (rule 24)";
        TIMESTAMP      64  timestamp: u64      => "the entry's timestamp in the group (rule 2)";
        FINAL          64  final_time: u64     =>
            "DELIVER, COMPLETE: the final timestamp (rule 13); RECEIVED: the greatest that waits; \
             START: the greatest that the host knows (rule 17)";
        SENDER_ADDRESS 32  sender_address: u32 => "IPv4 address to which COMPLETE goes";
        SENDER_PORT    16  sender_port: u16    => "its UDP port";
        FINAL_GROUP     8  final_group: u8     => "group whose timestamp is the final one";
        LEARNER         8  learner: u8         => "LEAD: member that learns, 255 for none (rule 12)";
        COMMIT         32  commit: u32         => "index up to which the group's log is committed";
        BASE           32  base: u32           =>
            "index up to which the log is freed (rule 24); ACK: the index that is wanted next";
    }
}

/// Bits of [`field::FLAGS`].
pub mod flag {
    crate::numbers::flags! {
        /// A payload follows the header.
        PAYLOAD = 0x01,
        /// START: it comes from a leader that lacks a decision (rule 15).
        OF_LEADER = 0x02,
        /// The entry is a no-op and has no message (rules 8, 14).
        NO_OP = 0x04,
        /// DELIVER: a late duplicate, which takes its index and is not delivered (rule 25). COMPLETE:
        /// the final timestamp is forgotten, and the one told is not below it (rule 24).
        VOID = 0x08,
        /// LEADING: the leader's own no-op is committed (rule 11).
        ESTABLISHED = 0x10,
        /// LEADING: the learner has joined (rule 12).
        JOINED = 0x20,
        /// PROP, PAYLOAD: who takes the entry does not say so at once; a later one stands for it
        /// (rule 3).
        LATER = 0x40,
        /// ACK, RECEIVED: later entries came than the one that is wanted (rule 23).
        GAP = 0x80,
    }
}

numbers! {
    /// Type of a message.
    MessageType {
        /// A message for all receivers of its destination groups.
        Start = 0x01,
        /// A receiver has all up to an index (rule 24).
        Received = 0x02,
        /// A new epoch begins (rule 6).
        Prepare = 0x11,
        /// A member takes nothing of an older epoch, and says how far its log goes.
        Promise = 0x12,
        /// The member leads the group in this epoch (rule 7).
        Lead = 0x13,
        /// The state of a leader.
        Leading = 0x14,
        /// An entry for the logs of followers (rule 3).
        Prop = 0x21,
        /// Index up to which a follower matches, and the one that it wants.
        Ack = 0x22,
        /// The base from which a member that is behind goes on (rule 12).
        Skip = 0x23,
        /// A leader asks up to which index a follower matches, since nothing follows the entry (rule 3).
        Ask = 0x24,
        /// A timestamp that may be decided; it moves clocks only (rule 13).
        Hint = 0x31,
        /// A group's timestamp of the message is committed.
        Decided = 0x32,
        /// All receivers of a group have the message (rule 24).
        Done = 0x33,
        /// The message is finished: its lane went on, or it was freed (rule 25).
        Old = 0x34,
        /// The payload of an entry that may yet be cut off.
        Payload = 0x41,
        /// Place of an entry, and its final timestamp (rules 18, 19).
        Deliver = 0x42,
        /// All receivers of a group have the message: for its sender (rule 21).
        Complete = 0x81,
        /// The message changed nothing.
        Refused = 0x8f,
    }
}

impl MessageType {
    /// True if a payload may follow the header.
    pub fn may_bear_payload(self) -> bool {
        matches!(
            self,
            MessageType::Start | MessageType::Prop | MessageType::Payload | MessageType::Deliver
        )
    }
}

numbers! {
    /// Reason for which a message changed nothing.
    Code {
        /// The switch does not lead the group (rule 9).
        NotLeader = 1,
        /// The switch has no such group.
        UnknownGroup = 2,
        /// The session does not exist (rule 22).
        UnknownSession = 3,
        /// The session was not granted the lane (rule 22).
        UnknownLane = 4,
        /// The payload is longer than the group takes (rule 27).
        TooLong = 5,
        /// The window has no place for it (rule 22).
        Full = 6,
        /// The group is not among the destinations.
        NotAddressed = 7,
        /// The clock would go forward by more than [`MAX_JUMP`] (rule 2).
        Jump = 8,
        /// The message is for another start of the member (rules 5, 6).
        OtherIncarnation = 9,
        /// The member has promised a later epoch (rule 6).
        Fenced = 10,
    }
}

/// A view over the bytes of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    header: &'a [u8; HEADER_LENGTH],
    payload: &'a [u8],
    message_type: MessageType,
}

/// True if a message of type `kind` with these flags may bear a payload of `length` bytes.
fn payload_fits(kind: MessageType, flags: u8, length: usize) -> bool {
    let announced = flags & flag::PAYLOAD != 0;
    length <= MAX_PAYLOAD && (length == 0 || announced) && (!announced || kind.may_bear_payload())
}

impl<'a> Packet<'a> {
    /// Checks that `bytes` are one message of a known version and type, and that a payload is
    /// there only where the flag announces it, of a type that may bear one.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`], [`Error::Version`], [`Error::Unknown`] (type, or the flag PAYLOAD of
    /// a type without payload) or [`Error::TrailingBytes`].
    pub fn new_checked(bytes: &'a [u8]) -> Result<Packet<'a>, Error> {
        let name = Header::Multicast;
        let (header, payload) = split(name, bytes)?;
        let mut packet = Packet {
            header,
            payload,
            message_type: MessageType::Start,
        };
        Error::unless_spoken(name, packet.version(), VERSION)?;
        let number = packet.type_number();
        let known = MessageType::from_u8(number);
        packet.message_type = Error::unless_known(name, "type", number, known)?;
        let flags = packet.flags();
        if !payload_fits(packet.message_type, flags, 0) {
            return Err(Error::Unknown {
                header: name,
                field: "flags",
                found: flags.into(),
            });
        }
        if !payload_fits(packet.message_type, flags, payload.len()) {
            let room = if flags & flag::PAYLOAD != 0 {
                MAX_PAYLOAD
            } else {
                0
            };
            return Err(Error::TrailingBytes {
                header: name,
                extra: payload.len() - room,
            });
        }
        Ok(packet)
    }

    /// Type of the message.
    #[inline]
    pub fn message_type(&self) -> MessageType {
        self.message_type
    }

    /// The payload, empty if there is none.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
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
        Repr::from_header(packet.header, packet.message_type, packet.payload)
    }

    /// Bytes of the message.
    pub fn buffer_len(&self) -> usize {
        HEADER_LENGTH + self.payload.len()
    }

    /// Writes the message into `buffer`.
    ///
    /// # Errors
    ///
    /// [`Error::Buffer`] unless `buffer` is [`Repr::buffer_len`] long;
    /// [`Error::Unrepresentable`] if the payload is longer than [`MAX_PAYLOAD`], is not announced
    /// by its flag or not of a type that may bear one, or if the number does not fit 40 bits.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let name = Header::Multicast;
        exactly(name, buffer, self.buffer_len())?;
        if !payload_fits(self.message_type, self.flags, self.payload.len()) {
            return Err(Error::Unrepresentable {
                header: name,
                field: "payload",
            });
        }
        let header = self.header_bytes(VERSION, self.message_type as u8)?;
        let (front, rest) = buffer.split_at_mut(HEADER_LENGTH);
        front.copy_from_slice(&header);
        rest.copy_from_slice(self.payload);
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

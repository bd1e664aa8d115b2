//! The message of sync: between a switch that keeps register arrays and the engine that keeps the
//! control plane's view of them.
//!
//! `docs/sync-protocol.md` says what the fields mean and when each message is sent; [`LAYOUT`]
//! says where they lie (ApproSync Fig. 7, and what the page's rules need besides). One UDP
//! datagram holds one message: a fixed header, and at most [`MAX_VALUES`] values or [`MAX_FROZEN`]
//! frozen ones. All integers are big-endian.

use crate::error::{exactly, split};
use crate::numbers::numbers;
use crate::table::header;
use crate::{Error, Header};

/// UDP port of switches; an engine's port is its own.
pub const PORT: u16 = 4798;

/// The version of the message format, the value of [`field::VERSION`].
pub const VERSION: u8 = 4;

/// Most values of a message.
pub const MAX_VALUES: usize = 32;

/// Most frozen values of a FETCHED: as many as 1,500 bytes of IPv4 take.
pub const MAX_FROZEN: usize = 168;

/// Bytes of a frozen value, whose location its place says.
pub const FROZEN_LENGTH: usize = 8;

/// First distance that is not counted: from here on a bound is told as unbounded (rule 4).
pub const UNBOUNDED: u64 = 1 << 40;

/// Bit of the index of a value of an UPDATE: it does not follow from the one before (rule 25).
pub const DISCONTINUITY: u32 = 1 << 31;

/// First value of `time` that its 48 bits cannot hold, in µs.
pub const TIME_END: u64 = 1 << 48;

header! {
    layout pub LAYOUT = "sync message", then "the values, count times 12 bytes; FETCHED: count times 8";
    length pub HEADER_LENGTH = 128;
    /// Meaning of a message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Repr<'a> {
        /// Type of the message.
        message_type: MessageType,
        /// The values, at most [`MAX_VALUES`]; FETCHED has none.
        values: Values<'a>,
        /// Values of the locations from `position` on, at most [`MAX_FROZEN`]; FETCHED alone has them.
        frozen: Frozen<'a>,
    }
    offsets field;
    view Packet;
    may_not_fit Sync;
    fields {
        VERSION      8 (version: u8)       => "4";
        TYPE         8 (type_number: u8)   => "type of message, see below";
        OUTCOME      8  outcome: u8        =>
            "WRITTEN: what became of the write; REFUSED: why";
        OPERATION    8  operation: u8      => "WRITE: what is done to each location; STARTED: 1 if the switch refuses writes and cuts (rule 32)";
        GROUP       16  group: u16         => "group of registers (rule 1)";
        COUNT        8 (count: usize)      => "number of values (StateNum in ApproSync)";
        KIND         8  kind: u8           =>
            "CUT: how locations cross it; from a switch: how they crossed the last one, 0 before \
             the first (rules 15, 17)";
        SWITCH_ID   32  switch_id: u32     => "number of the switch";
        INCARNATION 32  incarnation: u32   =>
            "which start of the switch; to a switch: that for which the message is, START: 0 \
             (rule 11)";
        TERM        64  term: u64          =>
            "low 64 bits of the engine's election id; from a switch: the greatest seen (rule 20)";
        STARTER     64  starter: u64       =>
            "number of the engine's START, which the switch echoes (rule 11)";
        POLL        64  poll: u64          =>
            "number of the newest POLL, which the switch echoes (rule 6)";
        STAMP       64  stamp: u64         =>
            "number of the newest UPDATE; of an UPDATE its own (rule 7)";
        POSITION    64  position: u64      =>
            "place in the ring of the first value; STARTED: where the view begins; POLL: the first \
             that the engine lacks; REPAIR, REPAIRED: the first of those asked for; FETCH, FETCHED: \
             the first location; STAGE, STAGED: number of the piece, from 0 (rules 8, 9, 16, 19)";
        BEFORE      64  before: u64        =>
            "sum of the distances of all values sent before this message (rule 4)";
        AFTER       64  after: u64         => "the same, with this message";
        BOUND       64  bound: u64         =>
            "T: no location is farther from what was last sent of it (rule 3)";
        THRESHOLD   64  threshold: u64     =>
            "greatest t of this sweep and the last: the bound of locations that are not queued \
             (rule 5)";
        QUEUED      32  queued: u32        =>
            "locations in the ring that are not sent yet; REPAIR, FETCH: how many positions or \
             locations are asked for";
        EPOCH       32  epoch: u32         =>
            "number of cuts; CUT: of the one that is made; POLL: number of windows that the \
             engine has kept or waived (rules 15, 18)";
        NUMBER      64  number: u64        =>
            "WRITE, WRITTEN: number of the write within its term, from 1; STAGE, STAGED, CUT of kind \
             STAGED: number of the staging within its term, from 1; UPDATE: T at the last cut (rules 19, \
             21, 25)";
        OPERAND     64  operand: u64       =>
            "CUT: the value that fills all locations, or how many are staged; from a switch: that of \
             the last cut; WRITE: the value that SET_IF_EQUAL expects";
        TIME        48  time: u64          => "clock of the switch in µs";
        FETCH       16  fetch: u16         =>
            "from a switch: frozen values of a FETCHED at most; to a switch: 0 (rule 16)";
        SWEEP       32  sweep: u32         =>
            "µs that the last whole sweep took, A; 0 before its end (rule 12)";
        LOST        32  lost: u32          =>
            "POLL: positions that were lost, in all; from a switch: time that the budget gives a \
             byte, in 2⁻¹⁶ µs (rule 13)";
    }
}

header! {
    layout pub VALUE_LAYOUT = "value in a sync message";
    length pub VALUE_LENGTH = 12;
    /// Content of a location.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Value {}
    fields {
        INDEX 32 index: u32 =>
            "the location: index into the group's registers; UPDATE: the highest bit says that the \
             value does not follow from the one before (rule 25)";
        VALUE 64 value: u64 =>
            "what it holds; of narrower registers in the low bits; REPAIRED: 0";
    }
}

numbers! {
    /// Type of a message.
    MessageType {
        /// An engine begins its view (rule 11).
        Start = 0x01,
        /// Positions that the engine has, and what it asks to be echoed (rules 6, 9).
        Poll = 0x02,
        /// The engine lacks `count` positions from `position` on (rule 8).
        Repair = 0x03,
        /// New values (rules 19 to 23).
        Write = 0x04,
        /// All locations at once (rule 15).
        Cut = 0x05,
        /// The frozen values of `count` locations from index `position` on (rule 16).
        Fetch = 0x06,
        /// Values that a cut will give to their locations (rule 19).
        Stage = 0x07,
        /// Begin of the view: stamp and ring position.
        Started = 0x81,
        /// Values, or none: a mark.
        Update = 0x82,
        /// Which locations the positions held, and a stamp.
        Repaired = 0x83,
        /// Outcome of the write.
        Written = 0x84,
        /// The cut of number `epoch` was made.
        CutMade = 0x85,
        /// Frozen values.
        Fetched = 0x86,
        /// The values are staged.
        Staged = 0x87,
        /// The message changed nothing.
        Refused = 0x8f,
    }
}

numbers! {
    /// Change that a write makes to each of its locations (rule 22).
    Operation {
        /// The value takes the place of what is there.
        Set = 1,
        /// The value is added, modulo the width.
        Add = 2,
        /// The value takes the place of `operand`, if that is there; of one location.
        SetIfEqual = 3,
    }
}

numbers! {
    /// Outcome of a write, or why a message changed nothing. Those below 0x80 are final.
    Outcome {
        /// Done.
        Done = 1,
        /// SET_IF_EQUAL found another value.
        Mismatch = 2,
        /// The message is for another start of the switch (rule 11).
        OtherIncarnation = 0x81,
        /// The switch has seen a higher term (rule 20).
        Fenced = 0x82,
        /// The engine has not started, or another start of it came later (rule 11).
        NotStarted = 0x83,
        /// The number is not the term's next (rule 21).
        OutOfOrder = 0x84,
        /// Locations have not crossed the last cut (rule 15).
        NotSettled = 0x85,
        /// The engine has not kept the last window (rule 15).
        NotKept = 0x86,
        /// The cut or window is not the next or the last (rules 16, 18).
        OtherEpoch = 0x87,
        /// The ring does not hold the positions (rule 8).
        NotHeld = 0x88,
        /// No such operation, kind, location or number of values.
        Malformed = 0x89,
        /// The group does not exist.
        UnknownGroup = 0x8a,
        /// Not all locations of the cut are staged (rule 19).
        NotStaged = 0x8b,
        /// The switch refuses writes, staged values and cuts (rule 32).
        NotAllowed = 0x8c,
    }
}

impl Outcome {
    /// True if the outcome of a write is kept, and repeating the write gives the same.
    pub fn is_final(self) -> bool {
        (self as u8) < 0x80
    }
}

numbers! {
    /// How locations cross a cut (rule 15).
    CutKind {
        /// No cut was made.
        None = 0,
        /// They keep their values: a snapshot.
        Carried = 1,
        /// All have the value `operand`: a reset.
        Filled = 2,
        /// Those that are staged have the values staged for them, the others keep theirs: a write.
        Staged = 3,
    }
}

/// The values of a message, as they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Values<'a>(&'a [u8]);

impl<'a> Values<'a> {
    /// The values that [`Value::push`] wrote one behind the other; a part of one is left out.
    pub fn new(bytes: &'a [u8]) -> Values<'a> {
        Values(&bytes[..bytes.len() / VALUE_LENGTH * VALUE_LENGTH])
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len() / VALUE_LENGTH
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values in their order.
    pub fn iter(&self) -> impl Iterator<Item = Value> + use<'a> {
        let (whole, _) = self.0.as_chunks::<VALUE_LENGTH>();
        whole.iter().map(Value::from_header)
    }
}

impl Value {
    /// The location, of a value of an UPDATE.
    pub fn location(&self) -> u32 {
        self.index & !DISCONTINUITY
    }

    /// True if a value of an UPDATE does not follow from the one before: a width may have passed, or an
    /// engine wrote it (rule 25).
    pub fn tells_discontinuity(&self) -> bool {
        self.index & DISCONTINUITY != 0
    }

    /// Appends the bytes of the value.
    pub fn push(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.header_bytes());
    }
}

/// The frozen values of a FETCHED, as they lie: 8 bytes each, big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Frozen<'a>(&'a [u8]);

impl<'a> Frozen<'a> {
    /// The values that lie one behind the other; a part of one is left out.
    pub fn new(bytes: &'a [u8]) -> Frozen<'a> {
        Frozen(&bytes[..bytes.len() / FROZEN_LENGTH * FROZEN_LENGTH])
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len() / FROZEN_LENGTH
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values in the order of their locations.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<'a> {
        let (whole, _) = self.0.as_chunks::<FROZEN_LENGTH>();
        whole.iter().map(|bytes| u64::from_be_bytes(*bytes))
    }
}

/// A view over the bytes of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    header: &'a [u8; HEADER_LENGTH],
    values: Values<'a>,
    frozen: Frozen<'a>,
    message_type: MessageType,
}

impl<'a> Packet<'a> {
    /// Checks that `bytes` are one message of a known version and type, with as many values as
    /// it says; a message that asks for locations by their number has none behind it.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`], [`Error::Version`], [`Error::Unknown`] (type or count) or
    /// [`Error::TrailingBytes`].
    pub fn new_checked(bytes: &'a [u8]) -> Result<Packet<'a>, Error> {
        let name = Header::Sync;
        let (header, behind) = split(name, bytes)?;
        let mut packet = Packet {
            header,
            values: Values(&[]),
            frozen: Frozen(&[]),
            message_type: MessageType::Start,
        };
        Error::unless_spoken(name, packet.version(), VERSION)?;
        let number = packet.type_number();
        let known = MessageType::from_u8(number);
        packet.message_type = Error::unless_known(name, "type", number, known)?;
        let (most, each) = behind_it(packet.message_type);
        if packet.count() > most {
            return Err(Error::Unknown {
                header: name,
                field: "count",
                found: packet.count() as u32,
            });
        }
        let length = packet.count() * each;
        if behind.len() < length {
            return Err(Error::Truncated {
                header: name,
                needed: HEADER_LENGTH + length,
                found: bytes.len(),
            });
        }
        if behind.len() > length {
            return Err(Error::TrailingBytes {
                header: name,
                extra: behind.len() - length,
            });
        }
        match packet.message_type {
            MessageType::Fetched => packet.frozen = Frozen(behind),
            _ => packet.values = Values(behind),
        }
        Ok(packet)
    }

    /// Type of the message.
    #[inline]
    pub fn message_type(&self) -> MessageType {
        self.message_type
    }

    /// The values.
    #[inline]
    pub fn values(&self) -> Values<'a> {
        self.values
    }

    /// The frozen values.
    #[inline]
    pub fn frozen(&self) -> Frozen<'a> {
        self.frozen
    }
}

/// Most values behind the header of a message, and bytes of each.
fn behind_it(message_type: MessageType) -> (usize, usize) {
    match message_type {
        MessageType::Fetched => (MAX_FROZEN, FROZEN_LENGTH),
        _ => (MAX_VALUES, VALUE_LENGTH),
    }
}

impl<'a> Repr<'a> {
    /// A message of type `message_type`, with every other field zero or empty.
    pub fn new(message_type: MessageType) -> Repr<'a> {
        Repr::from_header(&[0; HEADER_LENGTH], message_type, Values(&[]), Frozen(&[]))
    }

    /// Reads every field of a checked message.
    #[inline]
    pub fn parse(packet: &Packet<'a>) -> Repr<'a> {
        Repr::from_header(
            packet.header,
            packet.message_type,
            packet.values,
            packet.frozen,
        )
    }

    /// Bytes of the message.
    pub fn buffer_len(&self) -> usize {
        HEADER_LENGTH + self.values.0.len() + self.frozen.0.len()
    }

    /// Writes the message into `buffer`.
    ///
    /// # Errors
    ///
    /// [`Error::Buffer`] unless `buffer` is [`Repr::buffer_len`] long;
    /// [`Error::Unrepresentable`] if there are more values than a message of the type has, or the
    /// time does not fit 48 bits.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let name = Header::Sync;
        exactly(name, buffer, self.buffer_len())?;
        let (most, _) = behind_it(self.message_type);
        let (count, others) = match self.message_type {
            MessageType::Fetched => (self.frozen.len(), self.values.len()),
            _ => (self.values.len(), self.frozen.len()),
        };
        if count > most || others > 0 {
            return Err(Error::Unrepresentable {
                header: name,
                field: "count",
            });
        }
        let kind = self.message_type as u8;
        let header = self.header_bytes(VERSION, kind, count)?;
        let (front, rest) = buffer.split_at_mut(HEADER_LENGTH);
        front.copy_from_slice(&header);
        let (values, frozen) = rest.split_at_mut(self.values.0.len());
        values.copy_from_slice(self.values.0);
        frozen.copy_from_slice(self.frozen.0);
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

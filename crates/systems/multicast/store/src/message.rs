//! Commands, answers, and what replicas tell each other.

use crate::shard::shard_of;
use crate::table::{Field, Malformed, table, take_bytes};
use core::net::SocketAddrV4;
use stateplane_multicast::FinalTime;

/// Version of the encoding, the first byte of each message.
pub const VERSION: u8 = 1;

/// Most bytes of a key, which has at least one.
pub const MAX_KEY: usize = 255;

/// Most bytes of a value.
pub const MAX_VALUE: usize = 1024;

/// Most keys of an operation.
pub const MAX_KEYS: usize = 16;

/// A key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Vec<u8>);

impl Key {
    /// The key of these bytes, if they are 1 to [`MAX_KEY`].
    pub fn new(bytes: impl Into<Vec<u8>>) -> Option<Key> {
        let bytes = bytes.into();
        (1..=MAX_KEY).contains(&bytes.len()).then_some(Key(bytes))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(Vec<u8>);

impl Value {
    /// The value of these bytes, if they are at most [`MAX_VALUE`].
    pub fn new(bytes: impl Into<Vec<u8>>) -> Option<Value> {
        let bytes = bytes.into();
        (bytes.len() <= MAX_VALUE).then_some(Value(bytes))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Field for Key {
    const TYPE: &'static str = "key";

    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.0.len() as u8);
        out.extend(&self.0);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        let length = u8::take(bytes)?.into();
        let taken = take_bytes(Self::TYPE, bytes, length)?;
        Key::new(taken).ok_or(Malformed::Length {
            what: Self::TYPE,
            found: length,
        })
    }
}

impl Field for Value {
    const TYPE: &'static str = "value";

    fn put(&self, out: &mut Vec<u8>) {
        (self.0.len() as u16).put(out);
        out.extend(&self.0);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        let length = u16::take(bytes)?.into();
        let taken = take_bytes(Self::TYPE, bytes, length)?;
        Value::new(taken).ok_or(Malformed::Length {
            what: Self::TYPE,
            found: length,
        })
    }
}

/// Values of keys, at most [`MAX_KEYS`].
impl<T: Field> Field for Vec<T> {
    const TYPE: &'static str = T::TYPE;

    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.len() as u8);
        for of in self {
            of.put(out);
        }
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        let found: usize = u8::take(bytes)?.into();
        if found > MAX_KEYS {
            return Err(Malformed::Length {
                what: Self::TYPE,
                found,
            });
        }
        (0..found).map(|_| T::take(bytes)).collect()
    }
}

table! {
    /// An operation. Those that name keys of several shards are one message to all of them.
    Operation as "operation" {
        /// Makes the client known to all shards, and does nothing else.
        Open = 0 {}
        /// Reads a key.
        Get = 1 {
            /// The key.
            key: Key,
        }
        /// Gives a key a value.
        Put = 2 {
            /// The key.
            key: Key,
            /// Its value from here on.
            value: Value,
        }
        /// Takes a key's value away.
        Delete = 3 {
            /// The key.
            key: Key,
        }
        /// Gives a key a value, or none, if it has an expected one, or none.
        Swap = 4 {
            /// The key.
            key: Key,
            /// The value that it must have.
            expected: Option<Value>,
            /// Its value from here on.
            value: Option<Value>,
        }
        /// Moves the value of one key to another, if the first has one and the second has none.
        Move = 5 {
            /// The key that loses its value.
            from: Key,
            /// The key that gets it.
            to: Key,
        }
        /// Reads several keys at one moment.
        Read = 6 {
            /// The keys, 1 to [`MAX_KEYS`].
            keys: Vec<Key>,
        }
    }
}

impl Operation {
    /// The keys that it names; the answer has their values in this order.
    pub fn keys(&self) -> Vec<&Key> {
        match self {
            Operation::Open {} => Vec::new(),
            Operation::Get { key }
            | Operation::Put { key, .. }
            | Operation::Delete { key }
            | Operation::Swap { key, .. } => vec![key],
            Operation::Move { from, to } => vec![from, to],
            Operation::Read { keys } => keys.iter().collect(),
        }
    }

    /// Map of the groups to which its message goes, among `shards`.
    pub fn groups(&self, shards: u8) -> u32 {
        if *self == (Operation::Open {}) {
            return u32::MAX >> (32 - u32::from(shards.clamp(1, 32)));
        }
        let keys = self.keys();
        let bits = keys.iter().map(|key| 1 << shard_of(key, shards));
        bits.fold(0, |map, bit: u32| map | bit)
    }
}

table! {
    /// Why an operation did nothing.
    Reason as "reason" {
        /// A shard has no room for another record.
        Full = 1 {}
        /// The client is not known, or not any more: it opens anew. An earlier operation of it may
        /// have taken effect.
        Forgotten = 2 {}
        /// A later operation of the client was executed.
        Late = 3 {}
        /// The message went to other groups than those of its keys' shards.
        Misdirected = 4 {}
    }
}

/// A key's value, as a read found it.
pub type Found = Option<Value>;

table! {
    /// The outcome of an operation.
    Outcome as "outcome" {
        /// [`Operation::Open`]: the client is known; its operations name this place.
        Opened = 0 {}
        /// [`Operation::Get`] and [`Operation::Read`]: the keys' values.
        Values = 1 {
            /// Values in the order of [`Operation::keys`].
            values: Vec<Found>,
        }
        /// [`Operation::Put`] and [`Operation::Delete`]: it is done.
        Done = 2 {}
        /// [`Operation::Swap`] and [`Operation::Move`]: the condition held, or not.
        Decided = 3 {
            /// True if it held, and the change is made.
            done: bool,
            /// Values before, in the order of [`Operation::keys`].
            values: Vec<Found>,
        }
        /// It did nothing.
        Refused = 4 {
            /// Why.
            reason: Reason,
        }
    }
}

table! {
    /// A shard's knowledge of a client and its number.
    Verdict as "verdict" {
        /// The operation is to be executed.
        New = 0 {}
        /// It was executed; this was its outcome.
        Again = 1 {}
        /// A later one was executed.
        Late = 2 {}
        /// The client is not known.
        Forgotten = 3 {}
    }
}

/// An operation of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The client, by a number that nobody else has.
    pub client: u64,
    /// Number of the operation: that of a later one is greater.
    pub number: u64,
    /// Place of the client's [`Operation::Open`]; zeros in that.
    pub opened: FinalTime,
    /// Address to which the answer goes.
    pub reply: SocketAddrV4,
    /// The operation.
    pub operation: Operation,
}

/// State of a shard at the place of an operation of several shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The place.
    pub at: FinalTime,
    /// The shard.
    pub shard: u8,
    /// Its knowledge of the client.
    pub verdict: Verdict,
    /// True if it has room for another record.
    pub room: bool,
    /// Values of the keys that are its own, in the order of [`Operation::keys`].
    pub values: Vec<Found>,
}

macro_rules! fields {
    ($name:ident as $what:literal { $($field:ident),* }) => {
        impl Field for $name {
            const TYPE: &'static str = $what;

            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
                Ok($name { $($field: Field::take(bytes)?,)* })
            }
        }
    };
}

fields!(Command as "command" { client, number, opened, reply, operation });
fields!(Part as "part" { at, shard, verdict, room, values });

table! {
    /// A message of the store.
    Message as "message" {
        /// A client's operation: the payload of a message of multicast.
        Command = 1 {
            /// The operation.
            command: Command,
        }
        /// A replica to a client: an operation's outcome.
        Answer = 2 {
            /// The client.
            client: u64,
            /// Number of the operation.
            number: u64,
            /// Place at which it was executed.
            at: FinalTime,
            /// Its outcome.
            outcome: Outcome,
        }
        /// A replica to those of other shards: what it has at a place.
        Part = 3 {
            /// The part.
            part: Part,
        }
        /// A replica to those of another shard: it lacks their part at a place.
        Ask = 4 {
            /// The place.
            at: FinalTime,
        }
        /// A replica to one that asked: the part at that place is not kept any more.
        Gone = 5 {
            /// The place.
            at: FinalTime,
            /// The replica's shard.
            shard: u8,
        }
    }
}

impl Message {
    /// Its bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        self.put(&mut out);
        out
    }

    /// Reads a message that is all of `bytes`.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if it is none.
    pub fn parse(mut bytes: &[u8]) -> Result<Message, Malformed> {
        let bytes = &mut bytes;
        match u8::take(bytes)? {
            VERSION => {}
            version => return Err(Malformed::Version(version)),
        }
        let message = Message::take(bytes)?;
        if let Message::Command { command } = &message
            && matches!(&command.operation, Operation::Read { keys } if keys.is_empty())
        {
            return Err(Malformed::Length {
                what: "keys",
                found: 0,
            });
        }
        match bytes.len() {
            0 => Ok(message),
            extra => Err(Malformed::Trailing(extra)),
        }
    }
}

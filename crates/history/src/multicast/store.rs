//! The key-value store over multicast, as one state machine: what clients ask and are told.
//!
//! Keys and values are words.

use crate::event::Object;
use std::collections::BTreeMap;

/// An operation that a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Reads a key.
    Get {
        /// The key.
        key: Object,
    },
    /// Gives a key a value.
    Put {
        /// The key.
        key: Object,
        /// Its value from here on.
        value: Object,
    },
    /// Takes a key's value away.
    Delete {
        /// The key.
        key: Object,
    },
    /// Gives a key a value, or none, if it has an expected one, or none.
    Swap {
        /// The key.
        key: Object,
        /// The value that it must have.
        expected: Option<Object>,
        /// Its value from here on.
        value: Option<Object>,
    },
    /// Moves a key's value to another key, if the first has one and the second has none.
    Move {
        /// The key that loses its value.
        from: Object,
        /// The key that gets it.
        to: Object,
    },
    /// Reads several keys at one moment.
    Read {
        /// The keys.
        keys: Vec<Object>,
    },
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// Of reads: the values, in the order of the keys.
    Values {
        /// The values.
        values: Vec<Option<Object>>,
    },
    /// Of a put or a delete: it is done.
    Done,
    /// Of a swap or a move.
    Decided {
        /// True if the condition held, and the change is made.
        done: bool,
        /// The values before.
        values: Vec<Option<Object>>,
    },
    /// The operation did nothing, and never will.
    Refused,
}

impl Request {
    /// The keys that it names, in the order of the answer's values.
    pub fn keys(&self) -> Vec<&Object> {
        match self {
            Self::Get { key }
            | Self::Put { key, .. }
            | Self::Delete { key }
            | Self::Swap { key, .. } => vec![key],
            Self::Move { from, to } => vec![from, to],
            Self::Read { keys } => keys.iter().collect(),
        }
    }
}

/// The store.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Machine {
    records: BTreeMap<Object, Object>,
}

impl Machine {
    /// Executes an operation; gives its answer, and true if it changed something.
    pub(super) fn execute(&mut self, request: &Request) -> (Response, bool) {
        let keys = request.keys().into_iter();
        let values: Vec<_> = keys.map(|key| self.records.get(key).cloned()).collect();
        let (done, writes) = match request {
            Request::Get { .. } | Request::Read { .. } => {
                return (Response::Values { values }, false);
            }
            Request::Put { key, value } => {
                self.records.insert(key.clone(), value.clone());
                return (Response::Done, true);
            }
            Request::Delete { key } => {
                self.records.remove(key);
                return (Response::Done, true);
            }
            Request::Swap {
                key,
                expected,
                value,
            } => (values[0] == *expected, vec![(key, value.clone())]),
            Request::Move { from, to } => (
                values[0].is_some() && values[1].is_none(),
                vec![(from, None), (to, values[0].clone())],
            ),
        };
        for (key, value) in writes.into_iter().filter(|_| done) {
            match value {
                Some(value) => _ = self.records.insert(key.clone(), value),
                None => _ = self.records.remove(key),
            }
        }
        (Response::Decided { done, values }, done)
    }
}

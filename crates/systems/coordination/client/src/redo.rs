//! Redo records: what a transaction decided to write (rule 22).
//!
//! Before a transaction writes more than one key it leaves a redo record beside each, which names
//! the transaction's decision, and then makes the decision: one record, elsewhere. From then on
//! whoever finds a redo record writes what it says; without the decision it is removed.

use stateplane_wire::coordination::{Key, Kind, MAX_VALUE};

use crate::name::key_of_recipe;
use crate::{Action, Delete, Guard, Operation, Place, Record, When, Write};

/// Bytes of a redo record before the value.
const FRONT: usize = 43;

/// Longest value, with the name before it, that a transaction of several changes writes.
pub const MAX_CHANGE: usize = MAX_VALUE - FRONT;

/// The key of the lock that covers `data` in transactions.
pub(crate) fn lock_of(group: u16, data: Key) -> Place {
    Place::within(group, key_of_recipe(b'T', &[&data.0]))
}

/// Place of the redo record of `data`.
pub(crate) fn redo_of(group: u16, data: Key) -> Place {
    Place::within(group, key_of_recipe(b'R', &[&data.0]))
}

/// The write of one key that is to be done again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redo {
    pub decision_group: u16,
    pub decision: Key,
    /// Group of the data and of this record.
    pub group: u16,
    pub data: Key,
    /// Token of the lock that covers the data.
    pub token: u64,
    /// The value with the name before it, or none if the record is deleted.
    pub value: Option<Vec<u8>>,
}

impl Redo {
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(MAX_VALUE);
        bytes.extend_from_slice(&self.decision_group.to_be_bytes());
        bytes.extend_from_slice(&self.decision.0);
        bytes.extend_from_slice(&self.data.0);
        bytes.extend_from_slice(&self.token.to_be_bytes());
        bytes.push(self.value.is_some().into());
        bytes.extend_from_slice(self.value.as_deref().unwrap_or_default());
        bytes
    }

    /// Reads a record of `group`; `None` if it is no redo record.
    pub fn parse(group: u16, record: &Record) -> Option<Redo> {
        let (group_bytes, rest) = record.value.split_first_chunk::<2>()?;
        let (decision, rest) = rest.split_first_chunk::<16>()?;
        let (data, rest) = rest.split_first_chunk::<16>()?;
        let (token, rest) = rest.split_first_chunk::<8>()?;
        let (writes, value) = rest.split_first()?;
        let data = Key(*data);
        let is_one =
            record.kind == Kind::Value && redo_of(group, data).key == record.key && *writes <= 1;
        is_one.then(|| Redo {
            decision_group: u16::from_be_bytes(*group_bytes),
            decision: Key(*decision),
            group,
            data,
            token: u64::from_be_bytes(*token),
            value: (*writes == 1).then(|| value.to_vec()),
        })
    }

    /// Place of this record.
    pub fn place(&self) -> Place {
        redo_of(self.group, self.data)
    }

    /// Place of the decision.
    pub fn decision_place(&self) -> Place {
        Place::within(self.decision_group, self.decision)
    }

    /// The write of the data, as long as the lock is held by the one who began.
    pub fn apply(&self) -> Operation {
        let guard = Some(Guard::Token(lock_of(self.group, self.data).key, self.token));
        let place = Place::within(self.group, self.data);
        let (token, when) = (self.token, When::Always);
        let action = match &self.value {
            Some(value) => Action::Write(Write {
                value: value.clone(),
                when,
                guard,
                token,
                session: 0,
            }),
            None => Action::Delete(Delete { when, guard, token }),
        };
        Operation::new(place, action)
    }
}

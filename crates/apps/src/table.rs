//! Entries of a switch's tables.

use core::net::Ipv4Addr;
use num_bigint::BigUint;
use stateplane_runtime::{Entry, KeyMatch, StateError, TargetState};

/// A number as tables take it.
pub fn number(value: impl Into<u64>) -> BigUint {
    BigUint::from(value.into())
}

/// An address as tables take it.
pub fn address(address: Ipv4Addr) -> BigUint {
    number(address.to_bits())
}

/// The keys of a table with one exact key.
pub fn exact(value: BigUint) -> Vec<KeyMatch> {
    vec![KeyMatch::Exact(value)]
}

/// Adds an entry; with a range in its keys, of priority 1.
///
/// # Errors
/// If the table does not exist or does not take it.
pub fn insert(
    state: &mut TargetState,
    table: &str,
    keys: Vec<KeyMatch>,
    action: &str,
    data: Vec<BigUint>,
) -> Result<(), StateError> {
    let ordered = keys.iter().any(|key| matches!(key, KeyMatch::Range { .. }));
    state.table_mut(table)?.insert(&Entry {
        keys,
        priority: ordered.into(),
        action: action.into(),
        data,
    })
}

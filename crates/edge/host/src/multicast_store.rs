//! Replicas and clients of the key-value store over multicast on sockets: drive a
//! [`Replica`](stateplane_multicast_store::Replica) and [`Client`](stateplane_multicast_store::Client)s.
//!
//! Replicas exchange datagrams and states with each other, and answer clients by datagrams; with a
//! file of keys all of that is sealed, as what passes between them and the switches is.

use stateplane_seal::{ANSWER_LENGTH, TRAILER_LENGTH};

mod client;
mod exchange;
mod replica;
#[cfg(test)]
mod tests;

pub use client::{StoreClient, StoreClientConfig, StoreClientError};
pub use replica::{StoreReplica, StoreReplicaConfig, StoreReplicaError};
pub use stateplane_multicast_store::STORE_PORT;

/// Least bytes of a message that is sealed: shorter ones are not answered while they prove nothing.
const LEAST: usize = ANSWER_LENGTH - TRAILER_LENGTH;

/// Bytes before a message that is sealed: its length.
const LENGTH: usize = 2;

/// A message as it is sealed: behind its length, with zeros up to [`LEAST`]. `None` if it is longer
/// than any datagram.
fn padded(message: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(message.len()).ok()?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend(message);
    bytes.resize(bytes.len().max(LEAST), 0);
    Some(bytes)
}

/// The message in what [`padded`] makes; `None` of other bytes.
fn unpadded(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
    let (message, zeros) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
    let right = bytes.len() == LEAST.max(LENGTH + message.len());
    (right && zeros.iter().all(|byte| *byte == 0)).then_some(message)
}

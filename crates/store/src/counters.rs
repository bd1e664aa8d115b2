//! How often each thing happened.

use serde::Serialize;

/// Counts since the replica started, one per reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counters {
    /// Datagrams on the request port.
    pub requests: u64,
    /// Requests dropped: too short, a state beyond the end, or bytes after it.
    pub malformed: u64,
    /// Requests dropped: another version of the format.
    pub wrong_version: u64,
    /// Requests dropped: a type without meaning, or one that a store sends.
    pub foreign_type: u64,
    /// Requests dropped: incarnation 0, which no switch has (rule 6).
    pub zero_incarnation: u64,
    /// Requests dropped: entry or reply would not fit a datagram.
    pub too_long: u64,
    /// Requests dropped: too many entries await the successor's acknowledgement.
    pub window_full: u64,
    /// Refused: not the head of that shard's chain.
    pub wrong_server: u64,
    /// Refused: the request names another chain epoch.
    pub wrong_chain_epoch: u64,
    /// Refused: unknown class, or a state of another length.
    pub bad_state: u64,
    /// Refused: another grant is newer (rule 12).
    pub fenced: u64,
    /// Refused: there is no record and the class makes none.
    pub no_record: u64,
    /// Refused: too many requests wait (rule 23).
    pub parking_full: u64,
    /// Refused: no port is free.
    pub pool_exhausted: u64,
    /// Refused: no room for a record or a holder.
    pub store_full: u64,
    /// Refused: a write or exclusive lease where only shared ones exist.
    pub not_writable: u64,
    /// Leases granted anew.
    pub granted: u64,
    /// Grants repeated to their holder.
    pub grant_repeated: u64,
    /// Requests that waited, or wait.
    pub parked: u64,
    /// Retransmissions of requests that wait already.
    pub parked_duplicate: u64,
    /// Writes that replaced the state.
    pub written: u64,
    /// Writes whose sequence is the held one: duplicates, and reads on their way
    /// with an unacknowledged write (rule 9).
    pub duplicate: u64,
    /// Writes whose sequence is older than the held one.
    pub stale_sequence: u64,
    /// Renewals.
    pub renewed: u64,
    /// Answers to a holder that did not extend its lease because another waits
    /// (rule 5).
    pub not_renewed: u64,
    /// Probes.
    pub probed: u64,
    /// Records made.
    pub records_made: u64,
    /// Records forgotten.
    pub records_expired: u64,
    /// Entries applied.
    pub applied: u64,
    /// Replies sent.
    pub replies: u64,
    /// Chain messages dropped: not of the format, or an entry that is not.
    pub chain_malformed: u64,
    /// Chain messages dropped: another chain epoch (rule 21).
    pub chain_wrong_epoch: u64,
    /// Chain messages dropped: not from the neighbour that sends such (rule 21).
    pub chain_wrong_sender: u64,
    /// Chain messages dropped: another incarnation of the link than the accepted
    /// one.
    pub chain_wrong_incarnation: u64,
    /// Updates dropped by a replica that has not seen number 1: it is empty and
    /// must not serve as if it had the state.
    pub chain_not_begun: u64,
    /// Updates received again.
    pub chain_duplicate: u64,
    /// Updates kept because one before them is missing.
    pub chain_early: u64,
    /// Updates dropped: too far ahead, or the successor's window is full.
    pub chain_window_full: u64,
    /// Acknowledgements of entries that were never sent.
    pub chain_bad_ack: u64,
    /// Updates sent again.
    pub chain_resent: u64,
    /// Entries that contradict the state; a fault of the predecessor.
    pub chain_inconsistent: u64,
}

//! Counters of events at a replica and at a server.

use serde::Serialize;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since the replica started, one per reason.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl core::ops::AddAssign for Counters {
            fn add_assign(&mut self, other: Counters) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Datagrams on the request port.
    requests,
    /// Requests dropped: too short, a state beyond the end, or bytes after it.
    malformed,
    /// Requests dropped: another version of the format.
    wrong_version,
    /// Requests dropped: a type without meaning, or one that a store sends.
    foreign_type,
    /// Requests dropped: incarnation 0, which no switch has (rule 6).
    zero_incarnation,
    /// Requests dropped: entry or reply would not fit a datagram.
    too_long,
    /// Requests dropped: too many entries are not on every replica.
    window_full,
    /// Requests dropped: the head came back from its disk, and does not know yet how far its
    /// successor is.
    not_compared,
    /// Refused: not the head of that shard's chain.
    wrong_server,
    /// Refused: the request names another chain epoch.
    wrong_chain_epoch,
    /// Refused: unknown class, or a state of another length.
    bad_state,
    /// Refused: another grant is newer (rule 12).
    fenced,
    /// Refused: there is no record and the class makes none.
    no_record,
    /// Refused: too many requests wait (rule 23).
    parking_full,
    /// Refused: no port is free.
    pool_exhausted,
    /// Refused: no room for a record or a holder.
    store_full,
    /// Refused: a write or exclusive lease where only shared ones exist.
    not_writable,
    /// Refused: the tenant has as many records as its quota allows.
    quota_exceeded,
    /// Leases granted anew.
    granted,
    /// Grants repeated to their holder.
    grant_repeated,
    /// Requests that waited, or wait.
    parked,
    /// Retransmissions of requests that wait already.
    parked_duplicate,
    /// Writes that replaced the state.
    written,
    /// Writes whose sequence is the held one: duplicates, and reads that carry an unacknowledged
    /// write (rule 9).
    duplicate,
    /// Writes whose sequence is older than the held one.
    stale_sequence,
    /// Packets of readers that went by the store (rule 26).
    renewed,
    /// Shards withheld from a switch whose holder answered no recall or question (rule 5).
    withheld,
    /// Lease requests dropped: a later claim of the same slot has the lease (rule 18).
    earlier_claim,
    /// Questions to holders whether their lease is idle (rule 22).
    asked_idle,
    /// Answers that a lease is used.
    used,
    /// Holders asked to give a lease up (rule 19).
    recalled,
    /// Leases given up.
    released,
    /// Releases dropped: a write that they name is not here yet.
    release_early,
    /// Releases dropped: the lease is another's, or over.
    release_stale,
    /// Probes.
    probed,
    /// Questions of observers answered.
    observed,
    /// Of these, with all records from the first one: the observer lacked changes that are not kept.
    observed_anew,
    /// Questions of observers refused: the replica is not the tail, or one that joins behind it may be.
    observed_elsewhere,
    /// Records made.
    records_made,
    /// Records forgotten.
    records_expired,
    /// Of these, records or mappings forgotten before their time because the store was
    /// full.
    evicted,
    /// Mappings of ended connections forgotten before their time because no port was free for their
    /// remote endpoint.
    reclaimed,
    /// Ports taken when few of their address and protocol were left.
    pool_low,
    /// Entries applied.
    applied,
    /// Replies sent.
    replies,
    /// Chain messages dropped: not of the format, or an entry that is not.
    chain_malformed,
    /// Chain messages dropped: another chain epoch (rule 21).
    chain_wrong_epoch,
    /// Chain messages dropped: not from the neighbour that sends such (rule 21).
    chain_wrong_sender,
    /// Chain messages dropped: another incarnation of the link than the accepted
    /// one.
    chain_wrong_incarnation,
    /// Messages dropped by a replica that lacks what came before: it must not serve
    /// as if it had the state.
    chain_not_begun,
    /// Updates received again.
    chain_duplicate,
    /// Updates kept because one before them is missing.
    chain_early,
    /// Updates dropped: too far ahead.
    chain_window_full,
    /// Acknowledgements of entries that were never sent.
    chain_bad_ack,
    /// Datagrams with updates sent for the first time.
    chain_sent,
    /// Updates and parts of a snapshot sent again.
    chain_resent,
    /// Changes of the configuration of the chain.
    reconfigured,
    /// Parts of snapshots sent.
    snapshot_parts,
    /// Snapshots begun again because the joining replica fell too far behind.
    snapshots_restarted,
    /// Snapshots installed.
    snapshots_installed,
    /// Snapshots refused: the state that came of one has another digest.
    snapshot_mismatch,
    /// Entries that contradict the state; a fault of the predecessor.
    chain_inconsistent,
}

// Terms: since when and until when the leases of a shard's flows count (rule 1).

#ifndef STATEPLANE_REPLICATION_TERM_P4
#define STATEPLANE_REPLICATION_TERM_P4

#include "metadata.p4"
#include "replication_rules.p4"

// Shards that a switch can know.
#ifndef REPLICATION_SHARDS
#define REPLICATION_SHARDS 256
#endif

// The switch's term with the head of each shard's chain. The host writes an element at once, with
// the answers to its heartbeats and when the program changes, and the program only reads: so no
// packet sees half a change, and no worker waits for a lock.
//
//   bits 63 to 26   the deadline, in units of 1024 µs of the switch clock
//   bits 25 to 0    how long before that the term began, in units of 256 µs
//
// 0 says that no lease counts. Of a term longer than 2^26 units the beginning moves along, so that
// a lease asked for before it is asked for once more.
register<bit<64>>(REPLICATION_SHARDS) replication_term;

// When the head of the probed shard last answered a heartbeat (rule 17), in µs of the switch clock.
// The host writes it.
register<bit<48>>(1) replication_beat;

// Tells whether leases count that were granted to requests sent at `slot.granted`.
control JudgeLease(inout replication_metadata_t meta) {
    bit<64> term;
    bit<48> deadline;
    bit<48> since;

    apply {
        replication_term.read(term, (bit<32>)meta.slot.shard);
        deadline = term[63:26] ++ 10w0;
        since = deadline - (bit<48>)(term[25:0] ++ 8w0);
        meta.slot.counts = (meta.slot.granted > since || !RULE_LEASE_SINCE)
            && (meta.now < deadline || !RULE_LEASE_DEADLINE);
    }
}

#endif

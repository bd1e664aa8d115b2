// Locks: owner, token and queue in one record (rule 20).

#ifndef STATEPLANE_COORDINATION_LOCK_P4
#define STATEPLANE_COORDINATION_LOCK_P4

#include "coordination_message.p4"
#include "group.p4"
#include "metadata.p4"
#include "rules.p4"
#include "slots.p4"

// Judges ACQUIRE and RELEASE.
control JudgeLock(
    in bit<64> number,
    in bool guarded,
    inout coordination_headers_t hdr,
    inout coordination_metadata_t meta
) {
    apply {
        hdr.message.outcome = OUTCOME_WRONG_KIND;
    }
}

#endif

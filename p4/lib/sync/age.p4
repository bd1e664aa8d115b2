// Packets of which the engine may not hear in time (rule 28).

#ifndef STATEPLANE_SYNC_AGE_P4
#define STATEPLANE_SYNC_AGE_P4

#include "events.p4"
#include "state.p4"

// Sets `late`, and counts the packet, if it comes at `now`, and more than `age` µs after the last
// POLL of the group's engine.
control SyncAge(in bit<16> group, in bit<48> age, in bit<48> now, inout bool late) {
    bit<48> polled_at;

    apply {
        sync_polled_at.read(polled_at, (bit<32>)group);
        if (now - polled_at > age) {
            sync_events.count(SYNC_EVENT_LATE);
            late = true;
        }
    }
}

#endif

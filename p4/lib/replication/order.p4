// Packets that went to the store and came back: each leaves once (rule 4), and in the order in
// which the packets of its flow came (rule 26).

#ifndef STATEPLANE_REPLICATION_ORDER_P4
#define STATEPLANE_REPLICATION_ORDER_P4

#include "replication_message.p4"
#include "replication_rules.p4"
#include "serial.p4"
#include "slots.p4"

// For so long, in µs, after a packet had to go to the store and back, the packets of its
// flow behind it go there too while it is on its way, so that none overtakes it (rule 26).
#ifndef REPLICATION_ORDER_MICROSECONDS
#define REPLICATION_ORDER_MICROSECONDS 2000
#endif

// Tells whether a returned packet with this request number is the first of its
// number (rule 4), and notes it.
control ReturnedOnce(in bit<32> index, in bit<32> request, out bool first) {
    bit<32> highest;
    bit<REPLICATION_WINDOW> window;
    bit<32> distance;

    apply {
        slot_returned.read(highest, index);
        slot_window.read(window, index);
        distance = request - highest;
        first = true;
        if (!IS_NEWER(request, highest)) {
            distance = highest - request;
            if (distance >= REPLICATION_WINDOW) {
                first = false;
            } else {
                first = ((window >> distance[7:0]) & 1) == 0;
                window = window | ((bit<REPLICATION_WINDOW>)1 << distance[7:0]);
            }
        } else {
            if (distance >= REPLICATION_WINDOW) {
                window = 1;
            } else {
                window = (window << distance[7:0]) | 1;
            }
            slot_returned.write(index, request);
        }
        slot_window.write(index, window);
        if (!RULE_RELEASE_ONCE) {
            first = true;
        }
    }
}

// Takes a packet that came back out of its flow's line, which ends with the last one
// (rule 26).
control LeaveLine(in bit<32> index, in bit<32> request) {
    bit<32> unprocessed;
    bit<32> unreleased;

    apply {
        slot_unprocessed.read(unprocessed, index);
        slot_unreleased.read(unreleased, index);
        if (request == unprocessed) {
            unprocessed = 0;
            slot_unprocessed.write(index, 0);
        }
        if (request == unreleased) {
            unreleased = 0;
            slot_unreleased.write(index, 0);
        }
        if (unprocessed == 0 && unreleased == 0) {
            slot_line.write(index, 0);
        }
    }
}

// Puts a packet that goes to the store and back at the end of its flow's line (rule 26).
// Readers do not line up behind one that asks for an exclusive lease (rule 18).
control LineUp(in replication_t message, in replication_metadata_t meta) {
    bool reads_go_on;

    apply {
        reads_go_on = meta.slot.status == STATUS_SHARED && meta.slot.counts;
        if (message.type != TYPE_LEASE_REQUEST) {
            slot_unreleased.write(meta.slot.index, message.request);
        } else if (meta.behind || !reads_go_on) {
            slot_unprocessed.write(meta.slot.index, message.request);
        }
        if (!meta.behind && !reads_go_on) {
            slot_line.write(meta.slot.index, meta.now + REPLICATION_ORDER_MICROSECONDS);
        }
    }
}

#endif

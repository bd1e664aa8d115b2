// Counters, with nothing of a control plane: what `stateplane sync` instruments beside the systems
// that it is compared with.

#include "frames.p4"

// Bits of a counter.
#ifndef VALUE_BITS
#define VALUE_BITS 64
#endif

control Process(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @synced
    register<bit<VALUE_BITS>>(LOCATIONS) values;
#ifdef BESIDE
    // As large, and not in view, so that P4Runtime may write it.
    register<bit<VALUE_BITS>>(LOCATIONS) beside;
#endif
    Locate() locate;
    bit<32> first;
    bit<32> second;
    bit<32> third;
    bit<VALUE_BITS> value;

    apply {
        mark_to_drop(standard);
        if (hdr.ipv4.isValid()) {
            locate.apply(hdr.ipv4, first, second, third);
            // Without a macro around them: instrumentation edits the accesses.
            values.read(value, first);
            values.write(first, value + COUNTED);
#ifdef SKETCH
            values.read(value, second);
            values.write(second, value + COUNTED);
            values.read(value, third);
            values.write(third, value + COUNTED);
#endif
        }
    }
}

V1Switch(Read(), Nothing(), Process(), Leave(), Nothing(), Write()) main;

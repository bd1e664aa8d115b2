// A hash table of records, a flow and its packets each: a packet of another flow evicts the record that
// is in its way to the control plane (the hash table of ApproSync's II-B). The flow is the source address.

#include "frames.p4"

control Process(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    // Of each place: flow and 1, or 0 if it is empty; packets since the flow came to it.
    register<bit<32>>(ENTRIES) record_flow;
    register<bit<64>>(ENTRIES) record_count;
    Begin() begin_push;
    Append() append;
    Send() send;
    bit<32> place;
    bit<32> held;
    bit<64> count;

    apply {
        mark_to_drop(standard);
        if (hdr.ipv4.isValid()) {
            begin_push.apply(0, hdr);
            // A CRC of dense numbers collides less than one of flows.
            hash(
                place,
                HashAlgorithm.crc32,
                (bit<32>)0,
                { hdr.ipv4.source * 0x9e3779b1 },
                (bit<32>)ENTRIES
            );
            record_flow.read(held, place);
            record_count.read(count, place);
            if (held != hdr.ipv4.source + 1) {
                if (held != 0) {
                    append.apply(held - 1, count, hdr);
                }
                record_flow.write(place, hdr.ipv4.source + 1);
                count = 0;
            }
            record_count.write(place, count + 1);
            send.apply(CONTROL_PORT, hdr, standard);
        }
    }
}

V1Switch(Read(), Nothing(), Process(), Leave(), Nothing(), Write()) main;

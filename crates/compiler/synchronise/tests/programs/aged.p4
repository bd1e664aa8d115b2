// Sources that may send no more than a collector sees in time: packets that come while nobody polls
// their budget are dropped, and those of other counts are counted as late.

#include <core.p4>
#include <v1model.p4>

#include "common.p4"

#define SOURCES 16

// Packets of a source.
@synced(age = 5000, otherwise = "drop")
register<bit<32>>(SOURCES) budget;
// Bytes of a source.
@synced(age = 2000)
register<bit<64>>(SOURCES) bytes;

control Aged(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    bit<32> count;
    bit<64> total;

    apply {
        meta.index = hdr.ethernet.src[31:0] & (SOURCES - 1);
        budget.read(count, meta.index);
        budget.write(meta.index, count + 1);
        bytes.read(total, meta.index);
        bytes.write(meta.index, total + (bit<64>)standard.packet_length);
        standard.egress_spec = 1;
    }
}

V1Switch(CommonParser(), NoVerify(), Aged(), NoEgress(), NoCompute(), CommonDeparser()) main;

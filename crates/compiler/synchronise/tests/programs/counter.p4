// Packets and bytes of each source, without a word about who looks at them.

#include <core.p4>
#include <v1model.p4>

#include "common.p4"

#define SOURCES 64

// Packets of a source.
register<bit<32>>(SOURCES) packets;
@brief("Bytes of a source.")
register<bit<64>>(SOURCES) bytes;

control Counting(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    bit<32> count;
    bit<64> total;

    apply {
        meta.index = hdr.ethernet.src[31:0] & (SOURCES - 1);
        packets.read(count, meta.index);
        packets.write(meta.index, count + 1);
        bytes.read(total, meta.index);
        bytes.write(meta.index, total + (bit<64>)standard.packet_length);
        standard.egress_spec = 1;
    }
}

V1Switch(CommonParser(), NoVerify(), Counting(), NoEgress(), NoCompute(), CommonDeparser()) main;

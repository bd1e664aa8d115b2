// User metadata is 0 when a packet comes in, whatever the packet before left there, and so is
// the standard metadata that nobody set.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8>  meta;
    bit<8>  flags;
    bit<16> group;
    bit<16> spec;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
    bit<8> value;
    bool   flag;
}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.h.meta = meta.value;
        hdr.h.flags = (bit<8>)(bit<1>)meta.flag;
        hdr.h.group = standard.mcast_grp;
        hdr.h.spec = (bit<16>)standard.egress_spec;
        meta.value = 0xaa;
        meta.flag = true;
        standard.egress_spec = 1;
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;

// log_msg() puts values in place of {}; assertions that hold do nothing.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8>  a;
    bit<16> b;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        log_msg("plain");
        log_msg("a = {}, b = {}", { hdr.h.a, hdr.h.b });
        assert(hdr.h.isValid());
        assume(hdr.h.a < 10);
        hdr.h.a = 0;
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;

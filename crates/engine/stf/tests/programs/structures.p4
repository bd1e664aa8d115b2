// Values of structs and headers: lists with and without names, defaults by `...`, `{#}`, tuples,
// comparison of whole headers (specification 8.12 to 8.16).

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> kind;
    bit<8> a;
    bit<8> b;
}

struct pair_t {
    bit<8> left;
    bit<8> right;
}

struct headers_t {
    h_t h;
    h_t second;
}

struct metadata_t {
    pair_t pair;
}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.h.kind == 1) {
            meta.pair = { right = hdr.h.a, left = hdr.h.b };
            hdr.h = { hdr.h.kind, meta.pair.left, meta.pair.right };
        } else if (hdr.h.kind == 2) {
            hdr.second = { kind = 0x22, ... };
        } else if (hdr.h.kind == 3) {
            hdr.h = {#};
            hdr.second.setValid();
            hdr.second = { 1, 2, 3 };
        } else if (hdr.h.kind == 4) {
            tuple<bit<8>, bit<8>> two = { hdr.h.b, hdr.h.a };
            hdr.h.a = two[0];
            hdr.h.b = two[1];
        } else if (hdr.h.kind == 5) {
            hdr.second = { 5, 7, 8 };
            hdr.h.kind = hdr.h == hdr.second ? 8w0x50 : 8w0x51;
            hdr.second.setInvalid();
        }
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;

// switch on a value: the labels of one block stand together, and default catches the rest
// (specification 12.7.2).

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> key;
    bit<8> result;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        switch (hdr.h.key & 0x0f) {
            1:
            2: {
                hdr.h.result = 0x12;
            }
            3: {
                hdr.h.result = 0x33;
            }
            4: {}
            default: {
                hdr.h.result = 0xff;
            }
        }
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;

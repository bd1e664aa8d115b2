// A digest carries the fields as they are where it is asked for, once the packet leaves ingress.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8>  kind;
    bit<48> address;
}

struct learned_t {
    bit<48> address;
    bit<9>  port;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
    learned_t learned;
}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (hdr.h.kind == 1) {
            meta.learned = { hdr.h.address, standard.ingress_port };
            digest<learned_t>(1, meta.learned);
        }
        hdr.h.address = 0;
        standard.egress_spec = 1;
        if (hdr.h.kind == 2) {
            digest<learned_t>(1, { 48w7, 9w0x1ff });
            mark_to_drop(standard);
        }
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;

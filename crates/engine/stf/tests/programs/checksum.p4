// verify_checksum sets checksum_error, update_checksum writes what is right: csum16 is the
// ones' complement of the ones' complement sum of 16-bit words (RFC 1071).

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8>  kind;
    bit<8>  flags;
    bit<32> value;
    bit<16> sum;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.h.kind != 0, { hdr.h.kind, hdr.h.flags, hdr.h.value }, hdr.h.sum,
                        HashAlgorithm.csum16);
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.h.flags == 1, { hdr.h.kind, hdr.h.flags, hdr.h.value }, hdr.h.sum,
                        HashAlgorithm.csum16);
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = (bit<9>)standard.checksum_error + 1;
        if (hdr.h.kind == 2) {
            hdr.h.value = hdr.h.value + 1;
        }
    }
}

V1Switch(OneHeader(), Verify(), MyIngress(), NoEgress(), Update(), Emit()) main;

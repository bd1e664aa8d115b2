// The checksums with payload cover what the parser did not extract, too.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<16> value;
    bit<16> sum;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum_with_payload(true, { hdr.h.value }, hdr.h.sum, HashAlgorithm.csum16);
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum_with_payload(true, { hdr.h.value }, hdr.h.sum, HashAlgorithm.csum16);
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = (bit<9>)standard.checksum_error + 1;
        hdr.h.value = hdr.h.value ^ 0xff00;
    }
}

V1Switch(OneHeader(), Verify(), MyIngress(), NoEgress(), Update(), Emit()) main;

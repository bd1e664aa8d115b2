// A program without registers.

#include <core.p4>
#include <v1model.p4>

#include "../programs/common.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    bit<8> x;

    apply {
        x = 1;
    }
}

V1Switch(CommonParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), CommonDeparser()) main;

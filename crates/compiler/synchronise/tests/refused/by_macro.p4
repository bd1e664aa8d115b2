// A macro writes the call.

#include <core.p4>
#include <v1model.p4>

#include "../programs/common.p4"

#define COUNT(r) r.write(0, 1);

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(8) packets;

    apply {
        COUNT(packets)
    }
}

V1Switch(CommonParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), CommonDeparser()) main;

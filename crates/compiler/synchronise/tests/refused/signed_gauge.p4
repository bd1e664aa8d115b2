// A gauge whose values may be negative.

#include <core.p4>
#include <v1model.p4>

#include "../programs/common.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @synced(kind = "gauge")
    register<int<32>>(8) level;

    apply {
        level.write(0, -1);
    }
}

V1Switch(CommonParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), CommonDeparser()) main;

// Registers of one group that are too wide together.

#include <core.p4>
#include <v1model.p4>

#include "../programs/common.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @synced(group = "flow")
    register<bit<48>>(8) source;
    @synced(group = "flow")
    register<bit<32>>(8) packets;

    apply {
        source.write(0, 1);
        packets.write(0, 1);
    }
}

V1Switch(CommonParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), CommonDeparser()) main;

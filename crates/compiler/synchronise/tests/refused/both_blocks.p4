// Registers of one group that ingress and egress write.

#include <core.p4>
#include <v1model.p4>

#include "../programs/common.p4"

@synced(group = "flow")
register<bit<32>>(8) received;
@synced(group = "flow")
register<bit<32>>(8) sent;

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        received.write(0, 1);
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        sent.write(0, 1);
    }
}

V1Switch(CommonParser(), NoVerify(), MyIngress(), MyEgress(), NoCompute(), CommonDeparser()) main;

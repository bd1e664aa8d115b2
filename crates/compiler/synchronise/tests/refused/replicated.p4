// A register that stateplane protect keeps in the store.

#include <core.p4>
#include <v1model.p4>

#include "../programs/common.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @replicated(key = {hdr.ethernet.src})
    register<bit<32>>(8) packets;

    apply {
        packets.write(0, 1);
    }
}

V1Switch(CommonParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), CommonDeparser()) main;

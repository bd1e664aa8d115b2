// An annotation with a kind that there is not.

#include <core.p4>
#include <v1model.p4>

#include "../programs/common.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @synced(kind = "rate")
    register<bit<32>>(8) packets;
    @synced(limit = 7)
    register<bit<32>>(8) bytes;
    @synced(bound = "much")
    register<bit<32>>(8) drops;
    @synced(age = 0)
    register<bit<32>>(8) late;
    @synced(age = 7, otherwise = "fail")
    register<bit<32>>(8) later;
    @synced(otherwise = "drop")
    register<bit<32>>(8) latest;

    apply {
        packets.write(0, 1);
        bytes.write(0, 1);
        drops.write(0, 1);
        late.write(0, 1);
        later.write(0, 1);
        latest.write(0, 1);
    }
}

V1Switch(CommonParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), CommonDeparser()) main;

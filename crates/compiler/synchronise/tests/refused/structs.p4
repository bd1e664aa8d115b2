// Elements that are structs.

#include <core.p4>
#include <v1model.p4>

#include "../programs/common.p4"

struct pair_t {
    bit<8> one;
    bit<8> other;
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<pair_t>(8) pairs;

    apply {
        pairs.write(0, { 1, 2 });
    }
}

V1Switch(CommonParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), CommonDeparser()) main;

// A control gets the register as a parameter.

#include <core.p4>
#include <v1model.p4>

#include "../programs/common.p4"

control Adder()(register<bit<32>> of) {
    apply {
        of.write(0, 1);
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(8) packets;
    Adder(packets) adder;

    apply {
        adder.apply();
    }
}

V1Switch(CommonParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), CommonDeparser()) main;

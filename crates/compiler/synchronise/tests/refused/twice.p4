// A control with a register has two instances.

#include <core.p4>
#include <v1model.p4>

#include "../programs/common.p4"

control Adder() {
    register<bit<32>>(8) packets;

    apply {
        packets.write(0, 1);
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Adder() one;
    Adder() other;

    apply {
        one.apply();
        other.apply();
    }
}

V1Switch(CommonParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), CommonDeparser()) main;

// All packets share one element, and the key tells them apart.

#include <core.p4>
#include <v1model.p4>

struct metadata_t {
    bit<32> index;
}

#include "../programs/common.p4"

control MyIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    @replicated(key = {hdr.ipv4.src})
    register<bit<32>>(1) total;
    bit<32> count;

    apply {
        total.read(count, 0);
        total.write(0, count + 1);
    }
}

control NoEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    apply {}
}

V1Switch(
    CommonParser(),
    CommonVerify(),
    MyIngress(),
    NoEgress(),
    CommonCompute(),
    CommonDeparser()
) main;

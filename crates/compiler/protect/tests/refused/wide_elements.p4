// Elements wider than a word of the store.

#include <core.p4>
#include <v1model.p4>

struct metadata_t {
    bit<32> count;
}

#include "../programs/common.p4"

control MyIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    @replicated(mode = "bounded", bound = 300)
    register<bit<48>>(64) times;

    apply {
        times.write(7, standard.ingress_global_timestamp);
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

// A walk that the packet generator does not keep up with.

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
    @replicated(mode = "bounded", bound = 60)
    register<bit<32>>(65536) row;

    apply {
        row.read(meta.count, 7);
        row.write(7, meta.count + 1);
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

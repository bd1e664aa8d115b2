// One key has several elements.

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
    register<bit<1>>(1024) seen;

    apply {
        hash(meta.index, HashAlgorithm.crc16, 32w0, { hdr.ipv4.src, hdr.ipv4.dst }, 32w1024);
        seen.write(meta.index, 1);
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

// What stands in @atomic is done for one packet before another begins, and means otherwise the
// same (specification 18.4.1).

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> index;
    bit<32> value;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(4) sums;
    apply {
        standard.egress_spec = 1;
        @atomic {
            bit<32> sum;
            sums.read(sum, (bit<32>)hdr.h.index);
            sum = sum + hdr.h.value;
            sums.write((bit<32>)hdr.h.index, sum);
            hdr.h.value = sum;
        }
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;

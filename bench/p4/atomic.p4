// What comes in at port 0 leaves by port 1, and the other way around, and all of it is
// counted in one register that no two workers may change at once.

#include <core.p4>
#include <v1model.p4>

struct headers_t { }
struct metadata_t { }

register<bit<64>>(1) packets;

parser Nothing(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    state start { transition accept; }
}

control Count(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    bit<64> count;

    apply {
        @atomic {
            packets.read(count, 0);
            packets.write(0, count + 1);
        }
        standard_metadata.egress_spec = standard_metadata.ingress_port ^ 1;
    }
}

control Pass(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) { apply { } }
control Checksum(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) { apply { } }

V1Switch(Nothing(), Checksum(), Count(), Pass(), Checksum(), Deparse()) main;

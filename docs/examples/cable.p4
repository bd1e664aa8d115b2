// A cable: what comes in at port 0 leaves by port 1, and the other way around.
// `packets` counts them by the port they came in at.

#include <core.p4>
#include <v1model.p4>

struct headers_t { }
struct metadata_t { }

register<bit<64>>(2) packets;

parser Nothing(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    state start { transition accept; }
}

control Cable(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    bit<64> count;

    apply {
        if (standard_metadata.ingress_port > 1) {
            mark_to_drop(standard_metadata);
        } else {
            packets.read(count, (bit<32>)standard_metadata.ingress_port);
            packets.write((bit<32>)standard_metadata.ingress_port, count + 1);
            standard_metadata.egress_spec = standard_metadata.ingress_port ^ 1;
        }
    }
}

control Pass(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) { apply { } }
control Checksum(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) { apply { } }

V1Switch(Nothing(), Checksum(), Cable(), Pass(), Checksum(), Deparse()) main;

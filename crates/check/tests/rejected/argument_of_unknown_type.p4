#include <core.p4>
#include <v1model.p4>

header tag_t {
    bit<16> value;
}

struct headers_t {
    tag_t tag;
}

struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.tga);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control Egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Deparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.tag); } }

V1Switch(P(), Verify(), Ingress(), Egress(), Update(), Deparser()) main;

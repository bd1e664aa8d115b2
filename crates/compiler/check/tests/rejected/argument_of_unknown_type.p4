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

control TagVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control TagIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control TagEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control TagUpdate(inout headers_t hdr, inout metadata_t meta) { apply { } }
control TagDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.tag); } }

V1Switch(P(), TagVerify(), TagIngress(), TagEgress(), TagUpdate(), TagDeparser()) main;

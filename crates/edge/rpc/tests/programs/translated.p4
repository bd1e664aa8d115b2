// Ports and classes that controllers call by texts.
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("example/port", string)
type bit<9> port_id_t;

@p4runtime_translation("example/class", string)
type bit<8> class_t;

@controller_header("packet_out")
header packet_out_t {
    port_id_t port;
    bit<7> pad;
}

struct headers_t {
    packet_out_t packet_out;
}

struct metadata_t {
    class_t class;
}

parser Parse(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t std
) {
    state start {
        packet.extract(hdr.packet_out);
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Forward(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action send(port_id_t port) {
        std.egress_spec = (bit<9>)port;
    }

    table classes {
        key = {
            meta.class: exact;
        }
        actions = {
            send;
            NoAction;
        }
        size = 16;
    }

    apply {
        std.egress_spec = (bit<9>)hdr.packet_out.port;
        hdr.packet_out.setInvalid();
        classes.apply();
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_out);
    }
}

V1Switch(Parse(), Nothing(), Forward(), NoEgress(), Nothing(), Deparse()) main;

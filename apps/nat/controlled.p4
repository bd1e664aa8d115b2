// The same NAT with its mappings in tables that a controller fills: a packet from an inside
// endpoint without a mapping goes to the controller (packet-in), which picks a public port,
// writes both directions of the mapping, and gives the packet back (packet-out). What an
// external controller costs is measured with it (RedPlane §7.1).

#include <core.p4>
#include <v1model.p4>

#include "router.p4"
#include "nat_packet.p4"

// Port of the switch's controller; as an interface it is an inside one.
const bit<9> CONTROLLER_PORT = 510;
// Two for each inside endpoint, one for each direction.
#define MAPPINGS 262144

@controller_header("packet_in")
header to_controller_t {
    // The endpoint that the packet looked for.
    bit<128> mapping;
}

struct headers_t {
    to_controller_t to_controller;
    nat_headers_t nat;
}

struct metadata_t { }

parser TopParser(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    NatParser() program;

    state start {
        program.apply(packet, hdr.nat);
        transition accept;
    }
}

control TopVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    Ipv4VerifyChecksum() ipv4;

    apply {
        ipv4.apply(hdr.nat.ipv4);
    }
}

control NatIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    NatClassify() classify;
    NatTranslate() translate;
    Router() router;
    bool known;
    bool hairpin;
    bool found = false;
    bit<128> mapping;
    bit<16> public_port;
    endpoint_t endpoint;

    action translate_to(bit<32> address, bit<16> port) {
        found = true;
        endpoint.address = address;
        endpoint.port = port;
    }

    action unknown() {
        found = false;
    }

    table mappings {
        key = { mapping: exact; }
        actions = { translate_to; unknown; }
        default_action = unknown();
        size = MAPPINGS;
    }

    apply {
        endpoint.address = 0;
        endpoint.port = 0;
        classify.apply(
            hdr.nat,
            standard_metadata,
            true,
            false,
            false,
            hairpin,
            known,
            mapping,
            public_port
        );
        if (known) {
            mappings.apply();
        }
        if (found) {
            translate.apply(hdr.nat, mapping[127:120], endpoint);
            router.apply(hdr.nat.ethernet, hdr.nat.ipv4, standard_metadata);
        } else if (known
            && mapping[127:120] == CLASS_NAT_OUTBOUND
            && standard_metadata.ingress_port != CONTROLLER_PORT) {
            hdr.to_controller.setValid();
            hdr.to_controller.mapping = mapping;
            standard_metadata.egress_spec = CONTROLLER_PORT;
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control NoEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    apply { }
}

control TopComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    Ipv4ComputeChecksum() ipv4;

    apply {
        ipv4.apply(hdr.nat.ipv4);
    }
}

control TopDeparser(packet_out packet, in headers_t hdr) {
    NatDeparser() program;

    apply {
        packet.emit(hdr.to_controller);
        program.apply(packet, hdr.nat);
    }
}

V1Switch(
    TopParser(),
    TopVerifyChecksum(),
    NatIngress(),
    NoEgress(),
    TopComputeChecksum(),
    TopDeparser()
) main;

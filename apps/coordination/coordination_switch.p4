// A switch of the coordination service: a linearizable key-value and lock service (NetChain,
// NSDI 2018), and the underlay's router, which is all that switches between members need.

#include <core.p4>
#include <v1model.p4>

#include "coordination.p4"
#include "router.p4"

struct metadata_t {
    coordination_metadata_t coordination;
}

parser SwitchParser(
    packet_in packet,
    out coordination_headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    CoordinationParser() coordination;

    state start {
        coordination.apply(packet, hdr, meta.coordination, standard_metadata);
        transition accept;
    }
}

control SwitchVerifyChecksum(inout coordination_headers_t hdr, inout metadata_t meta) {
    CoordinationVerifyChecksum() coordination;

    apply {
        coordination.apply(hdr);
    }
}

control SwitchIngress(
    inout coordination_headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    CoordinationIngress() coordination;
    Router() router;

    apply {
        coordination.apply(hdr, meta.coordination, standard_metadata);
        if (meta.coordination.forward) {
            router.apply(hdr.ethernet, hdr.ipv4, standard_metadata);
        }
    }
}

control SwitchEgress(
    inout coordination_headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    CoordinationEgress() coordination;

    apply {
        coordination.apply(hdr, meta.coordination, standard_metadata);
    }
}

control SwitchComputeChecksum(inout coordination_headers_t hdr, inout metadata_t meta) {
    CoordinationComputeChecksum() coordination;

    apply {
        coordination.apply(hdr, meta.coordination);
    }
}

V1Switch(
    SwitchParser(),
    SwitchVerifyChecksum(),
    SwitchIngress(),
    SwitchEgress(),
    SwitchComputeChecksum(),
    CoordinationDeparser()
) main;

// A switch of multicast: a member of groups (after P4mCast), and the underlay's router, which is
// all that switches between members need.

#include <core.p4>
#include <v1model.p4>

#include "multicast.p4"
#include "router.p4"

struct metadata_t {
    multicast_metadata_t multicast;
}

parser SwitchParser(
    packet_in packet,
    out multicast_headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    MulticastParser() multicast;

    state start {
        multicast.apply(packet, hdr);
        transition accept;
    }
}

control SwitchVerifyChecksum(inout multicast_headers_t hdr, inout metadata_t meta) {
    MulticastVerifyChecksum() multicast;

    apply {
        multicast.apply(hdr);
    }
}

control SwitchIngress(
    inout multicast_headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    MulticastIngress() multicast;
    Router() router;

    apply {
        multicast.apply(hdr, meta.multicast, standard_metadata);
        if (meta.multicast.forward) {
            router.apply(hdr.ethernet, hdr.ipv4, standard_metadata);
        }
    }
}

control SwitchEgress(
    inout multicast_headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    MulticastEgress() multicast;

    apply {
        multicast.apply(hdr, meta.multicast, standard_metadata);
    }
}

control SwitchComputeChecksum(inout multicast_headers_t hdr, inout metadata_t meta) {
    MulticastComputeChecksum() multicast;

    apply {
        multicast.apply(hdr);
    }
}

control SwitchDeparser(packet_out packet, in multicast_headers_t hdr) {
    MulticastDeparser() multicast;

    apply {
        multicast.apply(packet, hdr);
    }
}

V1Switch(
    SwitchParser(),
    SwitchVerifyChecksum(),
    SwitchIngress(),
    SwitchEgress(),
    SwitchComputeChecksum(),
    SwitchDeparser()
) main;

// The limit of `eval p4mcast`: a switch that gives each message to all receivers of its groups by a
// plain multicast group, and keeps nothing.

struct metadata_t {
}

#include "message.p4"

control SwitchIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    apply {
        if (hdr.message.isValid() && hdr.message.type == TYPE_START) {
            standard_metadata.mcast_grp = (bit<16>)hdr.message.destinations;
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control SwitchEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    Target() target;

    apply {
        hdr.message.type = TYPE_DELIVER;
        target.apply(hdr, standard_metadata);
    }
}

V1Switch(
    SwitchRead(),
    SwitchVerifyChecksum(),
    SwitchIngress(),
    SwitchEgress(),
    SwitchComputeChecksum(),
    SwitchWrite()
) main;

// Each copy of a multicast group goes through egress with its port and the number of its node;
// mcast_grp goes before egress_spec, and a group that there is not has no copies.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<16> group;
    bit<16> rid;
    bit<8>  port;
    bit<8>  instance;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.h.rid = standard.egress_rid;
        hdr.h.port = (bit<8>)standard.egress_port;
        hdr.h.instance = (bit<8>)standard.instance_type;
        if (standard.egress_rid == 8 && standard.egress_port == standard.ingress_port) {
            mark_to_drop(standard);
        }
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 9;
        standard.mcast_grp = hdr.h.group;
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), MyEgress(), NoChecksum(), Emit()) main;

// A replicated cell of eight bits for each pair of IPv4 addresses, read and written
// by packets: what p4/lib/replication.p4 does for programs that read between their
// writes, or write without an output.

#include <core.p4>
#include <v1model.p4>

#define REPLICATION_STATE_BITS 8
#include "replication.p4"

const bit<8> CLASS_CELL = 9;
// RFC 3692: for experiments.
const bit<8> IP_PROTOCOL_CELL = 253;

const bit<8> ORDER_READ = 0;
const bit<8> ORDER_WRITE = 1;
const bit<8> ORDER_WRITE_ONLY = 2;
// Written, and sent to multicast group 1.
const bit<8> ORDER_WRITE_TO_ALL = 3;

header order_t {
    bit<8> kind;
    bit<8> value;
}

struct headers_t {
    replication_headers_t replication;
    ethernet_t            ethernet;
    ipv4_t                ipv4;
    order_t               order;
}

struct metadata_t {
    replication_metadata_t replication;
}

parser CellParser(packet_in packet, inout headers_t hdr) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            IP_PROTOCOL_CELL: order;
            default: accept;
        }
    }

    state order {
        packet.extract(hdr.order);
        transition accept;
    }
}

parser TopParser(packet_in packet,
                 out headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    ReplicationParser() replication;
    CellParser() program;

    state start {
        replication.apply(packet, hdr.replication, meta.replication, standard_metadata);
        transition select(meta.replication.parse_program) {
            true: own_headers;
            default: accept;
        }
    }

    state own_headers {
        program.apply(packet, hdr);
        transition accept;
    }
}

control CellVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    ReplicationVerifyChecksum() replication;

    apply {
        replication.apply(hdr.replication);
    }
}

control CellIngress(inout headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    ReplicationIngressBefore() replication_before;
    ReplicationIngressAfter() replication_after;

    apply {
        if (meta.replication.arriving && hdr.order.isValid()) {
            meta.replication.known = true;
            meta.replication.key = CLASS_CELL ++ hdr.ipv4.source ++ hdr.ipv4.destination
                ++ 56w0;
            meta.replication.shard = 0;
        }
        replication_before.apply(hdr.replication, meta.replication, standard_metadata);
        if (meta.replication.process) {
            if (!hdr.order.isValid()) {
                mark_to_drop(standard_metadata);
            } else if (hdr.order.kind == ORDER_READ) {
                hdr.order.value = meta.replication.value;
            } else {
                meta.replication.value = hdr.order.value;
                meta.replication.write = true;
                if (hdr.order.kind == ORDER_WRITE_ONLY) {
                    mark_to_drop(standard_metadata);
                } else if (hdr.order.kind == ORDER_WRITE_TO_ALL) {
                    standard_metadata.mcast_grp = 1;
                }
            }
        }
        replication_after.apply(hdr.replication, meta.replication, standard_metadata);
        if (meta.replication.forward) {
            standard_metadata.egress_spec = 1;
            if (hdr.order.isValid() && hdr.order.kind == ORDER_WRITE_TO_ALL) {
                standard_metadata.mcast_grp = 1;
            }
        }
    }
}

control CellEgress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    ReplicationEgress() replication;

    apply {
        replication.apply(hdr.replication, meta.replication, standard_metadata);
    }
}

control CellComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    ReplicationComputeChecksum() replication;

    apply {
        replication.apply(hdr.replication);
    }
}

control CellDeparser(packet_out packet, in headers_t hdr) {
    ReplicationDeparser() replication;

    apply {
        replication.apply(packet, hdr.replication);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.order);
    }
}

V1Switch(TopParser(),
         CellVerifyChecksum(),
         CellIngress(),
         CellEgress(),
         CellComputeChecksum(),
         CellDeparser()) main;

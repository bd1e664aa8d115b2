// What the switch offers to a program, each behind one value of the header's `kind`.

#include <core.p4>
#include <v1model.p4>

#ifndef CLONES
#define CLONES 2
#endif

header order_t {
    bit<8>  kind;
    bit<8>  count;
    bit<16> target;
    bit<48> time;
    bit<32> value;
}

struct headers_t {
    order_t order;
}

struct metadata_t {
    @field_list(1)
    bit<8> left;
}

const bit<8> KIND_ROUTE = 0;
const bit<8> KIND_CLONE = 1;
const bit<8> KIND_RECIRCULATE = 2;
const bit<8> KIND_MULTICAST = 3;
const bit<8> KIND_RESUBMIT = 4;
const bit<8> KIND_DROP = 5;

const bit<32> INSTANCE_EGRESS_CLONE = 2;

register<bit<32>>(8) values;
counter(8, CounterType.packets_and_bytes) kinds;

parser OrderParser(packet_in packet,
                   out headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.order);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control OrderIngress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    action drop() {
        mark_to_drop(standard_metadata);
    }

    table routes {
        key = {
            hdr.order.target : lpm;
            hdr.order.isValid() : exact;
        }
        actions = { forward; drop; }
        default_action = drop();
        size = 16;
    }

    apply {
        if (hdr.order.isValid()) {
            kinds.count((bit<32>)hdr.order.kind);
        }
        routes.apply();
        if (hdr.order.kind == KIND_MULTICAST) {
            standard_metadata.mcast_grp = 1;
        } else if (hdr.order.kind == KIND_DROP) {
            drop();
        } else if (hdr.order.kind == KIND_RESUBMIT && meta.left < hdr.order.count) {
            meta.left = meta.left + 1;
            resubmit_preserving_field_list(1);
        }
        values.write(0, hdr.order.value);
        hdr.order.time = standard_metadata.ingress_global_timestamp;
    }
}

control OrderEgress(inout headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    apply {
        hdr.order.time = standard_metadata.egress_global_timestamp;
        if (hdr.order.kind == KIND_CLONE) {
            if (standard_metadata.instance_type != INSTANCE_EGRESS_CLONE) {
                meta.left = CLONES;
            }
            if (meta.left > 0) {
                meta.left = meta.left - 1;
                clone_preserving_field_list(CloneType.E2E, 7, 1);
            }
            hdr.order.count = meta.left;
        } else if (hdr.order.kind == KIND_RECIRCULATE && hdr.order.count > 0) {
            hdr.order.count = hdr.order.count - 1;
            recirculate_preserving_field_list(1);
        } else if (hdr.order.kind == KIND_MULTICAST) {
            hdr.order.value = (bit<32>)standard_metadata.egress_rid;
        }
    }
}

control OrderDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.order);
    }
}

V1Switch(OrderParser(),
         NoChecksum(),
         OrderIngress(),
         OrderEgress(),
         NoChecksum(),
         OrderDeparser()) main;

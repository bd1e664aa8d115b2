// Entries of the program whose priorities a controller competes with.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t { }

parser Parse(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t std
) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Forward(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action send(bit<9> port) {
        std.egress_spec = port;
    }

    table written {
        key = {
            hdr.ethernet.dst: ternary;
        }
        actions = {
            send;
            NoAction;
        }
        entries = {
            priority = 1: 1 &&& 0xff: send(1);
            priority = 50: 2 &&& 0xff: send(1);
        }
    }

    table in_order {
        key = {
            hdr.ethernet.dst: ternary;
        }
        actions = {
            send;
            NoAction;
        }
        priority_delta = 10;
        entries = {
            1 &&& 0xff: send(1);
            2 &&& 0xff: send(2);
            _: send(3);
        }
    }

    table smallest {
        key = {
            hdr.ethernet.dst: ternary;
        }
        actions = {
            send;
            NoAction;
        }
        largest_priority_wins = false;
        entries = {
            priority = 5: 1 &&& 0xff: send(1);
            priority = 25: 2 &&& 0xff: send(2);
        }
    }

    table fixed {
        key = {
            hdr.ethernet.dst: ternary;
        }
        actions = {
            send;
            NoAction;
        }
        const entries = {
            1 &&& 0xff: send(1);
            _: send(2);
        }
    }

    apply {
        if (hdr.ethernet.type == 1) {
            written.apply();
        } else if (hdr.ethernet.type == 2) {
            in_order.apply();
        } else if (hdr.ethernet.type == 3) {
            smallest.apply();
        } else {
            fixed.apply();
        }
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(Parse(), Nothing(), Forward(), NoEgress(), Nothing(), Deparse()) main;

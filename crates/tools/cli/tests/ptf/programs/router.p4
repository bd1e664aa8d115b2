// Routes IPv4 by longest prefix over groups of next hops, as RFC 1812 has it for what is
// here: the TTL is counted down, and what has none left is dropped.
#include "headers.p4"

control Apply(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) route_hits;
    counter(4, CounterType.packets) expired;

    action drop() {
        mark_to_drop(std);
    }

    action forward(bit<9> port, bit<48> src_addr, bit<48> dst_addr) {
        std.egress_spec = port;
        hdr.ethernet.src_addr = src_addr;
        hdr.ethernet.dst_addr = dst_addr;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    action route_drop() {
        route_hits.count();
        mark_to_drop(std);
    }

    action route(bit<9> port, bit<48> src_addr, bit<48> dst_addr) {
        route_hits.count();
        forward(port, src_addr, dst_addr);
    }

    table routes {
        key = {
            hdr.ipv4.dst_addr: lpm;
        }
        actions = {
            route;
            route_drop;
            @defaultonly drop;
        }
        default_action = drop();
        counters = route_hits;
        size = 1024;
    }

    apply {
        if (!hdr.ipv4.isValid() || std.checksum_error == 1) {
            drop();
        } else if (hdr.ipv4.ttl < 2) {
            expired.count((bit<32>)std.ingress_port);
            drop();
        } else {
            routes.apply();
        }
    }
}

V1Switch(Parse(), Verify(), Apply(), NoEgress(), Update(), Deparse()) main;

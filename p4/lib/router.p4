// IPv4 forwarding: longest prefix to next hop, next hop to port and MAC addresses.

#ifndef STATEPLANE_ROUTER_P4
#define STATEPLANE_ROUTER_P4

#include "headers.p4"

control Router(
    inout ethernet_t ethernet,
    inout ipv4_t ipv4,
    inout standard_metadata_t standard_metadata
) {
    bit<32> next_hop = 0;
    counter(1, CounterType.packets) ttl_expired;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action via(bit<32> address) {
        next_hop = address;
    }

    // The destination is on the link itself.
    action connected() {
        next_hop = ipv4.destination;
    }

    table routes {
        key = { ipv4.destination: lpm; }
        actions = { via; connected; drop; }
        default_action = drop();
        size = 4096;
    }

    action forward(bit<9> port, bit<48> mac, bit<48> source_mac) {
        standard_metadata.egress_spec = port;
        ethernet.destination = mac;
        ethernet.source = source_mac;
        ipv4.ttl = ipv4.ttl - 1;
    }

    table neighbours {
        key = { next_hop: exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = 4096;
    }

    apply {
        if (ipv4.ttl <= 1) {
            ttl_expired.count(0);
            drop();
        } else {
            routes.apply();
            if (standard_metadata.egress_spec != DROP_PORT) {
                neighbours.apply();
            }
        }
    }
}

#endif

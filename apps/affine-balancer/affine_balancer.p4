// A load balancer with affinity (ApproSync Table II, AL; after SNAP's example): all connections of a
// client go to the server of its first one, also when servers join.

#include <core.p4>
#include <v1model.p4>

#include "sketch.p4"

// Places of clients are 2 to this, at most 24.
#ifndef AFFINE_BITS
#define AFFINE_BITS 17
#endif

const bit<32> PLACES = 32w1 << AFFINE_BITS;

// The client that came first to the place (32 bits), its service (16), and the number of its server
// and one more (16). A place that is 0 is free.
@synced(kind = "opaque")
register<bit<64>>(PLACES) clients;

#define SKETCH_OWN_INGRESS
#include "sketch_switch.p4"

// Gives the server of a client, of `servers`, which are at least one.
control FindServer(
    inout transport_headers_t hdr,
    in bit<16> service,
    in bit<16> servers,
    out bit<16> server
) {
    TransportPorts() ports;
    // Packets of clients that have a server, clients that are new, clients whose server is gone, and
    // packets of clients without room.
    counter(4, CounterType.packets) client_events;
    bit<64> held;
    bit<64> value;
    bit<32> place;
    bit<16> source_port;
    bit<16> destination_port;

    apply {
        ports.apply(hdr, source_port, destination_port);
        place = (bit<32>)SKETCH_UPPER(
            SKETCH_HASH_OF_PAIR(0, hdr.ipv4.source, (bit<32>)service),
            AFFINE_BITS
        );
        clients.read(held, place);
        if (held != 0 && held[63:16] != hdr.ipv4.source ++ service) {
            // Without state the choice depends on the client alone, so that it stays.
            value = SKETCH_HASH_OF_PAIR(1, hdr.ipv4.source, (bit<32>)service);
            server = (bit<16>)(((bit<32>)value[63:48] * (bit<32>)servers) >> 16);
            client_events.count(3);
        } else if (held != 0 && held[15:0] <= servers) {
            server = held[15:0] - 1;
            client_events.count(0);
        } else {
            // Connections choose, so that clients behind few addresses spread.
            value = SKETCH_HASH(
                2,
                hdr.ipv4.source,
                hdr.ipv4.destination,
                source_port ++ destination_port,
                (bit<32>)hdr.ipv4.protocol
            );
            server = (bit<16>)(((bit<32>)value[63:48] * (bit<32>)servers) >> 16);
            clients.write(place, hdr.ipv4.source ++ service ++ (server + 1));
            if (held == 0) {
                client_events.count(1);
            } else {
                client_events.count(2);
            }
        }
    }
}

control BalancerIngress(
    inout transport_headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    FindServer() find;
    Router() router;
    ipv4_t routed;
    bit<16> service = 0;
    bit<16> servers = 0;
    bit<16> server;

    // A service, from 1 on, and the number of its servers.
    action serve(bit<16> number, bit<16> count) {
        service = number;
        servers = count;
    }

    table services {
        key = { hdr.ipv4.destination: exact @name("address"); }
        actions = { serve; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    // The address at which a server, from 0 on, is reached. Packets keep the service's address.
    action via(bit<32> address) {
        routed.destination = address;
    }

    table servers_of_services {
        key = {
            service: exact @name("service");
            server: exact @name("server");
        }
        actions = { via; NoAction; }
        default_action = NoAction();
        size = 4096;
    }

    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.version == 4 && standard_metadata.checksum_error == 0) {
            routed = hdr.ipv4;
            services.apply();
            if (servers != 0) {
                find.apply(hdr, service, servers, server);
                servers_of_services.apply();
            }
            router.apply(hdr.ethernet, routed, standard_metadata);
            hdr.ipv4.ttl = routed.ttl;
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

V1Switch(
    SketchParser(),
    SketchVerifyChecksum(),
    BalancerIngress(),
    SketchEgress(),
    SketchComputeChecksum(),
    SketchDeparser()
) main;

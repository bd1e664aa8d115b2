// A load balancer whose connections outlive their switch: a connection stays with the
// server that it was given, whatever becomes of the pool meanwhile.

#include <core.p4>
#include <v1model.p4>

// The server's address and port; 0: none yet.
#define REPLICATION_STATE_BITS 48
#include "replication.p4"
#include "router.p4"
#include "ipv4.p4"
#include "transport.p4"

#ifndef BALANCER_SHARDS
#define BALANCER_SHARDS 4
#endif

const bit<8> CLASS_BALANCER = 5;

struct headers_t {
    replication_headers_t replication;
    transport_headers_t own;
}

struct metadata_t {
    replication_metadata_t flow;
}

parser BalancerParser(packet_in packet, inout headers_t hdr) {
    TransportParser() own;

    state start {
        own.apply(packet, hdr.own);
        transition accept;
    }
}

control BalancerVerifyChecksum(inout headers_t hdr) {
    Ipv4VerifyChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control BalancerIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ReplicationShard(BALANCER_SHARDS) shard;
    ReplicationIngressBefore() replication_before;
    ReplicationIngressAfter() replication_after;
    Router() router;
    TransportPorts() ports;
    ExchangeInChecksum() exchange_tcp;
    ExchangeInChecksum() exchange_udp;
    // Connections given to a server, moved away from one that drains, and without any.
    counter(3, CounterType.packets) balancer_events;
    bit<16> source_port;
    bit<16> destination_port;
    bit<16> service = 0;
    bit<16> places = 1;
    bit<16> place;
    bit<1> drains = 0;
    bool translates = false;
    bit<32> old_address = 0;
    bit<16> old_port = 0;
    bit<32> new_address;
    bit<16> new_port;

    // `below` is the number of places over which the service's servers are spread.
    action serve(bit<16> number, bit<16> below) {
        service = number;
        places = below;
    }

    action pass() {
        service = 0;
    }

    // The addresses and ports behind which servers stand. Numbers are above 0.
    table services {
        key = {
            hdr.own.ipv4.destination: exact @name("address");
            hdr.own.ipv4.protocol: exact @name("protocol");
            destination_port: exact @name("port");
        }
        actions = { serve; pass; }
        default_action = pass();
        size = 1024;
    }

    action use_server(bit<32> address, bit<16> port) {
        new_address = address;
        new_port = port;
    }

    action no_server() {
        new_address = 0;
        new_port = 0;
    }

    // A server has as many places as its weight; one that drains has none.
    table servers {
        key = {
            service: exact @name("service");
            place: range @name("place");
        }
        actions = { use_server; no_server; }
        default_action = no_server();
        size = 4096;
    }

    action drain() {
        drains = 1;
    }

    action keep() {
        drains = 0;
    }

    // Servers that get no new connections.
    table draining {
        key = {
            new_address: exact @name("address");
            new_port: exact @name("port");
        }
        actions = { drain; keep; }
        default_action = keep();
        size = 4096;
    }

    action of_service(bit<32> address, bit<16> port) {
        translates = true;
        new_address = address;
        new_port = port;
    }

    action of_none() {
        translates = false;
    }

    // For which service a server answers.
    table answers {
        key = {
            hdr.own.ipv4.source: exact @name("address");
            hdr.own.ipv4.protocol: exact @name("protocol");
            source_port: exact @name("port");
        }
        actions = { of_service; of_none; }
        default_action = of_none();
        size = 4096;
    }

    action choose_place() {
        hash(
            place,
            HashAlgorithm.crc32,
            (bit<16>)0,
            {
                hdr.own.ipv4.protocol,
                hdr.own.ipv4.source,
                source_port,
                hdr.own.ipv4.destination,
                destination_port
            },
            places
        );
    }

    apply {
        ports.apply(hdr.own, source_port, destination_port);
        new_address = 0;
        new_port = 0;
        if ((hdr.own.tcp.isValid() || hdr.own.udp.isValid())
            && standard_metadata.checksum_error == 0) {
            // Of a packet that comes back from the store, too.
            services.apply();
        }
        if (meta.flow.arriving && service != 0) {
            meta.flow.known = true;
            meta.flow.key = CLASS_BALANCER ++ hdr.own.ipv4.protocol ++ hdr.own.ipv4.source
                ++ hdr.own.ipv4.destination ++ source_port ++ destination_port ++ 16w0;
        }
        shard.apply(meta.flow);
        replication_before.apply(hdr.replication, meta.flow, standard_metadata);
        if (meta.flow.process && meta.flow.found && service != 0) {
            new_address = meta.flow.value[47:16];
            new_port = meta.flow.value[15:0];
            if (meta.flow.value != 0
                && hdr.own.tcp.isValid()
                && (hdr.own.tcp.flags & (TCP_SYN | TCP_ACK)) == TCP_SYN) {
                // A new connection with the ports of an old one.
                draining.apply();
            }
            if (meta.flow.value == 0 || drains == 1) {
                choose_place();
                servers.apply();
                if (new_address == 0) {
                    balancer_events.count(2);
                } else {
                    balancer_events.count((bit<32>)drains);
                    meta.flow.value = new_address ++ new_port;
                    meta.flow.write = true;
                }
            }
            if (new_address == 0) {
                mark_to_drop(standard_metadata);
            } else {
                old_address = hdr.own.ipv4.destination;
                old_port = destination_port;
                hdr.own.ipv4.destination = new_address;
                if (hdr.own.tcp.isValid()) {
                    hdr.own.tcp.destination_port = new_port;
                } else {
                    hdr.own.udp.destination_port = new_port;
                }
                translates = true;
            }
        } else if (meta.flow.process && (hdr.own.tcp.isValid() || hdr.own.udp.isValid())) {
            answers.apply();
            if (translates) {
                old_address = hdr.own.ipv4.source;
                old_port = source_port;
                hdr.own.ipv4.source = new_address;
                if (hdr.own.tcp.isValid()) {
                    hdr.own.tcp.source_port = new_port;
                } else {
                    hdr.own.udp.source_port = new_port;
                }
            }
        }
        if (translates) {
            if (hdr.own.tcp.isValid()) {
                exchange_tcp.apply(
                    hdr.own.tcp.checksum,
                    old_address,
                    new_address,
                    old_port,
                    new_port
                );
            } else if (hdr.own.udp.checksum != 0) {
                exchange_udp.apply(
                    hdr.own.udp.checksum,
                    old_address,
                    new_address,
                    old_port,
                    new_port
                );
                // RFC 768: a computed zero is sent as all ones.
                if (hdr.own.udp.checksum == 0) {
                    hdr.own.udp.checksum = 0xffff;
                }
            }
        }
        replication_after.apply(hdr.replication, meta.flow, standard_metadata);
        if (meta.flow.forward) {
            // What the store gives back is looked at as what arrives is.
            if (hdr.own.ipv4.isValid()
                && hdr.own.ipv4.version == 4
                && hdr.own.ipv4.ihl == 5
                && standard_metadata.checksum_error == 0) {
                router.apply(hdr.own.ethernet, hdr.own.ipv4, standard_metadata);
            } else {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

control BalancerComputeChecksum(inout headers_t hdr) {
    Ipv4ComputeChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control BalancerDeparser(packet_out packet, in headers_t hdr) {
    TransportDeparser() own;

    apply {
        own.apply(packet, hdr.own);
    }
}

#define PROGRAM_PARSER BalancerParser
#define PROGRAM_VERIFY_CHECKSUM BalancerVerifyChecksum
#define PROGRAM_INGRESS BalancerIngress
#define PROGRAM_COMPUTE_CHECKSUM BalancerComputeChecksum
#define PROGRAM_DEPARSER BalancerDeparser
#include "replicated_switch.p4"

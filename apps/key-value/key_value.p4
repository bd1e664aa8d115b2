// A key-value store in the network: the switch answers reads and updates of 64-bit
// values itself, and keeps them when it dies (RedPlane §6, §7.3).

#include <core.p4>
#include <v1model.p4>

// The key's value, and whether it has one.
#define REPLICATION_STATE_BITS 72
#include "replication.p4"
#include "router.p4"
#include "ipv4.p4"
#include "transport.p4"

#ifndef KEY_VALUE_SHARDS
#define KEY_VALUE_SHARDS 4
#endif

const bit<8> CLASS_KEY_VALUE = 8;
const bit<16> KEY_VALUE_PORT = 4800;

// Operations. A reply has the bit REPLY besides.
const bit<8> OPERATION_READ = 1;
const bit<8> OPERATION_UPDATE = 2;
const bit<8> OPERATION_DELETE = 3;
const bit<8> OPERATION_REPLY = 0x80;

// A request and its reply: the payload of UDP, perhaps with more behind it.
header key_value_t {
    bit<8> operation;
    // In a reply, 1 if the key has a value after the operation, else 0.
    bit<8> present;
    bit<64> key;
    bit<64> value;
}

struct headers_t {
    replication_headers_t replication;
    transport_headers_t own;
    key_value_t request;
}

struct metadata_t {
    replication_metadata_t flow;
}

parser KeyValueParser(packet_in packet, inout headers_t hdr) {
    TransportParser() own;

    state start {
        own.apply(packet, hdr.own);
        transition select(hdr.own.udp.isValid()) {
            true: udp;
            default: accept;
        }
    }

    state udp {
        transition select(hdr.own.udp.destination_port, hdr.own.udp.length) {
            (KEY_VALUE_PORT, 26 .. 65535): request;
            default: accept;
        }
    }

    state request {
        packet.extract(hdr.request);
        transition accept;
    }
}

control KeyValueVerifyChecksum(inout headers_t hdr) {
    Ipv4VerifyChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control KeyValueIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ReplicationShard(KEY_VALUE_SHARDS) shard;
    ReplicationIngressBefore() replication_before;
    ReplicationIngressAfter() replication_after;
    Router() router;
    counter(4, CounterType.packets) key_value_operations;
    bit<8> served = 0;
    bit<32> client_address;
    bit<16> client_port;

    action serve() {
        served = 1;
    }

    action pass() {
        served = 0;
    }

    // The addresses of the store in the network.
    table services {
        key = { hdr.own.ipv4.destination: exact; }
        actions = { serve; pass; }
        default_action = pass();
        size = 64;
    }

    // Turns the request into its reply.
    action reply() {
        client_address = hdr.own.ipv4.source;
        hdr.own.ipv4.source = hdr.own.ipv4.destination;
        hdr.own.ipv4.destination = client_address;
        hdr.own.ipv4.ttl = 64;
        client_port = hdr.own.udp.source_port;
        hdr.own.udp.source_port = hdr.own.udp.destination_port;
        hdr.own.udp.destination_port = client_port;
        // RFC 768: none.
        hdr.own.udp.checksum = 0;
        hdr.request.operation = hdr.request.operation | OPERATION_REPLY;
    }

    apply {
        if (meta.flow.arriving
            && hdr.request.isValid()
            && hdr.request.operation >= OPERATION_READ
            && hdr.request.operation <= OPERATION_DELETE
            && standard_metadata.parser_error == error.NoError
            && standard_metadata.checksum_error == 0) {
            services.apply();
            if (served == 1) {
                meta.flow.known = true;
                meta.flow.key = CLASS_KEY_VALUE ++ hdr.request.key ++ 56w0;
                meta.flow.shared = hdr.request.operation == OPERATION_READ;
            }
        }
        shard.apply(meta.flow);
        replication_before.apply(hdr.replication, meta.flow, standard_metadata);
        if (meta.flow.process && meta.flow.found && hdr.request.isValid()) {
            key_value_operations.count((bit<32>)(hdr.request.operation & 3));
            if (hdr.request.operation == OPERATION_UPDATE) {
                meta.flow.value = 8w1 ++ hdr.request.value;
                meta.flow.write = true;
            } else if (hdr.request.operation == OPERATION_DELETE && meta.flow.value != 0) {
                meta.flow.value = 0;
                meta.flow.write = true;
            }
            hdr.request.present = meta.flow.value[71:64];
            hdr.request.value = meta.flow.value[63:0];
            reply();
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

control KeyValueComputeChecksum(inout headers_t hdr) {
    Ipv4ComputeChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control KeyValueDeparser(packet_out packet, in headers_t hdr) {
    TransportDeparser() own;

    apply {
        own.apply(packet, hdr.own);
        packet.emit(hdr.request);
    }
}

#define PROGRAM_PARSER KeyValueParser
#define PROGRAM_VERIFY_CHECKSUM KeyValueVerifyChecksum
#define PROGRAM_INGRESS KeyValueIngress
#define PROGRAM_COMPUTE_CHECKSUM KeyValueComputeChecksum
#define PROGRAM_DEPARSER KeyValueDeparser
#include "replicated_switch.p4"

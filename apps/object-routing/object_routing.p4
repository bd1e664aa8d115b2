// Routing by object to the servers that have its newest version: a coherence
// directory in the network (Li et al., "Pegasus", OSDI 2020). A write goes to any server
// and makes that server the only one with the object; further replies of the same
// version add theirs; a read goes to one that has it.

#include <core.p4>
#include <v1model.p4>

// Last version given out, newest version that a server has, and a bit for each server
// that has it.
#define REPLICATION_STATE_BITS 96
#include "replication.p4"
#include "router.p4"
#include "ipv4.p4"
#include "transport.p4"

#ifndef OBJECT_SHARDS
#define OBJECT_SHARDS 4
#endif

const bit<8> CLASS_OBJECT = 10;
const bit<16> OBJECT_PORT = 4801;

// A read goes to a server that has the object.
const bit<8> OBJECT_READ = 1;
// A write goes to any server and gets a version.
const bit<8> OBJECT_WRITE = 2;
// A server's message when it has made a version its own: after a write, or after it
// copied the object from another server.
const bit<8> OBJECT_HELD = 3;

// A request, or what a server says: the payload of UDP, perhaps with more behind it.
header object_t {
    bit<8> operation;
    // In OBJECT_HELD, number of the server that speaks.
    bit<8> server;
    bit<32> version;
    bit<64> object;
}

struct headers_t {
    replication_headers_t replication;
    transport_headers_t own;
    object_t request;
}

struct metadata_t {
    replication_metadata_t flow;
}

parser ObjectParser(packet_in packet, inout headers_t hdr) {
    TransportParser() own;

    state start {
        own.apply(packet, hdr.own);
        transition select(hdr.own.udp.isValid()) {
            true: udp;
            default: accept;
        }
    }

    state udp {
        transition select(
            hdr.own.udp.source_port,
            hdr.own.udp.destination_port,
            hdr.own.udp.length
        ) {
            (_, OBJECT_PORT, 22 .. 65535): request;
            (OBJECT_PORT, _, 22 .. 65535): request;
            default: accept;
        }
    }

    state request {
        packet.extract(hdr.request);
        transition accept;
    }
}

control ObjectVerifyChecksum(inout headers_t hdr) {
    Ipv4VerifyChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

// The number of one of the bits of `set`: the first at or after `from`, going round.
control ChooseServer(in bit<32> set, in bit<5> from, out bit<5> server) {
    bit<32> turned;
    bit<5> steps;

    apply {
        turned = (set >> (bit<8>)from) | (set << (8w32 - (bit<8>)from));
        steps = 0;
        if (turned[15:0] == 0) {
            steps = 16;
            turned = turned >> 16;
        }
        if (turned[7:0] == 0) {
            steps = steps + 8;
            turned = turned >> 8;
        }
        if (turned[3:0] == 0) {
            steps = steps + 4;
            turned = turned >> 4;
        }
        if (turned[1:0] == 0) {
            steps = steps + 2;
            turned = turned >> 2;
        }
        if (turned[0:0] == 0) {
            steps = steps + 1;
        }
        server = from + steps;
    }
}

control ObjectIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ReplicationShard(OBJECT_SHARDS) shard;
    ReplicationIngressBefore() replication_before;
    ReplicationIngressAfter() replication_after;
    Router() router;
    ChooseServer() choose;
    counter(4, CounterType.packets) object_operations;
    bit<8> served = 0;
    bit<8> speaks = 0;
    bit<5> speaker = 0;
    bit<32> servers = 0;
    bit<6> places = 1;
    bit<32> candidates;
    bit<32> issued;
    bit<32> newest;
    bit<32> set;
    bit<5> from;
    bit<5> server = 0;

    action serve() {
        served = 1;
    }

    action pass() {
        served = 0;
    }

    // The addresses under which clients ask for objects.
    table services {
        key = { hdr.own.ipv4.destination: exact; }
        actions = { serve; pass; }
        default_action = pass();
        size = 64;
    }

    action is_server(bit<5> number) {
        speaks = 1;
        speaker = number;
    }

    action is_no_server() {
        speaks = 0;
    }

    // Servers that may say what they hold, by address.
    table speakers {
        key = { hdr.own.ipv4.source: exact; }
        actions = { is_server; is_no_server; }
        default_action = is_no_server();
        size = 32;
    }

    // A bit for each server that is to be used; all of them are below `places`.
    action use_servers(bit<32> all, bit<6> below) {
        servers = all;
        places = below;
    }

    table server_pool {
        actions = { use_servers; }
        default_action = use_servers(0, 1);
    }

    action to_server(bit<32> address) {
        hdr.own.ipv4.destination = address;
        // RFC 768: none.
        hdr.own.udp.checksum = 0;
    }

    action no_server() {
        mark_to_drop(standard_metadata);
    }

    table server_addresses {
        key = { server: exact; }
        actions = { to_server; no_server; }
        default_action = no_server();
        size = 32;
    }

    apply {
        if (meta.flow.arriving
            && hdr.request.isValid()
            && standard_metadata.parser_error == error.NoError
            && standard_metadata.checksum_error == 0) {
            if (hdr.request.operation == OBJECT_HELD) {
                speakers.apply();
                // In place of what it says of itself.
                hdr.request.server = (bit<8>)speaker;
                hdr.own.udp.checksum = 0;
            } else if (hdr.request.operation == OBJECT_READ
                || hdr.request.operation == OBJECT_WRITE) {
                services.apply();
            }
            if (speaks == 1 || served == 1) {
                meta.flow.known = true;
                meta.flow.key = CLASS_OBJECT ++ hdr.request.object ++ 56w0;
            }
        }
        shard.apply(meta.flow);
        replication_before.apply(hdr.replication, meta.flow, standard_metadata);
        if (meta.flow.process && meta.flow.found && hdr.request.isValid()) {
            server_pool.apply();
            object_operations.count((bit<32>)(hdr.request.operation & 3));
            issued = meta.flow.value[95:64];
            newest = meta.flow.value[63:32];
            set = meta.flow.value[31:0];
            if (hdr.request.operation == OBJECT_HELD) {
                if (hdr.request.version > newest) {
                    newest = hdr.request.version;
                    set = (bit<32>)1 << hdr.request.server;
                } else if (hdr.request.version == newest && newest != 0) {
                    set = set | ((bit<32>)1 << hdr.request.server);
                }
                meta.flow.write = meta.flow.value != issued ++ newest ++ set;
                meta.flow.value = issued ++ newest ++ set;
            } else {
                candidates = servers;
                if (hdr.request.operation == OBJECT_WRITE) {
                    issued = issued + 1;
                    meta.flow.value = issued ++ newest ++ set;
                    meta.flow.write = true;
                    hdr.request.version = issued;
                } else {
                    hdr.request.version = newest;
                    if (set != 0) {
                        candidates = set;
                    }
                }
                if (set == 0 && hdr.request.operation == OBJECT_READ) {
                    // Nobody has written: the server that has the object from the start.
                    hash(from, HashAlgorithm.crc32, (bit<5>)0, { hdr.request.object }, places);
                } else {
                    hash(
                        from,
                        HashAlgorithm.crc32,
                        (bit<5>)0,
                        { hdr.own.ipv4.source, hdr.own.udp.source_port, hdr.request.version },
                        places
                    );
                }
                choose.apply(candidates, from, server);
                hdr.request.server = (bit<8>)server;
                server_addresses.apply();
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

control ObjectComputeChecksum(inout headers_t hdr) {
    Ipv4ComputeChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control ObjectDeparser(packet_out packet, in headers_t hdr) {
    TransportDeparser() own;

    apply {
        own.apply(packet, hdr.own);
        packet.emit(hdr.request);
    }
}

#define PROGRAM_PARSER ObjectParser
#define PROGRAM_VERIFY_CHECKSUM ObjectVerifyChecksum
#define PROGRAM_INGRESS ObjectIngress
#define PROGRAM_COMPUTE_CHECKSUM ObjectComputeChecksum
#define PROGRAM_DEPARSER ObjectDeparser
#include "replicated_switch.p4"

// Counts the packets of each IPv4 five-tuple and keeps the counts when a switch
// dies: the worst case of replication, since every packet writes (RedPlane §6).
// UDP packets to SEQUENCER_PORT also carry their number away with them, in the
// first eight bytes of their payload: an in-network sequencer.

#include <core.p4>
#include <v1model.p4>

#define REPLICATION_STATE_BITS 64
#include "replication.p4"
#include "router.p4"
#include "ipv4.p4"

#ifndef COUNTER_SHARDS
#define COUNTER_SHARDS 4
#endif

const bit<8> CLASS_COUNTER = 1;
const bit<16> SEQUENCER_PORT = 5000;

header sequence_number_t {
    bit<64> value;
}

// The first four bytes of TCP and UDP.
header ports_t {
    bit<16> source;
    bit<16> destination;
}

header udp_rest_t {
    bit<16> length;
    bit<16> checksum;
}

struct headers_t {
    replication_headers_t replication;
    ethernet_t ethernet;
    ipv4_t ipv4;
    ports_t ports;
    udp_rest_t udp;
    sequence_number_t number;
}

struct metadata_t {
    replication_metadata_t flow;
}

parser CounterParser(packet_in packet, inout headers_t hdr) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(
            hdr.ipv4.version,
            hdr.ipv4.ihl,
            hdr.ipv4.fragment_offset,
            hdr.ipv4.protocol
        ) {
            (4, 5, 0, IP_PROTOCOL_TCP): tcp;
            (4, 5, 0, IP_PROTOCOL_UDP): udp;
            default: accept;
        }
    }

    state tcp {
        packet.extract(hdr.ports);
        transition accept;
    }

    state udp {
        packet.extract(hdr.ports);
        packet.extract(hdr.udp);
        // A number needs eight bytes of payload.
        transition select(hdr.ports.destination, hdr.udp.length) {
            (SEQUENCER_PORT, 16 .. 65535): number;
            default: accept;
        }
    }

    state number {
        packet.extract(hdr.number);
        transition accept;
    }
}

control CounterVerifyChecksum(inout headers_t hdr) {
    Ipv4VerifyChecksum() ipv4;

    apply {
        ipv4.apply(hdr.ipv4);
    }
}

control CounterIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ReplicationShard(COUNTER_SHARDS) shard;
    ReplicationIngressBefore() replication_before;
    ReplicationIngressAfter() replication_after;
    Router() router;
    // True if the frame holds all that its headers promise, unharmed.
    bool whole;

    apply {
        whole = standard_metadata.parser_error == error.NoError
            && standard_metadata.checksum_error == 0;
        if (meta.flow.arriving && hdr.ports.isValid() && whole) {
            meta.flow.known = true;
            meta.flow.key = CLASS_COUNTER ++ hdr.ipv4.protocol ++ hdr.ipv4.source
                ++ hdr.ipv4.destination ++ hdr.ports.source ++ hdr.ports.destination ++ 16w0;
        }
        shard.apply(meta.flow);
        replication_before.apply(hdr.replication, meta.flow, standard_metadata);
        if (meta.flow.process && hdr.ports.isValid()) {
            meta.flow.value = meta.flow.value + 1;
            meta.flow.write = true;
            if (hdr.number.isValid()) {
                hdr.number.value = meta.flow.value;
                hdr.udp.checksum = 0;
            }
        }
        replication_after.apply(hdr.replication, meta.flow, standard_metadata);
        if (meta.flow.forward) {
            // Options would be outside of the checksum that is computed.
            if (hdr.ipv4.isValid() && hdr.ipv4.version == 4 && hdr.ipv4.ihl == 5 && whole) {
                router.apply(hdr.ethernet, hdr.ipv4, standard_metadata);
            } else {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

control CounterComputeChecksum(inout headers_t hdr) {
    Ipv4ComputeChecksum() ipv4;

    apply {
        ipv4.apply(hdr.ipv4);
    }
}

control CounterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
        packet.emit(hdr.udp);
        packet.emit(hdr.number);
    }
}

#define PROGRAM_PARSER CounterParser
#define PROGRAM_VERIFY_CHECKSUM CounterVerifyChecksum
#define PROGRAM_INGRESS CounterIngress
#define PROGRAM_COMPUTE_CHECKSUM CounterComputeChecksum
#define PROGRAM_DEPARSER CounterDeparser
#include "replicated_switch.p4"

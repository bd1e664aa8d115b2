// An in-network sequencer (Li et al., "Just Say No to Paxos Overhead", OSDI 2016): each
// packet to a group carries the group's next number away, and no number is given
// twice, whichever switch gives it.

#include <core.p4>
#include <v1model.p4>

#define REPLICATION_STATE_BITS 64
#include "replication.p4"
#include "router.p4"
#include "ipv4.p4"
#include "transport.p4"

#ifndef SEQUENCER_SHARDS
#define SEQUENCER_SHARDS 4
#endif

const bit<8> CLASS_SEQUENCER = 9;

header sequence_number_t {
    bit<64> value;
}

struct headers_t {
    replication_headers_t replication;
    transport_headers_t own;
    sequence_number_t number;
}

struct metadata_t {
    replication_metadata_t flow;
}

parser SequencerParser(packet_in packet, inout headers_t hdr) {
    TransportParser() own;

    state start {
        own.apply(packet, hdr.own);
        transition select(hdr.own.udp.isValid()) {
            true: udp;
            default: accept;
        }
    }

    state udp {
        // A number needs eight bytes of payload.
        transition select(hdr.own.udp.length) {
            16 .. 65535: number;
            default: accept;
        }
    }

    state number {
        packet.extract(hdr.number);
        transition accept;
    }
}

control SequencerVerifyChecksum(inout headers_t hdr) {
    Ipv4VerifyChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control SequencerIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ReplicationShard(SEQUENCER_SHARDS) shard;
    ReplicationIngressBefore() replication_before;
    ReplicationIngressAfter() replication_after;
    Router() router;
    counter(1, CounterType.packets) too_short;
    bit<32> group = 0;

    action in_group(bit<32> number) {
        group = number;
    }

    action no_group() {
        group = 0;
    }

    // The groups by address and port; several may be one group. Their numbers are
    // above 0.
    table groups {
        key = {
            hdr.own.ipv4.destination: exact;
            hdr.own.udp.destination_port: exact;
        }
        actions = { in_group; no_group; }
        default_action = no_group();
        size = 1024;
    }

    apply {
        if (meta.flow.arriving && hdr.own.udp.isValid() && standard_metadata.checksum_error == 0) {
            groups.apply();
            if (group != 0) {
                meta.flow.known = true;
                meta.flow.key = CLASS_SEQUENCER ++ group ++ 88w0;
                if (!hdr.number.isValid()) {
                    too_short.count(0);
                    meta.flow.known = false;
                }
            }
        }
        shard.apply(meta.flow);
        replication_before.apply(hdr.replication, meta.flow, standard_metadata);
        if (meta.flow.process) {
            if (meta.flow.found && hdr.number.isValid()) {
                meta.flow.value = meta.flow.value + 1;
                meta.flow.write = true;
                hdr.number.value = meta.flow.value;
                // RFC 768: none.
                hdr.own.udp.checksum = 0;
            } else if (group != 0) {
                // Its receivers take no packet without a number.
                mark_to_drop(standard_metadata);
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

control SequencerComputeChecksum(inout headers_t hdr) {
    Ipv4ComputeChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control SequencerDeparser(packet_out packet, in headers_t hdr) {
    TransportDeparser() own;

    apply {
        own.apply(packet, hdr.own);
        packet.emit(hdr.number);
    }
}

#define PROGRAM_PARSER SequencerParser
#define PROGRAM_VERIFY_CHECKSUM SequencerVerifyChecksum
#define PROGRAM_INGRESS SequencerIngress
#define PROGRAM_COMPUTE_CHECKSUM SequencerComputeChecksum
#define PROGRAM_DEPARSER SequencerDeparser
#include "replicated_switch.p4"

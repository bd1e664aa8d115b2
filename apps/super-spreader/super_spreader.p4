// Finds super-spreaders: sources that speak to many destinations. What a source has
// done is 64 bits, one for each hash of a destination, which outlive the switch; a
// packet writes only if its destination is new.

#include <core.p4>
#include <v1model.p4>

// Interval, number of bits, and the bits.
#define REPLICATION_STATE_BITS 80
#include "replication.p4"
#include "router.p4"
#include "ipv4.p4"
#include "transport.p4"

#ifndef SPREADER_SHARDS
#define SPREADER_SHARDS 4
#endif

const bit<8> CLASS_SPREADER = 12;

struct headers_t {
    replication_headers_t replication;
    transport_headers_t own;
}

struct metadata_t {
    replication_metadata_t flow;
}

parser SpreaderParser(packet_in packet, inout headers_t hdr) {
    TransportParser() own;

    state start {
        own.apply(packet, hdr.own);
        transition accept;
    }
}

control SpreaderVerifyChecksum(inout headers_t hdr) {
    Ipv4VerifyChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control SpreaderIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ReplicationShard(SPREADER_SHARDS) shard;
    ReplicationIngressBefore() replication_before;
    ReplicationIngressAfter() replication_after;
    Router() router;
    // Packets of sources below the limit, above it and marked, and dropped.
    counter(3, CounterType.packets) spreader_events;
    bit<8> interval = 0;
    bit<8> limit = 255;
    bit<6> mark = 0;
    bit<1> drops = 0;
    bit<8> count;
    bit<64> seen;
    bit<6> place;
    bit<64> bit_of_place;

    // A source with more than `most` bits in one interval is a super-spreader; its
    // packets get this DSCP, or are dropped. Another interval forgets what was seen.
    action judge(bit<8> of_interval, bit<8> most, bit<6> dscp, bit<1> drop) {
        interval = of_interval;
        limit = most;
        mark = dscp;
        drops = drop;
    }

    table judgement {
        actions = { judge; }
        default_action = judge(0, 255, 0, 0);
    }

    apply {
        if (meta.flow.arriving
            && (hdr.own.tcp.isValid() || hdr.own.udp.isValid())
            && standard_metadata.checksum_error == 0) {
            meta.flow.known = true;
            meta.flow.key = CLASS_SPREADER ++ hdr.own.ipv4.source ++ 88w0;
        }
        shard.apply(meta.flow);
        replication_before.apply(hdr.replication, meta.flow, standard_metadata);
        if (meta.flow.process && meta.flow.found) {
            judgement.apply();
            count = meta.flow.value[71:64];
            seen = meta.flow.value[63:0];
            if (meta.flow.value[79:72] != interval) {
                count = 0;
                seen = 0;
            }
            hash(place, HashAlgorithm.crc32, (bit<6>)0, { hdr.own.ipv4.destination }, (bit<7>)64);
            bit_of_place = (bit<64>)1 << place;
            if ((seen & bit_of_place) == 0) {
                count = count + 1;
                meta.flow.value = interval ++ count ++ (seen | bit_of_place);
                meta.flow.write = true;
            }
            if (count <= limit) {
                spreader_events.count(0);
            } else if (drops == 1) {
                spreader_events.count(2);
                mark_to_drop(standard_metadata);
            } else {
                spreader_events.count(1);
                hdr.own.ipv4.diffserv = mark ++ hdr.own.ipv4.diffserv[1:0];
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

control SpreaderComputeChecksum(inout headers_t hdr) {
    Ipv4ComputeChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control SpreaderDeparser(packet_out packet, in headers_t hdr) {
    TransportDeparser() own;

    apply {
        own.apply(packet, hdr.own);
    }
}

#define PROGRAM_PARSER SpreaderParser
#define PROGRAM_VERIFY_CHECKSUM SpreaderVerifyChecksum
#define PROGRAM_INGRESS SpreaderIngress
#define PROGRAM_COMPUTE_CHECKSUM SpreaderComputeChecksum
#define PROGRAM_DEPARSER SpreaderDeparser
#include "replicated_switch.p4"

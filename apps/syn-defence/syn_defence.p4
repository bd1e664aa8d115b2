// A defence against SYN floods: a source that nobody knows has to show that it
// receives what is sent to it, by a cookie in the answer to its SYN, before anything of
// it reaches the servers. Who has shown it stays known when the switch dies.

#include <core.p4>
#include <v1model.p4>

// 1 if the source has shown it.
#define REPLICATION_STATE_BITS 8
#include "replication.p4"
#include "router.p4"
#include "ipv4.p4"
#include "transport.p4"

#ifndef DEFENCE_SHARDS
#define DEFENCE_SHARDS 4
#endif

// Bits in which a switch remembers which sources it knows.
#ifndef DEFENCE_KNOWN
#define DEFENCE_KNOWN 65536
#endif

const bit<8> CLASS_SOURCE = 11;

// Indices of `defence_events`.
const bit<32> DEFENCE_ASKED = 0;
const bit<32> DEFENCE_SHOWN = 1;
const bit<32> DEFENCE_PASSED = 2;
const bit<32> DEFENCE_DROPPED = 3;
const bit<32> DEFENCE_EVENTS = 4;

struct headers_t {
    replication_headers_t replication;
    transport_headers_t own;
}

struct metadata_t {
    replication_metadata_t flow;
}

parser DefenceParser(packet_in packet, inout headers_t hdr) {
    TransportParser() own;

    state start {
        own.apply(packet, hdr.own);
        transition accept;
    }
}

control DefenceVerifyChecksum(inout headers_t hdr) {
    Ipv4VerifyChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control DefenceIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ReplicationShard(DEFENCE_SHARDS) shard;
    ReplicationIngressBefore() replication_before;
    ReplicationIngressAfter() replication_after;
    Router() router;
    // Drawn by the control plane, the same at all switches.
    register<bit<32>>(1) defence_secret;
    // Sources, by hash, of which this switch knows that they have shown it: only of
    // these does a SYN ask the store. A flood from invented ones asks it nothing.
    register<bit<1>>(DEFENCE_KNOWN) defence_known;
    counter(DEFENCE_EVENTS, CounterType.packets) defence_events;
    FlowHash() source_hash;
    FirstBucket() place_of;
    bit<64> mixed;
    ExchangeInChecksum() exchange_sequence;
    ExchangeInChecksum() exchange_acknowledgement;
    bit<1> guarded = 0;
    bit<1> known = 0;
    bit<32> place = 0;
    bit<32> secret;
    bit<32> cookie = 0;
    bit<32> client_address;
    bit<16> client_port;
    bit<12> kind = 0;
    // The packet becomes an answer to its sender: with SYN and ACK, or with RST.
    bool asks = false;
    bool resets = false;
    bit<32> old_sequence;
    bit<32> old_acknowledgement;
    bit<16> old_flags;
    bit<16> old_window;

    action guard() {
        guarded = 1;
    }

    action pass() {
        guarded = 0;
    }

    // The servers that are defended.
    table guarded_addresses {
        key = { hdr.own.ipv4.destination: lpm; }
        actions = { guard; pass; }
        default_action = pass();
        size = 1024;
    }

    // Sends the packet back to where it came from; options and payload stay.
    action turn(in bit<32> sequence, in bit<32> acknowledgement, in bit<12> flags) {
        client_address = hdr.own.ipv4.source;
        hdr.own.ipv4.source = hdr.own.ipv4.destination;
        hdr.own.ipv4.destination = client_address;
        hdr.own.ipv4.ttl = 64;
        client_port = hdr.own.tcp.source_port;
        hdr.own.tcp.source_port = hdr.own.tcp.destination_port;
        hdr.own.tcp.destination_port = client_port;
        old_sequence = hdr.own.tcp.sequence;
        old_acknowledgement = hdr.own.tcp.acknowledgement;
        old_flags = hdr.own.tcp.data_offset ++ hdr.own.tcp.flags;
        old_window = hdr.own.tcp.window;
        hdr.own.tcp.sequence = sequence;
        hdr.own.tcp.acknowledgement = acknowledgement;
        hdr.own.tcp.flags = flags;
        hdr.own.tcp.window = 0;
    }

    apply {
        if (hdr.own.tcp.isValid() && standard_metadata.checksum_error == 0) {
            guarded_addresses.apply();
            kind = hdr.own.tcp.flags & (TCP_SYN | TCP_ACK | TCP_RST);
            defence_secret.read(secret, 0);
            hash(
                cookie,
                HashAlgorithm.crc32,
                (bit<32>)0,
                {
                    secret,
                    hdr.own.ipv4.source,
                    hdr.own.ipv4.destination,
                    hdr.own.tcp.source_port,
                    hdr.own.tcp.destination_port
                },
                (bit<64>)0x100000000
            );
            // By what this switch drew: nobody finds sources that share the place of his own.
            source_hash.apply((bit<128>)hdr.own.ipv4.source, mixed);
            place_of.apply(mixed, DEFENCE_KNOWN, place);
        }
        if (meta.flow.arriving && guarded == 1) {
            defence_known.read(known, place);
            if (kind == TCP_SYN && known == 0) {
                asks = true;
            } else {
                meta.flow.known = true;
                meta.flow.key = CLASS_SOURCE ++ hdr.own.ipv4.source ++ 88w0;
            }
        }
        shard.apply(meta.flow);
        replication_before.apply(hdr.replication, meta.flow, standard_metadata);
        if (meta.flow.process && meta.flow.found && guarded == 1) {
            if (kind == TCP_ACK && hdr.own.tcp.acknowledgement == cookie + 1) {
                // The answer arrived. The reset makes the client begin anew, with the
                // server.
                resets = true;
                defence_known.write(place, 1);
                if (meta.flow.value == 0) {
                    meta.flow.value = 1;
                    meta.flow.write = true;
                    defence_events.count(DEFENCE_SHOWN);
                }
            } else if (meta.flow.value == 1) {
                defence_known.write(place, 1);
                defence_events.count(DEFENCE_PASSED);
            } else if (kind == TCP_SYN) {
                // Another source has the same place.
                asks = true;
            } else {
                defence_events.count(DEFENCE_DROPPED);
                mark_to_drop(standard_metadata);
            }
        }
        if (meta.flow.process && (asks || resets)) {
            if (asks) {
                defence_events.count(DEFENCE_ASKED);
                turn(cookie, hdr.own.tcp.sequence + 1, TCP_SYN | TCP_ACK);
            } else {
                turn(hdr.own.tcp.acknowledgement, 0, TCP_RST);
            }
            exchange_sequence.apply(
                hdr.own.tcp.checksum,
                old_sequence,
                hdr.own.tcp.sequence,
                old_flags,
                hdr.own.tcp.data_offset ++ hdr.own.tcp.flags
            );
            exchange_acknowledgement.apply(
                hdr.own.tcp.checksum,
                old_acknowledgement,
                hdr.own.tcp.acknowledgement,
                old_window,
                0
            );
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

control DefenceComputeChecksum(inout headers_t hdr) {
    Ipv4ComputeChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control DefenceDeparser(packet_out packet, in headers_t hdr) {
    TransportDeparser() own;

    apply {
        own.apply(packet, hdr.own);
    }
}

#define PROGRAM_PARSER DefenceParser
#define PROGRAM_VERIFY_CHECKSUM DefenceVerifyChecksum
#define PROGRAM_INGRESS DefenceIngress
#define PROGRAM_COMPUTE_CHECKSUM DefenceComputeChecksum
#define PROGRAM_DEPARSER DefenceDeparser
#include "replicated_switch.p4"

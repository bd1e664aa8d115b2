// A NAT whose connections outlive their switch. Mappings are made by the store
// with the first lease of a flow, which takes a port from the shard's range, and
// are held under shared leases: any number of switches may translate packets of
// one mapping at the same time.

#include <core.p4>
#include <v1model.p4>

// Address and port.
#define REPLICATION_STATE_BITS 48
#include "replication.p4"
#include "router.p4"
#include "nat_packet.p4"

// Number of shards as a power of two: a public port's shard is its top bits
// (rule 22), so the store must be configured with 2 to this number.
#ifndef NAT_SHARD_BITS
#define NAT_SHARD_BITS 2
#endif

struct headers_t {
    replication_headers_t replication;
    nat_headers_t nat;
}

struct metadata_t {
    replication_metadata_t replication;
    endpoint_t endpoint;
    // The packet is for an inside endpoint by its public one.
    bool hairpin;
}

parser TopParser(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ReplicationParser() replication;
    NatParser() program;

    state start {
        replication.apply(packet, hdr.replication, meta.replication, standard_metadata);
        transition select(meta.replication.parse_program) {
            true: own_headers;
            default: accept;
        }
    }

    state own_headers {
        program.apply(packet, hdr.nat);
        transition accept;
    }
}

control TopVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    ReplicationVerifyChecksum() replication;
    Ipv4VerifyChecksum() ipv4;

    apply {
        replication.apply(hdr.replication);
        ipv4.apply(hdr.nat.ipv4);
    }
}

control NatIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    NatClassify() classify;
    ReplicationIngressBefore() replication_before;
    NatTranslate() translate;
    ReplicationIngressAfter() replication_after;
    Router() router;
    bool known;
    bool hairpin;
    bit<128> mapping;
    bit<16> public_port;
    bit<16> hashed;

    apply {
        classify.apply(
            hdr.nat,
            standard_metadata,
            meta.replication.arriving,
            true,
            standard_metadata.instance_type == INSTANCE_RECIRCULATED,
            hairpin,
            known,
            mapping,
            public_port
        );
        if (meta.replication.arriving) {
            meta.replication.flow = known;
            meta.replication.key = mapping;
            meta.replication.shared = true;
            hash(
                hashed,
                HashAlgorithm.crc16,
                (bit<16>)0,
                { mapping },
                (bit<16>)(1 << NAT_SHARD_BITS)
            );
            meta.replication.shard = mapping[127:120] == CLASS_NAT_INBOUND
                ? (bit<16>)public_port[15:16 - NAT_SHARD_BITS]
                : hashed;
        }
        replication_before.apply(hdr.replication, meta.replication, standard_metadata);
        if (meta.replication.process) {
            if (meta.replication.found) {
                meta.endpoint.address = meta.replication.value[47:16];
                meta.endpoint.port = meta.replication.value[15:0];
                translate.apply(hdr.nat, meta.replication.key[127:120], meta.endpoint);
            } else {
                mark_to_drop(standard_metadata);
            }
        }
        replication_after.apply(hdr.replication, meta.replication, standard_metadata);
        if (meta.replication.forward) {
            // What the store gives back is looked at as what arrives is.
            if (hairpin && meta.replication.key[127:120] == CLASS_NAT_OUTBOUND) {
                meta.hairpin = true;
                standard_metadata.egress_spec = standard_metadata.ingress_port;
            } else if (hdr.nat.tcp.isValid()
                || hdr.nat.udp.isValid()
                || hdr.nat.carried_ports.isValid()
                || (hdr.nat.icmp.isValid()
                    && (hdr.nat.icmp.type == ICMP_ECHO || hdr.nat.icmp.type == ICMP_ECHO_REPLY))) {
                router.apply(hdr.nat.ethernet, hdr.nat.ipv4, standard_metadata);
            } else {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

// Brings a packet back that inside sent to a public address. It is translated and
// waits for nothing.
@side_effects_allowed
control NatHairpin(in bool hairpin) {
    apply {
        if (hairpin) {
            recirculate_preserving_field_list(0);
        }
    }
}

control NatEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ReplicationEgress() replication;
    NatHairpin() turn;

    apply {
        replication.apply(hdr.replication, meta.replication, standard_metadata);
        turn.apply(meta.hairpin);
    }
}

control TopComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    ReplicationComputeChecksum() replication;
    Ipv4ComputeChecksum() ipv4;

    apply {
        replication.apply(hdr.replication);
        ipv4.apply(hdr.nat.ipv4);
    }
}

control TopDeparser(packet_out packet, in headers_t hdr) {
    ReplicationDeparser() replication;
    NatDeparser() nat;

    apply {
        replication.apply(packet, hdr.replication);
        nat.apply(packet, hdr.nat);
    }
}

V1Switch(
    TopParser(),
    TopVerifyChecksum(),
    NatIngress(),
    NatEgress(),
    TopComputeChecksum(),
    TopDeparser()
) main;

// A stateful firewall (ApproSync Table II, FW): what comes by port 1 passes if a connection of the
// inside (port 0) was opened, as two hashes of a Bloom filter say. Each SYN of the inside writes.

#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

#define ENTRIES 65536

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    tcp_t tcp;
}

struct metadata_t {
    bit<32> first;
    bit<32> second;
    bit<1> opened;
    bit<1> known;
}

parser Read(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            IP_PROTOCOL_TCP: tcp;
            default: accept;
        }
    }

    state tcp {
        packet.extract(hdr.tcp);
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Process(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<1>>(ENTRIES) filter_0;
    register<bit<1>>(ENTRIES) filter_1;

    action hash_of(
        bit<32> inner,
        bit<32> outer,
        bit<16> inner_port,
        bit<16> outer_port
    ) {
        hash(
            meta.first,
            HashAlgorithm.crc32,
            (bit<32>)0,
            { inner, outer, inner_port, outer_port },
            (bit<32>)ENTRIES
        );
        hash(
            meta.second,
            HashAlgorithm.crc16,
            (bit<32>)0,
            { inner, outer, inner_port, outer_port },
            (bit<32>)ENTRIES
        );
    }

    apply {
        standard.egress_spec = 1 - standard.ingress_port;
        if (hdr.tcp.isValid()) {
            if (standard.ingress_port == 0) {
                if (hdr.tcp.flags & TCP_SYN != 0) {
                    hash_of(
                        hdr.ipv4.source,
                        hdr.ipv4.destination,
                        hdr.tcp.source_port,
                        hdr.tcp.destination_port
                    );
                    filter_0.write(meta.first, 1);
                    filter_1.write(meta.second, 1);
                }
            } else {
                hash_of(
                    hdr.ipv4.destination,
                    hdr.ipv4.source,
                    hdr.tcp.destination_port,
                    hdr.tcp.source_port
                );
                filter_0.read(meta.opened, meta.first);
                filter_1.read(meta.known, meta.second);
                if (meta.opened & meta.known == 0) {
                    mark_to_drop(standard);
                }
            }
        }
    }
}

control Leave(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control Write(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.tcp);
    }
}

V1Switch(Read(), Nothing(), Process(), Leave(), Nothing(), Write()) main;

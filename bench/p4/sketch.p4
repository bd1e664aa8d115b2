// Heavy hitters: a count-min sketch of sources and destinations (Cormode and
// Muthukrishnan, 2005), and a mark in the packets of those above a threshold.

#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

#define COLUMNS 65536
#define THRESHOLD 1000

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
}

struct metadata_t {
    bit<32> column;
    bit<32> count;
    bit<32> least;
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
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Process(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(COLUMNS) row_0;
    register<bit<32>>(COLUMNS) row_1;
    register<bit<32>>(COLUMNS) row_2;
    counter(1, CounterType.packets) heavy;

    apply {
        standard.egress_spec = 1;
        if (hdr.ipv4.isValid()) {
            hash(
                meta.column,
                HashAlgorithm.crc32,
                (bit<32>)0,
                { 8w0, hdr.ipv4.source, hdr.ipv4.destination },
                (bit<32>)COLUMNS
            );
            row_0.read(meta.count, meta.column);
            meta.count = meta.count |+| 1;
            row_0.write(meta.column, meta.count);
            meta.least = meta.count;

            hash(
                meta.column,
                HashAlgorithm.crc32,
                (bit<32>)0,
                { 8w1, hdr.ipv4.source, hdr.ipv4.destination },
                (bit<32>)COLUMNS
            );
            row_1.read(meta.count, meta.column);
            meta.count = meta.count |+| 1;
            row_1.write(meta.column, meta.count);
            if (meta.count < meta.least) {
                meta.least = meta.count;
            }

            hash(
                meta.column,
                HashAlgorithm.crc32,
                (bit<32>)0,
                { 8w2, hdr.ipv4.source, hdr.ipv4.destination },
                (bit<32>)COLUMNS
            );
            row_2.read(meta.count, meta.column);
            meta.count = meta.count |+| 1;
            row_2.write(meta.column, meta.count);
            if (meta.count < meta.least) {
                meta.least = meta.count;
            }

            if (meta.least > THRESHOLD) {
                heavy.count(0);
                hdr.ipv4.diffserv = hdr.ipv4.diffserv | 4;
            }
        }
    }
}

control Leave(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control Renew(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(
            hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            {
                hdr.ipv4.version,
                hdr.ipv4.ihl,
                hdr.ipv4.diffserv,
                hdr.ipv4.total_length,
                hdr.ipv4.identification,
                hdr.ipv4.flags,
                hdr.ipv4.fragment_offset,
                hdr.ipv4.ttl,
                hdr.ipv4.protocol,
                hdr.ipv4.source,
                hdr.ipv4.destination
            },
            hdr.ipv4.checksum,
            HashAlgorithm.csum16
        );
    }
}

control Write(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(Read(), Nothing(), Process(), Leave(), Renew(), Write()) main;

// A limiter: each source address may send PACKETS packets of IPv4 through the switch, in all its
// life; everything else passes as through a cable between ports 0 and 1.

#include <core.p4>
#include <v1model.p4>

#define PACKETS 8

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}
header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> length;
    bit<16> identification;
    bit<3> flags;
    bit<13> offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}
struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
}
struct metadata_t { }

// How many packets of an address have passed. The annotation is all that protection needs.
@replicated(key = {hdr.ipv4.source})
register<bit<32>>(65536) passed;

parser Parse(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control Limit(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    bit<32> index;
    bit<32> count;

    apply {
        standard_metadata.egress_spec = standard_metadata.ingress_port ^ 1;
        if (hdr.ipv4.isValid() && standard_metadata.ingress_port == 0) {
            hash(index, HashAlgorithm.crc32, 32w0, { hdr.ipv4.source }, 32w65536);
            passed.read(count, index);
            if (count == PACKETS) {
                mark_to_drop(standard_metadata);
            } else {
                passed.write(index, count + 1);
            }
        }
    }
}

control Pass(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(Parse(), Verify(), Limit(), Pass(), Compute(), Deparse()) main;

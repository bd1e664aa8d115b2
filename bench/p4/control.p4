// What controllers write and read while packets pass: entries by destination, and an array.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t { }

parser Parse(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t std
) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Forward(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<64>>(65536) bytes;

    action drop() {
        mark_to_drop(std);
    }

    action send(bit<9> port) {
        std.egress_spec = port;
    }

    table hosts {
        key = {
            hdr.ethernet.dst: exact;
        }
        actions = {
            send;
            drop;
        }
        default_action = drop();
        size = 131072;
    }

    apply {
        bit<64> total;
        bytes.read(total, (bit<32>)hdr.ethernet.src[15:0]);
        bytes.write((bit<32>)hdr.ethernet.src[15:0], total + (bit<64>)std.packet_length);
        hosts.apply();
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(Parse(), Verify(), Forward(), NoEgress(), Update(), Deparse()) main;

// Registers of all kinds and widths, some of which say how they are synchronised.

#include <core.p4>
#include <v1model.p4>

#include "common.p4"

control KindsIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    // A key and its count: a key is not sent without its count, nor the count without its key.
    register<bit<32>>(8) key;
    register<bit<24>>(8) key_count;
    // Level of something that packets take and give.
    register<bit<16>>(8) credit;
    @synced(kind = "gauge", bound = 4, window = 500)
    register<bit<32>>(8) length;
    @synced(group = "last")
    register<bit<48>>(4) last_source;
    @synced(group = "last")
    register<bit<16>>(4) last_kind;
    @synced
    register<bit<129>>(4) wide;
    @synced
    register<int<9>>(4) balance;
    @synced
    register<bool>(4) flag;
    @synced(kind = "opaque", bound = 0)
    register<bit<64>>(1) newest;
    // Nobody asks for this one.
    register<bit<8>>(4) unseen;
    bit<32> index;
    bit<32> held;
    bit<24> count;
    bit<16> level;
    bit<129> element;
    int<9> signed_level;

    apply {
        index = hdr.ethernet.src[31:0] & 3;
        last_source.write(index, hdr.ethernet.src);
        last_kind.write(index, hdr.ethernet.kind);
        length.write(index, standard.packet_length);
        wide.read(element, index);
        wide.write(index, element[64:0] ++ 16w0 ++ hdr.ethernet.dst);
        balance.read(signed_level, index);
        balance.write(index, signed_level - 3);
        flag.write(index, hdr.ethernet.dst[0:0] == 1);
        newest.write(0, (bit<64>)hdr.ethernet.src);
        unseen.write(index, 1);
        index = hdr.ethernet.src[31:0] & 7;
        key.read(held, index);
        key_count.read(count, index);
        if (held != hdr.ethernet.src[31:0]) {
            key.write(index, hdr.ethernet.src[31:0]);
            count = 0;
        }
        key_count.write(index, count + 1);
        credit.read(level, index);
        if (hdr.ethernet.dst[0:0] == 1) {
            level = level + 2;
        } else {
            level = level |-| 1;
        }
        credit.write(index, level);
        standard.egress_spec = 1;
    }
}

V1Switch(
    CommonParser(),
    NoVerify(),
    KindsIngress(),
    NoEgress(),
    NoCompute(),
    CommonDeparser()
) main;

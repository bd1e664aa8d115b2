// The functions and objects of v1model.
#include "shell.p4"

struct digest_t {
    bit<8>  a;
    bit<16> b;
}

struct pair_t {
    bit<8> low;
    bit<8> high;
}

const bit<8> LIST = 2;

struct kept_t {
    @field_list(1, 2)
    bit<8> a;
    @field_list(LIST)
    pair_t p;
    bit<8> lost;
}

struct user_t {
    kept_t kept;
    @field_list(2)
    bit<16> y;
    bit<2>  colour;
}

parser P(packet_in p, out headers_t hdr, inout user_t meta, inout standard_metadata_t std) {
    state start {
        transition accept;
    }
}

control V(inout headers_t hdr, inout user_t meta) {
    apply {
        verify_checksum(hdr.h.isValid(), { hdr.h.a, hdr.h.c }, hdr.h.b, HashAlgorithm.csum16);
        verify_checksum_with_payload(true, hdr.h, meta.y, HashAlgorithm.crc16);
    }
}

control I(inout headers_t hdr, inout user_t meta, inout standard_metadata_t std) {
    register<pair_t>(16) pairs;
    counter(32, CounterType.packets) packets;
    meter(8, MeterType.packets) rates;

    apply {
        pair_t pair;
        pairs.read(pair, (bit<32>)hdr.h.a);
        pair.low = pair.high;
        pairs.write(3, pair);
        pairs.write(4, { 1, 2 });
        packets.count((bit<32>)meta.y);
        rates.execute_meter(0, meta.colour);
        hash(meta.y, HashAlgorithm.crc32, 16w10, { hdr.h, pair, 8w0 }, 16w100);
        random(meta.y, 5, 9);
        clone(CloneType.I2E, 7);
        clone_preserving_field_list(CloneType.I2E, (bit<32>)meta.y, 2);
        resubmit_preserving_field_list(1);
        digest<digest_t>(1, { a = hdr.h.a, b = 0x1234 });
        digest(1, { hdr.h.a, true });
        truncate(64);
        assert(hdr.h.a != 0);
        assume(hdr.h.b == 1);
        log_msg("seen");
        log_msg("a = {}, b = {}", { hdr.h.a, meta.kept });
        mark_to_drop(std);
    }
}

control E(inout headers_t hdr, inout user_t meta, inout standard_metadata_t std) {
    apply {
        clone(CloneType.E2E, 8);
        recirculate_preserving_field_list(2);
    }
}

control U(inout headers_t hdr, inout user_t meta) {
    apply {
        update_checksum(hdr.h.isValid(), { hdr.h.a, hdr.g }, hdr.h.b, HashAlgorithm.csum16);
        update_checksum_with_payload(true, { hdr.h.a }, hdr.h.b[15:0], HashAlgorithm.xor16);
    }
}

control D(packet_out p, in headers_t hdr) {
    apply {
        p.emit(hdr.h);
    }
}

V1Switch(P(), V(), I(), E(), U(), D()) main;

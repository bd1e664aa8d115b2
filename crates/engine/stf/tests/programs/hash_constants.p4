// CRCs of data with constants: in front, between fields, behind them, within bytes, and of constants
// alone.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<32> front;
    bit<16> back;
    bit<32> first_32;
    bit<16> first_16;
    bit<32> second_32;
    bit<16> second_16;
    bit<32> middle_32;
    bit<16> middle_16;
    bit<32> bits_32;
    bit<16> bits_16;
    bit<32> all_32;
    bit<16> all_16;
}

struct headers_t {
    h_t h;
}

struct metadata_t { }

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hash(
            hdr.h.first_32,
            HashAlgorithm.crc32,
            32w0,
            { 8w1, hdr.h.front, hdr.h.back },
            64w0x100000000
        );
        hash(
            hdr.h.first_16,
            HashAlgorithm.crc16,
            16w0,
            { 8w1, hdr.h.front, hdr.h.back },
            64w0x10000
        );
        hash(
            hdr.h.second_32,
            HashAlgorithm.crc32,
            32w0,
            { 8w2, hdr.h.front, hdr.h.back },
            64w0x100000000
        );
        hash(
            hdr.h.second_16,
            HashAlgorithm.crc16,
            16w0,
            { 8w2, hdr.h.front, hdr.h.back },
            64w0x10000
        );
        hash(
            hdr.h.middle_32,
            HashAlgorithm.crc32,
            32w0,
            { hdr.h.front, 16w0xabcd, hdr.h.back, 3w5 },
            64w0x100000000
        );
        hash(
            hdr.h.middle_16,
            HashAlgorithm.crc16,
            16w0,
            { hdr.h.front, 16w0xabcd, hdr.h.back, 3w5 },
            64w0x10000
        );
        hash(
            hdr.h.bits_32,
            HashAlgorithm.crc32,
            32w0,
            { hdr.h.front[31:28], 12w0x9a5, hdr.h.back, 64w0x0123456789abcdef, hdr.h.front },
            64w0x100000000
        );
        hash(
            hdr.h.bits_16,
            HashAlgorithm.crc16,
            16w0,
            { hdr.h.front[31:28], 12w0x9a5, hdr.h.back, 64w0x0123456789abcdef, hdr.h.front },
            64w0x10000
        );
        hash(hdr.h.all_32, HashAlgorithm.crc32, 32w0, { 40w0x0102030405 }, 64w0x100000000);
        hash(hdr.h.all_16, HashAlgorithm.crc16, 16w0, { 40w0x0102030405 }, 64w0x10000);
        standard.egress_spec = 1;
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;

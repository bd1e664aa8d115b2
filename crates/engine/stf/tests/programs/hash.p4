// Each algorithm of hash(): crc16 is CRC-16/ARC (check value bb3d), crc32 that of Ethernet
// (cbf43926), csum16 the Internet checksum, xor16 the exclusive or of 16-bit words. The result is
// base + hash mod max, and base where max is 0.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<32> front;
    bit<16> back;
    bit<16> crc16;
    bit<32> crc32;
    bit<16> csum16;
    bit<16> xor16;
    bit<16> identity;
    bit<16> small;
    bit<16> none;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hash(hdr.h.crc16, HashAlgorithm.crc16, 16w0, { hdr.h.front, hdr.h.back }, 32w0x10000);
        hash(hdr.h.crc32, HashAlgorithm.crc32, 32w0, { hdr.h.front, hdr.h.back }, 64w0x100000000);
        hash(hdr.h.csum16, HashAlgorithm.csum16, 16w0, { hdr.h.front, hdr.h.back }, 32w0x10000);
        hash(hdr.h.xor16, HashAlgorithm.xor16, 16w0, { hdr.h.front, hdr.h.back }, 32w0x10000);
        hash(hdr.h.identity, HashAlgorithm.identity, 16w0, { hdr.h.back }, 32w0x10000);
        hash(hdr.h.small, HashAlgorithm.crc16, 16w100, { hdr.h.front, hdr.h.back }, 16w10);
        hash(hdr.h.none, HashAlgorithm.crc16, 16w7, { hdr.h.front, hdr.h.back }, 16w0);
        standard.egress_spec = 1;
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;

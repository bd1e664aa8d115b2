// Reads and writes of registers by two indices, which may be equal: a read has what was written last
// to its element, by whichever index, and no write reaches another register.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8>  first;
    bit<8>  second;
    bit<32> written;
    bit<32> before;
    bit<32> behind;
    bit<8>  other_before;
    bit<8>  other_behind;
    bit<32> last;
    bit<32> beside;
}

struct headers_t {
    h_t h;
}

struct metadata_t { }

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @name(".one")
    register<bit<32>>(4) one;
    register<bit<8>>(4) other;
    @beside[".one", 2]
    register<bit<32>>(2) guest;

    apply {
        bit<32> first = (bit<32>)hdr.h.first & 3;
        bit<32> second = (bit<32>)hdr.h.second & 3;
        one.read(hdr.h.before, first);
        guest.write(first & 1, hdr.h.before + 0x100);
        one.write(second, hdr.h.written);
        one.read(hdr.h.behind, first);
        other.read(hdr.h.other_before, first);
        other.write(second, hdr.h.other_before + 1);
        other.read(hdr.h.other_behind, first);
        one.write(second, hdr.h.behind + 1);
        one.read(hdr.h.last, second);
        guest.read(hdr.h.beside, second & 1);
        standard.egress_spec = 1;
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;

#include "shell.p4"

struct s {
    bit<8>[4][2]  a;
    varbit<8>[4]  b;
    packet_in[2]  c;
    bit<8>[4]     d;
}

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<8>[4] array;

    apply {
        array.push_front(1);
        array[4] = 1;
        array = { 1, 2 };
    }
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<8>[4] array;

    state start {
        array.next = 1;
        transition accept;
    }
}

SWITCH(P, C);

#include "shell.p4"

extern Counted {
    Counted();
    void Counted(in bit<8> first);
}

extern void tell(in string text);

header_union Wrong<T> {
    tuple<T, T> pair;
}

struct pair_t {
    tuple<bit<8>, packet_in> both;
}

control C(inout bit<8> x)(bit<8> x) {
    apply {}
}

#include "shell.p4"

@name(4)
bit<8> one() { return 1; }

@deprecated("a" | "b")
bit<8> two() { return 2; }

@owner[a = { 2, 3 }]
control D() {
    apply {}
}

@owner[b = 4 < H]
control E<H>(in H h) {
    apply {}
}

@owner[c]
@owner[c]
typedef bit<8> byte_t;

@pkginfo
const bit<8> THREE = 3;

struct set_t {
    @match(1 + 1) bit<8> a;
    @match(ternary) bit<8> b;
    @match(other) bit<8> c;
}

SWITCH(EmptyParser, NoIngress);

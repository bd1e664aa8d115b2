// Side effects inside expressions: order, short circuits, copies of earlier operands.
#include "shell.p4"

bit<8> next(inout bit<8> counter) {
    counter = counter + 1;
    return counter;
}

bool even(inout bit<8> counter) {
    counter = counter + 1;
    return counter[0:0] == 0;
}

void two(in bit<8> first, inout bit<8> second, out bit<8> third) {
    third = first + second;
}

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    table t {
        key = { next(meta.x) : exact @name("next"); hdr.h.b : exact; }
        actions = { NoAction; }
    }
    apply {
        // The left operand is read before `next` changes it.
        hdr.h.a = meta.x + next(meta.x);
        hdr.h.a = next(meta.x) - meta.x;
        // The right side is evaluated only where it decides.
        if (meta.flag && even(meta.x)) {
            hdr.h.b = 1;
        }
        meta.flag = hdr.h.isValid() || even(meta.x) || meta.flag;
        // Only one alternative is evaluated.
        hdr.h.a = meta.flag ? next(meta.x) : 8w0;
        // The index of the target is fixed first.
        hdr.s[meta.x].a = next(meta.x);
        two(meta.x, meta.x, hdr.s[next(meta.x)].a);
        two(third = hdr.h.a, first = next(meta.x), second = hdr.g.a);
        hdr.h.a += next(hdr.h.a);
        hdr.h = { next(meta.x), hdr.h.b, 1 };
        if (t.apply().hit) {
            meta.y = 1;
        }
        if (!t.apply().miss && meta.flag) {
            meta.y = 2;
        }
    }
}

SWITCH(EmptyParser, C);

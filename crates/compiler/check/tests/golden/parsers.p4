// States, selects, sub-parsers, stacks, lookahead, errors.
#include "shell.p4"

error { TooDeep }

header_union either_t {
    h_t left;
    h_t right;
}

header options_t {
    bit<8> length;
    varbit<320> data;
}

struct all_t {
    h_t h;
    h_t[3] s;
    either_t u;
    options_t o;
}

struct local_t {
    bit<8> depth;
    int<8> offset;
    bool   deep;
}

parser Element(packet_in p, inout h_t[3] stack, inout bit<8> depth)(bit<8> limit) {
    state start {
        p.extract(stack.next);
        depth = depth + 1;
        verify(depth <= limit, error.TooDeep);
        transition accept;
    }
}

parser Skip(packet_in p) {
    state start {
        p.advance(8);
        transition accept;
    }
}

parser P(packet_in p, out all_t hdr, inout local_t meta, inout standard_metadata_t std) {
    Element(3) element;
    bit<8> first = 7;
    const bit<8> MAGIC = 0x45;

    state start {
        bit<8> seen = p.lookahead<bit<8>>();
        bit<8> unset;
        unset = unset + seen;
        meta.depth = first;
        transition select(seen, p.lookahead<h_t>().b) {
            (MAGIC, 1): header_only;
            (0x40 &&& 0xf0, 16w2 .. 16w9): elements;
            (_, 0x800): union_left;
            default: skip;
        }
    }

    state header_only {
        p.extract(hdr.h);
        transition accept;
    }

    state elements {
        element.apply(p, hdr.s, meta.depth);
        transition select(hdr.s.last.c, hdr.s.lastIndex) {
            (-1 .. 1, _): elements;
            (5, 2): rest;
        }
    }

    state union_left {
        p.extract(hdr.u.left);
        meta.deep = hdr.u.isValid();
        transition select(meta.deep) {
            true: rest;
            false: reject;
        }
    }

    state rest {
        p.extract(hdr.o, (bit<32>)p.length() << 3);
        p.extract<h_t>(_);
        if (meta.depth == 1) {
            meta.depth = 2;
        }
        transition accept;
    }

    state skip {
        Skip.apply(p);
    }
}

control V(inout all_t hdr, inout local_t meta) {
    apply {}
}

control I(inout all_t hdr, inout local_t meta, inout standard_metadata_t std) {
    apply {}
}

control D(packet_out p, in all_t hdr) {
    apply {
        p.emit(hdr.h);
        p.emit(hdr);
        p.emit({ hdr.s, hdr.u });
    }
}

V1Switch(P(), V(), I(), I(), V(), D()) main;

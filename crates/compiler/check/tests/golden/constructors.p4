// Constructor parameters: numbers, flags and objects; optional and default arguments.
#include "shell.p4"

control Tally(in bit<32> index)(register<bit<32>> cells, bit<32> step, bool twice) {
    bit<32> value;
    apply {
        cells.read(value, index);
        value = value + step;
        if (twice) {
            value = value + step;
        }
        cells.write(index, value);
    }
}

parser Bounded(packet_in p, out h_t h)(bit<8> expected) {
    state start {
        p.extract(h);
        transition select(h.a) {
            expected: accept;
            default: reject;
        }
    }
}

parser P(packet_in p, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    Bounded(7) first;
    Bounded(expected = 8) second;
    state start {
        first.apply(p, hdr.h);
        second.apply(p, hdr.g);
        transition accept;
    }
}

bit<8> clamp(in bit<8> value, in bit<8> limit = 100) {
    if (value > limit) {
        return limit;
    }
    return value;
}

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<32>>(64) shared_cells;
    Tally(shared_cells, 1, false) once;
    Tally(step = 2, twice = true, cells = shared_cells) more;
    apply {
        once.apply(3);
        more.apply((bit<32>)meta.x);
        meta.x = clamp(meta.x);
        meta.x = clamp(limit = 5, value = meta.x);
    }
}

SWITCH(P, C);

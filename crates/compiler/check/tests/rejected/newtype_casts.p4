#include "shell.p4"

typedef bit<2> pair_t;
type bit<8> id_t;
type id_t inner_t;
type bit<16> wide_t;

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        pair_t narrow = 1;
        id_t id = (id_t)meta.x;
        inner_t inner = (inner_t)id;
        id = (id_t)inner;
        id = (id_t)5;
        meta.x = (bit<8>)id;
        id = (id_t)narrow;
        id = (id_t)meta.y;
        meta.y = (bit<16>)id;
        meta.x = (bit<8>)inner;
        wide_t wide = (wide_t)id;
    }
}

SWITCH(EmptyParser, C);

#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    @name("set")
    action narrow(bit<8> value) {
        hdr.h.a = value;
    }
    @name("set")
    action wide(bit<16> value) {
        hdr.h.a = (bit<8>)value;
    }
    @name("set")
    action other(bit<8> value) {
        hdr.h.b = (bit<16>)value;
    }
    table u {
        actions = { wide; }
    }
    table t {
        actions = { narrow; other; }
    }
    apply {
        t.apply();
        u.apply();
    }
}

SWITCH(EmptyParser, C);

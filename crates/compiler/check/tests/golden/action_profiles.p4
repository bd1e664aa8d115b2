// Action profiles and selectors: declared, in place, shared.
#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action_profile(128) members;
    @name("paths") @mode("fair") action_selector(HashAlgorithm.crc16, 64, 14) selector_of_paths;

    action set(bit<8> value) {
        meta.x = value;
    }

    table plain {
        key = { hdr.h.a : exact; }
        actions = { set; NoAction; }
        implementation = members;
    }
    table shared {
        key = { hdr.h.b : exact; }
        actions = { set; }
        implementation = members;
    }
    table ecmp {
        key = {
            hdr.h.a : lpm;
            hdr.h.b : selector;
            meta.y : selector;
        }
        actions = { set; NoAction; }
        implementation = selector_of_paths;
    }
    table lag {
        key = {
            hdr.h.b : selector;
            hdr.h.a : exact;
            meta.y : selector;
        }
        actions = { set; }
        implementation = selector_of_paths;
    }
    table in_place {
        key = { hdr.h.a : exact; hdr.h.b : selector; }
        actions = { set; }
        @name("own") implementation = action_selector(HashAlgorithm.identity, 16, 4);
    }
    table without_name {
        key = { hdr.h.a : exact; }
        actions = { set; }
        implementation = action_profile(2);
    }

    apply {
        plain.apply();
        shared.apply();
        ecmp.apply();
        lag.apply();
        in_place.apply();
        without_name.apply();
    }
}

SWITCH(EmptyParser, C);

// Control-plane names: instances, nesting, @name, direct application, shared types.
#include "shell.p4"

register<bit<32>>(8) global_register;

action global_action(bit<8> value) {
    global_register.write(0, (bit<32>)value);
}

control Inner(inout h_t h)(bit<32> size) {
    register<bit<8>>(size) cells;
    action set(bit<8> value) {
        h.a = value;
        cells.write(0, value);
    }
    table choose {
        key = {
            h.b : exact;
            h.a[3:0] : exact @name("l" ++ "o" ++ "w");
        }
        actions = { set; global_action; }
    }
    apply {
        choose.apply();
    }
}

control Direct(inout h_t h) {
    counter(4, CounterType.bytes) hits;
    apply {
        hits.count(1);
    }
}

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    Inner(4) first;
    @name("oth" ++ "er") Inner(size = 8) second;
    @name(".absolute") register<bool>(2) absolute;
    apply {
        bool seen;
        absolute.read(seen, 1);
        if (seen) {
            first.apply(hdr.h);
        } else {
            second.apply(hdr.g);
        }
        Direct.apply(hdr.h);
        Direct.apply(hdr.g);
    }
}

SWITCH(EmptyParser, C);

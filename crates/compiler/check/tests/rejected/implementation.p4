// What an `implementation` cannot be.
#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action_selector(HashAlgorithm.crc16, 64, 14) paths;
    direct_counter(CounterType.packets) hits;

    table number {
        key = { hdr.h.a : exact; }
        actions = { NoAction; }
        implementation = 5;
    }
    table counter {
        key = { hdr.h.a : exact; }
        actions = { NoAction; }
        implementation = hits;
    }
    table without {
        key = { hdr.h.a : selector; }
        actions = { NoAction; }
    }
    table without_selector {
        key = { hdr.h.a : selector; }
        actions = { NoAction; }
        implementation = action_profile(4);
    }
    table one {
        key = { hdr.h.a : exact; hdr.h.b : selector; meta.x : selector; }
        actions = { NoAction; }
        implementation = paths;
    }
    table other {
        key = { hdr.h.a : exact; meta.x : selector; hdr.h.b : selector; }
        actions = { NoAction; }
        implementation = paths;
    }

    apply {
        number.apply();
        counter.apply();
        without.apply();
        without_selector.apply();
        one.apply();
        other.apply();
    }
}

SWITCH(EmptyParser, C);

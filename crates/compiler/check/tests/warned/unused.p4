#include "shell.p4"

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t std) {
    bit<8> unused_in_parser;
    state start {
        transition next;
    }
    state next {
        transition accept;
    }
    state lost {
        transition lost_too;
    }
    state lost_too {
        transition accept;
    }
}

control Inner(inout metadata_t meta)(bit<8> used, bit<8> unused, bit<8> _kept) {
    apply {
        meta.x = used;
    }
}

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    Inner(1, 2, 3) inner;
    Inner(1, 2, 3) outer;
    register<bit<8>>(4) seen;
    @noWarn("unused") register<bit<8>>(4) kept;
    @unit["u", 2] register<bit<8>>(4) items;
    const bit<8> LIMIT = 3;
    action a() {}
    action b() {}
    table applied {
        actions = {
            a;
        }
        default_action = a;
    }
    table idle {
        actions = {
            NoAction;
        }
    }
    apply {
        bit<8> _scratch;
        bit<8> scratch;
        applied.apply();
        inner.apply(meta);
        bit<32> named = 1;
        @atomic @uses("u", named) {
            items.write(3, 1);
        }
        {
            return;
        }
        bit<8> behind = 1;
        meta.x = behind;
        meta.x = 2;
    }
}

SWITCH(P, C);

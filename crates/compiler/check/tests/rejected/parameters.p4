#include "shell.p4"

bit<8> same<value>(in bit<8> value) { return value; }

bit<8> optional_one(@optional in bit<8> a) { return a; }

bit<8> by_default(in bit<8> a = true) { return a; }

bit<8> by_list(list<bit<8>> a = ...) { return 1; }

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<8>>(1) r;
    register<bit<8>>(1) other;
    action uses(register<bit<8>> cell) {
        cell.write(0, 1);
    }
    action data(bit<8> value) {
        bit<8> value = 1;
    }
    action hides() {
        bit<8> meta = 1;
    }
    table meta {
        default_action = data(1);
        key = { meta : exact; }
        actions = { data; hides; }
    }
    apply {
        headers_t hdr = hdr;
        r = other;
        meta.apply();
    }
}

SWITCH(EmptyParser, C);

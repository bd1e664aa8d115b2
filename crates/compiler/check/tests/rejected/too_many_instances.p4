#include "shell.p4"

control C0() {
    apply {}
}

control C1() {
    C0() a;
    C0() b;
    apply {
        a.apply();
        b.apply();
    }
}

control C2() {
    C1() a;
    C1() b;
    apply {
        a.apply();
        b.apply();
    }
}

control C3() {
    C2() a;
    C2() b;
    apply {
        a.apply();
        b.apply();
    }
}

control C4() {
    C3() a;
    C3() b;
    apply {
        a.apply();
        b.apply();
    }
}

control C5() {
    C4() a;
    C4() b;
    apply {
        a.apply();
        b.apply();
    }
}

control C6() {
    C5() a;
    C5() b;
    apply {
        a.apply();
        b.apply();
    }
}

control C7() {
    C6() a;
    C6() b;
    apply {
        a.apply();
        b.apply();
    }
}

control C8() {
    C7() a;
    C7() b;
    apply {
        a.apply();
        b.apply();
    }
}

control C9() {
    C8() a;
    C8() b;
    apply {
        a.apply();
        b.apply();
    }
}

control C10() {
    C9() a;
    C9() b;
    apply {
        a.apply();
        b.apply();
    }
}

control C11() {
    C10() a;
    C10() b;
    apply {
        a.apply();
        b.apply();
    }
}

control C12() {
    C11() a;
    C11() b;
    apply {
        a.apply();
        b.apply();
    }
}

control C13() {
    C12() a;
    C12() b;
    apply {
        a.apply();
        b.apply();
    }
}

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    C13() c;

    apply {
        c.apply();
    }
}

SWITCH(EmptyParser, C);

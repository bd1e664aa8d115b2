// Things in the wrong place.
bit<8> global;
state s { transition accept; }
parser P(packet_in p) {
    state start {
        switch (1) { }
        transition accept;
        p.advance(1);
    }
}
control C() {
    apply { action a() { } }
    bit<8> late;
}
control D() { }
enum E { a = 1 }
extern X { lost(); }

// Each mistake is told once, and what follows is read.
header h_t {
    bit<8 a;
    bit<8> b;
}
struct s_t { h_t h }
control C(inout s_t s) {
    action a() {
        s.h.b = s.h.b + ;
        s.h.b = 1
        s.h.b = 2;
    }
    table t {
        key = { s.h.b exact; }
        actions = { a, b; }
        size 10;
    }
    apply {
        if s.h.isValid() { t.apply(); }
        t.apply()
    }
}
parser P(packet_in p) {
    state start {
        transition select(1) {
            1 start;
            default: accept;
        }
    }
    table t { }
}
const bit<8> last = 1;

// Fields of structs, elements of header stacks and members of header unions without a value, or
// of invalid headers.
#include "shell.p4"

header_union u_t {
    h_t a;
    h_t b;
}
struct pair_t {
    bit<8>  x;
    bit<16> y;
}
struct both_t {
    pair_t pair;
    h_t    h;
}
struct packet_t {
    h_t    h;
    u_t    u;
    u_t[2] us;
    h_t[3] s;
}

struct row_t {
    bit<8>[2] cells;
}
struct part_t {
    row_t[2]              rows;
    tuple<bit<8>, bit<8>> two;
}

bit<8> out_struct(out pair_t pair) { return 1; }
bit<8> out_part(out pair_t pair) {
    pair.x = 1;
    return pair.x;
}
bit<8> reads_out(out bit<8> value) { return value; }
h_t unmade() {
    h_t h;
    return h;
}
h_t meant() {
    h_t h;
    h.setInvalid();
    return h;
}

parser P(packet_in packet, out packet_t hdr) {
    state start {
        packet.extract(hdr.u.a);
        bit<8> x = hdr.u.a.a;
        x = hdr.u.b.a;
        x = hdr.us[1].a.a;
        packet.extract(hdr.s.next);
        x = hdr.s[1].a;
        transition select(x) {
            0: more;
            default: accept;
        }
    }
    state more {
        packet.extract(hdr.us[0].b);
        hdr.us[0].a.a = hdr.us[0].b.a;
        hdr.u.b.setValid();
        hdr.u.a.a = 1;
        transition accept;
    }
}

control D(inout packet_t hdr, inout pair_t pair) {
    bit<8> never;
    bit<8> sometimes;
    action reads_never() { pair.x = never; }
    action writes() {
        sometimes = 1;
        hdr.h.setInvalid();
    }
    action reads_sometimes() { pair.x = sometimes; }
    table t {
        key = { hdr.h.a : exact; }
        actions = { reads_never; writes; reads_sometimes; }
        default_action = writes();
    }
    apply {
        both_t whole;
        whole.pair.x = 1;
        pair.x = whole.pair.x;
        pair.y = whole.pair.y;
        pair = whole.pair;
        whole.h.setValid();
        whole.h.a = 1;
        pair.x = whole.h.a;
        pair.y = whole.h.b;

        pair_t part;
        part.x = pair.x;
        pair = part;

        h_t[2] stack;
        stack[0] = { 1, 2, 3 };
        pair.x = stack[0].a;
        pair.x = stack[1].a;
        h_t[2] invalid;
        pair.x = invalid[pair.x].a;
        h_t copy = stack[0];
        pair.x = copy.a;
        h_t of_invalid = hdr.us[0].a;
        of_invalid = {#};
        pair.x = of_invalid.a;

        h_t maybe;
        if (pair.y == 1) {
            maybe = { 1, 2, 3 };
        }
        pair.x = maybe.a;
        if (hdr.s[0].isValid()) {
            pair.x = hdr.s[0].a;
        } else {
            pair.x = hdr.s[0].a;
        }
        pair.x = hdr.s[0].a;
        t.apply();
        pair.x = hdr.h.a;
        pair.x = reads_out(sometimes);
        pair.x = out_struct(pair) + out_part(part);
        part_t written;
        written.rows[pair.x].cells[pair.x] = 1;
        pair.x = written.rows[0].cells[1];
        part_t unwritten;
        pair.x = unwritten.rows[1].cells[0];
        unwritten.two = { 1, 2 };
        pair.x = unwritten.two[1];
        hdr.h = unmade();
        hdr.h = meant();
    }
}

SWITCH(EmptyParser, NoIngress);

// Calls of externs of another architecture, and generic functions that nothing calls.
extern void act<T>(in T value);
extern packet_out {
    void emit<T>(in T head);
}
header h_t { bit<8> a; }

void set<T>(inout T value) {}
void reads<T>(in T value) {
    set(value);
}

control c(packet_out packet, inout h_t h) {
    apply {
        act(5);
        act("text");
        act({ a = h.a, b = h.a });
        act<bit<16>>(h.a);
        act(h.a);
        packet.emit<bit<8>>(h);
    }
}

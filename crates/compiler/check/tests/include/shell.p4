// What a test program does not write itself.

#include <v1model.p4>

header h_t {
    bit<8>  a;
    bit<16> b;
    int<8>  c;
}

struct headers_t {
    h_t    h;
    h_t    g;
    h_t[3] s;
}

struct metadata_t {
    bit<8>  x;
    bit<16> y;
    bool    flag;
}

parser EmptyParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t std) {
    state start {
        transition accept;
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control NoIngress(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t std) {
    apply {}
}

control NoEgress(inout headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t std) {
    apply {}
}

control NoCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control NoDeparser(packet_out packet, in headers_t hdr) {
    apply {}
}

#define SWITCH(PARSER, INGRESS) \
    V1Switch(PARSER(), NoVerify(), INGRESS(), NoEgress(), NoCompute(), NoDeparser()) main

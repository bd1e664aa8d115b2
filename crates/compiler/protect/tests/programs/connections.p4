// Lets connections be opened from port 1 only, and follows each until a RST.

#include <core.p4>
#include <v1model.p4>

#define CONNECTIONS 4096

const bit<2> CLOSED = 0;
const bit<2> OPENING = 1;
const bit<2> OPEN = 2;

struct metadata_t {
    bit<32> index;
}

#include "common.p4"

control ConnectionIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    Route() route;
    @replicated(
        key = {hdr.ipv4.src, hdr.ipv4.dst, hdr.tcp.sport, hdr.tcp.dport},
        reverse = {hdr.ipv4.dst, hdr.ipv4.src, hdr.tcp.dport, hdr.tcp.sport}
    )
    register<bit<2>>(CONNECTIONS) connection;
    bit<2> phase;

    action find(bit<32> inside, bit<32> outside, bit<16> own, bit<16> others) {
        hash(
            meta.index,
            HashAlgorithm.crc32,
            32w0,
            { inside, outside, own, others },
            (bit<32>)CONNECTIONS
        );
    }

    apply {
        if (!hdr.tcp.isValid()) {
            mark_to_drop(standard);
            return;
        }
        if (standard.ingress_port == 1) {
            find(hdr.ipv4.src, hdr.ipv4.dst, hdr.tcp.sport, hdr.tcp.dport);
        } else {
            find(hdr.ipv4.dst, hdr.ipv4.src, hdr.tcp.dport, hdr.tcp.sport);
        }
        connection.read(phase, meta.index);
        if (hdr.tcp.rst == 1) {
            connection.write(meta.index, CLOSED);
        } else if (standard.ingress_port == 1) {
            if (phase == CLOSED && hdr.tcp.syn == 1) {
                connection.write(meta.index, OPENING);
                phase = OPENING;
            }
        } else if (phase == OPENING && hdr.tcp.syn == 1 && hdr.tcp.ack == 1) {
            connection.write(meta.index, OPEN);
            phase = OPEN;
        } else if (phase != OPEN) {
            phase = CLOSED;
        }
        if (phase == CLOSED) {
            mark_to_drop(standard);
        } else {
            route.apply(hdr, standard);
        }
    }
}

control NoEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    apply {}
}

V1Switch(
    CommonParser(),
    CommonVerify(),
    ConnectionIngress(),
    NoEgress(),
    CommonCompute(),
    CommonDeparser()
) main;

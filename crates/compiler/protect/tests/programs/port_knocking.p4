// Opens TCP port 22 to a source that sent UDP datagrams to 7001, 7002 and 7003 in order.

#include <core.p4>
#include <v1model.p4>

#define SOURCES 4096

struct metadata_t {
    bit<32> index;
}

#include "common.p4"

control KnockIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    Route() route;
    // How many knocks were right.
    @replicated(key = {hdr.ipv4.src})
    register<bit<2>>(SOURCES) stage;
    bit<2> knocks;

    action drop() {
        mark_to_drop(standard);
    }

    apply {
        if (!hdr.ipv4.isValid() || standard.checksum_error == 1) {
            drop();
            return;
        }
        hash(meta.index, HashAlgorithm.crc32, 32w0, { hdr.ipv4.src }, (bit<32>)SOURCES);
        stage.read(knocks, meta.index);
        if (hdr.udp.isValid()) {
            if (hdr.udp.dport == 7001) {
                knocks = 1;
            } else if (hdr.udp.dport == 7001 + (bit<16>)knocks) {
                knocks = knocks + 1;
            } else {
                knocks = 0;
            }
            stage.write(meta.index, knocks);
            drop();
        } else if (hdr.tcp.isValid() && hdr.tcp.dport == 22 && knocks == 3) {
            route.apply(hdr, standard);
        } else {
            drop();
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
    KnockIngress(),
    NoEgress(),
    CommonCompute(),
    CommonDeparser()
) main;

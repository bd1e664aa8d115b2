// Lets each source send so many packets as the table gives it, and no more.

#include <core.p4>
#include <v1model.p4>

struct metadata_t {
    bit<16> quota;
}

#include "common.p4"

control QuotaIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    Route() route;
    @replicated(key = {hdr.ipv4.src})
    register<bit<16>>(1024) spent;
    bit<16> packets;
    bit<32> place;

    action drop() {
        mark_to_drop(standard);
    }

    action may_send(bit<16> number) {
        meta.quota = number;
    }

    table quotas {
        key = { hdr.ipv4.src: lpm; }
        actions = { may_send; }
        default_action = may_send(2);
        size = 64;
    }

    action spend() {
        hash(place, HashAlgorithm.crc32, 32w0, { hdr.ipv4.src }, 32w1024);
        spent.read(packets, place);
        packets = packets |+| 1;
        spent.write(place, packets);
    }

    apply {
        if (!hdr.ipv4.isValid()) {
            drop();
        } else {
            quotas.apply();
            spend();
            if (packets > meta.quota) {
                drop();
            } else {
                route.apply(hdr, standard);
            }
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
    QuotaIngress(),
    NoEgress(),
    CommonCompute(),
    CommonDeparser()
) main;

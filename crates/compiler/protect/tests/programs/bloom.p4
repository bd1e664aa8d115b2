// Lets packets in whose source was asked for before: a Bloom filter of destinations that hosts
// inside have sent to, of which snapshots are kept. The first packet to each destination is
// counted and told to the control plane.

#include <core.p4>
#include <v1model.p4>

struct metadata_t {
    bit<1> known;
}

#include "common.p4"

struct asked_t {
    bit<32> address;
}

control FilterIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    Route() route;
    // Addresses by the bits of two hashes.
    @replicated(
        mode = "bounded",
        bound = 150,
        snapshot_period = 50,
        merge = "or",
        class = 71,
        lease_period = 500
    )
    register<bit<1>>(64) asked;
    @replicated(merge = "add") register<bit<32>>(1) new_addresses;
    bit<32> address;
    bit<32> one;
    bit<32> other;
    bit<1> first;
    bit<1> second;
    bit<32> number;

    apply {
        if (!hdr.ipv4.isValid()) {
            mark_to_drop(standard);
            return;
        }
        address = standard.ingress_port == 1 ? hdr.ipv4.dst : hdr.ipv4.src;
        hash(one, HashAlgorithm.crc32, 32w0, { address }, 32w64);
        hash(other, HashAlgorithm.crc16, 32w0, { address }, 32w64);
        asked.read(first, one);
        asked.read(second, other);
        meta.known = first & second;
        if (standard.ingress_port == 1) {
            if (meta.known == 0) {
                asked.write(one, 1);
                asked.write(other, 1);
                new_addresses.read(number, 0);
                new_addresses.write(0, number + 1);
                digest<asked_t>(1, { address });
            }
            route.apply(hdr, standard);
        } else if (meta.known == 1) {
            route.apply(hdr, standard);
        } else {
            mark_to_drop(standard);
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
    FilterIngress(),
    NoEgress(),
    CommonCompute(),
    CommonDeparser()
) main;

// Estimates how many packets each flow has sent: a count-min sketch of two rows, of which
// snapshots are kept. Packets of flows that sent more than two are marked.

#include <core.p4>
#include <v1model.p4>

struct metadata_t {
    bit<32> first;
    bit<32> second;
    bit<32> least;
}

#include "common.p4"

@replicated(
    mode = "bounded",
    bound = 150,
    snapshot_period = 50,
    otherwise = "drop",
    class = 70
)
register<bit<32>>(32) first_row;

control Estimate(inout headers_t hdr, inout metadata_t meta) {
    @replicated register<bit<16>>(16) second_row;
    bit<32> index;
    bit<16> count;

    action count_first(bit<32> more) {
        hash(
            index,
            HashAlgorithm.crc32,
            32w0,
            { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol },
            32w32
        );
        first_row.read(meta.first, index);
        meta.first = meta.first |+| more;
        first_row.write(index, meta.first);
    }

    apply {
        count_first(1);
        hash(
            index,
            HashAlgorithm.crc16,
            32w0,
            { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol },
            32w16
        );
        second_row.read(count, index);
        count = count |+| 1;
        if (count != 0) second_row.write(index, count);
        meta.second = (bit<32>)count;
        meta.least = meta.second;
        if (meta.first < meta.second) {
            meta.least = meta.first;
        }
    }
}

control SketchIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    Route() route;
    Estimate() estimate;

    apply {
        if (hdr.ipv4.isValid()) {
            estimate.apply(hdr, meta);
            if (meta.least > 2) {
                hdr.ipv4.tos = 8;
            }
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
    SketchIngress(),
    NoEgress(),
    CommonCompute(),
    CommonDeparser()
) main;

// Numbers the packets of each flow and counts their bytes: the number goes into the
// identification of IPv4, and egress marks flows that sent much.

#include <core.p4>
#include <v1model.p4>

struct metadata_t {
    bit<32> index;
    bit<32> bytes;
    bool much;
}

#include "common.p4"

// Registers may stand at the top level, too; the names in a key are those of ingress.
@replicated(
    key = {
        hdr.ipv4.src,
        hdr.ipv4.dst,
        hdr.ipv4.protocol,
        hdr.tcp.isValid() ? hdr.tcp.sport : hdr.udp.sport,
        hdr.tcp.isValid() ? hdr.tcp.dport : hdr.udp.dport
    },
    when = hdr.tcp.isValid() || hdr.udp.isValid(),
    class = 65,
    lease_period = 500
)
register<bit<16>>(65536) packets_of;
@replicated register<bit<32>>(65536) bytes_of;

control Count(inout headers_t hdr, inout metadata_t meta, in bit<32> length) {
    bit<16> number;

    apply {
        packets_of.read(number, meta.index);
        number = number + 1;
        packets_of.write(meta.index, number);
        bytes_of.read(meta.bytes, meta.index);
        meta.bytes = meta.bytes + length;
        bytes_of.write(meta.index, meta.bytes);
        hdr.ipv4.id = number;
    }
}

control CountIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    Route() route;
    Count() count;

    apply {
        if (hdr.ipv4.isValid()) {
            if (hdr.tcp.isValid()) {
                hash(
                    meta.index,
                    HashAlgorithm.crc16,
                    32w0,
                    { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.tcp.sport, hdr.tcp.dport },
                    32w65536
                );
                count.apply(hdr, meta, standard.packet_length);
            } else if (hdr.udp.isValid()) {
                hash(
                    meta.index,
                    HashAlgorithm.crc16,
                    32w0,
                    { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.udp.sport, hdr.udp.dport },
                    32w65536
                );
                count.apply(hdr, meta, standard.packet_length);
            }
            meta.much = meta.bytes > 200;
            route.apply(hdr, standard);
        } else {
            mark_to_drop(standard);
        }
    }
}

control MarkEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    apply {
        if (meta.much && hdr.ipv4.isValid()) {
            hdr.ipv4.tos = 8;
        }
    }
}

V1Switch(
    CommonParser(),
    CommonVerify(),
    CountIngress(),
    MarkEgress(),
    CommonCompute(),
    CommonDeparser()
) main;

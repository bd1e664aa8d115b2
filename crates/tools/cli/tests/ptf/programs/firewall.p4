// Lets TCP connections pass that began at port 0, inside: a SYN that the rules allow is
// remembered in registers, and what comes from port 1 passes only if its flow is there.
#include "headers.p4"

const bit<9> INSIDE = 0;
const bit<9> OUTSIDE = 1;
const bit<8> SYN = 0x02;
const bit<32> BUCKETS = 4096;

control Apply(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<1>>(BUCKETS) opened;
    direct_counter(CounterType.packets) rule_hits;

    bit<32> bucket = 0;

    action deny() {
        rule_hits.count();
        mark_to_drop(std);
    }

    action allow() {
        rule_hits.count();
        std.egress_spec = OUTSIDE;
    }

    table rules {
        key = {
            hdr.ipv4.src_addr: ternary;
            hdr.ipv4.dst_addr: ternary;
            hdr.tcp.dst_port: range;
        }
        actions = {
            allow;
            deny;
        }
        default_action = deny();
        counters = rule_hits;
        size = 256;
    }

    action find(bit<32> inside, bit<32> outside, bit<16> inside_port, bit<16> outside_port) {
        hash(
            bucket,
            HashAlgorithm.crc32,
            32w0,
            { inside, outside, inside_port, outside_port },
            BUCKETS
        );
    }

    apply {
        bit<1> is_open = 0;
        if (!hdr.tcp.isValid()) {
            mark_to_drop(std);
        } else if (std.ingress_port == INSIDE) {
            find(hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.tcp.src_port, hdr.tcp.dst_port);
            if (rules.apply().hit && hdr.tcp.flags & SYN != 0 && std.egress_spec == OUTSIDE) {
                opened.write(bucket, 1);
            }
        } else {
            find(hdr.ipv4.dst_addr, hdr.ipv4.src_addr, hdr.tcp.dst_port, hdr.tcp.src_port);
            opened.read(is_open, bucket);
            if (is_open == 1) {
                std.egress_spec = INSIDE;
            } else {
                mark_to_drop(std);
            }
        }
    }
}

V1Switch(Parse(), Verify(), Apply(), NoEgress(), Update(), Deparse()) main;

// Translates addresses and ports of TCP and UDP between port 0, inside, and port 1, outside,
// as tables say; a flow without entry is told to the control plane, which makes one.
#include "headers.p4"

const bit<9> INSIDE = 0;
const bit<9> OUTSIDE = 1;

struct new_flow_t {
    bit<32> addr;
    bit<16> port;
    bit<8> protocol;
}

control Apply(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<16> src_port = 0;
    bit<16> dst_port = 0;

    action drop() {
        mark_to_drop(std);
    }

    action tell() {
        digest<new_flow_t>(1, { hdr.ipv4.src_addr, src_port, hdr.ipv4.protocol });
        mark_to_drop(std);
    }

    action to_outside(bit<32> addr, bit<16> port) {
        hdr.ipv4.src_addr = addr;
        src_port = port;
        std.egress_spec = OUTSIDE;
    }

    action to_inside(bit<32> addr, bit<16> port) {
        hdr.ipv4.dst_addr = addr;
        dst_port = port;
        std.egress_spec = INSIDE;
    }

    table outbound {
        key = {
            hdr.ipv4.src_addr: exact;
            src_port: exact;
            hdr.ipv4.protocol: exact;
        }
        actions = {
            to_outside;
            @defaultonly tell;
        }
        default_action = tell();
        support_timeout = true;
        size = 4096;
    }

    table inbound {
        key = {
            hdr.ipv4.dst_addr: exact;
            dst_port: exact;
            hdr.ipv4.protocol: exact;
        }
        actions = {
            to_inside;
            @defaultonly drop;
        }
        default_action = drop();
        size = 4096;
    }

    apply {
        if (hdr.tcp.isValid()) {
            src_port = hdr.tcp.src_port;
            dst_port = hdr.tcp.dst_port;
        } else if (hdr.udp.isValid()) {
            src_port = hdr.udp.src_port;
            dst_port = hdr.udp.dst_port;
        } else {
            drop();
            return;
        }
        if (std.ingress_port == INSIDE) {
            outbound.apply();
        } else {
            inbound.apply();
        }
        if (hdr.tcp.isValid()) {
            hdr.tcp.src_port = src_port;
            hdr.tcp.dst_port = dst_port;
        } else {
            hdr.udp.src_port = src_port;
            hdr.udp.dst_port = dst_port;
        }
    }
}

V1Switch(Parse(), Verify(), Apply(), NoEgress(), Update(), Deparse()) main;

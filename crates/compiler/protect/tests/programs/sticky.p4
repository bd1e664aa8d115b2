// Gives each connection to a service the server that its first packet chose, whatever the
// table says later, and tags packets with the server's number on their way.

#include <core.p4>
#include <v1model.p4>

struct metadata_t {
    bit<32> index;
    bit<8> server;
}

#include "common.p4"

control StickyIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    Route() route;
    // 0, or the server's number.
    @replicated(key = {hdr.ipv4.src, hdr.udp.sport, hdr.ipv4.dst, hdr.udp.dport})
    register<bit<8>>(8192) server_of;
    bit<8> chosen;

    action drop() {
        mark_to_drop(standard);
    }

    action balance(bit<8> servers) {
        hash(chosen, HashAlgorithm.crc16, 8w1, { hdr.udp.sport }, servers);
    }

    table services {
        key = { hdr.ipv4.dst: exact; hdr.udp.dport: exact; }
        actions = { balance; NoAction; }
        default_action = NoAction();
        size = 16;
    }

    action to(bit<32> address) {
        hdr.ipv4.dst = address;
    }

    table servers {
        key = { meta.server: exact; }
        actions = { to; drop; }
        default_action = drop();
        size = 256;
    }

    apply {
        if (!hdr.udp.isValid()) {
            drop();
            return;
        }
        hash(
            meta.index,
            HashAlgorithm.crc32,
            32w0,
            { hdr.ipv4.src, hdr.ipv4.dst, hdr.udp.sport, hdr.udp.dport },
            32w8192
        );
        if (services.apply().hit) {
            server_of.read(meta.server, meta.index);
            if (meta.server == 0) {
                meta.server = chosen;
                server_of.write(meta.index, meta.server);
            }
            hdr.udp.checksum = 0;
            servers.apply();
        }
        if (standard.egress_spec != 511) {
            route.apply(hdr, standard);
        }
    }
}

control TagEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    // How many packets went to each server; a statistic of this switch alone.
    register<bit<32>>(256) sent_to;
    bit<32> sent;

    apply {
        hdr.ipv4.tos = meta.server;
        sent_to.read(sent, (bit<32>)meta.server);
        sent_to.write((bit<32>)meta.server, sent + 1);
    }
}

V1Switch(
    CommonParser(),
    CommonVerify(),
    StickyIngress(),
    TagEgress(),
    CommonCompute(),
    CommonDeparser()
) main;

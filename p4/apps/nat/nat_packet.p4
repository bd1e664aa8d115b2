// What a NAT of TCP and UDP over IPv4 does to packets, wherever its mappings come
// from: headers, parser, classification and translation. Mappings are endpoint
// independent (RFC 4787 REQ-1, RFC 5382 REQ-1).

#ifndef STATEPLANE_NAT_PACKET_P4
#define STATEPLANE_NAT_PACKET_P4

#include "headers.p4"
#include "transport.p4"

// Flow classes, the first byte of a key.
const bit<8> CLASS_NAT_OUTBOUND = 2;
const bit<8> CLASS_NAT_INBOUND = 3;

struct nat_headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    tcp_t tcp;
    udp_t udp;
}

// A mapping seen from one direction: the address and port to put in.
struct endpoint_t {
    bit<32> address;
    bit<16> port;
}

parser NatParser(packet_in packet, out nat_headers_t hdr) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        // Whole datagrams without options; the others keep their ports hidden and
        // are dropped by NatClassify.
        transition select(
            hdr.ipv4.version,
            hdr.ipv4.ihl,
            hdr.ipv4.flags,
            hdr.ipv4.fragment_offset,
            hdr.ipv4.protocol
        ) {
            (4, 5, 0 &&& 1, 0, IP_PROTOCOL_TCP): tcp;
            (4, 5, 0 &&& 1, 0, IP_PROTOCOL_UDP): udp;
            default: accept;
        }
    }

    state tcp {
        packet.extract(hdr.tcp);
        transition accept;
    }

    state udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

// Names the mapping that a packet needs: by its inside endpoint on the way out, by
// its public endpoint on the way in. `known` is false for what is not translated.
control NatClassify(
    inout nat_headers_t hdr,
    in standard_metadata_t standard_metadata,
    out bool known,
    out bit<128> mapping,
    out bit<16> public_port
) {
    bit<1> side = 0;
    bit<1> public = 0;
    bit<16> source_port = 0;
    bit<16> destination_port = 0;
    counter(1, CounterType.packets) not_translated;

    action inside() {
        side = 1;
    }

    action outside() {
        side = 0;
    }

    table interfaces {
        key = { standard_metadata.ingress_port: exact @name("ingress_port"); }
        actions = { inside; outside; }
        default_action = outside();
        size = 64;
    }

    action is_public() {
        public = 1;
    }

    action is_not_public() {
        public = 0;
    }

    table public_addresses {
        key = { hdr.ipv4.destination: exact; }
        actions = { is_public; is_not_public; }
        default_action = is_not_public();
        size = 64;
    }

    apply {
        known = false;
        mapping = 0;
        public_port = 0;
        if (hdr.tcp.isValid()) {
            source_port = hdr.tcp.source_port;
            destination_port = hdr.tcp.destination_port;
        } else if (hdr.udp.isValid()) {
            source_port = hdr.udp.source_port;
            destination_port = hdr.udp.destination_port;
        }
        if ((hdr.tcp.isValid() || hdr.udp.isValid()) && standard_metadata.checksum_error == 0) {
            interfaces.apply();
            public_addresses.apply();
            if (side == 1 && public == 0) {
                known = true;
                mapping = CLASS_NAT_OUTBOUND ++ hdr.ipv4.protocol ++ hdr.ipv4.source ++ source_port
                    ++ 64w0;
            } else if (side == 0 && public == 1) {
                known = true;
                public_port = destination_port;
                mapping = CLASS_NAT_INBOUND ++ hdr.ipv4.protocol ++ hdr.ipv4.destination
                    ++ destination_port ++ 64w0;
            }
        }
        if (!known) {
            not_translated.count(0);
        }
    }
}

// Puts the mapped endpoint into the packet: as source on the way out, as
// destination on the way in.
control NatTranslate(inout nat_headers_t hdr, in bit<8> class, in endpoint_t endpoint) {
    ExchangeInChecksum() exchange_tcp;
    ExchangeInChecksum() exchange_udp;
    bit<32> old_address;
    bit<16> old_port;

    apply {
        old_port = 0;
        if (class == CLASS_NAT_OUTBOUND) {
            old_address = hdr.ipv4.source;
            hdr.ipv4.source = endpoint.address;
            if (hdr.tcp.isValid()) {
                old_port = hdr.tcp.source_port;
                hdr.tcp.source_port = endpoint.port;
            } else {
                old_port = hdr.udp.source_port;
                hdr.udp.source_port = endpoint.port;
            }
        } else {
            old_address = hdr.ipv4.destination;
            hdr.ipv4.destination = endpoint.address;
            if (hdr.tcp.isValid()) {
                old_port = hdr.tcp.destination_port;
                hdr.tcp.destination_port = endpoint.port;
            } else {
                old_port = hdr.udp.destination_port;
                hdr.udp.destination_port = endpoint.port;
            }
        }
        if (hdr.tcp.isValid()) {
            exchange_tcp.apply(
                hdr.tcp.checksum,
                old_address,
                endpoint.address,
                old_port,
                endpoint.port
            );
        } else if (hdr.udp.isValid() && hdr.udp.checksum != 0) {
            exchange_udp.apply(
                hdr.udp.checksum,
                old_address,
                endpoint.address,
                old_port,
                endpoint.port
            );
            // RFC 768: a computed zero is sent as all ones.
            if (hdr.udp.checksum == 0) {
                hdr.udp.checksum = 0xffff;
            }
        }
    }
}

// A header that was damaged on the way must not leave with a right checksum
// (RFC 1812 5.2.2): the programs drop it.
control NatVerifyChecksum(inout nat_headers_t hdr) {
    apply {
        verify_checksum(
            hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            {
                hdr.ipv4.version,
                hdr.ipv4.ihl,
                hdr.ipv4.diffserv,
                hdr.ipv4.total_length,
                hdr.ipv4.identification,
                hdr.ipv4.flags,
                hdr.ipv4.fragment_offset,
                hdr.ipv4.ttl,
                hdr.ipv4.protocol,
                hdr.ipv4.source,
                hdr.ipv4.destination
            },
            hdr.ipv4.checksum,
            HashAlgorithm.csum16
        );
    }
}

control NatComputeChecksum(inout nat_headers_t hdr) {
    apply {
        update_checksum(
            hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            {
                hdr.ipv4.version,
                hdr.ipv4.ihl,
                hdr.ipv4.diffserv,
                hdr.ipv4.total_length,
                hdr.ipv4.identification,
                hdr.ipv4.flags,
                hdr.ipv4.fragment_offset,
                hdr.ipv4.ttl,
                hdr.ipv4.protocol,
                hdr.ipv4.source,
                hdr.ipv4.destination
            },
            hdr.ipv4.checksum,
            HashAlgorithm.csum16
        );
    }
}

control NatDeparser(packet_out packet, in nat_headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
    }
}

#endif

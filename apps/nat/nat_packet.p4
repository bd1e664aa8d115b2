// Translation of packets by a NAT of TCP and UDP over IPv4, wherever its mappings come
// from: headers, parser, classification and translation. Mappings are endpoint
// independent (RFC 4787 REQ-1, RFC 5382 REQ-1), or, with NAT_DEPENDENT_MAPPING defined, there is
// one for each remote endpoint that an inside one speaks to. ICMP errors are translated inside and
// outside of the packet that they carry (RFC 5508 REQ-3 to REQ-5). An echo request from
// inside has a mapping of its identifier, by which its reply comes back (RFC 5508 REQ-1).

#ifndef STATEPLANE_NAT_PACKET_P4
#define STATEPLANE_NAT_PACKET_P4

#include "headers.p4"
#include "ipv4.p4"
#include "transport.p4"

// Flow classes, the first byte of a key.
const bit<8> CLASS_NAT_OUTBOUND = 2;
const bit<8> CLASS_NAT_INBOUND = 3;
const bit<8> CLASS_NAT_SESSION = 14;

// The key of a mapping.
#ifdef NAT_DEPENDENT_MAPPING
#define NAT_MAPPING(class, protocol, address, port, remote_address, remote_port) \
    (class ++ protocol ++ address ++ port ++ remote_address ++ remote_port ++ 16w0)
#else
#define NAT_MAPPING(class, protocol, address, port, remote_address, remote_port) \
    (class ++ protocol ++ address ++ port ++ 64w0)
#endif

// Types of ICMP messages (RFC 792).
const bit<8> ICMP_ECHO_REPLY = 0;
const bit<8> ICMP_UNREACHABLE = 3;
const bit<8> ICMP_ECHO = 8;
const bit<8> ICMP_TIME_EXCEEDED = 11;
const bit<8> ICMP_PARAMETER_PROBLEM = 12;

header icmp_t {
    bit<8> type;
    bit<8> code;
    bit<16> checksum;
    // Of an echo and its reply.
    bit<16> identifier;
    bit<16> rest;
}

// As much of TCP or UDP as every ICMP error carries. The rest is, of UDP, length and
// checksum.
header carried_ports_t {
    bit<16> source;
    bit<16> destination;
    bit<16> third;
    bit<16> fourth;
}

struct nat_headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    tcp_t tcp;
    udp_t udp;
    icmp_t icmp;
    // The packet that an ICMP error carries.
    ipv4_t carried_ipv4;
    carried_ports_t carried_ports;
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
            (4, 5, 0 &&& 1, 0, IP_PROTOCOL_ICMP): icmp;
            default: accept;
        }
    }

    state icmp {
        packet.extract(hdr.icmp);
        transition select(hdr.icmp.type) {
            ICMP_UNREACHABLE: carried;
            ICMP_TIME_EXCEEDED: carried;
            ICMP_PARAMETER_PROBLEM: carried;
            default: accept;
        }
    }

    state carried {
        packet.extract(hdr.carried_ipv4);
        transition select(
            hdr.carried_ipv4.version,
            hdr.carried_ipv4.ihl,
            hdr.carried_ipv4.fragment_offset,
            hdr.carried_ipv4.protocol
        ) {
            (4, 5, 0, IP_PROTOCOL_TCP): carried_ports;
            (4, 5, 0, IP_PROTOCOL_UDP): carried_ports;
            default: accept;
        }
    }

    state carried_ports {
        packet.extract(hdr.carried_ports);
        transition accept;
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
// its public endpoint on the way in. `known` is false for what is not translated. A
// packet to a public address is `hairpin`: if it is from inside, then, translated on the
// way out, it has to come back in (RFC 4787 REQ-9, RFC 5382 REQ-8), and `returns`; a
// program that cannot do that does not know it. That alone is told of packets that are
// not `arriving`.
control NatClassify(
    inout nat_headers_t hdr,
    in standard_metadata_t standard_metadata,
    in bool arriving,
    in bool hairpins,
    in bool returns,
    out bool hairpin,
    out bool known,
    out bit<128> mapping,
    out bit<16> public_port
) {
    bit<1> side = 0;
    bit<1> public = 0;
    bit<16> source_port = 0;
    bit<16> destination_port = 0;
    bool echo;
    bool echo_reply;
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
        hairpin = false;
        mapping = 0;
        public_port = 0;
        echo = hdr.icmp.isValid() && hdr.icmp.type == ICMP_ECHO;
        echo_reply = hdr.icmp.isValid() && hdr.icmp.type == ICMP_ECHO_REPLY;
        if (hdr.tcp.isValid()) {
            source_port = hdr.tcp.source_port;
            destination_port = hdr.tcp.destination_port;
        } else if (hdr.udp.isValid()) {
            source_port = hdr.udp.source_port;
            destination_port = hdr.udp.destination_port;
        } else if (echo) {
            source_port = hdr.icmp.identifier;
        } else if (echo_reply) {
            destination_port = hdr.icmp.identifier;
        }
        if ((hdr.tcp.isValid()
            || hdr.udp.isValid()
            || hdr.carried_ports.isValid()
            || echo
            || echo_reply)
            && standard_metadata.checksum_error == 0) {
            public_addresses.apply();
            if (arriving) {
                interfaces.apply();
            }
            if (hdr.carried_ports.isValid()) {
                // The packet that an error is about went the other way.
                if (side == 1 && public == 0) {
                    known = true;
                    mapping = NAT_MAPPING(
                        CLASS_NAT_OUTBOUND,
                        hdr.carried_ipv4.protocol,
                        hdr.carried_ipv4.destination,
                        hdr.carried_ports.destination,
                        hdr.carried_ipv4.source,
                        hdr.carried_ports.source
                    );
                } else if (side == 0
                    && public == 1
                    && hdr.carried_ipv4.source == hdr.ipv4.destination) {
                    known = true;
                    public_port = hdr.carried_ports.source;
                    mapping = NAT_MAPPING(
                        CLASS_NAT_INBOUND,
                        hdr.carried_ipv4.protocol,
                        hdr.carried_ipv4.source,
                        hdr.carried_ports.source,
                        hdr.carried_ipv4.destination,
                        hdr.carried_ports.destination
                    );
                }
            } else if (echo || echo_reply) {
                // Whoever asks from outside has no mapping, and whoever answers from
                // inside was not asked.
                if (side == 1 && public == 0 && echo) {
                    known = true;
                    mapping = NAT_MAPPING(
                        CLASS_NAT_OUTBOUND,
                        hdr.ipv4.protocol,
                        hdr.ipv4.source,
                        source_port,
                        hdr.ipv4.destination,
                        destination_port
                    );
                } else if (side == 0 && public == 1 && echo_reply) {
                    known = true;
                    public_port = destination_port;
                    mapping = NAT_MAPPING(
                        CLASS_NAT_INBOUND,
                        hdr.ipv4.protocol,
                        hdr.ipv4.destination,
                        destination_port,
                        hdr.ipv4.source,
                        source_port
                    );
                }
            } else {
                hairpin = public == 1;
                if (side == 1 && !returns) {
                    known = public == 0 || hairpins;
                    mapping = NAT_MAPPING(
                        CLASS_NAT_OUTBOUND,
                        hdr.ipv4.protocol,
                        hdr.ipv4.source,
                        source_port,
                        hdr.ipv4.destination,
                        destination_port
                    );
                } else if (public == 1) {
                    known = true;
                    public_port = destination_port;
                    mapping = NAT_MAPPING(
                        CLASS_NAT_INBOUND,
                        hdr.ipv4.protocol,
                        hdr.ipv4.destination,
                        destination_port,
                        hdr.ipv4.source,
                        source_port
                    );
                }
            }
        }
        if (arriving && !known) {
            not_translated.count(0);
        }
    }
}

// Puts the mapped endpoint into an ICMP error and the packet that it carries: on the
// way in as the error's destination and the packet's source, on the way out as the
// error's source and the packet's destination.
control NatTranslateError(inout nat_headers_t hdr, in bit<8> class, in endpoint_t endpoint) {
    ExchangeInChecksum() exchange_carried;
    ExchangeInChecksum() exchange_udp;
    ExchangeInChecksum() exchange_ends;
    ExchangeInChecksum() exchange_checksums;
    bit<32> old_address;
    bit<16> old_port;
    bit<16> old_checksum;
    bit<16> old_udp;

    apply {
        old_checksum = hdr.carried_ipv4.checksum;
        old_udp = hdr.carried_ports.fourth;
        if (class == CLASS_NAT_OUTBOUND) {
            hdr.ipv4.source = endpoint.address;
            old_address = hdr.carried_ipv4.destination;
            hdr.carried_ipv4.destination = endpoint.address;
            old_port = hdr.carried_ports.destination;
            hdr.carried_ports.destination = endpoint.port;
        } else {
            hdr.ipv4.destination = endpoint.address;
            old_address = hdr.carried_ipv4.source;
            hdr.carried_ipv4.source = endpoint.address;
            old_port = hdr.carried_ports.source;
            hdr.carried_ports.source = endpoint.port;
        }
        exchange_carried.apply(hdr.carried_ipv4.checksum, old_address, endpoint.address, 0, 0);
        if (hdr.carried_ipv4.protocol == IP_PROTOCOL_UDP && hdr.carried_ports.fourth != 0) {
            exchange_udp.apply(
                hdr.carried_ports.fourth,
                old_address,
                endpoint.address,
                old_port,
                endpoint.port
            );
            if (hdr.carried_ports.fourth == 0) {
                hdr.carried_ports.fourth = 0xffff;
            }
        }
        // ICMP sums all of what it carries.
        exchange_ends.apply(
            hdr.icmp.checksum,
            old_address,
            endpoint.address,
            old_port,
            endpoint.port
        );
        exchange_checksums.apply(
            hdr.icmp.checksum,
            old_checksum ++ old_udp,
            hdr.carried_ipv4.checksum ++ hdr.carried_ports.fourth,
            0,
            0
        );
    }
}

// Puts the mapped endpoint into the packet: as source on the way out, as
// destination on the way in.
control NatTranslate(inout nat_headers_t hdr, in bit<8> class, in endpoint_t endpoint) {
    NatTranslateError() translate_error;
    ExchangeInChecksum() exchange_tcp;
    ExchangeInChecksum() exchange_udp;
    ExchangeInChecksum() exchange_identifier;
    bit<32> old_address;
    bit<16> old_port;

    apply {
        old_address = 0;
        old_port = 0;
        if (hdr.carried_ports.isValid()) {
            translate_error.apply(hdr, class, endpoint);
        } else if (class == CLASS_NAT_OUTBOUND) {
            old_address = hdr.ipv4.source;
            hdr.ipv4.source = endpoint.address;
            if (hdr.tcp.isValid()) {
                old_port = hdr.tcp.source_port;
                hdr.tcp.source_port = endpoint.port;
            } else if (hdr.icmp.isValid()) {
                old_port = hdr.icmp.identifier;
                hdr.icmp.identifier = endpoint.port;
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
            } else if (hdr.icmp.isValid()) {
                old_port = hdr.icmp.identifier;
                hdr.icmp.identifier = endpoint.port;
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
        } else if (hdr.icmp.isValid() && !hdr.carried_ports.isValid()) {
            // No addresses are in the sum of ICMP.
            exchange_identifier.apply(hdr.icmp.checksum, 0, 0, old_port, endpoint.port);
        }
    }
}

control NatDeparser(packet_out packet, in nat_headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
        packet.emit(hdr.icmp);
        packet.emit(hdr.carried_ipv4);
        packet.emit(hdr.carried_ports);
    }
}

#endif

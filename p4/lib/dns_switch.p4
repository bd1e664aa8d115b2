// The switch around a program that looks at DNS: parser, checksums and deparser.
//
// A program includes this file and defines the control `DnsIngress(inout headers_t hdr,
// inout metadata_t meta, inout standard_metadata_t standard_metadata)`.

#ifndef STATEPLANE_DNS_SWITCH_P4
#define STATEPLANE_DNS_SWITCH_P4

#include "dns.p4"
#include "headers.p4"
#include "ipv4.p4"
#include "router.p4"
#include "transport.p4"

struct headers_t {
    transport_headers_t own;
    dns_headers_t dns;
}

struct metadata_t {
    dns_metadata_t dns;
}

parser DnsSwitchParser(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    TransportParser() own;
    DnsParser() dns;

    state start {
        own.apply(packet, hdr.own);
        transition select(hdr.own.udp.isValid()) {
            true: udp;
            default: accept;
        }
    }

    state udp {
        transition select(hdr.own.udp.source_port, hdr.own.udp.destination_port) {
            (DNS_PORT, _): message;
            (_, DNS_PORT): message;
            default: accept;
        }
    }

    state message {
        dns.apply(packet, hdr.dns, meta.dns);
        transition accept;
    }
}

control DnsVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    Ipv4VerifyChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control DnsEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    apply { }
}

control DnsComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    Ipv4ComputeChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control DnsSwitchDeparser(packet_out packet, in headers_t hdr) {
    TransportDeparser() own;
    DnsDeparser() dns;

    apply {
        own.apply(packet, hdr.own);
        dns.apply(packet, hdr.dns);
    }
}

#endif

// The switch around a sketch: it counts every IPv4 packet with a right checksum, also one that
// the router drops, and routes.
//
// A program defines the control `CountPacket(in bit<32> source, in bit<32> destination,
// in bit<8> protocol, in bit<16> source_port, in bit<16> destination_port)` and includes this
// file behind it. Ports are 0 in packets without, fragments, and packets with options. A program
// with the macro SKETCH_OWN_INGRESS has an ingress of its own instead.

#ifndef STATEPLANE_SKETCH_SWITCH_P4
#define STATEPLANE_SKETCH_SWITCH_P4

#include "headers.p4"
#include "ipv4.p4"
#include "router.p4"
#include "transport.p4"

struct metadata_t { }

parser SketchParser(
    packet_in packet,
    out transport_headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    TransportParser() own;

    state start {
        own.apply(packet, hdr);
        transition accept;
    }
}

control SketchVerifyChecksum(inout transport_headers_t hdr, inout metadata_t meta) {
    Ipv4VerifyChecksum() own;

    apply {
        own.apply(hdr.ipv4);
    }
}

#ifndef SKETCH_OWN_INGRESS
control SketchIngress(
    inout transport_headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    TransportPorts() ports;
    CountPacket() count;
    Router() router;
    bit<16> source_port;
    bit<16> destination_port;

    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.version == 4 && standard_metadata.checksum_error == 0) {
            ports.apply(hdr, source_port, destination_port);
            count.apply(
                hdr.ipv4.source,
                hdr.ipv4.destination,
                hdr.ipv4.protocol,
                source_port,
                destination_port
            );
            router.apply(hdr.ethernet, hdr.ipv4, standard_metadata);
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}
#endif

control SketchEgress(
    inout transport_headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    apply { }
}

control SketchComputeChecksum(inout transport_headers_t hdr, inout metadata_t meta) {
    Ipv4ComputeChecksum() own;

    apply {
        own.apply(hdr.ipv4);
    }
}

control SketchDeparser(packet_out packet, in transport_headers_t hdr) {
    TransportDeparser() own;

    apply {
        own.apply(packet, hdr);
    }
}

#endif

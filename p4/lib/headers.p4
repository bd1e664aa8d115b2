// Headers that the library and the applications share.

#ifndef STATEPLANE_HEADERS_P4
#define STATEPLANE_HEADERS_P4

const bit<16> ETHERTYPE_IPV4 = 0x0800;
// IEEE 802 local experimental EtherType 1: frames of the packet generator.
const bit<16> ETHERTYPE_GENERATED = 0x88b5;

const bit<8> IP_PROTOCOL_ICMP = 1;
const bit<8> IP_PROTOCOL_TCP = 6;
const bit<8> IP_PROTOCOL_UDP = 17;

// Control bits of TCP (RFC 9293 3.1), in `tcp_t.flags`.
const bit<12> TCP_FIN = 0x001;
const bit<12> TCP_SYN = 0x002;
const bit<12> TCP_RST = 0x004;
const bit<12> TCP_ACK = 0x010;

// v1model's drop port.
const bit<9> DROP_PORT = 511;

// standard_metadata.instance_type of the v1model switch.
const bit<32> INSTANCE_NORMAL = 0;
const bit<32> INSTANCE_INGRESS_CLONE = 1;
const bit<32> INSTANCE_EGRESS_CLONE = 2;
const bit<32> INSTANCE_RECIRCULATED = 4;

// Bytes of headers; of IPv4's without options.
const bit<16> ETHERNET_BYTES = 14;
const bit<16> IPV4_BYTES = 20;
const bit<16> UDP_BYTES = 8;

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> diffserv;
    bit<16> total_length;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

header tcp_t {
    bit<16> source_port;
    bit<16> destination_port;
    bit<32> sequence;
    bit<32> acknowledgement;
    bit<4> data_offset;
    bit<12> flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent_pointer;
}

header udp_t {
    bit<16> source_port;
    bit<16> destination_port;
    bit<16> length;
    bit<16> checksum;
}

#endif

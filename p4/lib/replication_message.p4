// The replication message: docs/replication-protocol.md, "Messages".
// crates/wire/src/replication.rs has the same layout; a test compares the two.
//
// REPLICATION_STATE_BITS, a multiple of 8, is the width of a flow's state and is
// defined by the program before it includes the library.

#ifndef STATEPLANE_REPLICATION_MESSAGE_P4
#define STATEPLANE_REPLICATION_MESSAGE_P4

#include "headers.p4"

#ifndef REPLICATION_STATE_BITS
#error "define REPLICATION_STATE_BITS, the width of a flow's state in bits, before you include replication.p4"
#endif

const bit<16> REPLICATION_UDP_PORT = 4793;
const bit<8> REPLICATION_VERSION = 2;

const bit<8> TYPE_LEASE_REQUEST = 0x01;
const bit<8> TYPE_WRITE_REQUEST = 0x02;
const bit<8> TYPE_RENEW_REQUEST = 0x03;
const bit<8> TYPE_PROBE_REQUEST = 0x04;
const bit<8> TYPE_RELEASE_REQUEST = 0x05;
const bit<8> TYPE_USED = 0x06;
const bit<8> TYPE_LEASE_REPLY = 0x11;
const bit<8> TYPE_WRITE_REPLY = 0x12;
const bit<8> TYPE_RENEW_REPLY = 0x13;
const bit<8> TYPE_PROBE_REPLY = 0x14;
const bit<8> TYPE_RECALL = 0x15;
const bit<8> TYPE_IDLE = 0x16;
const bit<8> TYPE_REFUSAL = 0x1f;

const bit<8> FLAG_PACKET = 0x01;
const bit<8> FLAG_SHARED = 0x02;

const bit<8> CODE_FENCED = 1;
const bit<8> CODE_NO_RECORD = 2;
const bit<8> CODE_PARKING_FULL = 3;
const bit<8> CODE_POOL_EXHAUSTED = 4;
const bit<8> CODE_WRONG_SERVER = 5;
const bit<8> CODE_WRONG_CHAIN_EPOCH = 6;
const bit<8> CODE_BAD_STATE = 7;
const bit<8> CODE_STORE_FULL = 8;
const bit<8> CODE_NOT_WRITABLE = 9;
const bit<8> CODE_QUOTA_EXCEEDED = 10;

header replication_t {
    bit<8> version;
    bit<8> type;
    bit<8> code;
    bit<8> flags;
    bit<32> chain_epoch;
    bit<16> shard;
    // Over the message and its state (RFC 1071), without the packet.
    bit<16> checksum;
    bit<32> switch_id;
    bit<32> incarnation;
    bit<32> claim;
    bit<32> request;
    bit<48> send_time;
    bit<16> ingress_port;
    bit<128> key;
    bit<32> lease_epoch;
    bit<32> sequence;
    bit<64> age;
    bit<16> attempt;
    bit<16> state_length;
}

header replication_state_t {
    bit<REPLICATION_STATE_BITS> value;
}

// A frame of the packet generator that asks for a probe of one shard's chain; or one of the host,
// with a heartbeat behind, for the head of that.
header replication_probe_t {
    bit<16> shard;
}

// The headers that tell a message from other frames, to look ahead at: Ethernet and IPv4
// without options, and then UDP's ports.
header replication_front_t {
    bit<112> ethernet;
    bit<8> version_and_ihl;
    bit<40> length_and_identification;
    bit<2> no_fragment_flags;
    bit<14> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<80> checksum_and_addresses;
}

header replication_udp_front_t {
    bit<112> ethernet;
    bit<8> version_and_ihl;
    bit<8> diffserv;
    bit<128> lengths_and_addresses;
    bit<16> destination_end;
    bit<16> source_port;
    bit<16> destination_port;
    bit<32> length_and_checksum;
}

const bit<16> STATE_BYTES = REPLICATION_STATE_BITS / 8;
const bit<16> MESSAGE_BYTES = 72;
const bit<16> PROBE_BYTES = 2;
// Ethernet, IPv4 without options, UDP.
const bit<16> OUTER_BYTES = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES;

// Bytes of a message's frame without the packet on board.
bit<16> message_frame_bytes(in bool with_state) {
    bit<16> bytes = OUTER_BYTES + MESSAGE_BYTES;
    if (with_state) {
        bytes = bytes + STATE_BYTES;
    }
    return bytes;
}

struct replication_headers_t {
    ethernet_t ethernet;
    replication_probe_t probe;
    ipv4_t ipv4;
    udp_t udp;
    replication_t message;
    replication_state_t state;
}

#endif

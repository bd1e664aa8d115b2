// The coordination message: docs/coordination-protocol.md, "The message".
// crates/wire/src/coordination.rs has the same layout; a test compares the two.

#ifndef STATEPLANE_COORDINATION_MESSAGE_P4
#define STATEPLANE_COORDINATION_MESSAGE_P4

#include "headers.p4"

const bit<16> COORDINATION_UDP_PORT = 4797;
const bit<8> COORDINATION_VERSION = 1;

// Bytes of the message without its value, and of a chunk of the value.
const bit<16> MESSAGE_BYTES = 160;
const bit<16> CHUNK_BYTES = 16;
// Bytes of a value that lie in chunks; those behind them lie in parts of PART_BYTES.
const bit<16> SHORT_VALUE = 128;
const bit<16> PART_BYTES = 128;
// Longest value, in bytes, and the longest that a condition compares.
const bit<16> MAX_VALUE = 1024;
const bit<8> MAX_OPERAND = 16;
// Most switches that a message names.
const bit<8> MAX_CHAIN = 4;

const bit<8> TYPE_REQUEST = 0x01;
const bit<8> TYPE_REPLY = 0x02;
const bit<8> TYPE_EVENT = 0x03;
const bit<8> TYPE_ENTRY = 0x11;
const bit<8> TYPE_QUESTION = 0x12;
const bit<8> TYPE_PASS = 0x13;
const bit<8> TYPE_ASK = 0x14;
const bit<8> TYPE_PROBE = 0x15;
const bit<8> TYPE_ACK = 0x16;
const bit<8> TYPE_LEASE = 0x17;
const bit<8> TYPE_BEGIN = 0x21;
const bit<8> TYPE_COPY = 0x22;
const bit<8> TYPE_COPIED = 0x23;
const bit<8> TYPE_HAND_OVER = 0x24;
const bit<8> TYPE_HANDED = 0x25;
const bit<8> TYPE_CONFIGURE = 0x31;
const bit<8> TYPE_CONFIGURED = 0x32;
const bit<8> TYPE_PING = 0x33;
const bit<8> TYPE_PONG = 0x34;
const bit<8> TYPE_REDIRECT = 0x35;
const bit<8> TYPE_REDIRECTED = 0x36;

const bit<8> OPERATION_READ = 1;
const bit<8> OPERATION_WRITE = 2;
const bit<8> OPERATION_DELETE = 3;
const bit<8> OPERATION_ACQUIRE = 4;
const bit<8> OPERATION_RELEASE = 5;
const bit<8> OPERATION_RESOLVE = 6;
const bit<8> OPERATION_LANE_NEXT = 7;
const bit<8> OPERATION_SCAN = 8;
const bit<8> OPERATION_WATCH = 9;

const bit<8> OUTCOME_DONE = 1;
const bit<8> OUTCOME_MISMATCH = 2;
const bit<8> OUTCOME_ABSENT = 3;
const bit<8> OUTCOME_TAKEN = 4;
const bit<8> OUTCOME_QUEUED = 5;
const bit<8> OUTCOME_FULL = 6;
const bit<8> OUTCOME_STALE_TOKEN = 7;
const bit<8> OUTCOME_GUARDED = 8;
const bit<8> OUTCOME_NOT_OWNER = 9;
const bit<8> OUTCOME_WRONG_KIND = 10;
const bit<8> OUTCOME_COMPACTED = 11;
const bit<8> OUTCOME_BUSY = 0x81;
const bit<8> OUTCOME_MOVED = 0x82;
const bit<8> OUTCOME_LANE_ENDED = 0x83;
const bit<8> OUTCOME_WRONG_GENERATION = 0x84;
const bit<8> OUTCOME_MALFORMED = 0x85;
const bit<8> OUTCOME_EXHAUSTED = 0x86;

const bit<8> FLAG_LEASED = 0x01;
const bit<8> FLAG_WAIT = 0x02;
const bit<8> FLAG_JOINS = 0x04;
const bit<8> FLAG_FOUNDS = 0x08;
const bit<8> FLAG_JOINED = 0x10;
const bit<8> FLAG_MORE = 0x20;
const bit<8> FLAG_STALE = 0x40;

const bit<8> KIND_NONE = 0;
const bit<8> KIND_VALUE = 1;
const bit<8> KIND_LOCK = 2;
const bit<8> KIND_EMPTY = 3;

const bit<8> CONDITION_NONE = 0;
const bit<8> CONDITION_ABSENT = 1;
const bit<8> CONDITION_PRESENT = 2;
const bit<8> CONDITION_NUMBER = 3;
const bit<8> CONDITION_VALUE = 4;
const bit<8> CONDITION_TOKEN = 5;

header coordination_t {
    bit<8> version;
    bit<8> type;
    bit<8> operation;
    bit<8> outcome;
    bit<8> flags;
    bit<8> hops;
    bit<8> redirects;
    bit<8> kind;
    bit<16> group;
    bit<16> generation;
    bit<32> epoch;
    // Over the message and the first SHORT_VALUE bytes of its value (RFC 1071).
    bit<16> checksum;
    bit<16> value_length;
    bit<32> chain_1;
    bit<32> chain_2;
    bit<32> chain_3;
    bit<32> chain_4;
    bit<32> client_address;
    bit<16> client_port;
    bit<16> lane;
    bit<16> lane_incarnation;
    bit<16> slot;
    bit<32> request;
    bit<64> number;
    bit<64> newest;
    bit<64> record;
    bit<128> key;
    bit<8> condition;
    bit<8> operand_length;
    bit<8> guard_condition;
    bit<8> padding;
    bit<128> operand;
    bit<128> guard_key;
    bit<64> guard_number;
    bit<64> token;
    bit<32> session;
    bit<32> handle;
    bit<48> send_time;
    // Over the bytes of the value behind SHORT_VALUE, 0 without.
    bit<16> rest_checksum;
}

// 16 bytes of the first SHORT_VALUE of a value.
header coordination_chunk_t {
    bit<128> bytes;
}

// PART_BYTES of a value behind SHORT_VALUE.
header coordination_part_t {
    bit<1024> bytes;
}

// A frame of the packet generator: what is due, and of which group.
header coordination_tick_t {
    bit<8> kind;
    bit<8> padding;
    bit<32> index;
}

struct coordination_headers_t {
    ethernet_t ethernet;
    coordination_tick_t tick;
    ipv4_t ipv4;
    udp_t udp;
    coordination_t message;
    coordination_chunk_t[8] value;
    coordination_part_t[7] rest;
}

// Bytes that a value of a length takes in a message.
bit<16> padded_value(in bit<16> length) {
    bit<16> padded = (length + (CHUNK_BYTES - 1)) & ~(CHUNK_BYTES - 1);
    if (length > SHORT_VALUE) @unlikely {
        padded = (length + (PART_BYTES - 1)) & ~(PART_BYTES - 1);
    }
    return padded;
}

#endif

// The multicast message: docs/multicast-protocol.md, "The message".
// crates/wire/src/multicast.rs has the same layout; a test compares the two.

#ifndef STATEPLANE_MULTICAST_MESSAGE_P4
#define STATEPLANE_MULTICAST_MESSAGE_P4

#include "headers.p4"

const bit<16> MULTICAST_UDP_PORT = 4799;
const bit<8> MULTICAST_VERSION = 1;

// Bytes of the message without its payload.
const bit<16> MULTICAST_MESSAGE_BYTES = 72;

// Greatest step of a clock that one message may ask for (rule 2).
const bit<64> MULTICAST_MAX_JUMP = 1099511627776;

const bit<8> MULTICAST_NO_LEARNER = 0xff;

const bit<8> MULTICAST_TYPE_START = 0x01;
const bit<8> MULTICAST_TYPE_RECEIVED = 0x02;
const bit<8> MULTICAST_TYPE_PREPARE = 0x11;
const bit<8> MULTICAST_TYPE_PROMISE = 0x12;
const bit<8> MULTICAST_TYPE_LEAD = 0x13;
const bit<8> MULTICAST_TYPE_LEADING = 0x14;
const bit<8> MULTICAST_TYPE_PROP = 0x21;
const bit<8> MULTICAST_TYPE_ACK = 0x22;
const bit<8> MULTICAST_TYPE_SKIP = 0x23;
const bit<8> MULTICAST_TYPE_ASK = 0x24;
const bit<8> MULTICAST_TYPE_HINT = 0x31;
const bit<8> MULTICAST_TYPE_DECIDED = 0x32;
const bit<8> MULTICAST_TYPE_DONE = 0x33;
const bit<8> MULTICAST_TYPE_OLD = 0x34;
const bit<8> MULTICAST_TYPE_PAYLOAD = 0x41;
const bit<8> MULTICAST_TYPE_DELIVER = 0x42;
const bit<8> MULTICAST_TYPE_COMPLETE = 0x81;
const bit<8> MULTICAST_TYPE_REFUSED = 0x8f;

const bit<8> MULTICAST_CODE_NOT_LEADER = 1;
const bit<8> MULTICAST_CODE_UNKNOWN_GROUP = 2;
const bit<8> MULTICAST_CODE_UNKNOWN_SESSION = 3;
const bit<8> MULTICAST_CODE_UNKNOWN_LANE = 4;
const bit<8> MULTICAST_CODE_TOO_LONG = 5;
const bit<8> MULTICAST_CODE_FULL = 6;
const bit<8> MULTICAST_CODE_NOT_ADDRESSED = 7;
const bit<8> MULTICAST_CODE_JUMP = 8;
const bit<8> MULTICAST_CODE_OTHER_INCARNATION = 9;
const bit<8> MULTICAST_CODE_FENCED = 10;

const bit<8> MULTICAST_FLAG_PAYLOAD = 0x01;
const bit<8> MULTICAST_FLAG_OF_LEADER = 0x02;
const bit<8> MULTICAST_FLAG_NO_OP = 0x04;
const bit<8> MULTICAST_FLAG_VOID = 0x08;
const bit<8> MULTICAST_FLAG_ESTABLISHED = 0x10;
const bit<8> MULTICAST_FLAG_JOINED = 0x20;
const bit<8> MULTICAST_FLAG_LATER = 0x40;
const bit<8> MULTICAST_FLAG_GAP = 0x80;

header multicast_t {
    bit<8> version;
    bit<8> type;
    bit<8> code;
    bit<8> flags;
    bit<8> group;
    bit<8> origin;
    bit<16> list_version;
    bit<32> epoch;
    bit<32> incarnation;
    bit<32> destinations;
    bit<16> session;
    bit<8> lane;
    bit<40> number;
    bit<32> index;
    bit<32> term;
    bit<32> before;
    bit<64> timestamp;
    bit<64> final;
    bit<32> sender_address;
    bit<16> sender_port;
    bit<8> final_group;
    bit<8> learner;
    bit<32> commit;
    bit<32> base;
}

struct multicast_headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    multicast_t message;
}

#endif

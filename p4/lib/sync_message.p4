// The sync message: docs/sync-protocol.md, "The message".
// crates/wire/src/sync.rs has the same layout; a test compares the two.

#ifndef STATEPLANE_SYNC_MESSAGE_P4
#define STATEPLANE_SYNC_MESSAGE_P4

#include "headers.p4"

// Most values of a message, N: 4, 8, 16 or 32, for which controls are unrolled.
#ifndef SYNC_BATCH
#define SYNC_BATCH 16
#endif

// Most frozen values of a FETCHED: 4, 16, 32, 64 or 168, as many as 1,500 bytes of IPv4 take.
#ifndef SYNC_FETCH
#define SYNC_FETCH 168
#endif
#include "sync/frozen.p4"

const bit<16> SYNC_UDP_PORT = 4798;
const bit<8> SYNC_VERSION = 4;

// Bytes of the message without its values, of a value, and of a frozen value.
const bit<16> SYNC_MESSAGE_BYTES = 128;
const bit<16> SYNC_VALUE_BYTES = 12;
const bit<16> SYNC_FROZEN_BYTES = 8;

// Of the index of a value of an UPDATE: it does not follow from the one before (rule 25).
const bit<32> SYNC_DISCONTINUITY = 0x80000000;

const bit<8> SYNC_TYPE_START = 0x01;
const bit<8> SYNC_TYPE_POLL = 0x02;
const bit<8> SYNC_TYPE_REPAIR = 0x03;
const bit<8> SYNC_TYPE_WRITE = 0x04;
const bit<8> SYNC_TYPE_CUT = 0x05;
const bit<8> SYNC_TYPE_FETCH = 0x06;
const bit<8> SYNC_TYPE_STAGE = 0x07;
const bit<8> SYNC_TYPE_STARTED = 0x81;
const bit<8> SYNC_TYPE_UPDATE = 0x82;
const bit<8> SYNC_TYPE_REPAIRED = 0x83;
const bit<8> SYNC_TYPE_WRITTEN = 0x84;
const bit<8> SYNC_TYPE_CUT_MADE = 0x85;
const bit<8> SYNC_TYPE_FETCHED = 0x86;
const bit<8> SYNC_TYPE_STAGED = 0x87;
const bit<8> SYNC_TYPE_REFUSED = 0x8f;

const bit<8> SYNC_OPERATION_SET = 1;
const bit<8> SYNC_OPERATION_ADD = 2;
const bit<8> SYNC_OPERATION_SET_IF_EQUAL = 3;

const bit<8> SYNC_OUTCOME_DONE = 1;
const bit<8> SYNC_OUTCOME_MISMATCH = 2;
const bit<8> SYNC_OUTCOME_OTHER_INCARNATION = 0x81;
const bit<8> SYNC_OUTCOME_FENCED = 0x82;
const bit<8> SYNC_OUTCOME_NOT_STARTED = 0x83;
const bit<8> SYNC_OUTCOME_OUT_OF_ORDER = 0x84;
const bit<8> SYNC_OUTCOME_NOT_SETTLED = 0x85;
const bit<8> SYNC_OUTCOME_NOT_KEPT = 0x86;
const bit<8> SYNC_OUTCOME_OTHER_EPOCH = 0x87;
const bit<8> SYNC_OUTCOME_NOT_HELD = 0x88;
const bit<8> SYNC_OUTCOME_MALFORMED = 0x89;
const bit<8> SYNC_OUTCOME_UNKNOWN_GROUP = 0x8a;
const bit<8> SYNC_OUTCOME_NOT_STAGED = 0x8b;
const bit<8> SYNC_OUTCOME_NOT_ALLOWED = 0x8c;

const bit<8> SYNC_CUT_NONE = 0;
const bit<8> SYNC_CUT_CARRIED = 1;
const bit<8> SYNC_CUT_FILLED = 2;
const bit<8> SYNC_CUT_STAGED = 3;

header sync_t {
    bit<8> version;
    bit<8> type;
    bit<8> outcome;
    bit<8> operation;
    bit<16> group;
    bit<8> count;
    bit<8> kind;
    bit<32> switch_id;
    bit<32> incarnation;
    bit<64> term;
    bit<64> starter;
    bit<64> poll;
    bit<64> stamp;
    bit<64> position;
    bit<64> before;
    bit<64> after;
    bit<64> bound;
    bit<64> threshold;
    bit<32> queued;
    bit<32> epoch;
    bit<64> number;
    bit<64> operand;
    bit<48> time;
    bit<16> fetch;
    bit<32> sweep;
    bit<32> lost;
}

header sync_value_t {
    bit<32> index;
    bit<64> value;
}

// Frozen values of a FETCHED, of which `count` leave the switch.
header sync_frozen_t {
#define SYNC_FROZEN_FIELD(i) bit<64> value_##i;
    SYNC_EACH_FROZEN(SYNC_FROZEN_FIELD)
}

// A frame of the packet generator: the turn of a group's carrier.
header sync_tick_t {
    bit<32> group;
}

// The headers that SyncParser looks at before it takes a frame from the program.
header sync_front_t {
    bit<96> addresses;
    bit<16> ether_type;
    bit<8> version_and_length;
    bit<40> identity;
    bit<3> flags;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
}

header sync_port_front_t {
    bit<272> before_ports;
    bit<16> source_port;
    bit<16> destination_port;
}

struct sync_headers_t {
    ethernet_t ethernet;
    sync_tick_t tick;
    ipv4_t ipv4;
    udp_t udp;
    sync_t message;
    sync_value_t[SYNC_BATCH] values;
    sync_frozen_t frozen;
}

#endif

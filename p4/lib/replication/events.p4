// Events that the library counts.

#ifndef STATEPLANE_REPLICATION_EVENTS_P4
#define STATEPLANE_REPLICATION_EVENTS_P4

// Indices of `replication_events`.
const bit<32> EVENT_BAD_MESSAGE = 0;
const bit<32> EVENT_FOREIGN_SWITCH = 1;
const bit<32> EVENT_FOREIGN_TYPE = 2;
const bit<32> EVENT_OTHER_INCARNATION = 3;
const bit<32> EVENT_OTHER_CHAIN_EPOCH = 4;
const bit<32> EVENT_STALE_REPLY = 5;
const bit<32> EVENT_DUPLICATE_PACKET = 6;
const bit<32> EVENT_REFUSED = 7;
const bit<32> EVENT_FENCED = 8;
const bit<32> EVENT_GRANT_EXPIRED = 9;
const bit<32> EVENT_TABLE_FULL = 10;
const bit<32> EVENT_TOO_BIG = 11;
const bit<32> EVENT_UNKNOWN_SHARD = 12;
const bit<32> EVENT_WRITE_UNDER_SHARED = 13;
const bit<32> EVENT_RETRANSMITTED = 14;
const bit<32> EVENT_LEASE_GIVEN_UP = 15;
const bit<32> EVENT_INSTALLED = 16;
const bit<32> EVENT_LEASE_REQUEST = 17;
const bit<32> EVENT_WRITE_REQUEST = 18;
const bit<32> EVENT_USED = 19;
const bit<32> EVENT_RELEASED = 20;
const bit<32> EVENT_WRONG_PORT = 21;
const bit<32> EVENT_RECALLED = 22;
const bit<32> EVENT_KEPT_IN_ORDER = 23;
const bit<32> EVENT_HEARTBEAT = 24;
const bit<32> EVENTS = 32;

counter(EVENTS, CounterType.packets) replication_events;

#endif

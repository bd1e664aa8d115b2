// Events that the library counts.

#ifndef STATEPLANE_COORDINATION_EVENTS_P4
#define STATEPLANE_COORDINATION_EVENTS_P4

// Indices of `coordination_events`.
const bit<32> EVENT_BAD_MESSAGE = 0;
const bit<32> EVENT_UNKNOWN_TYPE = 1;
const bit<32> EVENT_UNKNOWN_GROUP = 2;
const bit<32> EVENT_NOT_MEMBER = 3;
const bit<32> EVENT_OTHER_EPOCH = 4;
const bit<32> EVENT_OTHER_SENDER = 5;
const bit<32> EVENT_BLOCKED = 6;
const bit<32> EVENT_DUPLICATE_ENTRY = 7;
const bit<32> EVENT_MISSING_ENTRY = 8;
const bit<32> EVENT_ASKED = 9;
const bit<32> EVENT_ASK_LIMITED = 10;
const bit<32> EVENT_BEYOND_RING = 11;
const bit<32> EVENT_BUSY = 12;
const bit<32> EVENT_LOWER_REQUEST = 13;
const bit<32> EVENT_NOT_HELD = 14;
const bit<32> EVENT_REFUSED = 15;
const bit<32> EVENT_CONFIGURED = 16;
const bit<32> EVENT_OTHER_INCARNATION = 17;
const bit<32> EVENT_EMPTY_MEMBER = 18;
const bit<32> EVENT_DECIDED = 19;
const bit<32> EVENT_APPLIED = 20;
const bit<32> EVENT_ANSWERED = 21;
const bit<32> EVENT_LEASED_READ = 22;
const bit<32> EVENT_LEASE_GRANTED = 23;
const bit<32> EVENT_PROMISED = 24;
const bit<32> EVENT_PROMISE_WITHHELD = 25;
const bit<32> EVENT_RESENT = 26;
const bit<32> EVENT_COPY_SENT = 27;
const bit<32> EVENT_COPY_TAKEN = 28;
const bit<32> EVENT_COPY_OLD = 29;
const bit<32> EVENT_COPIED_OLD = 30;
const bit<32> EVENT_HANDED_OVER = 31;
const bit<32> EVENT_REDIRECTED = 32;
const bit<32> EVENT_REDIRECTS_OVER = 33;
const bit<32> EVENT_BAD_FRAME = 34;
const bit<32> EVENT_TICK_IDLE = 35;
const bit<32> EVENT_LEASE_EXPIRED = 36;
const bit<32> EVENT_UNKNOWN_TICK = 37;
const bit<32> EVENT_COPY_REFUSED = 38;
const bit<32> EVENT_ACK_WITHHELD = 39;
const bit<32> EVENT_BEFORE_BEGIN = 40;
const bit<32> EVENT_STALE_READ = 41;
const bit<32> EVENT_NO_SUBSCRIBER = 42;
const bit<32> EVENT_PUSHED = 43;
const bit<32> EVENTS = 64;

counter(EVENTS, CounterType.packets) coordination_events;

#endif

// What the library counts.

#ifndef STATEPLANE_COORDINATION_EVENTS_P4
#define STATEPLANE_COORDINATION_EVENTS_P4

// Indices of `coordination_events`.
const bit<32> EVENT_BAD_MESSAGE = 0;
const bit<32> EVENT_UNKNOWN_TYPE = 1;
const bit<32> EVENT_UNKNOWN_GROUP = 2;
const bit<32> EVENT_NOT_FOR_THIS_SWITCH = 3;
const bit<32> EVENT_NOT_MEMBER = 4;
const bit<32> EVENT_OTHER_EPOCH = 5;
const bit<32> EVENT_OTHER_SENDER = 6;
const bit<32> EVENT_BLOCKED = 7;
const bit<32> EVENT_DUPLICATE_ENTRY = 8;
const bit<32> EVENT_MISSING_ENTRY = 9;
const bit<32> EVENT_ASKED = 10;
const bit<32> EVENT_ASK_LIMITED = 11;
const bit<32> EVENT_BEYOND_RING = 12;
const bit<32> EVENT_BUSY = 13;
const bit<32> EVENT_LOWER_REQUEST = 14;
const bit<32> EVENT_NOT_HELD = 15;
const bit<32> EVENT_REFUSED = 16;
const bit<32> EVENT_CONFIGURED = 17;
const bit<32> EVENT_OTHER_INCARNATION = 18;
const bit<32> EVENT_EMPTY_MEMBER = 19;
const bit<32> EVENT_DECIDED = 20;
const bit<32> EVENT_APPLIED = 21;
const bit<32> EVENT_ANSWERED = 22;
const bit<32> EVENT_LEASED_READ = 23;
const bit<32> EVENT_LEASE_GRANTED = 24;
const bit<32> EVENT_PROMISED = 25;
const bit<32> EVENT_PROMISE_WITHHELD = 26;
const bit<32> EVENT_RESENT = 27;
const bit<32> EVENT_COPY_SENT = 28;
const bit<32> EVENT_COPY_TAKEN = 29;
const bit<32> EVENT_COPY_OLD = 30;
const bit<32> EVENT_COPIED_OLD = 31;
const bit<32> EVENT_HANDED_OVER = 32;
const bit<32> EVENT_REDIRECTED = 33;
const bit<32> EVENT_REDIRECT_EXHAUSTED = 34;
const bit<32> EVENT_NOT_IPV4 = 35;
const bit<32> EVENT_BAD_FRAME = 36;
const bit<32> EVENT_TICK_IDLE = 37;
const bit<32> EVENT_LEASE_EXPIRED = 38;
const bit<32> EVENT_UNKNOWN_TICK = 39;
const bit<32> EVENTS = 64;

counter(EVENTS, CounterType.packets) coordination_events;

#endif

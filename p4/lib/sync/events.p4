// Events that the library counts.

#ifndef STATEPLANE_SYNC_EVENTS_P4
#define STATEPLANE_SYNC_EVENTS_P4

// Indices of `sync_events`.
const bit<32> SYNC_EVENT_BAD_FRAME = 0;
const bit<32> SYNC_EVENT_BAD_MESSAGE = 1;
const bit<32> SYNC_EVENT_UNKNOWN_TYPE = 2;
const bit<32> SYNC_EVENT_UNKNOWN_GROUP = 3;
const bit<32> SYNC_EVENT_UNKNOWN_TICK = 4;
const bit<32> SYNC_EVENT_OTHER_ADDRESS = 5;
const bit<32> SYNC_EVENT_REFUSED = 6;
const bit<32> SYNC_EVENT_STARTED = 7;
const bit<32> SYNC_EVENT_POLLED = 8;
const bit<32> SYNC_EVENT_REPAIRED = 9;
const bit<32> SYNC_EVENT_WRITTEN = 10;
const bit<32> SYNC_EVENT_REPEATED = 11;
const bit<32> SYNC_EVENT_CUT = 12;
const bit<32> SYNC_EVENT_FETCHED = 13;
const bit<32> SYNC_EVENT_UPDATES = 14;
const bit<32> SYNC_EVENT_MARKS = 15;
const bit<32> SYNC_EVENT_VALUES = 16;
const bit<32> SYNC_EVENT_OVER_BUDGET = 17;
const bit<32> SYNC_EVENT_NO_CREDIT = 18;
const bit<32> SYNC_EVENT_SETTLED = 19;
const bit<32> SYNC_EVENT_QUEUED = 20;
const bit<32> SYNC_EVENT_SLOWED = 21;
const bit<32> SYNC_EVENT_STAGED = 22;
const bit<32> SYNC_EVENT_LATE = 23;
const bit<32> SYNC_EVENTS = 32;

counter(SYNC_EVENTS, CounterType.packets) sync_events;

#endif

// Ports and mirror sessions of the switch. Its configuration must agree: the section
// `[replication]`, which crates/systems/replication/setup reads, sets them up.

#ifndef STATEPLANE_REPLICATION_PORTS_P4
#define STATEPLANE_REPLICATION_PORTS_P4

// Ports that no link faces: where the packet generator's probes come in, and the host's
// heartbeats.
const bit<9> GENERATOR_PORT = 509;
const bit<9> HEARTBEAT_PORT = 504;

// Mirror session HOLD_SESSION + n holds the copy of transmission n; the last one
// is used for all later ones. Sessions truncate to OUTER_BYTES + MESSAGE_BYTES
// (lease requests) or that and STATE_BYTES (writes).
const bit<32> HOLD_SESSION_LEASE = 16;
const bit<32> HOLD_SESSION_WRITE = 32;
const bit<16> HOLD_SESSIONS = 8;

#endif

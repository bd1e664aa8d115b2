// Ports of the switch. Its configuration must agree: crates/systems/sync/setup sets them up.

#ifndef STATEPLANE_SYNC_PORTS_P4
#define STATEPLANE_SYNC_PORTS_P4

// Port of the engine. Datagrams to SYNC_UDP_PORT are taken there and nowhere else (rule 32).
#ifndef SYNC_CONTROL_PORT
#define SYNC_CONTROL_PORT 500
#endif

// Port that no link faces: where frames of the packet generator come in.
const bit<9> SYNC_TICK_PORT = 506;

#endif

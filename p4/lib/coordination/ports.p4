// Port of the packet generator, and mirror session of the switch. Its configuration must agree:
// the section `[coordination]`, which crates/systems/coordination/setup reads, sets them up.

#ifndef STATEPLANE_COORDINATION_PORTS_P4
#define STATEPLANE_COORDINATION_PORTS_P4

// Port that no link faces: where frames of the packet generator come in.
const bit<9> COORDINATION_TICK_PORT = 507;
// Kinds of these frames: a round of promises for each group, and the copy for a joiner.
const bit<8> TICK_LEASE = 1;
const bit<8> TICK_COPY = 2;

// Mirror session of copies that become further messages.
const bit<32> COORDINATION_SESSION = 40;

#endif

// Coordination: a linearizable key-value and lock service in switches. The switches' half of
// docs/coordination-protocol.md (NetChain, NSDI 2018). Numbers of rules refer to that page.

#ifndef STATEPLANE_COORDINATION_P4
#define STATEPLANE_COORDINATION_P4

#include "coordination/checksum.p4"
#include "coordination/ingress.p4"
#include "coordination/parser.p4"

#endif

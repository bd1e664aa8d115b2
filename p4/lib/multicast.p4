// Multicast: one order for all receivers of all groups, decided by the switches. Leader and
// follower of docs/multicast-protocol.md (after P4mCast); numbers of rules refer to that page.
//
// A program applies MulticastParser in its parser, MulticastIngress in its ingress, forwards what
// `meta.forward` says, and applies MulticastEgress in its egress.

#ifndef STATEPLANE_MULTICAST_P4
#define STATEPLANE_MULTICAST_P4

#include "multicast/egress.p4"
#include "multicast/ingress.p4"
#include "multicast/parser.p4"

#endif

// Mirror sessions and replication groups of the switch. Its configuration must agree.

#ifndef STATEPLANE_MULTICAST_PORTS_P4
#define STATEPLANE_MULTICAST_PORTS_P4

// Mirror session MULTICAST_HOLD + n holds the copy of an entry that came back n times; the last
// one is used for all later ones. Its hold time grows with n (rule 23).
const bit<32> MULTICAST_HOLD = 48;
const bit<8> MULTICAST_HOLDS = 8;
// Returns of a follower's copy: it is held for the longest time.
const bit<8> MULTICAST_FOLLOWS = 255;

// Mirror session of packets that come back at once, and how often one does at most. Its hold time is 0.
const bit<32> MULTICAST_AGAIN = 56;
const bit<8> MULTICAST_PASSES = 64;

// Port whose egress messages pass that go to this switch itself, as leader of another group: they
// come back to ingress. It need not exist.
const bit<9> MULTICAST_LOOP_PORT = 505;

// Replication group g * 8 + MAP reaches for group g, by MAP, its other members, the leaders of
// other groups and its receivers.
const bit<3> MULTICAST_MEMBERS = 1;
const bit<3> MULTICAST_LEADERS = 2;
const bit<3> MULTICAST_RECEIVERS = 4;

#endif

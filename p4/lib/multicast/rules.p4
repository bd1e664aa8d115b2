// Rules of docs/multicast-protocol.md that can be switched off, each alone, to show that a checker
// notices. A program that is used leaves them all on.

#ifndef STATEPLANE_MULTICAST_RULES_P4
#define STATEPLANE_MULTICAST_RULES_P4

#include "serial.p4"

// A majority of the group commits, not any member (rule 1).
#ifdef MULTICAST_FAULT_MAJORITY
const bool MULTICAST_RULE_MAJORITY = false;
#else
const bool MULTICAST_RULE_MAJORITY = true;
#endif

// A timestamp is beyond that of the log's last entry, whatever the clock is (rule 2).
#ifdef MULTICAST_FAULT_LOG_CLOCK
const bool MULTICAST_RULE_LOG_CLOCK = false;
#else
const bool MULTICAST_RULE_LOG_CLOCK = true;
#endif

// A follower accepts an entry behind one that it has with its term (rule 3).
#ifdef MULTICAST_FAULT_ENTRY_BEFORE
const bool MULTICAST_RULE_ENTRY_BEFORE = false;
#else
const bool MULTICAST_RULE_ENTRY_BEFORE = true;
#endif

// An entry of another term is cut off with all behind it (rule 3).
#ifdef MULTICAST_FAULT_CUT_OFF
const bool MULTICAST_RULE_CUT_OFF = false;
#else
const bool MULTICAST_RULE_CUT_OFF = true;
#endif

// A follower takes over what is committed as far as its log matches (rule 3).
#ifdef MULTICAST_FAULT_COMMIT_MATCHED
const bool MULTICAST_RULE_COMMIT_MATCHED = false;
#else
const bool MULTICAST_RULE_COMMIT_MATCHED = true;
#endif

// A leader commits from its first own entry on (rule 4).
#ifdef MULTICAST_FAULT_OWN_TERM
const bool MULTICAST_RULE_OWN_TERM = false;
#else
const bool MULTICAST_RULE_OWN_TERM = true;
#endif

// A message to a member is for one start of it (rules 5, 6).
#ifdef MULTICAST_FAULT_INCARNATION
const bool MULTICAST_RULE_INCARNATION = false;
#else
const bool MULTICAST_RULE_INCARNATION = true;
#endif

// A member takes nothing of an older epoch than it promised (rule 6).
#ifdef MULTICAST_FAULT_FENCE
const bool MULTICAST_RULE_FENCE = false;
#else
const bool MULTICAST_RULE_FENCE = true;
#endif

// An ACK counts in the epoch in which it was said (rule 6).
#ifdef MULTICAST_FAULT_ACK_EPOCH
const bool MULTICAST_RULE_ACK_EPOCH = false;
#else
const bool MULTICAST_RULE_ACK_EPOCH = true;
#endif

// A new leader asks anew up to which index logs match (rule 8).
#ifdef MULTICAST_FAULT_MATCHES_FORGOTTEN
const bool MULTICAST_RULE_MATCHES_FORGOTTEN = false;
#else
const bool MULTICAST_RULE_MATCHES_FORGOTTEN = true;
#endif

// A new leader appends a no-op (rule 8).
#ifdef MULTICAST_FAULT_OWN_NO_OP
const bool MULTICAST_RULE_OWN_NO_OP = false;
#else
const bool MULTICAST_RULE_OWN_NO_OP = true;
#endif

// A leader's knowledge of an entry does not count for the next in its place (rule 8).
#ifdef MULTICAST_FAULT_MARKS_OF_ENTRY
const bool MULTICAST_RULE_MARKS_OF_ENTRY = false;
#else
const bool MULTICAST_RULE_MARKS_OF_ENTRY = true;
#endif

// A member leads in the epoch of its appointment (rule 9).
#ifdef MULTICAST_FAULT_LEAD_EPOCH
const bool MULTICAST_RULE_LEAD_EPOCH = false;
#else
const bool MULTICAST_RULE_LEAD_EPOCH = true;
#endif

// A leader stops when it sees a greater epoch (rule 9).
#ifdef MULTICAST_FAULT_STEPS_DOWN
const bool MULTICAST_RULE_STEPS_DOWN = false;
#else
const bool MULTICAST_RULE_STEPS_DOWN = true;
#endif

// A learner is not counted (rule 12).
#ifdef MULTICAST_FAULT_LEARNER_NO_VOTE
const bool MULTICAST_RULE_LEARNER_NO_VOTE = false;
#else
const bool MULTICAST_RULE_LEARNER_NO_VOTE = true;
#endif

// A member behind what was freed is told from where to go on (rule 12).
#ifdef MULTICAST_FAULT_SKIP
const bool MULTICAST_RULE_SKIP = false;
#else
const bool MULTICAST_RULE_SKIP = true;
#endif

// A HINT moves the clock alone (rule 13).
#ifdef MULTICAST_FAULT_HINT
const bool MULTICAST_RULE_HINT = false;
#else
const bool MULTICAST_RULE_HINT = true;
#endif

// A timestamp that receivers wait for goes into the log (rule 14).
#ifdef MULTICAST_FAULT_CLOCK_LOGGED
const bool MULTICAST_RULE_CLOCK_LOGGED = false;
#else
const bool MULTICAST_RULE_CLOCK_LOGGED = true;
#endif

// A leader that lacks another group's decision sends START (rule 15).
#ifdef MULTICAST_FAULT_FINISH
const bool MULTICAST_RULE_FINISH = false;
#else
const bool MULTICAST_RULE_FINISH = true;
#endif

// Only leaders of destinations get a copy (rule 16).
#ifdef MULTICAST_FAULT_ADDRESSED_ONLY
const bool MULTICAST_RULE_ADDRESSED_ONLY = false;
#else
const bool MULTICAST_RULE_ADDRESSED_ONLY = true;
#endif

// DELIVER follows commitment in all destination groups (rule 19).
#ifdef MULTICAST_FAULT_UNIFORM
const bool MULTICAST_RULE_UNIFORM = false;
#else
const bool MULTICAST_RULE_UNIFORM = true;
#endif

// A lane's last number is compared with the entry at its index (rule 21).
#ifdef MULTICAST_FAULT_LANE_COMPARED
const bool MULTICAST_RULE_LANE_COMPARED = false;
#else
const bool MULTICAST_RULE_LANE_COMPARED = true;
#endif

// A message below its lane's last number, or freed, is not ordered again (rules 21, 25).
#ifdef MULTICAST_FAULT_LANE_ENDED
const bool MULTICAST_RULE_LANE_ENDED = false;
#else
const bool MULTICAST_RULE_LANE_ENDED = true;
#endif

// COMPLETE waits while its entry is beyond a half of the window (rule 22).
#ifdef MULTICAST_FAULT_HELD_BACK
const bool MULTICAST_RULE_HELD_BACK = false;
#else
const bool MULTICAST_RULE_HELD_BACK = true;
#endif

// A held copy sends what someone lacks (rule 23).
#ifdef MULTICAST_FAULT_RETRANSMIT
const bool MULTICAST_RULE_RETRANSMIT = false;
#else
const bool MULTICAST_RULE_RETRANSMIT = true;
#endif

// An entry is freed when all receivers have it (rule 24).
#ifdef MULTICAST_FAULT_ALL_RECEIVED
const bool MULTICAST_RULE_ALL_RECEIVED = false;
#else
const bool MULTICAST_RULE_ALL_RECEIVED = true;
#endif

// An entry is freed when all its groups are done (rule 24).
#ifdef MULTICAST_FAULT_DONE
const bool MULTICAST_RULE_DONE = false;
#else
const bool MULTICAST_RULE_DONE = true;
#endif

// An entry is freed behind a committed timestamp that is not below its final one (rule 24).
#ifdef MULTICAST_FAULT_COVERED
const bool MULTICAST_RULE_COVERED = false;
#else
const bool MULTICAST_RULE_COVERED = true;
#endif

// A message that is over elsewhere is delivered void (rule 25).
#ifdef MULTICAST_FAULT_VOID
const bool MULTICAST_RULE_VOID = false;
#else
const bool MULTICAST_RULE_VOID = true;
#endif

// A receiver answers by the list that its leader has (rule 26).
#ifdef MULTICAST_FAULT_LIST_VERSION
const bool MULTICAST_RULE_LIST_VERSION = false;
#else
const bool MULTICAST_RULE_LIST_VERSION = true;
#endif

// Indices and epochs are serial numbers (rule 27).
#ifdef MULTICAST_FAULT_SERIAL
#define MULTICAST_NEWER(number, other) ((number) > (other))
#else
#define MULTICAST_NEWER(number, other) IS_NEWER(number, other)
#endif

#endif

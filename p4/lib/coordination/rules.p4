// Rules of docs/coordination-protocol.md that can be switched off, each alone, to show that a
// checker notices. A program that is used leaves them all on.

#ifndef STATEPLANE_COORDINATION_RULES_P4
#define STATEPLANE_COORDINATION_RULES_P4

// A message of another epoch is not of this chain (rule 9).
#ifdef COORDINATION_FAULT_EPOCH
const bool RULE_EPOCH = false;
#else
const bool RULE_EPOCH = true;
#endif

// Entries and reads come from the predecessor alone (rule 9).
#ifdef COORDINATION_FAULT_PREDECESSOR
const bool RULE_PREDECESSOR = false;
#else
const bool RULE_PREDECESSOR = true;
#endif

// Asked by the successor alone (rule 9).
#ifdef COORDINATION_FAULT_SUCCESSOR
const bool RULE_SUCCESSOR = false;
#else
const bool RULE_SUCCESSOR = true;
#endif

// Of entries the exactly next is applied (rule 2).
#ifdef COORDINATION_FAULT_EXACTLY_NEXT
const bool RULE_EXACTLY_NEXT = false;
#else
const bool RULE_EXACTLY_NEXT = true;
#endif

// The head says BUSY before an entry is overwritten that not all have (rule 2).
#ifdef COORDINATION_FAULT_RING_BOUND
const bool RULE_RING_BOUND = false;
#else
const bool RULE_RING_BOUND = true;
#endif

// A new head takes the others to be a ring behind (rule 2).
#ifdef COORDINATION_FAULT_NEW_HEAD_BEHIND
const bool RULE_NEW_HEAD_BEHIND = false;
#else
const bool RULE_NEW_HEAD_BEHIND = true;
#endif

// A member that learns of entries which it lacks asks for them (rule 2).
#ifdef COORDINATION_FAULT_NEWEST_ASKED
const bool RULE_NEWEST_ASKED = false;
#else
const bool RULE_NEWEST_ASKED = true;
#endif

// Members copy the head's outcome, and judge nothing (rule 3).
#ifdef COORDINATION_FAULT_OUTCOME_COPIED
const bool RULE_OUTCOME_COPIED = false;
#else
const bool RULE_OUTCOME_COPIED = true;
#endif

// Outcomes that are failures pass the chain too (rule 4).
#ifdef COORDINATION_FAULT_FAILURES_PASS
const bool RULE_FAILURES_PASS = false;
#else
const bool RULE_FAILURES_PASS = true;
#endif

// A request that was decided is not executed again (rule 5).
#ifdef COORDINATION_FAULT_DUPLICATE
const bool RULE_DUPLICATE = false;
#else
const bool RULE_DUPLICATE = true;
#endif

// A request before the lane's last is dropped (rule 5).
#ifdef COORDINATION_FAULT_LOWER_REQUEST
const bool RULE_LOWER_REQUEST = false;
#else
const bool RULE_LOWER_REQUEST = true;
#endif

// Requests of an ended life of a lane are refused (rule 5).
#ifdef COORDINATION_FAULT_LANE_INCARNATION
const bool RULE_LANE_INCARNATION = false;
#else
const bool RULE_LANE_INCARNATION = true;
#endif

// The first request of a later life of a lane begins it (rule 19).
#ifdef COORDINATION_FAULT_LANE_BEGINS
const bool RULE_LANE_BEGINS = false;
#else
const bool RULE_LANE_BEGINS = true;
#endif

// A question is answered where its number is held (rule 5).
#ifdef COORDINATION_FAULT_HELD_NUMBER
const bool RULE_HELD_NUMBER = false;
#else
const bool RULE_HELD_NUMBER = true;
#endif

// RESOLVE leaves the kept request as it is (rule 6).
#ifdef COORDINATION_FAULT_KEPT_REQUEST
const bool RULE_KEPT_REQUEST = false;
#else
const bool RULE_KEPT_REQUEST = true;
#endif

// Only a configuration of a higher epoch is taken (rule 9).
#ifdef COORDINATION_FAULT_HIGHER_EPOCH
const bool RULE_HIGHER_EPOCH = false;
#else
const bool RULE_HIGHER_EPOCH = true;
#endif

// A configuration is for one start of the switch (rules 9, 16).
#ifdef COORDINATION_FAULT_INCARNATION
const bool RULE_INCARNATION = false;
#else
const bool RULE_INCARNATION = true;
#endif

// Only the head decides (rule 10).
#ifdef COORDINATION_FAULT_HEAD_DECIDES
const bool RULE_HEAD_DECIDES = false;
#else
const bool RULE_HEAD_DECIDES = true;
#endif

// Nothing but requests is redirected (rule 11).
#ifdef COORDINATION_FAULT_REDIRECT_REQUESTS
const bool RULE_REDIRECT_REQUESTS = false;
#else
const bool RULE_REDIRECT_REQUESTS = true;
#endif

// A read that one switch answers alone needs its lease (rule 14).
#ifdef COORDINATION_FAULT_LEASE
const bool RULE_LEASE = false;
#else
const bool RULE_LEASE = true;
#endif

// A promise to a switch that is no member blocks until it ends (rule 14).
#ifdef COORDINATION_FAULT_PROMISE
const bool RULE_PROMISE = false;
#else
const bool RULE_PROMISE = true;
#endif

// No promise is given while one to another switch lasts (rule 14).
#ifdef COORDINATION_FAULT_ONE_PROMISE
const bool RULE_ONE_PROMISE = false;
#else
const bool RULE_ONE_PROMISE = true;
#endif

// Values that lay in registers before the group began empty are none of its own (rule 15).
#ifdef COORDINATION_FAULT_ERA
const bool RULE_ERA = false;
#else
const bool RULE_ERA = true;
#endif

// A switch begins to join empty (rule 15).
#ifdef COORDINATION_FAULT_JOINER_FORGETS
const bool RULE_JOINER_FORGETS = false;
#else
const bool RULE_JOINER_FORGETS = true;
#endif

// A copy does not overwrite what is newer (rule 15).
#ifdef COORDINATION_FAULT_NEWER_STAYS
const bool RULE_NEWER_STAYS = false;
#else
const bool RULE_NEWER_STAYS = true;
#endif

// Of what a lane keeps, too, the newer stays when the lane is copied (rule 15).
#ifdef COORDINATION_FAULT_KEPT_COPIED
const bool RULE_KEPT_COPIED = false;
#else
const bool RULE_KEPT_COPIED = true;
#endif

// The copy's answers are of the same round (rule 15).
#ifdef COORDINATION_FAULT_ROUND
const bool RULE_ROUND = false;
#else
const bool RULE_ROUND = true;
#endif

// No entry is acknowledged while a joiner catches up before the hand-over (rule 15).
#ifdef COORDINATION_FAULT_CLOSES
const bool RULE_CLOSES = false;
#else
const bool RULE_CLOSES = true;
#endif

// Once a copy has begun again, the head's bound keeps what the joiner lacks in the ring (rule 15).
#ifdef COORDINATION_FAULT_HOLDS_ACKS
const bool RULE_HOLDS_ACKS = false;
#else
const bool RULE_HOLDS_ACKS = true;
#endif

// The joiner answers when it holds the hand-over's number (rule 15).
#ifdef COORDINATION_FAULT_FLOOR
const bool RULE_FLOOR = false;
#else
const bool RULE_FLOOR = true;
#endif

// The tail answers nothing after the hand-over (rule 15).
#ifdef COORDINATION_FAULT_HANDED_SILENT
const bool RULE_HANDED_SILENT = false;
#else
const bool RULE_HANDED_SILENT = true;
#endif

// A switch that holds nothing of a group becomes no member of it (rule 15).
#ifdef COORDINATION_FAULT_EMPTY_MEMBER
const bool RULE_EMPTY_MEMBER = false;
#else
const bool RULE_EMPTY_MEMBER = true;
#endif

// A request is for one founding of the group (rule 17).
#ifdef COORDINATION_FAULT_GENERATION
const bool RULE_GENERATION = false;
#else
const bool RULE_GENERATION = true;
#endif

// A token below the highest that the record has seen is refused (rule 21).
#ifdef COORDINATION_FAULT_TOKEN
const bool RULE_TOKEN = false;
#else
const bool RULE_TOKEN = true;
#endif

// A record that has seen a token stays when it is deleted (rule 21).
#ifdef COORDINATION_FAULT_TOKEN_KEPT
const bool RULE_TOKEN_KEPT = false;
#else
const bool RULE_TOKEN_KEPT = true;
#endif

// The guard is judged (rule 21).
#ifdef COORDINATION_FAULT_GUARD
const bool RULE_GUARD = false;
#else
const bool RULE_GUARD = true;
#endif

// Clients get entries from the answerer alone, which has what no failure takes back (rule 23).
#ifdef COORDINATION_FAULT_ANSWERER_PUSHES
const bool RULE_ANSWERER_PUSHES = false;
#else
const bool RULE_ANSWERER_PUSHES = true;
#endif

// A client that asks for an entry that left the ring is told so (rule 23).
#ifdef COORDINATION_FAULT_COMPACTED
const bool RULE_COMPACTED = false;
#else
const bool RULE_COMPACTED = true;
#endif

// A subscription that is not renewed ends (rule 23).
#ifdef COORDINATION_FAULT_SUBSCRIPTION_ENDS
const bool RULE_SUBSCRIPTION_ENDS = false;
#else
const bool RULE_SUBSCRIPTION_ENDS = true;
#endif

// A damaged message is not believed.
#ifdef COORDINATION_FAULT_MESSAGE_CHECKSUM
const bool RULE_MESSAGE_CHECKSUM = false;
#else
const bool RULE_MESSAGE_CHECKSUM = true;
#endif

#endif

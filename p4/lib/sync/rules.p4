// Rules of docs/sync-protocol.md that can be switched off, each alone, to show that a checker
// notices. A program that is used leaves them all on.

#ifndef STATEPLANE_SYNC_RULES_P4
#define STATEPLANE_SYNC_RULES_P4

// Of opaque values t is 0 (rule 1).
#ifdef SYNC_FAULT_OPAQUE
const bool SYNC_RULE_OPAQUE = false;
#else
const bool SYNC_RULE_OPAQUE = true;
#endif

// A change that takes a location beyond t queues it where it is written (rule 2).
#ifdef SYNC_FAULT_TESTED
const bool SYNC_RULE_TESTED = false;
#else
const bool SYNC_RULE_TESTED = true;
#endif

// T has all t of this sweep and the last (rule 3).
#ifdef SYNC_FAULT_THRESHOLD_KEPT
const bool SYNC_RULE_THRESHOLD_KEPT = false;
#else
const bool SYNC_RULE_THRESHOLD_KEPT = true;
#endif

// T has the distances of locations that are queued (rule 3).
#ifdef SYNC_FAULT_PEAK
const bool SYNC_RULE_PEAK = false;
#else
const bool SYNC_RULE_PEAK = true;
#endif

// Distances of values that are sent are summed (rule 4).
#ifdef SYNC_FAULT_SHIFT
const bool SYNC_RULE_SHIFT = false;
#else
const bool SYNC_RULE_SHIFT = true;
#endif

// Each UPDATE has a stamp of its own (rule 7).
#ifdef SYNC_FAULT_STAMP
const bool SYNC_RULE_STAMP = false;
#else
const bool SYNC_RULE_STAMP = true;
#endif

// Locations of a repair are queued again (rule 8).
#ifdef SYNC_FAULT_REQUEUED
const bool SYNC_RULE_REQUEUED = false;
#else
const bool SYNC_RULE_REQUEUED = true;
#endif

// No value is sent beyond the window (rule 9).
#ifdef SYNC_FAULT_CREDIT
const bool SYNC_RULE_CREDIT = false;
#else
const bool SYNC_RULE_CREDIT = true;
#endif

// Each window has a message, empty if need be (rule 10).
#ifdef SYNC_FAULT_MARKS
const bool SYNC_RULE_MARKS = false;
#else
const bool SYNC_RULE_MARKS = true;
#endif

// A message is for one start of the switch (rule 11).
#ifdef SYNC_FAULT_INCARNATION
const bool SYNC_RULE_INCARNATION = false;
#else
const bool SYNC_RULE_INCARNATION = true;
#endif

// A START has every location queued (rule 11).
#ifdef SYNC_FAULT_WHOLE
const bool SYNC_RULE_WHOLE = false;
#else
const bool SYNC_RULE_WHOLE = true;
#endif

// The sweep queues what rests (rule 12).
#ifdef SYNC_FAULT_SWEEP
const bool SYNC_RULE_SWEEP = false;
#else
const bool SYNC_RULE_SWEEP = true;
#endif

// Bytes per second are bounded (rule 13).
#ifdef SYNC_FAULT_BUDGET
const bool SYNC_RULE_BUDGET = false;
#else
const bool SYNC_RULE_BUDGET = true;
#endif

// No cut before all have crossed the last (rule 15).
#ifdef SYNC_FAULT_SETTLED
const bool SYNC_RULE_SETTLED = false;
#else
const bool SYNC_RULE_SETTLED = true;
#endif

// No cut before the last window is kept (rule 15).
#ifdef SYNC_FAULT_KEPT
const bool SYNC_RULE_KEPT = false;
#else
const bool SYNC_RULE_KEPT = true;
#endif

// A location crosses the cut before it is written (rule 15).
#ifdef SYNC_FAULT_CROSS
const bool SYNC_RULE_CROSS = false;
#else
const bool SYNC_RULE_CROSS = true;
#endif

// Of locations that have not crossed a fetch reads what they hold (rule 16).
#ifdef SYNC_FAULT_FROZEN
const bool SYNC_RULE_FROZEN = false;
#else
const bool SYNC_RULE_FROZEN = true;
#endif

// A location whose frozen value is fetched crosses the cut (rule 16).
#ifdef SYNC_FAULT_FETCH_SETTLES
const bool SYNC_RULE_FETCH_SETTLES = false;
#else
const bool SYNC_RULE_FETCH_SETTLES = true;
#endif

// A cut that was made is not made again (rule 18).
#ifdef SYNC_FAULT_CUT_NUMBER
const bool SYNC_RULE_CUT_NUMBER = false;
#else
const bool SYNC_RULE_CUT_NUMBER = true;
#endif

// A location crosses the last cut before another value is staged for it (rule 19).
#ifdef SYNC_FAULT_STAGED_SETTLED
const bool SYNC_RULE_STAGED_SETTLED = false;
#else
const bool SYNC_RULE_STAGED_SETTLED = true;
#endif

// An engine's staging has no values of those before (rules 19, 20).
#ifdef SYNC_FAULT_STAGED_APART
const bool SYNC_RULE_STAGED_APART = false;
#else
const bool SYNC_RULE_STAGED_APART = true;
#endif

// An engine of a lower term changes nothing (rule 20).
#ifdef SYNC_FAULT_FENCE
const bool SYNC_RULE_FENCE = false;
#else
const bool SYNC_RULE_FENCE = true;
#endif

// A write that was taken is not taken again (rule 21).
#ifdef SYNC_FAULT_ONCE
const bool SYNC_RULE_ONCE = false;
#else
const bool SYNC_RULE_ONCE = true;
#endif

// Written locations are queued (rule 23).
#ifdef SYNC_FAULT_WRITTEN_QUEUED
const bool SYNC_RULE_WRITTEN_QUEUED = false;
#else
const bool SYNC_RULE_WRITTEN_QUEUED = true;
#endif

// A counter whose distance falls at a write tells a discontinuity (rule 25).
#ifdef SYNC_FAULT_FALLS
const bool SYNC_RULE_FALLS = false;
#else
const bool SYNC_RULE_FALLS = true;
#endif

// A value that an engine wrote tells a discontinuity (rule 25).
#ifdef SYNC_FAULT_WRITTEN_BREAKS
const bool SYNC_RULE_WRITTEN_BREAKS = false;
#else
const bool SYNC_RULE_WRITTEN_BREAKS = true;
#endif

// A discontinuity counts a width in the sum of distances, so that it shows when its value is lost
// (rule 25).
#ifdef SYNC_FAULT_BREAK_SHIFT
const bool SYNC_RULE_BREAK_SHIFT = false;
#else
const bool SYNC_RULE_BREAK_SHIFT = true;
#endif

#endif

// State of a switch for each group and each location.

#ifndef STATEPLANE_SYNC_STATE_P4
#define STATEPLANE_SYNC_STATE_P4

#ifndef SYNC_GROUPS
#error "define SYNC_GROUPS, the number of groups, before you include sync.p4"
#endif
#ifndef SYNC_LOCATIONS
#error "define SYNC_LOCATIONS, the locations of all groups, before you include sync.p4"
#endif
#ifndef SYNC_RINGS
#error "define SYNC_RINGS, the places in the rings of all groups, before you include sync.p4"
#endif
// Positions that are sent beyond what the engine has, at most the locations of the smallest
// group (rule 9).
#ifndef SYNC_WINDOW
#define SYNC_WINDOW 1024
#endif

// First distance that is not counted (rule 4).
#define SYNC_UNBOUNDED 0x10000000000

// Of sync_queued: in the ring; the same, with a discontinuity (rule 25).
const bit<2> SYNC_QUEUED = 1;
const bit<2> SYNC_QUEUED_BREAK = 3;

// Of a location: the value last sent; whether it is in the ring, and whether its next value tells a
// discontinuity; the parity of the last cut that it crossed.
register<bit<64>>(SYNC_LOCATIONS) sync_sent;
register<bit<2>>(SYNC_LOCATIONS) sync_queued;
register<bit<1>>(SYNC_LOCATIONS) sync_crossed;
// Its value before that cut; the value that a staged cut gives it, and the tag of the staging that this
// is of. The engine puts arrays of one length together: with an element more these, which only cuts use,
// lie apart from those that each packet uses.
register<bit<64>>(SYNC_LOCATIONS + 1) sync_frozen;
register<bit<64>>(SYNC_LOCATIONS + 1) sync_staged;
register<bit<64>>(SYNC_LOCATIONS + 1) sync_staged_tag;

// The rings: locations by position modulo the length.
register<bit<32>>(SYNC_RINGS) sync_ring;
// Position that is sent next, and behind the last.
register<bit<64>>(SYNC_GROUPS) sync_head;
register<bit<64>>(SYNC_GROUPS) sync_tail;
// Position up to which the engine has all (rule 9).
register<bit<64>>(SYNC_GROUPS) sync_acked;
// Number of the last UPDATE, and the sum of distances that were sent (rules 4, 7).
register<bit<64>>(SYNC_GROUPS) sync_stamp;
register<bit<64>>(SYNC_GROUPS) sync_shift;

// t; the greatest t of this sweep and of the last (rule 3).
register<bit<64>>(SYNC_GROUPS) sync_threshold;
register<bit<64>>(SYNC_GROUPS) sync_threshold_sweep;
register<bit<64>>(SYNC_GROUPS) sync_threshold_last;
// Greatest distance of locations that were queued since the peak was moved on, and before; the
// position at which it is moved on; and the greatest that was ever seen.
register<bit<64>>(SYNC_GROUPS) sync_peak;
register<bit<64>>(SYNC_GROUPS) sync_peak_last;
register<bit<64>>(SYNC_GROUPS) sync_peak_until;
register<bit<64>>(SYNC_GROUPS) sync_greatest;

// The sweep: its next location; when it began; µs that the last one took; locations that it
// still has to queue whatever they hold, and to have cross the cut.
register<bit<32>>(SYNC_GROUPS) sync_cursor;
register<bit<48>>(SYNC_GROUPS) sync_sweep_began;
register<bit<32>>(SYNC_GROUPS) sync_sweep_took;
register<bit<32>>(SYNC_GROUPS) sync_whole;
register<bit<32>>(SYNC_GROUPS) sync_unsettled;

// Rate: end of the window; time of the last UPDATE; time, in 2^-16 µs, until which the budget is
// spent; its present 2^-16 µs a byte, 0 before the first window; losses that the engine reported.
register<bit<48>>(SYNC_GROUPS) sync_window_end;
register<bit<48>>(SYNC_GROUPS) sync_sent_at;
register<bit<64>>(SYNC_GROUPS) sync_spent_until;
register<bit<64>>(SYNC_GROUPS) sync_byte_time;
register<bit<32>>(SYNC_GROUPS) sync_lost;

// Cuts: their number, kind, fill value, and the term of the engine that made the last; windows
// that the engine has kept (rule 15).
register<bit<32>>(SYNC_GROUPS) sync_epoch;
register<bit<8>>(SYNC_GROUPS) sync_kind;
register<bit<64>>(SYNC_GROUPS) sync_fill;
register<bit<64>>(SYNC_GROUPS) sync_cut_term;
// T at the last cut (rule 25).
register<bit<64>>(SYNC_GROUPS) sync_cut_bound;
register<bit<32>>(SYNC_GROUPS) sync_kept;
// Locations from the first on that have crossed it because their frozen values were fetched (rule 16).
register<bit<32>>(SYNC_GROUPS) sync_fetched;

// Staging: its number in the engine's term, 0 before the first; its tag, which no other staging of
// this start of the switch has; locations that it has; and the tag of that which was cut last.
register<bit<64>>(SYNC_GROUPS) sync_staging;
register<bit<64>>(SYNC_GROUPS) sync_staging_tag;
register<bit<32>>(SYNC_GROUPS) sync_staging_count;
register<bit<64>>(SYNC_GROUPS) sync_cut_tag;

// The engine: greatest term; number of its START, 0 before the first; where its view began; its
// newest POLL, and when it came; where it is reached (rules 11, 20, 28).
register<bit<64>>(SYNC_GROUPS) sync_term;
register<bit<64>>(SYNC_GROUPS) sync_starter;
register<bit<64>>(SYNC_GROUPS) sync_started_stamp;
register<bit<64>>(SYNC_GROUPS) sync_started_position;
register<bit<64>>(SYNC_GROUPS) sync_started_shift;
register<bit<64>>(SYNC_GROUPS) sync_poll;
register<bit<48>>(SYNC_GROUPS) sync_polled_at;
register<bit<48>>(SYNC_GROUPS) sync_engine_mac;
register<bit<48>>(SYNC_GROUPS) sync_own_mac;
register<bit<32>>(SYNC_GROUPS) sync_engine_address;
register<bit<16>>(SYNC_GROUPS) sync_engine_port;

// Writes: the term's last number, its outcome and stamp (rule 21).
register<bit<64>>(SYNC_GROUPS) sync_write_number;
register<bit<8>>(SYNC_GROUPS) sync_write_outcome;
register<bit<64>>(SYNC_GROUPS) sync_write_stamp;

// Which start of the switch this is: set by the configuration, and not 0 (rule 11).
register<bit<32>>(1) sync_incarnation;
// 1: writes, staged values and cuts are refused, since anybody may send them. Set by the configuration
// before the first message (rule 32).
register<bit<1>>(1) sync_read_only;

#endif

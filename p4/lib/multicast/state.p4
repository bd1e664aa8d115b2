// State of a switch for each group, entry and lane.

#ifndef STATEPLANE_MULTICAST_STATE_P4
#define STATEPLANE_MULTICAST_STATE_P4

// Groups of which the switch may be a member, at most 32.
#ifndef MULTICAST_GROUPS
#define MULTICAST_GROUPS 8
#endif
// Entries of a group's window, a power of two from 16 to 65,536 (rule 27).
#ifndef MULTICAST_WINDOW
#define MULTICAST_WINDOW 1024
#endif
// Entries behind the last one that a member or a receiver has, or that all have, which are sent
// again (rule 23).
#ifndef MULTICAST_FIRST
#define MULTICAST_FIRST 32
#endif
// Entries behind one of several groups with which it counts as lost that another group decided a
// later one, and not that (rule 23).
#ifndef MULTICAST_PASSED
#define MULTICAST_PASSED 32
#endif
// With this many entries that are not committed, followers acknowledge each fourth one (rule 3), and
// leaders send no HINT (rule 14), nor each DELIVER (rule 18) and DONE (rule 24).
#ifndef MULTICAST_MANY
#define MULTICAST_MANY 8
#endif
// Slots of sessions, and lanes of each.
#ifndef MULTICAST_SESSIONS
#define MULTICAST_SESSIONS 64
#endif
#ifndef MULTICAST_LANES
#define MULTICAST_LANES 8
#endif

// Members and receivers of a group, for which controls are unrolled.
#define MULTICAST_MOST_MEMBERS 8
#define MULTICAST_MOST_RECEIVERS 8
#define MULTICAST_EACH(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7)

#define MULTICAST_ENTRIES (MULTICAST_GROUPS * MULTICAST_WINDOW)
#define MULTICAST_ALL_LANES (MULTICAST_GROUPS * MULTICAST_SESSIONS * MULTICAST_LANES)

// Which start of the switch this is: set by the configuration, and not 0 (rule 5).
register<bit<32>>(1) multicast_incarnation;

// Epoch that was promised, and in which this switch was last appointed (rules 6, 9).
register<bit<32>>(MULTICAST_GROUPS) multicast_promised;
register<bit<32>>(MULTICAST_GROUPS) multicast_led;
// The log: what was freed, with its last entry's term and timestamp; the last entry, with the same;
// what is committed; the clock.
register<bit<32>>(MULTICAST_GROUPS) multicast_base;
register<bit<32>>(MULTICAST_GROUPS) multicast_base_term;
register<bit<64>>(MULTICAST_GROUPS) multicast_base_time;
register<bit<32>>(MULTICAST_GROUPS) multicast_end;
register<bit<32>>(MULTICAST_GROUPS) multicast_last_term;
register<bit<64>>(MULTICAST_GROUPS) multicast_last_time;
register<bit<32>>(MULTICAST_GROUPS) multicast_commit;
register<bit<64>>(MULTICAST_GROUPS) multicast_clock;

// Of a leader: its first own entry; maps of members and receivers; the learner; the list's
// version; entries up to which it announced, said DONE and said COMPLETE.
register<bit<32>>(MULTICAST_GROUPS) multicast_own;
register<bit<32>>(MULTICAST_GROUPS) multicast_members;
register<bit<32>>(MULTICAST_GROUPS) multicast_receivers;
register<bit<8>>(MULTICAST_GROUPS) multicast_learner;
register<bit<16>>(MULTICAST_GROUPS) multicast_list;
register<bit<32>>(MULTICAST_GROUPS) multicast_announced;
register<bit<32>>(MULTICAST_GROUPS) multicast_told_done;
register<bit<32>>(MULTICAST_GROUPS) multicast_told_complete;
// Groups that are to hear DONE; up to which index of its own log each other group is done, and the
// epoch in which its leader said so.
register<bit<32>>(MULTICAST_GROUPS) multicast_done_owed;
register<bit<32>>(MULTICAST_GROUPS * 32) multicast_done_to;
register<bit<32>>(MULTICAST_GROUPS * 32) multicast_done_epoch;
// Up to which index each member's log matches, and each receiver has all.
register<bit<32>>(MULTICAST_GROUPS * MULTICAST_MOST_MEMBERS) multicast_match;
register<bit<32>>(MULTICAST_GROUPS * MULTICAST_MOST_RECEIVERS) multicast_received;
// The last entry whose PROP bore LATER (rule 3).
register<bit<32>>(MULTICAST_GROUPS) multicast_last_later;
// The last entry that receivers do not hear of when it is appended, or cannot deliver without being
// told its final timestamp (rule 18).
register<bit<32>>(MULTICAST_GROUPS) multicast_last_told;
// The last entry that another group decided.
register<bit<32>>(MULTICAST_GROUPS) multicast_last_decided;
// When someone said last that it lacks an entry and has later ones, and the entry that each lacks so.
register<bit<48>>(MULTICAST_GROUPS) multicast_gap_moved;
register<bit<32>>(MULTICAST_GROUPS * MULTICAST_MOST_MEMBERS) multicast_match_gap;
register<bit<32>>(MULTICAST_GROUPS * MULTICAST_MOST_RECEIVERS) multicast_received_gap;
// When these, and the base, moved last; how long it took them at most to move of late; and that what
// they wait for was sent again (rule 23).
register<bit<48>>(MULTICAST_GROUPS * MULTICAST_MOST_MEMBERS) multicast_match_moved;
register<bit<48>>(MULTICAST_GROUPS * MULTICAST_MOST_MEMBERS) multicast_match_patience;
register<bit<1>>(MULTICAST_GROUPS * MULTICAST_MOST_MEMBERS) multicast_match_resent;
register<bit<48>>(MULTICAST_GROUPS * MULTICAST_MOST_RECEIVERS) multicast_received_moved;
register<bit<48>>(MULTICAST_GROUPS * MULTICAST_MOST_RECEIVERS) multicast_received_patience;
register<bit<1>>(MULTICAST_GROUPS * MULTICAST_MOST_RECEIVERS) multicast_received_resent;
register<bit<48>>(MULTICAST_GROUPS) multicast_base_moved;
register<bit<48>>(MULTICAST_GROUPS) multicast_base_patience;
register<bit<1>>(MULTICAST_GROUPS) multicast_base_resent;

// Entries.
register<bit<32>>(MULTICAST_ENTRIES) multicast_entry_term;
register<bit<64>>(MULTICAST_ENTRIES) multicast_entry_time;
register<bit<64>>(MULTICAST_ENTRIES) multicast_entry_id;
register<bit<32>>(MULTICAST_ENTRIES) multicast_entry_destinations;
register<bit<48>>(MULTICAST_ENTRIES) multicast_entry_sender;
// When the switch took it.
register<bit<48>>(MULTICAST_ENTRIES) multicast_entry_appended;
// Copies that are held for the slot, at most two, and the number of the last one: it alone stays
// (rule 23).
register<bit<8>>(MULTICAST_ENTRIES) multicast_entry_held;
register<bit<8>>(MULTICAST_ENTRIES) multicast_entry_copy;
// Entries that came to a follower before those in front of them (rule 3): the index in the slot, the
// epoch, and the term of the entry before. The furthest of them, and its epoch. The entry of which the
// follower said last that it wants it, and when.
register<bit<32>>(MULTICAST_ENTRIES) multicast_entry_early;
register<bit<32>>(MULTICAST_ENTRIES) multicast_entry_early_in;
register<bit<32>>(MULTICAST_ENTRIES) multicast_entry_before;
register<bit<32>>(MULTICAST_GROUPS) multicast_furthest;
register<bit<32>>(MULTICAST_GROUPS) multicast_furthest_in;
register<bit<32>>(MULTICAST_GROUPS) multicast_gap_told;
register<bit<48>>(MULTICAST_GROUPS) multicast_gap_told_at;
// Knowledge of the leader of an epoch (rule 8): other groups' decisions and done-marks.
register<bit<32>>(MULTICAST_ENTRIES) multicast_entry_known_in;
register<bit<32>>(MULTICAST_ENTRIES) multicast_entry_decided;
register<bit<32>>(MULTICAST_ENTRIES) multicast_entry_done;
register<bit<1>>(MULTICAST_ENTRIES) multicast_entry_void;
// The last group that told its decision: its number, its index of the message, and its epoch.
register<bit<8>>(MULTICAST_ENTRIES) multicast_entry_peer;
register<bit<32>>(MULTICAST_ENTRIES) multicast_entry_peer_index;
register<bit<32>>(MULTICAST_ENTRIES) multicast_entry_peer_epoch;
register<bit<64>>(MULTICAST_ENTRIES) multicast_entry_final;
register<bit<8>>(MULTICAST_ENTRIES) multicast_entry_final_group;

// Lanes: last number, its index, and the last number that was freed (rule 21).
register<bit<40>>(MULTICAST_ALL_LANES) multicast_lane_number;
register<bit<32>>(MULTICAST_ALL_LANES) multicast_lane_index;
register<bit<40>>(MULTICAST_ALL_LANES) multicast_lane_freed;

// Of the lane's message with this number: which other groups decided it before its START came; the last
// one that told, its index of the message, and its epoch (rule 15).
register<bit<40>>(MULTICAST_ALL_LANES) multicast_ahead_number;
register<bit<32>>(MULTICAST_ALL_LANES) multicast_ahead_decided;
register<bit<8>>(MULTICAST_ALL_LANES) multicast_ahead_peer;
register<bit<32>>(MULTICAST_ALL_LANES) multicast_ahead_peer_index;
register<bit<32>>(MULTICAST_ALL_LANES) multicast_ahead_peer_epoch;

#endif

// The time for which a member or receiver that lacks an entry may take nothing before it is sent
// again (rule 23).

#ifndef STATEPLANE_MULTICAST_PATIENCE_P4
#define STATEPLANE_MULTICAST_PATIENCE_P4

#include "log.p4"
#include "metadata.p4"
#include "state.p4"

// Longest time in µs that is learned.
const bit<48> MULTICAST_MOST_PATIENCE = 20000;

// Time in µs after a gap was told in which copies come back soon, to send what is lost.
const bit<48> MULTICAST_LOSSY = 50000;

// Time in µs after which a follower tells again which entry it wants, since that may have been lost.
const bit<48> MULTICAST_TOLD = 4000;

// Time from `then` to `now`, which are times at which packets arrived; 0 if `then` is later: a packet may
// wait for its turn while another worker takes a later one.
bit<48> multicast_elapsed(in bit<48> then, in bit<48> now) {
    return then < now ? now - then : 48w0;
}

// Time since which entry `index` is the next one for a member or receiver that moved last at `moved`.
control MulticastSince(
    in bit<32> index,
    in bit<48> moved,
    in multicast_metadata_t meta,
    out bit<48> since
) {
    bit<48> appended;

    apply {
        since = moved;
        multicast_entry_appended.read(appended, MULTICAST_PLACE(meta, index));
        if (MULTICAST_HAS(meta, index) && appended > moved) {
            since = appended;
        }
    }
}

// A member or receiver that waited for entry `next` moves, or the base does: the time that it took is
// learned, unless the entry was sent again, which leaves open how long it would have taken. The
// longest time of late counts: processes that share processors stand still for milliseconds, and then
// take many entries at once. Each other time makes it fade by one part in 2 ^ `fades`.
control MulticastLearn(
    in bit<32> next,
    in bit<48> moved,
    in bit<1> resent,
    in bit<8> fades,
    in multicast_metadata_t meta,
    inout bit<48> patience
) {
    MulticastSince() since_when;
    bit<48> since;
    bit<48> took;

    apply {
        if (resent == 0 && MULTICAST_HAS(meta, next)) {
            since_when.apply(next, moved, meta, since);
            took = multicast_elapsed(since, meta.now);
            if (took > patience) {
                patience = took < MULTICAST_MOST_PATIENCE ? took : MULTICAST_MOST_PATIENCE;
            } else {
                patience = patience - (patience >> fades);
            }
        }
    }
}

// Notes that the member, receiver or base at `place` of the registers `multicast_WHAT_...` moves on
// from before entry `next`. The control has MulticastLearn as `learn`, and `moved`, `resent` and
// `patience`.
#define MULTICAST_MOVES(what, place, next, fades) \
    multicast_##what##_moved.read(moved, place); \
    multicast_##what##_resent.read(resent, place); \
    multicast_##what##_patience.read(patience, place); \
    learn.apply(next, moved, resent, fades, meta, patience); \
    multicast_##what##_moved.write(place, meta.now); \
    multicast_##what##_resent.write(place, 0); \
    multicast_##what##_patience.write(place, patience);

// True if the entry at hand, and the next one for a member or receiver that moved last at `moved`,
// have been under way for more than twice the longest time of late.
control MulticastOverdue(
    in bit<32> next,
    in bit<48> moved,
    in bit<48> patience,
    in multicast_metadata_t meta,
    out bool overdue
) {
    MulticastSince() since_when;
    bit<48> since;
    bit<48> appended;

    apply {
        since_when.apply(next, moved, meta, since);
        multicast_entry_appended.read(appended, meta.entry.at);
        overdue = multicast_elapsed(since, meta.now) > patience << 1
            && multicast_elapsed(appended, meta.now) > patience << 1;
    }
}

#endif

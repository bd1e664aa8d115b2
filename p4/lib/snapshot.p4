// Replication in bounded-inconsistency mode (RedPlane §4.4, §5.4, Algorithm 1): register
// arrays that every packet may change, packets that do not wait, and snapshots that
// are kept while packets go on. What is lost with a switch is at most what was changed
// within a bound ε. Numbers of rules refer to docs/replication-protocol.md.
//
// An array holds two copies of each element, side by side. A flag tells which copy is
// active; flipping it begins a snapshot: the other copy is what the array was at that
// moment. What is written goes to the active copy, and a bit for each element tells
// which copy was written last; the snapshot's own read brings the active copy up to
// date where nothing was written since the flip (rule 24).
//
// The packet generator's frames walk over the elements, one each, by a cursor in a
// register, so that one that is lost delays the walk and leaves nothing out. The walk
// goes over them twice: first it writes each element to the store under a key of its
// own, then it waits until each write is acknowledged, and writes again what did not
// get through. Only then may the flag be flipped again. Snapshots are numbered;
// odd and even ones have different keys, so that the store holds one that is complete
// while the next one is being written. A reader uses the newest number that all
// elements of a key bear, and nothing of an incomplete one.
//
// The keys have the switch's number and incarnation in them (rule 25): each start of
// each switch keeps what it has counted itself, and whoever reads merges them, by
// adding, by OR or by the greatest, as the program's operation is.
//
// A program defines SNAPSHOT_KEYS, how many keys (tenants, say) its arrays serve, and
// SNAPSHOT_SLOTS, how many elements each has, includes this file after replication.p4,
// and puts into its ingress:
//
//   when arriving      SnapshotWalk, with the walk's header;
//   for the program's  SnapshotArray.apply on an element, with `active` of
//   own packets        SnapshotWalk; SnapshotAge, which says whether ε is kept
//   when processing a  SnapshotKeep, with the elements' values, between
//   packet of the walk ReplicationIngressBefore and -After
//
// A program that reads and writes elements apart, in actions perhaps, has two registers
// in place of a SnapshotArray, one of both copies and one of the bits, and reads and
// writes them by snapshot_copy as SnapshotArray does. `stateplane protect` makes such
// programs.

#ifndef STATEPLANE_SNAPSHOT_P4
#define STATEPLANE_SNAPSHOT_P4

#include "headers.p4"
#include "replication.p4"
#include "serial.p4"

#ifndef SNAPSHOT_KEYS
#error "define SNAPSHOT_KEYS, the number of keys that the arrays serve, before you include snapshot.p4"
#endif
#ifndef SNAPSHOT_SLOTS
#error "define SNAPSHOT_SLOTS, the number of elements of each key, before you include snapshot.p4"
#endif
#define SNAPSHOT_ELEMENTS (SNAPSHOT_KEYS * SNAPSHOT_SLOTS)

// µs between two looks at one write that is not acknowledged; each sends it again.
#ifndef SNAPSHOT_PATIENCE
#define SNAPSHOT_PATIENCE 1000
#endif

// Settings that the tables have before the control plane sets them: T_snap and ε in µs, and what
// becomes of packets beyond ε.
#ifndef SNAPSHOT_PERIOD
#define SNAPSHOT_PERIOD 0
#endif
#ifndef SNAPSHOT_BOUND
#define SNAPSHOT_BOUND 0
#endif
#ifndef SNAPSHOT_OTHERWISE
#define SNAPSHOT_OTHERWISE STALE_GOES_ON
#endif

// Port at which the packet generator's frames for the walk come in; no link faces it.
const bit<9> SNAPSHOT_PORT = 508;

// Operations on an element.
const bit<8> SNAPSHOT_READ = 0;
const bit<8> SNAPSHOT_ADD = 1;
const bit<8> SNAPSHOT_OR = 2;
const bit<8> SNAPSHOT_GREATEST = 3;

// Treatment of the program's packets while the newest snapshot that is kept is
// older than ε. To fail itself, a switch watches `snapshot_kept` as it watches
// `replication_heard`.
const bit<8> STALE_GOES_ON = 0;
const bit<8> STALE_DROPS = 1;

// Indices of `snapshot_events`.
const bit<32> SNAPSHOT_BEGUN = 0;
const bit<32> SNAPSHOT_COMPLETE = 1;
const bit<32> SNAPSHOT_WRITTEN_AGAIN = 2;
// Packets while ε is not kept.
const bit<32> SNAPSHOT_STALE = 3;
const bit<32> SNAPSHOT_EVENTS = 4;

#ifdef SNAPSHOT_FAULT_SYNCHRONISE
const bool RULE_SYNCHRONISE = false;
#else
const bool RULE_SYNCHRONISE = true;
#endif

#ifdef SNAPSHOT_FAULT_EVERY_ELEMENT
const bool RULE_EVERY_ELEMENT = false;
#else
const bool RULE_EVERY_ELEMENT = true;
#endif

#ifdef SNAPSHOT_FAULT_ACKNOWLEDGED
const bool RULE_ACKNOWLEDGED = false;
#else
const bool RULE_ACKNOWLEDGED = true;
#endif

#ifdef SNAPSHOT_FAULT_BOUND
const bool RULE_BOUND = false;
#else
const bool RULE_BOUND = true;
#endif

// A frame of the walk, behind its Ethernet header. The generator's template has the
// switch's number and else zeros; the values of the element, one for each array, follow
// as the program defines them.
header snapshot_walk_t {
    bit<32> switch_id;
    bit<32> number;
    bit<32> element;
    // 1: sees to what was written.
    bit<8> again;
    bit<8> unused;
}

struct snapshot_metadata_t {
    // Which copies are active.
    bit<1> active;
    // Which copy of the element at hand was written last.
    bit<1> last;
    // An element is to be read for the walk.
    bool walks;
    bit<32> element;
}

register<bit<1>>(1) snapshot_active;
register<bit<32>>(1) snapshot_number;
// Next element of the walk, and whether it is the second time.
register<bit<32>>(1) snapshot_cursor;
register<bit<1>>(1) snapshot_again;
// When the second walk last looked at its element; 0 if it has not.
register<bit<48>>(1) snapshot_looked;
// When the present snapshot was begun, and the newest that is kept, in µs of the
// switch clock.
register<bit<48>>(1) snapshot_began;
register<bit<48>>(1) snapshot_kept;
counter(SNAPSHOT_EVENTS, CounterType.packets) snapshot_events;

// Place of a copy of an element in a register of both copies of each element. What is
// beyond the array stays beyond the register.
bit<32> snapshot_copy(in bit<32> element, in bit<1> copy) {
    return (element |+| element) | (bit<32>)copy;
}

// A register array of 32-bit elements with lazy snapshots. `value` is the element
// after the operation; of SNAPSHOT_READ, what it was when the flag was flipped.
control SnapshotArray(
    in bit<32> element,
    in bit<1> active,
    in bit<8> operation,
    in bit<32> operand,
    out bit<32> value
) {
    register<bit<32>>(2 * SNAPSHOT_ELEMENTS) copies;
    // The copy that was written last.
    register<bit<1>>(SNAPSHOT_ELEMENTS) updated;
    bit<1> last;

    apply {
        updated.read(last, element);
        if (operation == SNAPSHOT_READ) {
            copies.read(value, snapshot_copy(element, ~active));
        } else {
            copies.read(value, snapshot_copy(element, last));
        }
        if (operation == SNAPSHOT_ADD) {
            value = value |+| operand;
        } else if (operation == SNAPSHOT_OR) {
            value = value | operand;
        } else if (operation == SNAPSHOT_GREATEST && operand > value) {
            value = operand;
        }
        if (operation != SNAPSHOT_READ || (last != active && RULE_SYNCHRONISE)) {
            copies.write(snapshot_copy(element, active), value);
            updated.write(element, active);
        }
    }
}

// Tells which copies are active and, for a frame of the generator, which element the
// walk has come to; begins a snapshot when it is time.
control SnapshotWalk(
    inout snapshot_walk_t walk,
    inout snapshot_metadata_t snapshot,
    in standard_metadata_t standard_metadata
) {
    bit<48> period = 0;
    bit<48> now;
    bit<48> began;
    bit<48> kept;
    bit<32> number;
    bit<32> cursor;
    bit<1> again;
    bit<48> looked;
    bool done;
    bool gives_up;

    // Least µs from one snapshot to the next, T_snap; 0: none are made.
    action snapshot_each(bit<48> microseconds) {
        period = microseconds;
    }

    table snapshot_period {
        actions = { snapshot_each; }
        default_action = snapshot_each(SNAPSHOT_PERIOD);
    }

    apply {
        snapshot.walks = false;
        snapshot.element = 0;
        snapshot_active.read(snapshot.active, 0);
        if (walk.isValid() && standard_metadata.ingress_port == SNAPSHOT_PORT) {
            snapshot_period.apply();
            now = standard_metadata.ingress_global_timestamp;
            snapshot_began.read(began, 0);
            snapshot_kept.read(kept, 0);
            snapshot_number.read(number, 0);
            snapshot_cursor.read(cursor, 0);
            snapshot_again.read(again, 0);
            if (kept == 0) {
                // Nothing has been counted yet, which is as good as kept.
                snapshot_kept.write(0, now);
            }
            done = cursor == 0 && again == 0;
            // Without the rule every second snapshot is given up half way.
            gives_up = !RULE_EVERY_ELEMENT
                && number[0:0] == 1
                && again == 0
                && cursor == SNAPSHOT_ELEMENTS / 2;
            if (period != 0 && ((done && (number == 0 || now >= began + period)) || gives_up)) {
                snapshot.active = ~snapshot.active;
                number = number + 1;
                cursor = 0;
                again = 0;
                snapshot_active.write(0, snapshot.active);
                snapshot_number.write(0, number);
                snapshot_began.write(0, now);
                snapshot_cursor.write(0, 0);
                snapshot_again.write(0, 0);
                snapshot_looked.write(0, 0);
                snapshot_events.count(SNAPSHOT_BEGUN);
                snapshot.walks = true;
            } else if (again == 1) {
                snapshot_looked.read(looked, 0);
                snapshot.walks = looked == 0 || now >= looked + SNAPSHOT_PATIENCE;
                if (snapshot.walks) {
                    snapshot_looked.write(0, now);
                }
            } else {
                snapshot.walks = cursor != 0;
            }
            walk.number = number;
            walk.element = cursor;
            walk.again = (bit<8>)again;
            snapshot.element = cursor;
            if (snapshot.walks && again == 0) {
                cursor = cursor + 1;
                if (cursor == SNAPSHOT_ELEMENTS) {
                    cursor = 0;
                    snapshot_again.write(0, 1);
                }
                snapshot_cursor.write(0, cursor);
            }
        }
    }
}

// Names the record of an element of a snapshot.
control SnapshotKey(in snapshot_walk_t walk, in bit<8> class, out bit<128> key) {
    bit<32> incarnation;

    apply {
        replication_incarnation.read(incarnation, 0);
        key = class ++ 7w0 ++ walk.number[0:0] ++ walk.switch_id ++ incarnation ++ walk.element
            ++ 16w0;
    }
}

// True if a packet of the walk has to be written: its record has no snapshot that is
// as new. If it sees to what was written and finds it acknowledged, the walk goes on.
control SnapshotKeep(
    in snapshot_walk_t walk,
    in bit<32> stored_number,
    in replication_slot_t slot,
    out bool write
) {
    bit<32> number;
    bit<32> cursor;
    bit<1> again;
    bit<48> began;

    apply {
        write = IS_NEWER(walk.number, stored_number);
        snapshot_number.read(number, 0);
        snapshot_cursor.read(cursor, 0);
        snapshot_again.read(again, 0);
        if (walk.again == 1 && walk.number == number && walk.element == cursor && again == 1) {
            if (write && RULE_ACKNOWLEDGED) {
                snapshot_events.count(SNAPSHOT_WRITTEN_AGAIN);
            } else if (slot.sequence == slot.acknowledged || !RULE_ACKNOWLEDGED) {
                cursor = cursor + 1;
                if (cursor == SNAPSHOT_ELEMENTS) {
                    cursor = 0;
                    snapshot_again.write(0, 0);
                    snapshot_began.read(began, 0);
                    snapshot_kept.write(0, began);
                    snapshot_events.count(SNAPSHOT_COMPLETE);
                }
                snapshot_cursor.write(0, cursor);
                snapshot_looked.write(0, 0);
            }
        }
    }
}

// True if the newest snapshot that is kept is younger than ε, and what is to become
// of the packet if it is not.
control SnapshotAge(in standard_metadata_t standard_metadata, out bool drops) {
    bit<48> bound = 0;
    bit<8> consequence = 0;
    bit<48> kept;

    // ε in µs; 0: no bound.
    action keep_within(bit<48> microseconds, bit<8> otherwise) {
        bound = microseconds;
        consequence = otherwise;
    }

    table snapshot_bound {
        actions = { keep_within; }
        default_action = keep_within(SNAPSHOT_BOUND, SNAPSHOT_OTHERWISE);
    }

    apply {
        drops = false;
        snapshot_bound.apply();
        snapshot_kept.read(kept, 0);
        if (bound != 0 && standard_metadata.ingress_global_timestamp > kept + bound && RULE_BOUND) {
            snapshot_events.count(SNAPSHOT_STALE);
            drops = consequence == STALE_DROPS;
        }
    }
}

#endif

// ApproSync as printed (Chen et al., IEEE/ACM Transactions on Networking, 2022): the read handler of
// Algorithm 1, whose threshold the switch's operating system sets (Algorithm 2), and the write handler
// of Algorithm 3 with its lock. Recirculated frames take a cable from LOOP_PORT to itself.

#include "frames.p4"

// H: location and 1, or 0 if the entry is empty; value; value last sent; time of the last
// synchronisation, or of the insertion.
register<bit<32>>(ENTRIES) table_location;
register<bit<64>>(ENTRIES) table_value;
register<bit<64>>(ENTRIES) table_old;
register<bit<48>>(ENTRIES) table_time;
// t, and the counter of updates from which Algorithm 2 sets it.
register<bit<64>>(1) threshold;
register<bit<64>>(1) updates;
// L.
register<bit<1>>(1) lock;
register<bit<64>>(LOCATIONS) values;

// PROCESS_UPDATE.
control ReadHandler(
    in bit<32> location,
    in bit<64> value,
    in bit<64> t,
    in bit<48> now,
    inout headers_t hdr
) {
    Append() beyond;
    Append() evicted;
    bit<64> count;
    bit<32> place;
    bit<32> held;
    bit<64> held_value;
    bit<64> old;

    apply {
        updates.read(count, 0);
        updates.write(0, count + 1);
        hash(place, HashAlgorithm.crc32, (bit<32>)0, { location }, (bit<32>)ENTRIES);
        table_location.read(held, place);
        table_value.read(held_value, place);
        table_old.read(old, place);
        table_value.write(place, value);
        if (held == 0) {
            table_location.write(place, location + 1);
            table_time.write(place, now);
        } else if (held == location + 1) {
            if ((value > old ? value - old : old - value) > t) {
                table_old.write(place, value);
                table_time.write(place, now);
                beyond.apply(location, value, hdr);
            }
        } else {
            table_location.write(place, location + 1);
            table_old.write(place, 0);
            table_time.write(place, now);
            evicted.apply(held - 1, held_value, hdr);
        }
    }
}

control Process(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Locate() locate;
    Begin() begin_push;
    ReadHandler() read_handler;
    ReadHandler() read_again;
    Append() expired;
    Append() retried;
    Send() push;
    Send() retry;
    bit<32> first;
    bit<32> second;
    bit<32> third;
    bit<64> value;
    bit<64> t;
    bit<32> place;
    bit<32> held;
    bit<1> locked;

    apply {
        mark_to_drop(standard);
        lock.read(locked, 0);
        threshold.read(t, 0);
        if (hdr.state.isValid() && hdr.state.type == STATE_WRITE) {
            // STATE_WRITE, lines 2 to 7.
            lock.write(0, hdr.state.free_lock == 1 ? 1w0 : 1w1);
#define WRITE_UPDATE(i) \
            if (hdr.updates[i].isValid()) { \
                values.write(hdr.updates[i].location, hdr.updates[i].value); \
                hdr.updates[i].setInvalid(); \
            }
            WRITE_UPDATE(0)
            WRITE_UPDATE(1)
            WRITE_UPDATE(2)
            WRITE_UPDATE(3)
            WRITE_UPDATE(4)
            WRITE_UPDATE(5)
            WRITE_UPDATE(6)
            WRITE_UPDATE(7)
            WRITE_UPDATE(8)
            WRITE_UPDATE(9)
            hdr.state.state_num = 0;
            hdr.state.type = STATE_ACK;
            standard.egress_spec = CONTROL_PORT;
        } else if (hdr.state.isValid() && hdr.state.type == STATE_RESET) {
            // STATE_RESET, lines 14 to 22.
            values.write(hdr.updates[0].location, 0);
            if (hdr.updates[0].location == LOCATIONS - 1) {
                lock.write(0, 0);
                hdr.updates[0].setInvalid();
                hdr.state.state_num = 0;
                hdr.state.type = STATE_ACK;
                standard.egress_spec = CONTROL_PORT;
            } else {
                lock.write(0, 1);
                hdr.updates[0].location = hdr.updates[0].location + 1;
                standard.egress_spec = LOOP_PORT;
            }
        } else if (hdr.state.isValid() && hdr.state.type == STATE_EXPIRE) {
            place = hdr.updates[0].location;
            table_location.read(held, place);
            table_value.read(value, place);
            table_old.write(place, value);
            table_time.write(place, standard.ingress_global_timestamp);
            begin_push.apply(t, hdr);
            expired.apply(held - 1, value, hdr);
            push.apply(CONTROL_PORT, hdr, standard);
        } else if (hdr.state.isValid() && hdr.state.type == STATE_RETRY) {
            if (locked == 1) {
                standard.egress_spec = LOOP_PORT;
            } else {
                first = hdr.updates[0].location;
                value = hdr.updates[0].value;
                values.write(first, value);
                hdr.updates[0].setInvalid();
                begin_push.apply(t, hdr);
                read_again.apply(first, value, t, standard.ingress_global_timestamp, hdr);
                push.apply(CONTROL_PORT, hdr, standard);
            }
        } else if (hdr.ipv4.isValid()) {
            locate.apply(hdr.ipv4, first, second, third);
            begin_push.apply(t, hdr);
            if (locked == 1) {
                values.read(value, first);
                hdr.state.type = STATE_RETRY;
                retried.apply(first, value + COUNTED, hdr);
                retry.apply(LOOP_PORT, hdr, standard);
            } else {
#define UPDATE(location) \
                values.read(value, location); \
                value = value + COUNTED; \
                values.write(location, value); \
                read_handler.apply( \
                    location, \
                    value, \
                    t, \
                    standard.ingress_global_timestamp, \
                    hdr \
                );
                EACH_LOCATION(UPDATE)
                push.apply(CONTROL_PORT, hdr, standard);
            }
        }
    }
}

V1Switch(Read(), Nothing(), Process(), Leave(), Nothing(), Write()) main;

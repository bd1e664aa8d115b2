// Match kinds, entries, priorities, default actions, bound arguments, action_run.
#include "shell.p4"

enum bit<16> ether_t {
    ipv4 = 0x0800,
    ipv6 = 0x86dd
}

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.bytes) rate;

    action set(inout bit<8> target, bit<8> value) {
        target = value;
        hits.count();
    }
    action drop() {
        mark_to_drop(std);
        exit;
    }
    action with_default(bit<8> value, bit<16> other) {
        meta.x = value;
        meta.y = other;
    }

    table routes {
        key = {
            hdr.h.a : lpm;
            hdr.h.isValid() : exact;
        }
        actions = { set(meta.x); @defaultonly drop; }
        const default_action = drop();
        const entries = {
            (0x80 &&& 0xf0, true): set(meta.x, 1);
            (0x80, true): set(2);
            (_, false): set(3);
        }
        size = 512;
        counters = hits;
        meters = rate;
        support_timeout = true;
    }

    table acl {
        key = {
            hdr.h.a : ternary;
            hdr.h.b : range;
            (ether_t)hdr.h.b : optional @name("type");
            hdr.h.c : ternary;
        }
        actions = { NoAction; with_default; @tableonly drop; }
        default_action = with_default(1, other = 2);
        entries = {
            const priority = 10: (1 &&& 3, 5 .. 9, ether_t.ipv4, _): drop;
            (_, 7, _, -1): with_default(3, 4);
            priority = 20: _: NoAction;
        }
        @hidden largest_priority_wins = true;
        priority_delta = 2;
    }

    table without_key {
        actions = { drop; }
    }

    apply {
        switch (routes.apply().action_run) {
            set: { meta.y = 1; }
            drop:
            default: { meta.y = 2; }
        }
        if (acl.apply().miss) {
            without_key.apply();
            return;
        }
        switch (meta.x) {
            1:
            2: { set(hdr.h.a, 5); }
            3 + 4: { drop(); }
        }
        switch ((ether_t)meta.y) {
            ether_t.ipv4: { meta.x = 1; }
            default: {}
        }
        @atomic {
            bit<8> local = meta.x;
            meta.x = local + 1;
        }
    }
}

SWITCH(EmptyParser, C);

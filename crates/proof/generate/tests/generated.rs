//! Both engines on generated programs and packets.

use stateplane_generate::{
    Arrival, Outcome, Session, compare_program, generate, properties::interpreter, semantics,
};
use stateplane_interp::Interp;
use stateplane_ir::{Annotation, AnnotationBody, Program, SIDE_EFFECTS_WAIT};
use stateplane_native::{Compiled, Native, Options};

/// Comparisons spent on making a difference small.
const ATTEMPTS: usize = 2000;

#[test]
fn generated_programs_show_no_difference() {
    let native = |program, seed| {
        Native::new(program, Options::verified(seed)).map_err(|error| error.to_string())
    };
    let mut total = Outcome::default();
    // The interpreter is compared with the specification on programs of the second kind.
    let generated = (0..25).map(|seed| (seed, generate(seed, 60)));
    let judged = (0..15).map(|seed| (seed, semantics::generate(seed, 12)));
    for (seed, generated) in generated.chain(judged) {
        let (program, session) = (&generated.program, &generated.session);
        match compare_program(program, session, interpreter, native, ATTEMPTS) {
            Ok(outcome) => total += outcome,
            Err(mismatch) => panic!("seed {seed}: {mismatch}"),
        }
    }
    assert!(total.transmitted > 500, "{total:?}");
}

/// Engines for several workers do the same. The interpreter objects where a block uses a domain of
/// locks at two indices; an engine that would wait for itself does not come to an end.
#[test]
fn engines_that_take_locks_show_no_difference() {
    let generated = (0..25).map(|seed| (seed, generate(seed, 40)));
    let judged = (0..15).map(|seed| (seed, semantics::generate(seed, 12)));
    let hints = [HINTS, WAYS].map(|text| (text, short_frames(500)));
    let generated = generated.chain(judged);
    let generated: Vec<_> = generated
        .map(|(seed, it)| (format!("seed {seed}"), it.program, it.session))
        .chain(hints.map(|(text, session)| ("hints".to_owned(), text.to_owned(), session)))
        .collect();
    for (name, program, session) in &generated {
        for is_whole in [false, true] {
            let prepared = |mut program: Program| {
                if is_whole {
                    program.structs[0].annotations.push(Annotation {
                        name: SIDE_EFFECTS_WAIT.to_owned(),
                        body: AnnotationBody::Empty,
                    });
                }
                program
            };
            let interp = |program, seed| {
                let options = stateplane_interp::Options { seed };
                Interp::guarded(prepared(program), options).map_err(|error| error.to_string())
            };
            let native = |program, seed| {
                let compiled = Compiled::guarded(prepared(program));
                let engine = compiled.and_then(|it| it.engine(Options::verified(seed)));
                engine.map_err(|error| error.to_string())
            };
            let outcomes = [
                compare_program(program, session, interpreter, interp, 0),
                compare_program(program, session, interpreter, native, 0),
            ];
            for outcome in outcomes {
                if let Err(mismatch) = outcome {
                    panic!("{name}: {mismatch}");
                }
            }
        }
    }
}

/// Its fields are zeros, wherever the engine reads them from.
#[test]
fn a_header_that_no_state_extracts_is_emitted_as_zeros() {
    let program = "#include <v1model.p4>
header h_t { bit<64> a; bit<64> b; bit<64> c; bit<64> d; bit<64> e; bit<4> f; bit<60> g; }
struct headers_t { h_t h; }
struct meta_t {}
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply {} }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply { hdr.h.setValid(); }
}
control C(inout headers_t hdr, inout meta_t meta) { apply {} }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";
    let mut session = generate(0, 0).session;
    session.writes.clear();
    session.arrivals = vec![Arrival {
        at: 0,
        port: 0,
        frame: vec![0xff; 64],
    }];
    let native = |program, seed| {
        Native::new(program, Options::verified(seed)).map_err(|error| error.to_string())
    };
    match compare_program(program, &session, interpreter, native, 0) {
        Ok(outcome) => assert_eq!(outcome.transmitted_bytes, 64 + 48),
        Err(mismatch) => panic!("{mismatch}"),
    }
}

/// A program of which machine code has a copy for each path through the parser: parsers within
/// parsers, paths that meet at different bits, rejection within, packets that come back.
const WAYS: &str = "#include <v1model.p4>
header kind_t { bit<8> kind; bit<8> next; }
header short_t { bit<16> x; }
header long_t { bit<32> y; bit<128> z; }
struct part_t { short_t short; long_t long; }
struct headers_t { kind_t kind; part_t first; part_t second; kind_t last; }
struct meta_t {
    bit<8> seen;
    bool both;
    bit<128> key;
    bit<32> slot;
    @field_list(1)
    bit<8> rounds;
}
parser Part(packet_in p, in bit<8> next, out part_t part, inout meta_t meta) {
    state start {
        transition select(p.lookahead<bit<8>>(), next) {
            (0 &&& 1, 0): short;
            (1 &&& 1, 1): long;
            (_, 2): both;
            (_, 3): wrong;
            default: accept;
        }
    }
    state both { p.extract(part.short); meta.both = true; transition long; }
    state short { p.extract(part.short); meta.seen = meta.seen + 1; transition accept; }
    state long {
        p.extract(part.long);
        transition select(part.long.y[7:0]) { 9: reject; default: accept; }
    }
    state wrong { verify(meta.both, error.NoMatch); transition accept; }
}
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    Part() first;
    Part() second;
    state start {
        p.extract(hdr.kind);
        transition select(hdr.kind.kind) { 1: one; 2: two; 3: last; default: accept; }
    }
    state one {
        first.apply(p, hdr.kind.next & 3, hdr.first, meta);
        transition select(hdr.first.long.isValid()) { true: two; false: last; }
    }
    state two {
        second.apply(p, hdr.kind.next >> 2 & 3, hdr.second, meta);
        transition last;
    }
    state last { p.extract(hdr.last); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.second.short.isValid(), { hdr.kind.next, hdr.last.kind },
            hdr.second.short.x, HashAlgorithm.csum16);
    }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<128>>(64) keys;
    bit<128> old;
    apply {
        std.egress_spec = 1;
        if (hdr.first.short.isValid()) {
            meta.key = hdr.kind.kind ++ hdr.first.short.x ++ 40w7 ++ 64w0;
        } else if (hdr.second.long.isValid()) {
            meta.key = hdr.second.long.z[127:64] ++ 64w0;
        }
        hash(meta.slot, HashAlgorithm.crc32, 32w0, { meta.key }, 32w64);
        keys.read(old, meta.slot);
        keys.write(meta.slot, old + meta.key + 1);
        hash(meta.slot, HashAlgorithm.crc16, 32w0, { old, meta.key }, 32w65535);
        if (hdr.last.isValid() && !(hdr.second.short.isValid() || meta.both)) {
            hdr.second.short.setValid();
            hdr.second.short.x = meta.slot[15:0];
        } else if (hdr.kind.kind == 2 && hdr.first.long.isValid()) {
            hdr.kind.setInvalid();
        }
        if (std.parser_error != error.NoError || std.checksum_error == 1) {
            hdr.kind.next = hdr.kind.next ^ 0x80;
        }
        if (hdr.kind.next[6:4] == 5) {
            std.mcast_grp = 1;
        }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.kind.next[6:4] == 3 && meta.rounds < 2 && hdr.last.isValid()) {
            meta.rounds = meta.rounds + 1;
            recirculate_preserving_field_list(1);
        } else if (hdr.kind.next[6:4] == 4 && std.instance_type == 0) {
            clone_preserving_field_list(CloneType.E2E, 1, 1);
        }
        hdr.last.next = meta.rounds ++ meta.seen[0:0] == 9w3 ? 8w1 : hdr.last.next;
    }
}
control C(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.first.long.isValid(), { hdr.first.long.y, meta.key },
            hdr.last.next, HashAlgorithm.csum16);
    }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

/// Side exits at unlikely branches: at every depth, in controls whose arguments are copied, in
/// atomic blocks, behind conditions of which something is known; branches that are all side exits;
/// rare statements in loops, actions and switches.
const HINTS: &str = "#include <v1model.p4>
header kind_t { bit<8> kind; bit<8> next; }
header more_t { bit<16> x; bit<8> y; bit<8> z; }
struct headers_t { kind_t kind; more_t more; }
struct meta_t { bit<16> a; bit<16> b; bool odd; bool marked; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        p.extract(hdr.kind);
        transition select(hdr.kind.kind) { 1: more; 2: accept; default: more; }
    }
    state more { p.extract(hdr.more); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) {
    apply {
        if (hdr.kind.next[7:7] == 1) @unlikely { meta.a = 7; }
        verify_checksum(hdr.more.isValid(), { hdr.kind.next }, hdr.more.x, HashAlgorithm.csum16);
    }
}
control Inner(in bit<8> what, inout bit<16> sum, out bool odd, inout meta_t meta) {
    register<bit<16>>(8) sums;
    bit<16> old;
    action add(bit<16> by) { if (by > 5) @unlikely { sum = sum + by; } sum = sum + 1; }
    apply {
        odd = what[0:0] == 1;
        if (!odd && what != 4) {
            sum = sum + 2;
        } else @unlikely {
            if (what == 9) @unlikely { return; }
            sum = sum ^ 0x55;
        }
        @atomic {
            sums.read(old, (bit<32>)what[2:0]);
            if (old > 900) @unlikely { old = 3; if (what == 6) { exit; } }
            sums.write((bit<32>)what[2:0], old + sum);
        }
        for (bit<8> i = 0; i < 3; i = i + 1) {
            if (i == what) @unlikely { sum = sum + 100; continue; }
            sum = sum + 1;
        }
        switch (what) { 1: @unlikely { sum = 1; } 2: { if (odd) @unlikely { sum = 2; } } }
        add((bit<16>)what);
        if (odd) @likely { meta.marked = true; }
        if (meta.marked && odd) @unlikely { sum = sum + 4; }
    }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    Inner() first;
    Inner() second;
    apply {
        std.egress_spec = 1;
        if (hdr.more.isValid()) {
            first.apply(hdr.more.y, hdr.more.x, meta.odd, meta);
            if (meta.odd || hdr.more.z == 3) @unlikely {
                hdr.more.setInvalid();
            } else {
                second.apply(hdr.more.z, meta.b, meta.odd, meta);
            }
        } else @unlikely {
            meta.b = 1;
            second.apply(hdr.kind.next, meta.a, meta.odd, meta);
        }
        if (!meta.odd) { meta.a = meta.a + 3; } else @unlikely { meta.a = meta.a + 5; }
        if (!meta.odd) { meta.a = meta.a + 1; }
        if (meta.marked && meta.odd) { hdr.kind.next = hdr.kind.next + 1; }
        hdr.kind.kind = hdr.kind.kind ^ meta.a[7:0];
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        if (meta.b[1:1] == 1) @unlikely {
            hdr.more.setValid();
            hdr.more.x = meta.b;
        }
        if (std.instance_type == 0) @unlikely { hdr.kind.next = hdr.kind.next ^ meta.a[15:8]; }
    }
}
control C(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(meta.b[2:2] == 1, { hdr.kind.kind, meta.a }, hdr.more.x,
            HashAlgorithm.csum16);
    }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

/// Lookups that side exits alone need, and others: whose results are read elsewhere, by egress too;
/// whose keys, conditions or results change before the exits; on one path of several; beside a `RETURN`
/// and an `EXIT`; in a control of its own; with registers that packets write or only read.
const LOOKUPS: &str = "#include <v1model.p4>
header kind_t { bit<8> kind; bit<8> next; }
header more_t { bit<8> x; bit<8> y; bit<8> z; bit<8> w; }
struct headers_t { kind_t kind; more_t more; }
struct meta_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e; bit<8> key; bool asked; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        p.extract(hdr.kind);
        transition select(hdr.kind.kind) { 1: more; 2: more; default: accept; }
    }
    state more { p.extract(hdr.more); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control Inner(in bit<8> key, in bool early, inout meta_t meta) {
    bit<8> found;
    action set(bit<8> value) { found = value; meta.e = value ^ key; }
    action none() { }
    table t {
        key = { key: exact; }
        actions = { set; none; }
        const default_action = none();
        const entries = { 1: set(9); 2: set(7); 3: set(5); 200: set(1); }
    }
    apply {
        found = 3;
        if (early) { RETURN }
        t.apply();
        if (key[3:3] == 1) @unlikely { meta.d = meta.d + found; }
    }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    Inner() inner;
    register<bit<8>>(4) given;
    register<bit<8>>(4) kept;
    bit<8> one = 1;
    bit<8> two = 2;
    bit<8> three = 3;
    bit<8> four = 4;
    bit<8> read = 0;
    bit<8> old = 0;
    bit<8> state = 0;
    bool wants;
    action set_one(bit<8> value, bit<8> more) { one = value; meta.a = more + hdr.more.y; }
    action set_two(bit<8> value) { two = value; }
    action set_three(bit<8> value) { three = value; }
    action set_four(bit<8> value) { four = value; }
    action set_egress(bit<8> value) { meta.c = value; }
    action none() { }
    table alone {
        key = { meta.key: exact; }
        actions = { set_one; none; }
        const default_action = none();
        const entries = { 0: set_one(10, 1); 1: set_one(20, 2); 2: set_one(30, 3); 7: set_one(40, 4); }
    }
    table default_alone {
        actions = { set_two; }
        const default_action = set_two(77);
    }
    table in_place {
        key = { hdr.more.x: ternary; }
        actions = { set_two; none; }
        const default_action = none();
        const entries = { 1 &&& 3: set_two(11); 2 &&& 7: set_two(22); }
    }
    table of_a_branch {
        key = { meta.key: exact; }
        actions = { set_three; none; }
        const default_action = none();
        const entries = { 0: set_three(1); 5: set_three(2); 6: set_three(9); }
    }
    table changed {
        key = { state: exact; }
        actions = { set_four; none; }
        const default_action = none();
        const entries = { 1: set_four(13); 2: set_four(14); 3: set_four(15); }
    }
    table for_egress {
        key = { hdr.kind.next: exact; }
        actions = { set_egress; none; }
        const default_action = none();
        const entries = { 1: set_egress(3); 129: set_egress(4); }
    }
    apply {
        std.egress_spec = 1;
        if (hdr.more.isValid()) {
            meta.key = hdr.more.x & 7;
            state = hdr.more.y & 3;
            kept.read(old, (bit<32>)hdr.more.w[1:0]);
            wants = hdr.more.w[2:2] == 1 || meta.asked;
            if (wants || hdr.more.z == 9) {
                if (hdr.more.x[4:4] == 1) { meta.key = old; }
                alone.apply();
                default_alone.apply();
                given.read(read, (bit<32>)meta.key[1:0]);
            }
            if (state == 2) { in_place.apply(); }
            if (hdr.more.x[7:7] == 1) { of_a_branch.apply(); old = old + 1; } else { old = old + 2; }
            if (state != 0) { changed.apply(); }
            for_egress.apply();
            wants = !wants;
            kept.write((bit<32>)hdr.more.w[1:0], old);
            if (old == 6) @unlikely { hdr.more.w = one + read + three; }
            state = state + 1;
            hdr.more.z = two;
            if (hdr.kind.next[6:6] == 1) @unlikely {
                hdr.more.x = one ^ four;
                hdr.more.y = hdr.more.y + meta.a;
                meta.b = 1;
            } else {
                hdr.more.y = hdr.more.y ^ state;
            }
            inner.apply(hdr.more.w, wants, meta);
            if (hdr.more.w[7:7] == 1) @unlikely {
                hdr.kind.next = hdr.kind.next + one + read + meta.e;
                if (hdr.more.w[6:6] == 1) { EXIT }
            }
        }
        hdr.kind.kind = hdr.kind.kind ^ meta.d;
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply { hdr.kind.next = hdr.kind.next + meta.c + meta.b; }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

/// Shifts of products, which may be too great for 64 bits, and of shifts; indices of registers and
/// counters that are certainly within them, just so, and just not.
const BOUNDS: &str = "#include <v1model.p4>
header kind_t { bit<8> kind; bit<64> a; bit<32> b; }
header sums_t { bit<64> wide; bit<64> within; bit<64> twice; bit<64> up; bit<32> narrow; bit<64> none; }
struct headers_t { kind_t kind; sums_t sums; }
struct meta_t { }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { p.extract(hdr.kind); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<64>>(16) items;
    counter(16, CounterType.packets) counts;
    bit<64> old;
    bit<64> sum = 0;
    action add(bit<32> at) {
        items.read(old, at);
        sum = sum + old;
        items.write(at, old + hdr.kind.a + 1);
        counts.count(at);
    }
    apply {
        std.egress_spec = 1;
        add((bit<32>)hdr.kind.a[3:0]);
        add((bit<32>)hdr.kind.a[4:0]);
        add((bit<32>)(hdr.kind.a >> 60));
        add((bit<32>)(hdr.kind.a >> 59));
        add((bit<32>)(((hdr.kind.a >> 32) * 16) >> 32));
        add((bit<32>)(((hdr.kind.a >> 32) * 16) >> 32) + 1);
        add((bit<32>)((hdr.kind.a * 16) >> 60));
        add((bit<32>)((hdr.kind.a * 64) >> 62));
        add((hdr.kind.b & 7) * 2 + 1);
        add((hdr.kind.b & 7) * 2 + 2);
        hdr.sums.setValid();
        hdr.sums.wide = (hdr.kind.a * 4096) >> 20;
        hdr.sums.within = ((hdr.kind.a >> 40) * 4096) >> 20;
        hdr.sums.twice = (hdr.kind.a >> 30) >> 33;
        hdr.sums.up = ((hdr.kind.a >> 20) * 4096) >> 4;
        hdr.sums.narrow = (hdr.kind.b * 256) >> 12;
        hdr.sums.none = ((hdr.kind.a >> 8) * 256) >> 8;
        hdr.kind.a = sum;
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

#[test]
fn bounds_of_numbers_hold() {
    compare_on_short_frames(BOUNDS);
}

#[test]
fn a_deferred_lookup_changes_nothing() {
    for (returns, exits) in [("", ""), ("return;", ""), ("", "exit;")] {
        compare_on_short_frames(&LOOKUPS.replace("RETURN", returns).replace("EXIT", exits));
    }
}

#[test]
fn a_hint_changes_nothing() {
    compare_on_short_frames(HINTS);
}

#[test]
fn every_way_through_a_parser_means_the_same() {
    compare_on_short_frames(WAYS);
}

/// Frames of up to 64 bytes, whose first is below 4.
fn short_frames(count: u64) -> Session {
    let mut session = generate(0, 0).session;
    session.writes.clear();
    let mut state = 7u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    session.arrivals = (0..count)
        .map(|at| {
            let length = next() as usize % 64;
            let mut frame: Vec<u8> = (0..length).map(|_| next() as u8).collect();
            if let Some(kind) = frame.first_mut() {
                *kind &= 3;
            }
            Arrival {
                at: at * 10,
                port: 0,
                frame,
            }
        })
        .collect();
    session
}

/// Both engines on short frames.
fn compare_on_short_frames(program: &str) {
    let session = short_frames(3000);
    let native = |program, seed| {
        Native::new(program, Options::verified(seed)).map_err(|error| error.to_string())
    };
    match compare_program(program, &session, interpreter, native, 200) {
        Ok(outcome) => assert!(outcome.transmitted > 2000, "{outcome:?}"),
        Err(mismatch) => panic!("{mismatch}"),
    }
}

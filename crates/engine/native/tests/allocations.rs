//! The packet path allocates nothing once its buffers have been made.

#![allow(unsafe_code, reason = "counts what the allocator is asked for")]

use num_bigint::BigUint;
use stateplane_native::Native;
use stateplane_runtime::{
    EgressInput, Engine, Entry, IngressInput, InstanceType, KeyMatch, Preserved,
};
use stateplane_switch::{MirrorSession, Replica, Switch, SwitchConfig};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;

struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

fn note() {
    // A thread that ends has nothing to count with any more.
    let _ = ASKED.try_with(|asked| asked.set(asked.get() + 1));
}

// SAFETY: all is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const PROGRAM: &str = "#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
header tag_t { bit<16> number; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> diffserv; bit<16> length; bit<32> fragment;
    bit<8> ttl; bit<8> protocol; bit<16> checksum; bit<32> source; bit<32> destination;
}
struct headers_t { ethernet_t ethernet; tag_t tag; ipv4_t ipv4; }
struct meta_t { bit<16> slot; bit<32> count; bit<200> wide; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        p.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x8100: tag; 0x800: ipv4; default: accept; }
    }
    state tag {
        p.extract(hdr.tag);
        transition select(hdr.tag.type) { 0x800: ipv4; default: accept; }
    }
    state ipv4 { p.extract(hdr.ipv4); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), { hdr.ipv4.source, hdr.ipv4.destination },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<32>>(1024) seen;
    counter(4, CounterType.packets_and_bytes) sent;
    direct_counter(CounterType.packets) hits;
    action drop() { mark_to_drop(std); }
    action via(bit<9> port, bit<48> mac) {
        std.egress_spec = port;
        hdr.ethernet.destination = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
    table routes {
        key = { hdr.ipv4.destination : lpm; }
        actions = { via; drop; }
        default_action = drop();
    }
    table rules {
        key = { hdr.ipv4.source : ternary; hdr.ipv4.protocol : range; }
        actions = { drop; NoAction; }
        default_action = NoAction();
        counters = hits;
    }
    apply {
        hash(meta.slot, HashAlgorithm.crc16, 16w0, { hdr.ipv4.source }, 16w1024);
        seen.read(meta.count, (bit<32>)meta.slot);
        seen.write((bit<32>)meta.slot, meta.count + 1);
        meta.wide = (bit<200>)hdr.ipv4.source << 90;
        routes.apply();
        rules.apply();
        sent.count((bit<32>)std.egress_spec & 3);
        // Untagged frames get a tag, and tagged ones lose it.
        if (hdr.tag.isValid()) {
            hdr.ethernet.type = hdr.tag.type;
            hdr.tag.setInvalid();
        } else if (meta.wide[121:90] != 0) {
            hdr.tag.setValid();
            hdr.tag.number = 7;
            hdr.tag.type = hdr.ethernet.type;
            hdr.ethernet.type = 0x8100;
        }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply {} }
control C(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), { hdr.ipv4.source, hdr.ipv4.ttl },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

fn engine() -> Native {
    engine_of(PROGRAM)
}

fn engine_of(program: &str) -> Native {
    let program = stateplane_compile::text(program).program();
    let program = program.expect("the program is right");
    let mut engine = Native::new(program, Default::default()).expect("it loads");
    let entry = Entry {
        keys: vec![KeyMatch::Prefix {
            value: BigUint::from(0x0a00_0000u32),
            length: 8,
        }],
        priority: 0,
        action: "via".to_owned(),
        data: vec![BigUint::from(1u32), BigUint::from(0x0200_0000_0001u64)],
    };
    let routes = engine.state_mut().table_mut("routes").expect("a table");
    routes.insert(&entry).expect("room");
    engine
}

/// Frames of all kinds and lengths: with and without a tag, with and without a route, short
/// ones.
fn frames() -> Vec<Vec<u8>> {
    (0..64u8)
        .map(|number| {
            let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
            if number % 3 == 0 {
                frame.extend([0x81, 0, 0, 9]);
            }
            frame.extend([8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2]);
            frame.extend([number, if number % 5 == 0 { 11 } else { 10 }, 0, 0, number]);
            frame.resize(60 + usize::from(number) * 20, number);
            frame
        })
        .chain([vec![0; 14], vec![8; 20]])
        .collect()
}

/// Number of allocator calls in runs of `work` after the first few.
fn asked_for(mut work: impl FnMut()) -> u64 {
    for _ in 0..4 {
        work();
    }
    let before = ASKED.get();
    for _ in 0..4 {
        work();
    }
    ASKED.get() - before
}

#[test]
fn a_burst_through_the_switch_allocates_nothing() {
    let config = SwitchConfig {
        ports: vec![0, 1],
        ..SwitchConfig::default()
    };
    let mut switch = Switch::new(engine(), config).expect("a switch");
    let frames = frames();
    let mut buffers = Vec::with_capacity(frames.len());
    let mut sent = 0;
    let asked = asked_for(|| {
        for frame in &frames {
            switch.announce(0, frame);
        }
        for frame in &frames {
            switch.handle_frame(1000, 0, frame);
        }
        while let Some(transmit) = switch.poll_transmit() {
            sent += 1;
            buffers.push(transmit.frame);
        }
        for buffer in buffers.drain(..) {
            switch.recycle(buffer);
        }
    });
    assert_eq!(asked, 0, "of {sent} frames sent");
    assert_eq!(sent, 8 * 51);
}

#[test]
fn packets_that_wait_for_egress_allocate_nothing() {
    let mut engine = engine();
    let frames = frames();
    let mut out = Vec::new();
    let mut waiting = Vec::with_capacity(frames.len());
    let mut bytes = 0;
    let asked = asked_for(|| {
        for frame in &frames {
            let outcome = engine.ingress(&IngressInput {
                frame,
                port: 0,
                instance_type: InstanceType::Normal,
                preserved: &Preserved::default(),
                now: 1000,
            });
            waiting.push(outcome.packet);
        }
        for packet in waiting.drain(..) {
            let input = EgressInput {
                port: 1,
                rid: 0,
                instance_type: InstanceType::Normal,
                enqueued_at: 1000,
                enqueue_depth: 0,
                dequeue_depth: 0,
                now: 1000,
            };
            engine.egress(packet, &input, &mut out);
            bytes += out.len();
        }
    });
    assert_eq!(asked, 0, "of {bytes} bytes sent");
}

/// Copies to the replicas of a group, clones that a mirror session holds, and packets that end in
/// ingress give their memory to later ones.
#[test]
fn copies_and_held_clones_allocate_nothing() {
    let program = PROGRAM.replace(
        "routes.apply();",
        "routes.apply();
        clone(CloneType.I2E, 5);
        if (std.egress_spec != 511) { std.mcast_grp = 1; }",
    );
    let replica = |port, rid| Replica { port, rid };
    let session = MirrorSession {
        egress_port: Some(1),
        hold_us: 100,
        ..MirrorSession::default()
    };
    let config = SwitchConfig {
        ports: vec![0, 1, 2],
        mirror_sessions: BTreeMap::from([(5, session)]),
        multicast_groups: BTreeMap::from([(1, vec![replica(1, 1), replica(2, 2), replica(1, 3)])]),
        ..SwitchConfig::default()
    };
    let mut switch = Switch::new(engine_of(&program), config).expect("a switch");
    let frames = frames();
    let mut buffers = Vec::with_capacity(8 * frames.len());
    let (mut now, mut sent) = (1000, 0);
    let asked = asked_for(|| {
        for frame in &frames {
            now += 10;
            switch.handle_frame(now, 0, frame);
            while let Some(transmit) = switch.poll_transmit() {
                sent += 1;
                buffers.push(transmit.frame);
            }
        }
        for buffer in buffers.drain(..) {
            switch.recycle(buffer);
        }
    });
    assert_eq!(asked, 0, "of {sent} frames sent");
    // All but the last ten clones have left, and three copies of each frame with a route.
    let frames = frames.len() as u64;
    assert_eq!(switch.counters().ingress_clones, 8 * frames);
    assert_eq!(switch.occupancy().held, 10);
    let copies = switch.counters().replicas;
    assert_eq!(sent, copies + 8 * frames - 10);
    assert!(copies > 3 * 8 * 50, "{copies}");
}

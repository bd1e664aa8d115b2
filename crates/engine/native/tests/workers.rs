//! Several engines of one program at once: nothing that is counted in an atomic block is
//! lost, by either engine.

#![allow(clippy::disallowed_methods, reason = "the test has threads")]

mod support;

use stateplane_native::{Compiled, Options};
use stateplane_runtime::{Engine as _, Fellow as _, Value};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{PACKETS, WORKERS, on_both, on_both_with_waits, program, sum};

#[test]
fn workers_that_hammer_one_register_in_an_atomic_block_lose_no_count() {
    let count = "@atomic { plain.read(a, 0); plain.write(0, a + 1); }";
    on_both(count, |read, counted| {
        assert_eq!(read("plain", 0), Value::from(WORKERS * PACKETS));
        assert_eq!(counted, WORKERS * PACKETS, "counters lose nothing either");
    });
}

#[test]
fn who_wants_a_lock_that_a_fellow_takes_most_asks_it_once() {
    let count = "@atomic { plain.read(a, 0); plain.write(0, a + 1); }";
    let native = Compiled::guarded(program(count)).expect("it loads");
    let mut engines = native
        .engine(Options::default())
        .expect("it loads")
        .with_fellows(2);
    let is_done = AtomicBool::new(false);
    let begin = Barrier::new(2);
    support::at_once(&mut engines, |worker, engine| {
        if worker == 0 {
            engine.begin_burst();
            (0..1000).for_each(|now| support::pass(engine, 0, now));
            begin.wait();
            while !is_done.load(Ordering::Acquire) {
                support::pass(engine, 0, 0);
            }
            engine.end_burst();
        } else {
            begin.wait();
            support::pass(engine, 0, 0);
            is_done.store(true, Ordering::Release);
        }
    });
    assert_eq!(support::waits(&engines[1..]), 1);
}

#[test]
fn a_block_that_is_left_early_is_left() {
    let count = "@atomic { plain.read(a, 0); plain.write(0, a + 1); \
                 if (s.ingress_port[0:0] == 1) { mark_to_drop(s); exit; } \
                 other.read(b, 0); other.write(0, b + 1); }";
    on_both(count, |read, _| {
        assert_eq!(read("plain", 0), Value::from(WORKERS * PACKETS));
        assert_eq!(read("other", 0), Value::from(WORKERS * PACKETS / 2));
    });
}

#[test]
fn a_block_in_which_a_packet_is_given_up_is_left() {
    let count = "@atomic { plain.read(a, 0); plain.write(0, a + 1); \
                 if (s.ingress_global_timestamp[12:0] == 0) { for (; true; ) { b = b + 1; } } \
                 other.read(b, 0); other.write(0, b + 1); }";
    let given_up = WORKERS * PACKETS.div_ceil(1 << 13);
    on_both(count, |read, _| {
        assert_eq!(read("plain", 0), Value::from(WORKERS * PACKETS));
        assert_eq!(read("other", 0), Value::from(WORKERS * PACKETS - given_up));
    });
}

#[test]
fn a_wide_element_never_tears() {
    // Both halves are always equal; a torn read would show in `other`.
    let count = "if (s.ingress_port[0:0] == 0) { \
                     wide.write(0, (bit<64>)s.ingress_global_timestamp ++ \
                                   (bit<64>)s.ingress_global_timestamp); \
                 } else { \
                     wide.read(w, 0); \
                     if (w[127:64] != w[63:0]) { other.write(0, 1); } \
                 }";
    on_both(count, |read, _| {
        assert_eq!(read("other", 0), Value::from(0u64), "a read was torn");
    });
}

/// The element that a packet uses: of four, each for all workers.
const SHARED: &str = "at = (bit<32>)s.ingress_global_timestamp[1:0];";

#[test]
fn locks_of_elements_lose_no_count() {
    let count = format!("{SHARED} @atomic {{ one.read(a, at); one.write(at, a + 1); }}");
    on_both(&count, |read, _| {
        for at in 0..4 {
            assert_eq!(read("one", at), Value::from(WORKERS * PACKETS / 4));
        }
    });
}

#[test]
fn two_registers_at_one_key_are_equal_in_every_block() {
    let count = format!(
        "{SHARED} @atomic {{ one.read(a, at); two.read(b, at); \
         if (a != b) {{ other.write(0, 1); }} \
         one.write(at, a + 1); two.write(at, b + 1); }}"
    );
    on_both(&count, |read, _| {
        assert_eq!(
            read("other", 0),
            Value::from(0u64),
            "a block saw half of another"
        );
        for register in ["one", "two"] {
            assert_eq!(sum(read, register), WORKERS * PACKETS, "{register}");
        }
    });
}

#[test]
fn registers_with_locks_of_their_own_are_equal_in_every_block() {
    // `three` is longer, so that its lock is another one.
    let count = format!(
        "{SHARED} @atomic {{ one.read(a, at); three.read(b, at); \
         if (a != b) {{ other.write(0, 1); }} \
         one.write(at, a + 1); three.write(at, b + 1); }}"
    );
    on_both(&count, |read, _| {
        assert_eq!(
            read("other", 0),
            Value::from(0u64),
            "a block saw half of another"
        );
        for register in ["one", "three"] {
            assert_eq!(sum(read, register), WORKERS * PACKETS, "{register}");
        }
    });
}

#[test]
fn a_sum_over_two_elements_of_one_register_stays() {
    let count = "at = (bit<32>)s.ingress_global_timestamp[2:0]; \
         @atomic { one.read(a, at); one.write(at, a + 1); one.read(b, at ^ 1); one.write(at ^ 1, b - 1); \
                   one.read(a, 0); one.read(b, 1); if (a + b != 0) { other.write(0, 1); } }";
    on_both(count, |read, _| {
        assert_eq!(
            read("other", 0),
            Value::from(0u64),
            "a block saw half of another"
        );
    });
}

#[test]
fn blocks_that_use_registers_in_opposite_orders_end() {
    let count = format!(
        "{SHARED} if (s.ingress_port[0:0] == 0) {{ \
             @atomic {{ one.read(a, at); three.read(b, at + 1); \
                        one.write(at, a + 1); three.write(at + 1, b + 1); }} \
         }} else {{ \
             @atomic {{ three.read(b, at + 1); one.read(a, at); \
                        three.write(at + 1, b + 1); one.write(at, a + 1); }} \
         }}"
    );
    on_both(&count, |read, _| {
        for register in ["one", "three"] {
            assert_eq!(sum(read, register), WORKERS * PACKETS, "{register}");
        }
    });
}

#[test]
fn an_index_that_was_read_locks_its_element() {
    let count = format!(
        "{SHARED} @atomic {{ two.read(a, at); two.write(at, (a + 1) & 3); \
                             three.read(b, (bit<32>)a); three.write((bit<32>)a, b + 1); }}"
    );
    on_both(&count, |read, _| {
        assert_eq!(sum(read, "three"), WORKERS * PACKETS);
    });
}

#[test]
fn workers_with_keys_of_their_own_never_wait() {
    let count = "at = (bit<32>)s.ingress_port; \
         @atomic { one.read(a, at); two.read(b, at); one.write(at, a + 1); two.write(at, b + 1); \
                   three.read(c, at); three.write(at, c + 1); }";
    on_both_with_waits(count, |read, _, waits| {
        assert_eq!(waits, 0);
        for register in ["one", "two", "three"] {
            assert_eq!(sum(read, register), WORKERS * PACKETS, "{register}");
        }
    });
}

#[test]
fn an_index_past_the_end_locks_nothing() {
    let count = "at = (bit<32>)s.ingress_global_timestamp[0:0] + 7; \
         @atomic { one.read(a, at); one.write(at, a + 1); two.read(b, at); two.write(at, b + 1); \
                   if (a != b) { other.write(0, 1); } }";
    on_both(count, |read, _| {
        assert_eq!(read("other", 0), Value::from(0u64));
        assert_eq!(read("one", 7), Value::from(WORKERS * PACKETS / 2));
        assert_eq!(sum(read, "two"), WORKERS * PACKETS / 2);
    });
}

#[test]
fn an_index_past_the_end_of_one_register_locks_the_other() {
    // Both registers have one lock, which the first use takes though it is past the end of its own.
    let count = "at = (bit<32>)s.ingress_global_timestamp[0:0] + 8; c = 0; \
         @atomic { if (s.ingress_port[0:0] == 1) { three.read(c, 0); } one.read(a, at); \
                   three.read(b, 1); three.write(1, b + 1); \
                   three.read(b, 2); three.write(2, b + 1); one.write(at, a + c); }";
    on_both(count, |read, _| {
        assert_eq!(sum(read, "three"), 2 * WORKERS * PACKETS);
    });
}

#[test]
fn indices_past_the_end_of_two_arrays_lock_nothing() {
    // The arrays have locks of their own, and the block uses no element of either.
    let count = "at = (bit<32>)s.ingress_global_timestamp[0:0] + 16; \
         @atomic { one.read(a, at); three.read(b, at + 1); \
                   three.write(at + 1, b + 1); one.write(at, a + 1); } \
         @atomic { plain.read(a, 0); plain.write(0, a + 1); }";
    on_both(count, |read, _| {
        assert_eq!(read("plain", 0), Value::from(WORKERS * PACKETS));
        assert_eq!(sum(read, "one"), 0);
        assert_eq!(sum(read, "three"), 0);
    });
}

#[test]
fn blocks_left_on_any_way_release_their_locks() {
    let ways = [
        ("exit;", 0),
        ("return;", 0),
        ("twice(); exit;", 1),
        (
            "@atomic { two.read(b, at); two.write(at, b + 1); exit; }",
            0,
        ),
    ];
    for (way, more) in ways {
        let count = format!(
            "{SHARED} s.egress_spec = 1; \
             @atomic {{ one.read(a, at); one.write(at, a + 1); \
                        if (s.ingress_port[0:0] == 1) {{ {way} }} \
                        three.read(b, at); three.write(at, b + 1); }}"
        );
        on_both(&count, |read, _| {
            let all = WORKERS * PACKETS;
            assert_eq!(sum(read, "one"), all, "{way}");
            assert_eq!(sum(read, "three"), all / 2 + more * all / 2, "{way}");
        });
    }
}

#[test]
fn blocks_in_loops_release_their_locks_in_each_round() {
    for way in ["break;", "continue;", ""] {
        let count = format!(
            "for (bit<8> n = 0; n < 3; n = n + 1) {{ at = (bit<32>)n; \
                 @atomic {{ one.read(a, at); one.write(at, a + 1); \
                            if (s.ingress_port[0:0] == 1) {{ {way} }} \
                            three.read(b, at); three.write(at, b + 1); }} }}"
        );
        on_both(&count, |read, _| {
            let all = WORKERS * PACKETS;
            let (one, three) = match way {
                "break;" => (all / 2 * 4, all / 2 * 3),
                "continue;" => (all * 3, all / 2 * 3),
                _ => (all * 3, all * 3),
            };
            assert_eq!(
                (sum(read, "one"), sum(read, "three")),
                (one, three),
                "{way}"
            );
        });
    }
}

#[test]
fn the_end_of_an_inner_block_releases_nothing() {
    let count = format!(
        "{SHARED} @atomic {{ one.read(a, at); @atomic {{ two.read(b, at); two.write(at, b + 1); }} \
                             twice(); one.read(a, at); one.write(at, a + 1); \
                             if (a != b) {{ other.write(0, 1); }} }}"
    );
    on_both(&count, |read, _| {
        assert_eq!(read("other", 0), Value::from(0u64));
        for register in ["one", "two", "three"] {
            assert_eq!(sum(read, register), WORKERS * PACKETS, "{register}");
        }
    });
}

#[test]
fn a_loop_in_a_block_holds_what_it_took() {
    let count = format!(
        "{SHARED} @atomic {{ for (bit<8> n = 0; n < 3; n = n + 1) {{ \
                 one.read(a, at); two.read(b, at); if (a != b) {{ other.write(0, 1); }} \
                 one.write(at, a + 1); two.write(at, b + 1); }} }}"
    );
    on_both(&count, |read, _| {
        assert_eq!(read("other", 0), Value::from(0u64));
        assert_eq!(sum(read, "one"), 3 * WORKERS * PACKETS);
    });
}

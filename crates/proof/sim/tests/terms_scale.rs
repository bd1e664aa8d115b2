//! Terms (rules 1 to 1d and 17) of 100 switches with 12 servers that keep 1,024 shards: what they
//! cost, and which changes of the chains they outlast.

mod fleet;

use fleet::{Counts, DETECTION, Fleet, Seen, Shape};

/// The second row of the table of costs in `docs/replication-protocol.md`.
const SHAPE: Shape = Shape {
    switches: 100,
    servers: 12,
    shards: 1024,
    replicas: 3,
};

const SECOND: u64 = 1_000_000;

/// µs beyond the detection time after which a new head has to cover what the dead one did.
const RETURN: u64 = 100_000;

/// A server that is drained, or dies.
const SERVER: usize = 5;

/// A fleet in which all chains are whole, each switch has a term for each shard, and nothing has
/// changed for 0.2 s.
fn settled(shape: Shape, seed: u64) -> Fleet {
    let mut fleet = Fleet::new(shape, seed);
    fleet.pass_until(5 * SECOND, |fleet| {
        fleet.controller().is_settled() && fleet.all_last()
    });
    fleet.pass(SECOND / 5);
    fleet.take_counts();
    assert_eq!(fleet.lapses(), 0);
    fleet
}

/// Drains the server, or ends that, and lets 2 s pass from when all shards are where they should
/// be. No term may notice.
fn drain(fleet: &mut Fleet, drained: bool) -> Counts {
    fleet.drain(SERVER, drained);
    let took = fleet.pass_until(10 * SECOND, |fleet| fleet.controller().is_settled());
    fleet.pass(2 * SECOND);
    let (counts, seen) = fleet.take_counts();
    println!("drained {drained} in {took} µs, and 2 s more: {counts:?}");
    nothing_noticed(fleet, &seen);
    counts
}

/// Every term has lasted from before.
fn nothing_noticed(fleet: &Fleet, seen: &[Seen]) {
    let noticed: Vec<_> = (0..)
        .zip(seen)
        .filter(|it| *it.1 != Seen::default())
        .collect();
    assert!(noticed.is_empty(), "{noticed:?}");
    assert_eq!(fleet.lapses(), 0);
    assert!(fleet.all_last());
}

#[test]
fn a_second_costs_48_000_messages_and_a_drain_lapses_no_term() {
    let mut fleet = settled(SHAPE, 1);
    fleet.pass(SECOND);
    let (counts, seen) = fleet.take_counts();
    println!("a second: {counts:?}");
    nothing_noticed(&fleet, &seen);
    let messages = counts.heartbeats + counts.replies;
    assert!((45_600..=50_400).contains(&messages), "{counts:?}");
    assert!(
        counts.heartbeats.abs_diff(counts.replies) < 100,
        "{counts:?}"
    );
    // Ten questions a second, and as many answers; a clock that runs fast has one more now and then.
    let pairs = fleet.backed_pairs() as u64;
    assert!(pairs <= 12 * 11);
    assert!(counts.backing <= 20 * pairs * 101 / 100, "{counts:?}");
    assert!(counts.backing >= 20 * pairs * 99 / 100, "{counts:?}");

    let (kept, headed) = fleet.shards_of(SERVER);
    assert!(kept.len() > headed.len() && headed.len() > 32);
    drain(&mut fleet, true);
    assert!(fleet.shards_of(SERVER).0.is_empty());
}

#[test]
fn the_death_of_a_server_that_heads_nothing_lapses_no_term() {
    let mut fleet = settled(SHAPE, 2);
    drain(&mut fleet, true);
    // One that comes back stands behind the others.
    drain(&mut fleet, false);
    let (kept, headed) = fleet.shards_of(SERVER);
    assert!(kept.len() > 100 && headed.is_empty(), "{headed:?}");
    fleet.kill(SERVER);
    fleet.pass(2 * SECOND);
    assert_eq!(fleet.controller().counters().deaths, 1);
    assert!(fleet.shards_of(SERVER).0.is_empty());
    let (_, seen) = fleet.take_counts();
    nothing_noticed(&fleet, &seen);
}

#[test]
fn terms_with_a_dead_head_are_back_100_ms_after_its_detection() {
    let mut fleet = settled(SHAPE, 3);
    let (kept, headed) = fleet.shards_of(SERVER);
    assert!(kept.len() > headed.len() && headed.len() > 32);
    let died = fleet.now();
    fleet.kill(SERVER);
    fleet.pass(DETECTION + RETURN);
    assert!(fleet.all_last());
    fleet.pass(2 * SECOND);
    let (_, seen) = fleet.take_counts();
    let (mut back, mut longest) = (0, 0);
    for (shard, seen) in (0..).zip(&seen) {
        // Its other chains only lose a member.
        let begun = if headed.contains(&shard) { 100 } else { 0 };
        assert_eq!(seen.moved, begun, "shard {shard}: {seen:?}");
        assert!(begun > 0 || seen.passed == 0, "shard {shard}: {seen:?}");
        back = back.max(seen.moved_at);
        longest = longest.max(seen.longest);
    }
    println!(
        "back {} µs after the death, after {longest} µs without",
        back - died
    );
    assert!(back - died <= DETECTION + RETURN);
    assert_eq!(fleet.lapses(), 100 * headed.len() as u64);
}

#[test]
fn equal_seeds_give_equal_traces() {
    let trace = |seed| {
        let shape = Shape {
            switches: 4,
            servers: 6,
            shards: 32,
            ..SHAPE
        };
        let mut fleet = settled(shape, seed);
        drain(&mut fleet, true);
        fleet.kill(0);
        fleet.pass(SECOND);
        fleet.trace()
    };
    assert_eq!(trace(4), trace(4));
    assert_ne!(trace(4), trace(5));
}

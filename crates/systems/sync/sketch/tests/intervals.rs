//! Every answer has the true count in its interval, whatever packets came and however stale the
//! view is; ends that may miss do so no oftener than they say.

mod support;

use proptest::prelude::*;
use stateplane_sketch::{Distinct, Family, Interval, Key, Pairs, Reading, Shape, Sketch};
use std::collections::{BTreeMap, BTreeSet};
use support::{Packet, drawn};

/// Shapes of all families, small enough that flows meet.
fn shapes(seed: u64) -> [Shape; 6] {
    [
        Shape::count_min(seed, 0, 3, 5),
        Shape::of(Family::HashPipe, seed, 3, 3, 0),
        Shape::of(Family::Elastic, seed, 1, 3, 5),
        Shape::of(Family::FlowRadar, seed, 3, 4, 6),
        Shape::of(Family::UnivMon, seed, 6, 4, 3),
        Shape::of(Family::SketchLearn, seed, 32, 4, 0),
    ]
}

/// The key by which a family counts a packet.
fn key(family: Family, packet: &Packet) -> Key {
    match family {
        Family::CountMin | Family::FlowRadar => packet.flow(),
        _ => packet.source(),
    }
}

fn counted(shape: Shape, packets: &[Packet]) -> (Sketch, BTreeMap<Key, u64>) {
    let mut sketch = Sketch::empty(shape).expect("a shape");
    let mut exact = BTreeMap::new();
    for packet in packets {
        let key = key(shape.family, packet);
        sketch.update(key);
        *exact.entry(key).or_insert(0) += 1;
    }
    (sketch, exact)
}

/// Ends that never miss, and those that may.
fn check(interval: Interval, count: u64, what: &str) -> Result<(u32, u32), TestCaseError> {
    prop_assert!(interval.low <= interval.high, "{what}: {interval:?}");
    prop_assert!(interval.low <= interval.estimate && interval.estimate <= interval.high);
    let (low, high) = (count < interval.low, count > interval.high);
    prop_assert!(
        !low || interval.low_miss > 0.0,
        "{what}: {count} in {interval:?}"
    );
    prop_assert!(
        !high || interval.high_miss > 0.0,
        "{what}: {count} in {interval:?}"
    );
    Ok((low.into(), high.into()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn exact_readings_have_the_count_in_their_intervals(
        seed: u64, draw in 0_u64..1 << 20, count in 1_usize..600, flows in 1_u64..200,
    ) {
        let packets = drawn(draw, count, flows);
        let absent = Key([1, 2, 3, 4]);
        for shape in shapes(seed) {
            let (sketch, mut exact) = counted(shape, &packets);
            exact.insert(absent, 0);
            let decoded = sketch.decode();
            for (key, count) in exact {
                let interval = match &decoded {
                    Some(decoded) => decoded.query(&sketch, key),
                    None => sketch.query(key),
                };
                check(interval, count, shape.family.name())?;
            }
        }
    }

    /// A view is behind: each value is what its register held at some moment, no counter by more
    /// than E.
    #[test]
    fn stale_views_have_the_count_in_their_intervals(
        seed: u64, draw in 0_u64..1 << 20, count in 1_usize..600, flows in 1_u64..100,
    ) {
        let packets = drawn(draw, count, flows);
        for shape in shapes(seed) {
            let (sketch, exact) = counted(shape, &packets);
            let stale = stale(&sketch, &packets, draw);
            for (key, count) in exact {
                check(stale.query(key), count, shape.family.name())?;
            }
        }
    }
}

/// The sketch with each value from a moment of its own. Groups of counters tell how far they are
/// off at most, others that they may be.
fn stale(now: &Sketch, packets: &[Packet], draw: u64) -> Sketch {
    let shape = *now.shape();
    let moments = [packets.len() / 2, packets.len() * 3 / 4, packets.len()];
    let then = moments.map(|end| counted(shape, &packets[..end]).0);
    let mut draws = support::Draws(draw);
    let parts = now.parts().iter().enumerate().map(|(part, reading)| {
        let is_counters = match shape.family {
            Family::CountMin | Family::SketchLearn => true,
            Family::Elastic => part == 1,
            Family::UnivMon => part == 0,
            _ => false,
        };
        let mut bound = 0;
        let values = reading.values.iter().enumerate().map(|(at, value)| {
            let seen = then[draws.below(3) as usize].parts()[part].values[at];
            bound = bound.max(value.wrapping_sub(seen));
            seen
        });
        let values: Vec<u64> = values.collect();
        Reading {
            bound: if is_counters { Some(bound) } else { Some(1) },
            all_but: 7,
            ..Reading::window(values, 0)
        }
    });
    Sketch::new(shape, parts.collect()).expect("readings of the shape")
}

#[test]
fn ends_that_may_miss_do_so_no_oftener_than_they_say() {
    let packets = drawn(3, 20_000, 4_000);
    for shape in [
        Shape::count_min(0, 0, 2, 8),
        Shape::of(Family::UnivMon, 0, 8, 8, 4),
    ] {
        let (mut asked, mut missed, mut promised) = (0.0, 0.0, 0.0);
        for seed in 0..20 {
            let (sketch, exact) = counted(Shape { seed, ..shape }, &packets);
            for (key, count) in exact {
                let interval = sketch.query(key);
                asked += 1.0;
                missed += f64::from(u8::from(count < interval.low));
                promised = interval.low_miss;
            }
        }
        let rate = missed / asked;
        assert!(rate <= promised, "{}: {rate} of {promised}", shape.family);
        println!("{}: {missed} of {asked} below the low end", shape.family);
    }
}

/// A filter that takes many new pairs for old ones: the high end has them.
#[test]
fn partners_are_within_their_intervals_though_the_filter_is_full() {
    let packets = drawn(12, 20_000, 4_000);
    let mut missed = 0;
    for filter_bits in [12, 13, 20] {
        let mut pairs = Pairs::new(7, 3, filter_bits);
        let mut counts = Sketch::empty(Shape::count_min(7, 6, 3, 12)).expect("a shape");
        let mut exact: BTreeMap<Key, BTreeSet<Key>> = BTreeMap::new();
        for packet in &packets {
            // Sixteen sources, so that each has many partners.
            let own = Key([packet.source.to_bits() & 15, 0, 0, 0]);
            let pair = Key([own.0[0], packet.destination.to_bits(), 0, 0]);
            if pairs.insert(pair) {
                counts.update(own);
            }
            exact.entry(own).or_default().insert(pair);
        }
        let distinct = Distinct::new(counts, filter_bits).expect("count-min");
        for (own, partners) in &exact {
            let (answer, count) = (distinct.query(*own), partners.len() as u64);
            assert!(
                count <= answer.high,
                "{filter_bits}: {own}: {count} in {answer:?}"
            );
            missed += u64::from(count > answer.estimate);
        }
    }
    assert!(missed > 0, "the filter saw every pair");
}

#[test]
fn sketches_that_name_flows_name_the_largest() {
    let packets = drawn(5, 30_000, 3_000);
    for shape in [
        Shape::of(Family::HashPipe, 9, 4, 8, 0),
        Shape::of(Family::Elastic, 9, 1, 9, 12),
        Shape::of(Family::FlowRadar, 9, 3, 11, 12),
        Shape::of(Family::UnivMon, 9, 10, 10, 7),
        Shape::of(Family::SketchLearn, 9, 32, 9, 0),
    ] {
        let (sketch, exact) = counted(shape, &packets);
        let mut sizes: Vec<(u64, Key)> = exact.iter().map(|(key, count)| (*count, *key)).collect();
        sizes.sort_unstable();
        let named = sketch.keys();
        let largest = &sizes[sizes.len() - 20..];
        let found = largest
            .iter()
            .filter(|(_, key)| named.contains(key))
            .count();
        println!(
            "{}: {found} of the 20 largest of {} named",
            shape.family,
            named.len()
        );
        assert!(found >= 18, "{}: {found}", shape.family);
    }
}

#[test]
fn flows_that_fit_are_decoded_whole_and_too_many_are_not() {
    let shape = Shape::of(Family::FlowRadar, 4, 3, 9, 10);
    let (sketch, exact) = counted(shape, &drawn(8, 20_000, 900));
    let decoded = sketch.decode().expect("flow radar");
    assert!(decoded.complete);
    let found: BTreeMap<Key, u64> = decoded
        .flows
        .iter()
        .map(|(key, flow)| (*key, flow.packets))
        .collect();
    assert_eq!(found, exact);
    assert!(decoded.flows.values().all(|flow| flow.even));
    let (sketch, exact) = counted(shape, &drawn(8, 20_000, 9_000));
    let decoded = sketch.decode().expect("flow radar");
    assert!(!decoded.complete);
    let missing = exact.keys().find(|key| !decoded.flows.contains_key(key));
    let missing = *missing.expect("some flow is not decoded");
    let interval = decoded.query(&sketch, missing);
    assert!(interval.contains(exact[&missing]) && interval.low < interval.high);
}

#[test]
fn a_flow_taken_for_an_old_one_leaves_its_neighbours_uncertain() {
    // A filter of 128 bits takes many flows for old ones; their packets stay in cells of others.
    let shape = Shape::of(Family::FlowRadar, 4, 3, 9, 1);
    let (sketch, exact) = counted(shape, &drawn(8, 5_000, 300));
    let decoded = sketch.decode().expect("flow radar");
    assert!(!decoded.complete && decoded.flows.len() < exact.len());
    let wrong = exact.iter().filter(|(key, count)| {
        let found = decoded.flows.get(key);
        found.is_some_and(|flow| flow.packets != **count)
    });
    assert!(wrong.count() > 0);
    for (key, count) in exact {
        assert!(decoded.query(&sketch, key).contains(count), "{key}");
    }
}

#[test]
fn univmon_estimates_the_number_of_flows_and_the_entropy() {
    let packets = drawn(6, 40_000, 5_000);
    let (sketch, exact) = counted(Shape::of(Family::UnivMon, 2, 12, 11, 9), &packets);
    let flows = sketch.sum_of(|_| 1.0).expect("univmon");
    let near = (flows / exact.len() as f64 - 1.0).abs();
    println!("{flows} of {} flows", exact.len());
    assert!(near < 0.2, "{flows} of {}", exact.len());
    let entropy = |sum: f64| (packets.len() as f64).log2() - sum / packets.len() as f64;
    let own = entropy(sketch.sum_of(|x| x * x.log2()).expect("univmon"));
    let of = |count: &u64| *count as f64 * (*count as f64).log2();
    let exact = entropy(exact.values().map(of).sum());
    println!("entropy {own} of {exact}");
    assert!((own - exact).abs() < 0.1 * exact, "{own} of {exact}");
}

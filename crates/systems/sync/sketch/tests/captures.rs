//! Queries on captures of ../shared/traces, which pass with a message where there are none.

mod support;

use stateplane_sketch::{Distinct, Key, Pairs, Reading, Shape, Sketch, Verdict, detect};
use std::collections::{BTreeMap, BTreeSet};
use support::{Draws, Packet, SEED, capture, datagrams, parse};

const CAPTURES: [&str; 3] = [
    "mixed-one-way.pcap",
    "mixed-two-way-snap96.pcap",
    "syn-flood.pcap",
];

fn packets(name: &str) -> Option<Vec<Packet>> {
    let path = capture(name)?;
    let all = datagrams(&path, usize::MAX);
    Some(all.iter().filter_map(|ip| parse(ip)).collect())
}

/// A view of the sketch that is behind each register by up to `bound`.
fn behind(sketch: &Sketch, bound: u64, draws: &mut Draws) -> Sketch {
    let parts = sketch.parts().iter().map(|part| Reading {
        values: part
            .values
            .iter()
            .map(|value| value - draws.below(bound + 1).min(*value))
            .collect(),
        bound: Some(bound),
        all_but: 1,
        ..part.clone()
    });
    Sketch::new(*sketch.shape(), parts.collect()).expect("its own shape")
}

#[test]
fn count_min_is_never_low_by_more_than_the_bound_and_seldom_high() {
    let mut asked = 0;
    for name in CAPTURES {
        let Some(packets) = packets(name) else {
            continue;
        };
        for (rows, bound) in [(1, 0), (2, 0), (3, 40)] {
            let (mut queries, mut high) = (0_u64, 0_u64);
            for seed in 0..4 {
                let shape = Shape::count_min(SEED + seed, 0, rows, 9);
                let mut sketch = Sketch::empty(shape).expect("a shape");
                let mut exact: BTreeMap<Key, u64> = BTreeMap::new();
                for packet in &packets {
                    sketch.update(packet.flow());
                    *exact.entry(packet.flow()).or_insert(0) += 1;
                }
                let view = behind(&sketch, bound, &mut Draws(seed));
                for (key, count) in &exact {
                    let answer = view.query(*key);
                    assert!(
                        *count <= answer.high,
                        "{name}: {key}: {count} in {answer:?}"
                    );
                    queries += 1;
                    high += u64::from(*count < answer.low);
                }
            }
            let most = queries as f64 * 0.5_f64.powi(rows as i32);
            assert!(
                high as f64 <= most,
                "{name}: {high} of {queries}, {rows} rows"
            );
            println!(
                "{name}: {rows} rows, E = {bound}: {high} of {queries} too high, at most {most}"
            );
            asked += queries;
        }
    }
    assert!(asked == 0 || asked >= 10_000, "{asked} queries");
}

#[test]
fn partners_are_counted_within_their_intervals() {
    for name in CAPTURES {
        let Some(packets) = packets(name) else {
            continue;
        };
        // A filter that is full, and one that is nearly empty.
        for filter_bits in [14, 20] {
            let mut pairs = Pairs::new(SEED, 3, filter_bits);
            let mut counts = Sketch::empty(Shape::count_min(SEED, 6, 3, 12)).expect("a shape");
            let mut exact: BTreeMap<Key, BTreeSet<Key>> = BTreeMap::new();
            for packet in &packets {
                let pair = Key::pair(packet.source, packet.destination);
                if pairs.insert(pair) {
                    counts.update(packet.source());
                }
                exact.entry(packet.source()).or_default().insert(pair);
            }
            let distinct = Distinct::new(counts, filter_bits).expect("count-min");
            let mut low = 0;
            for (source, partners) in &exact {
                let answer = distinct.query(*source);
                let count = partners.len() as u64;
                assert!(
                    count <= answer.high,
                    "{name}: {source}: {count} in {answer:?}"
                );
                low += usize::from(count < answer.low);
            }
            assert!(low * 8 <= exact.len(), "{name}: {low} of {}", exact.len());
        }
    }
}

#[test]
fn detections_have_all_that_there_are() {
    for name in CAPTURES {
        let Some(packets) = packets(name) else {
            continue;
        };
        let threshold = packets.len() as u64 / 200;
        let (one, other) = packets.split_at(packets.len() / 3);
        let count = |packets: &[Packet]| {
            let mut sketch = Sketch::empty(Shape::count_min(SEED, 0, 3, 14)).expect("a shape");
            packets
                .iter()
                .for_each(|packet| sketch.update(packet.flow()));
            sketch
        };
        let mut exact: BTreeMap<Key, u64> = BTreeMap::new();
        for packet in &packets {
            *exact.entry(packet.flow()).or_insert(0) += 1;
        }
        let keys = || exact.keys().copied();
        let places = [count(one), count(other)];
        let whole = detect::heavy_hitters(&count(&packets), keys(), threshold);
        let global = detect::icebergs(&places, keys(), threshold);
        for found in [&whole, &global] {
            let named: BTreeSet<Key> = found.iter().map(|it| it.key).collect();
            for (key, count) in &exact {
                assert!(*count <= threshold || named.contains(key), "{name}: {key}");
            }
            let sure = found.iter().filter(|it| it.verdict == Verdict::Certainly);
            let wrong = sure.filter(|it| exact[&it.key] <= threshold).count();
            assert!(
                wrong * 8 <= found.len(),
                "{name}: {wrong} of {}",
                found.len()
            );
        }
        println!(
            "{name}: {} heavy hitters, {} icebergs",
            whole.len(),
            global.len()
        );
    }
}

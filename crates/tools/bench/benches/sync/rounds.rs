//! Operations that take turns.

use stateplane_bench::Report;
use std::time::{Duration, Instant};

/// Operations whose times are measured, each with its name.
pub type Operation<'a> = (&'a str, &'a mut dyn FnMut() -> Duration);

/// Time after which operations take no more turns, if each has had so many that count.
const LONGEST: Duration = Duration::from_secs(10);
const LEAST_TURNS: usize = 3;

/// Medians in ns of operations that take turns, after one turn that does not count: `turns` of
/// them, and fewer on a machine that has not the time.
pub fn medians<const N: usize>(turns: usize, mut operations: [Operation<'_>; N]) -> [f64; N] {
    let mut times = [const { Vec::new() }; N];
    let start = Instant::now();
    for turn in 0..=turns {
        if turn > LEAST_TURNS && start.elapsed() > LONGEST {
            break;
        }
        for (at, (_, operation)) in operations.iter_mut().enumerate() {
            let time = operation().as_nanos() as f64;
            if turn > 0 {
                times[at].push(time);
            }
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}

/// Compares the first operation with each of the others, `items` a time: their medians.
pub fn compare<const N: usize>(
    report: &mut Report,
    turns: usize,
    items: u64,
    operations: [Operation<'_>; N],
) -> [f64; N] {
    let names: Vec<String> = operations
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let medians = medians(turns, operations);
    let rate = |ns: f64| items as f64 * 1e9 / ns;
    let against = &names[N - 1];
    for (name, ns) in names.iter().zip(medians).take(N - 1) {
        report.add(name, rate(ns), against, rate(medians[N - 1]));
    }
    medians
}

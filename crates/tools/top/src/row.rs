//! Rows of a group: flows and addresses of a sketch, and the greatest locations.

use crate::look::Row;
use stateplane_sketch::detect::Found;
use stateplane_sketch::{Interval, Key, Reading};
use std::cmp::Reverse;

/// Most rows of a group.
pub(crate) const ROWS: usize = 64;

/// Of the packets that a sketch counted, the share that is the threshold unless one is given.
pub(crate) const SHARE: u64 = 200;

fn row(name: String, count: &Interval) -> Row {
    Row {
        name,
        estimate: count.estimate,
        low: count.low,
        high: (count.high != u64::MAX).then_some(count.high),
        ..Row::default()
    }
}

/// Rows of a detection. `count` tells counts that are known.
pub(crate) fn of_found(found: &[Found], count: impl Fn(Key) -> Option<u64>) -> Vec<Row> {
    let shown = found.iter().take(ROWS).map(|found| Row {
        verdict: Some(found.verdict),
        count: count(found.key),
        ..row(found.key.to_string(), &found.count)
    });
    shown.collect()
}

/// The locations with the greatest values; with a threshold those that may be above it.
pub(crate) fn of_locations(reading: &Reading, threshold: Option<u64>) -> Vec<Row> {
    let error = reading.error();
    let interval = |value: u64| match error {
        Some(error) => {
            let (low, high) = (value.saturating_sub(error), value.saturating_add(error));
            Interval::sure(low, high, value)
        }
        None => Interval::sure(0, u64::MAX, value),
    };
    let is_shown = |value: u64| match threshold {
        Some(threshold) => interval(value).high > threshold,
        None => value > 0,
    };
    let values = reading.values.iter().copied().enumerate();
    let mut shown: Vec<_> = values.filter(|(_, value)| is_shown(*value)).collect();
    let order = |(at, value): &(usize, u64)| (Reverse(*value), *at);
    if shown.len() > ROWS {
        shown.select_nth_unstable_by_key(ROWS, order);
        shown.truncate(ROWS);
    }
    shown.sort_unstable_by_key(order);
    let rows = shown.into_iter().map(|(at, value)| {
        let interval = interval(value);
        Row {
            verdict: threshold.map(|threshold| interval.verdict(threshold)),
            ..row(format!("location {at}"), &interval)
        }
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_sketch::Verdict;

    #[test]
    fn the_greatest_locations_are_shown_in_order() {
        let values: Vec<u64> = (0..1_000).map(|at| at * 7 % 1_000).collect();
        let reading = Reading {
            bound: Some(3),
            all_but: 1,
            ..Reading::window(values, 0)
        };
        let rows = of_locations(&reading, None);
        assert_eq!(rows.len(), ROWS);
        let estimates: Vec<u64> = rows.iter().map(|row| row.estimate).collect();
        let expected: Vec<u64> = (0..ROWS as u64).map(|at| 999 - at).collect();
        assert_eq!(estimates, expected);
        assert_eq!(rows[0].name, "location 857");
        assert_eq!((rows[0].low, rows[0].high), (996, Some(1_002)));
        let rows = of_locations(&reading, Some(997));
        let verdicts: Vec<_> = rows.iter().filter_map(|row| row.verdict).collect();
        assert_eq!(rows.len(), 5);
        assert!(verdicts.iter().all(|it| *it == Verdict::Possibly));
    }

    #[test]
    fn without_a_bound_an_interval_has_no_end() {
        let reading = Reading {
            bound: None,
            all_but: 1,
            ..Reading::window(vec![5], 0)
        };
        let rows = of_locations(&reading, Some(9));
        assert_eq!((rows[0].low, rows[0].high), (0, None));
        assert_eq!(rows[0].verdict, Some(Verdict::Possibly));
    }
}

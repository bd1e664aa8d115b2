//! Measuring, and telling.

use serde::Serialize;
pub use stateplane_peers::Sample;
use std::fmt;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

/// Rounds of each side; their median counts.
const ROUNDS: usize = 9;
/// Least time measured in a round.
const ROUND: Duration = Duration::from_millis(100);

/// Does `work`, which tells how many items it did, against the clock.
pub fn timed(work: impl FnOnce() -> u64) -> Sample {
    let start = Instant::now();
    let items = work();
    Sample {
        items,
        spent: start.elapsed(),
    }
}

/// A figure beside what it is compared with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Name of the measurement.
    pub name: String,
    /// Items per second, the median of the rounds; or a time.
    pub value: f64,
    /// `packets/s`, `requests/s` or `lines/s`; `ns` or `ms` for a time, `bytes` for memory, `Gb/s`,
    /// `times`.
    pub unit: &'static str,
    /// The limit or peer.
    pub against: String,
    /// Its items per second, or time.
    pub against_value: f64,
    /// `value` divided by `against_value`.
    pub ratio: f64,
}

/// The figures of one benchmark.
pub struct Report {
    name: &'static str,
    unit: &'static str,
    figures: Vec<Figure>,
}

impl Report {
    /// An empty report.
    pub fn new(name: &'static str, unit: &'static str) -> Report {
        Report {
            name,
            unit,
            figures: Vec::new(),
        }
    }

    /// Measures `work` and `other` in alternating rounds, after one that does not count.
    /// Returns the rate of `work` in items per second.
    pub fn compare(
        &mut self,
        name: &str,
        mut work: impl FnMut() -> Sample,
        against: &str,
        mut other: impl FnMut() -> Sample,
    ) -> f64 {
        let mut rates = [Vec::new(), Vec::new()];
        for counts in std::iter::once(false).chain([true; ROUNDS]) {
            let round = [rate(&mut work), rate(&mut other)];
            if counts {
                rates[0].push(round[0]);
                rates[1].push(round[1]);
            }
        }
        let [value, against_value] = rates.map(median);
        self.figures.push(Figure {
            name: name.to_owned(),
            value,
            unit: self.unit,
            against: against.to_owned(),
            against_value,
            ratio: value / against_value,
        });
        value
    }

    /// Adds a time in ms that was measured, beside the one that it must not exceed.
    pub fn limit(&mut self, name: &str, value: f64, against: &str, against_value: f64) {
        self.figures.push(Figure {
            name: name.to_owned(),
            value,
            unit: "ms",
            against: against.to_owned(),
            against_value,
            ratio: value / against_value,
        });
    }

    /// Adds a figure of another unit, measured elsewhere: `ns`, `ms` or `bytes`, of which
    /// less is better, or `Gb/s` or `times`, of which more is.
    pub fn measure(
        &mut self,
        name: &str,
        unit: &'static str,
        value: f64,
        against: &str,
        against_value: f64,
    ) {
        self.figures.push(Figure {
            name: name.to_owned(),
            value,
            unit,
            against: against.to_owned(),
            against_value,
            ratio: value / against_value,
        });
    }

    /// Adds a figure that was measured elsewhere.
    pub fn add(&mut self, name: &str, value: f64, against: &str, against_value: f64) {
        self.figures.push(Figure {
            name: name.to_owned(),
            value,
            unit: self.unit,
            against: against.to_owned(),
            against_value,
            ratio: value / against_value,
        });
    }

    /// Prints the figures, and writes them to `target/bench/<name>.json`.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn finish(&self) -> std::io::Result<()> {
        println!("{self}");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/bench");
        std::fs::create_dir_all(&folder)?;
        let text = serde_json::to_string_pretty(&self.figures)?;
        std::fs::write(folder.join(self.name).with_extension("json"), text + "\n")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = [
            self.name, self.unit, "µs each", "against", self.unit, "ratio",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        for figure in &self.figures {
            let is_rate = figure.unit == self.unit;
            let shown = |value: f64| {
                if is_rate {
                    format!("{value:.0}")
                } else {
                    format!("{value:.2} {}", figure.unit)
                }
            };
            let each = is_rate.then(|| format!("{:.2}", 1e6 / figure.value));
            rows.push([
                figure.name.clone(),
                shown(figure.value),
                each.unwrap_or_default(),
                figure.against.clone(),
                shown(figure.against_value),
                format!("{:.5}", figure.ratio),
            ]);
        }
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let [a, b, c, d, e, r] = std::array::from_fn(width);
        for [name, value, each, against, against_value, ratio] in &rows {
            writeln!(
                f,
                "{name:a$}  {value:>b$}  {each:>c$}  {against:d$}  {against_value:>e$}  {ratio:>r$}"
            )?;
        }
        Ok(())
    }
}

/// Bytes of memory of this process that are in use, as Linux counts them; 0 where it does not
/// say.
pub fn resident() -> u64 {
    const PAGE: u64 = 4096;
    let pages = std::fs::read_to_string("/proc/self/statm");
    let pages = pages
        .ok()
        .and_then(|text| text.split(' ').nth(1)?.parse().ok());
    pages.unwrap_or(0) * PAGE
}

/// Copies each of `items` once through a buffer: the limit for any work that must at least move the
/// bytes.
pub fn copy<'a>(items: impl Iterator<Item = &'a [u8]>, buffer: &mut [u8]) -> u64 {
    let mut count = 0;
    for item in items {
        let room = &mut buffer[..item.len()];
        room.copy_from_slice(black_box(item));
        black_box(room);
        count += 1;
    }
    count
}

fn rate(work: &mut impl FnMut() -> Sample) -> f64 {
    let mut all = Sample {
        items: 0,
        spent: Duration::ZERO,
    };
    while all.spent < ROUND {
        let sample = work();
        all.items += sample.items;
        all.spent += sample.spent;
    }
    all.items as f64 / all.spent.as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_items_by_time_and_the_median_counts() {
        let sample = |items, ms| {
            move || Sample {
                items,
                spent: Duration::from_millis(ms),
            }
        };
        let mut report = Report::new("test", "packets/s");
        let mut turn = 0;
        let uneven = || {
            turn += 1;
            sample(if turn % 3 == 0 { 1 } else { 20 }, 100)()
        };
        let rate = report.compare("uneven", uneven, "steady", sample(100, 250));
        assert_eq!(rate, 200.0);
        let figure = &report.figures[0];
        assert_eq!((figure.value, figure.against_value), (200.0, 400.0));
        assert_eq!(figure.ratio, 0.5);
        assert!(report.to_string().contains("5000.00"), "{report}");
        report.limit("a time", 5.0, "the most", 50.0);
        assert_eq!(report.figures[1].ratio, 0.1);
        assert!(report.to_string().contains("5.00 ms"), "{report}");
    }

    #[test]
    fn copying_counts_items() {
        let mut buffer = [0; 4];
        let items: [&[u8]; 2] = [&[1, 2], &[3, 4, 5]];
        assert_eq!(copy(items.into_iter(), &mut buffer), 2);
        assert_eq!(buffer, [3, 4, 5, 0]);
    }
}

//! Count-Min: rows of counters one behind the other, and behind them the count of all packets.

use crate::interval::Interval;
use crate::key::Key;
use crate::sketch::Sketch;

/// Location of a key in each row.
pub(crate) fn locations(sketch: &Sketch, key: Key) -> impl Iterator<Item = usize> {
    let shape = sketch.shape;
    (0..shape.rows).map(move |row| {
        let column = shape.hash(row).column(key.0, shape.column_bits);
        row as usize * shape.columns() + column
    })
}

pub(crate) fn update(sketch: &mut Sketch, key: Key) {
    let places: Vec<usize> = locations(sketch, key).collect();
    for place in places {
        sketch.add(place, 1);
    }
    let total = sketch.shape.rows as usize * sketch.shape.columns();
    sketch.add(total, 1);
}

/// Rule 27: the count is at most Ê + E, since each row counted all of the flow. It is less than
/// Ê - 2U/w only if other flows put more than twice their mean into the flow's counter of every
/// row, whose functions are independent: by Markov's inequality with a probability of 2^-r.
pub(crate) fn query(sketch: &Sketch, key: Key) -> Interval {
    let part = &sketch.parts[0];
    let mut counts = locations(sketch, key).map(|place| part.at(place));
    let first = counts.next().unwrap_or(0);
    let estimate = counts.fold(first, u64::min);
    let Some(error) = part.error() else {
        return Interval::sure(0, u64::MAX, estimate);
    };
    let excess = sketch.packets().saturating_mul(2) >> sketch.shape.column_bits;
    Interval {
        low: estimate.saturating_sub(excess),
        high: estimate.saturating_add(error),
        estimate,
        low_miss: 0.5_f64.powi(sketch.shape.rows as i32),
        high_miss: 0.0,
    }
}

impl Sketch {
    /// U: all packets that a Count-Min sketch may have counted at the mark.
    pub(crate) fn packets(&self) -> u64 {
        let total = self.shape.rows as usize * self.shape.columns();
        let part = &self.parts[0];
        part.at(total)
            .saturating_add(part.error().unwrap_or(u64::MAX))
    }
}

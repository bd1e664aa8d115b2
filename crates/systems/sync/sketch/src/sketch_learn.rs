//! SketchLearn: of each column the packets, and for each bit of the address those whose address
//! has it.

use crate::interval::Interval;
use crate::key::Key;
use crate::reading::Reading;
use crate::sketch::Sketch;

/// Bits of an address that are tried both ways.
const OPEN_BITS: usize = 8;

/// Rounds of finding large flows, with θ halved in each, as in the paper's algorithm 1.
const ROUNDS: i32 = 8;

fn column(sketch: &Sketch, key: Key) -> usize {
    sketch.shape.hash(0).column(key.0, sketch.shape.column_bits)
}

/// True if the address has the bit, counted from the lowest.
fn has(key: Key, bit: usize) -> bool {
    key.0[0] >> bit & 1 == 1
}

pub(crate) fn update(sketch: &mut Sketch, key: Key) {
    let (columns, column) = (sketch.shape.columns(), column(sketch, key));
    sketch.add(column, 1);
    for bit in 0..sketch.shape.rows as usize {
        if has(key, bit) {
            sketch.add((bit + 1) * columns + column, 1);
        }
    }
}

/// Packets of a column, and those with each bit.
fn counts(sketch: &Sketch, part: &Reading, column: usize) -> (u64, Vec<u64>) {
    let columns = sketch.shape.columns();
    let of = |level: usize| part.at(level * columns + column);
    (of(0), (1..=sketch.shape.rows as usize).map(of).collect())
}

/// A packet of another flow differs from the flow's in some bit: the flow has what is left when
/// all that differ in each bit are taken away, and at most what agrees in every bit.
pub(crate) fn query(sketch: &Sketch, key: Key) -> Interval {
    let part = &sketch.parts[0];
    let (all, with) = counts(sketch, part, column(sketch, key));
    let Some(error) = part.error() else {
        return Interval::sure(0, u64::MAX, 0);
    };
    let most = all.saturating_add(error);
    let mut high = most;
    let mut others = 0_u64;
    for (bit, count) in with.into_iter().enumerate() {
        let upper = count.saturating_add(error);
        let without = most.saturating_sub(count);
        let (agree, differ) = if has(key, bit) {
            (upper, without)
        } else {
            (without, upper)
        };
        high = high.min(agree);
        others = others.saturating_add(differ);
    }
    let low = all.saturating_sub(others).min(high);
    Interval::sure(low, high, high.saturating_sub(error))
}

/// The residue of a column while flows are taken from it.
struct Column {
    all: f64,
    with: Vec<f64>,
}

impl Column {
    fn share(&self, bit: usize) -> f64 {
        if self.all > 0.0 {
            self.with[bit] / self.all
        } else {
            0.0
        }
    }

    /// Packets of a flow with these bits, if the others have each bit as often as `usual`: the
    /// median over all bits.
    fn size(&self, key: Key, usual: &[f64]) -> f64 {
        let of = |(bit, usual): (usize, &f64)| {
            let (share, usual) = (self.share(bit), usual.clamp(0.01, 0.99));
            let part = if has(key, bit) {
                (share - usual) / (1.0 - usual)
            } else {
                1.0 - share / usual
            };
            part * self.all
        };
        let mut sizes: Vec<f64> = usual.iter().enumerate().map(of).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.get(sizes.len() / 2).copied().unwrap_or(0.0)
    }

    /// Addresses whose bits are those that most packets have; of the bits about which they are
    /// divided most, both.
    fn candidates(&self) -> Vec<Key> {
        let mut bits: Vec<usize> = (0..self.with.len()).collect();
        let clear = |bit: &usize| (self.share(*bit) - 0.5).abs();
        bits.sort_by(|one, other| clear(one).total_cmp(&clear(other)));
        let (open, closed) = bits.split_at(OPEN_BITS.min(bits.len()));
        let of_most = closed.iter().filter(|bit| self.share(**bit) > 0.5);
        let mut found = vec![of_most.fold(0_u32, |address, bit| address | 1 << bit)];
        for bit in open.iter().filter(|bit| clear(bit) < 0.5) {
            let both: Vec<u32> = found.iter().map(|address| address | 1 << bit).collect();
            found.extend(both);
        }
        let sure = open.iter().filter(|bit| self.share(**bit) >= 1.0);
        let sure = sure.fold(0, |address, bit| address | 1 << bit);
        let keys = found
            .into_iter()
            .map(|address| Key([address | sure, 0, 0, 0]));
        keys.collect()
    }

    fn take(&mut self, key: Key, size: f64) {
        self.all = (self.all - size).max(0.0);
        for (bit, with) in self.with.iter_mut().enumerate() {
            let taken = if has(key, bit) { size } else { 0.0 };
            *with = (*with - taken).clamp(0.0, self.all);
        }
    }
}

/// Large flows: those without which the bits of a column look like those of all columns.
pub(crate) fn keys(sketch: &Sketch) -> Vec<Key> {
    let part = &sketch.parts[0];
    let mut left: Vec<Column> = (0..sketch.shape.columns())
        .map(|at| {
            let (all, with) = counts(sketch, part, at);
            Column {
                all: all as f64,
                with: with.into_iter().map(|count| count as f64).collect(),
            }
        })
        .collect();
    let mut found = Vec::new();
    for round in 1..=ROUNDS {
        let theta = 0.5_f64.powi(round);
        let usual = usual(&left, sketch.shape.rows as usize);
        for (at, residue) in left.iter_mut().enumerate() {
            let own = residue.candidates();
            let own = own.into_iter().filter(|key| column(sketch, *key) == at);
            let large: Vec<Key> = own
                .filter(|key| residue.all > 0.0 && query(sketch, *key).high > 0)
                .filter(|key| residue.size(*key, &usual) >= theta * residue.all)
                .collect();
            for key in large {
                let size = residue.size(key, &usual);
                residue.take(key, size);
                found.push(key);
            }
        }
    }
    found
}

/// Mean share of each bit over the columns that have packets.
fn usual(columns: &[Column], bits: usize) -> Vec<f64> {
    let used: Vec<&Column> = columns.iter().filter(|it| it.all > 0.0).collect();
    let mean = |bit| used.iter().map(|it| it.share(bit)).sum::<f64>() / used.len().max(1) as f64;
    (0..bits).map(mean).collect()
}

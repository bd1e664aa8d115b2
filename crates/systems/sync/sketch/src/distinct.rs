//! Partners of addresses: Count-Min of pairs that a Bloom filter had not seen.

use crate::error::SketchError;
use crate::hash::Hash;
use crate::interval::Interval;
use crate::key::Key;
use crate::shape::Family;
use crate::sketch::Sketch;

/// The chance that a promised end of an interval is missed because the filter took too many new
/// pairs for old ones: 2^-20.
const MISS: f64 = 1.0 / (1 << 20) as f64;

/// Functions of the filter.
const FUNCTIONS: u32 = 3;

/// Numbers of distinct partners by address, as a Count-Min sketch of the pairs that were new to a
/// Bloom filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distinct {
    counts: Sketch,
    /// Bits of the filter are 2 to this.
    filter_bits: u32,
}

impl Distinct {
    /// Of a Count-Min sketch whose packets are pairs that were new to a filter of 2 to
    /// `filter_bits` bits.
    ///
    /// # Errors
    ///
    /// [`SketchError::Shape`] if the sketch is another than Count-Min, or the filter has less than
    /// 2 or more than 2³⁰ bits.
    pub fn new(counts: Sketch, filter_bits: u32) -> Result<Distinct, SketchError> {
        let wrong = |field, must| Err(SketchError::Shape { field, must });
        if counts.shape.family != Family::CountMin {
            return wrong("family", "count-min");
        }
        if !(1..=30).contains(&filter_bits) {
            return wrong("filter_bits", "1 to 30");
        }
        Ok(Distinct {
            counts,
            filter_bits,
        })
    }

    /// The sketch of new pairs.
    pub fn counts(&self) -> &Sketch {
        &self.counts
    }

    /// Partners of an address. The sketch counts a pair once at most, so that the low end is that
    /// of Count-Min. Of new pairs the filter takes at most a share p for old ones, p being that of
    /// its last state; how many of the address's may be gone is bounded as for independent ones.
    pub fn query(&self, address: Key) -> Interval {
        let counted = self.counts.query(address);
        let p = self.taken_for_old();
        let high =
            unseen(counted.high, p).map_or(u64::MAX, |more| counted.high.saturating_add(more));
        Interval {
            high,
            high_miss: MISS,
            ..counted
        }
    }

    /// Greatest probability with which the filter took a new pair for an old one.
    fn taken_for_old(&self) -> f64 {
        let pairs = self.counts.packets() as f64;
        let bits = (1_u64 << self.filter_bits) as f64;
        let set = 1.0 - (f64::from(FUNCTIONS) * pairs * (-1.0 / bits).ln_1p()).exp();
        set.powi(FUNCTIONS as i32)
    }
}

/// The least number that pairs which are gone do not exceed but for a chance of [`MISS`], if
/// `counted` are there and each is gone with probability `p`: the fixed point of Chernoff's bound,
/// P(X ≥ x) ≤ e^-μ (eμ/x)^x. `None`: too many may be gone.
fn unseen(counted: u64, p: f64) -> Option<u64> {
    if counted == u64::MAX || p > 0.5 {
        return None;
    }
    let mut gone = 0_u64;
    loop {
        let more = gone as f64 + 1.0;
        let mean = (counted as f64 + more) * p;
        let chance = (-mean + more * (1.0 + (mean / more).ln())).exp();
        if mean <= more && chance <= MISS {
            return Some(gone);
        }
        gone = gone.max(mean as u64) + 1;
        if gone > counted.saturating_mul(4).saturating_add(1000) {
            return None;
        }
    }
}

/// The filter and both sketches of new pairs, as a program keeps them.
#[derive(Clone, Debug)]
pub struct Pairs {
    filter: Vec<bool>,
    filter_bits: u32,
    functions: [Hash; FUNCTIONS as usize],
}

impl Pairs {
    /// A filter that has seen nothing, of 2 to `filter_bits` bits, with functions from `function` on.
    pub fn new(seed: u64, function: u32, filter_bits: u32) -> Pairs {
        Pairs {
            filter: vec![false; 1 << filter_bits],
            filter_bits,
            functions: core::array::from_fn(|at| Hash::new(seed, function + at as u32)),
        }
    }

    /// True if the pair is new to the filter, which then has seen it.
    pub fn insert(&mut self, pair: Key) -> bool {
        let mut new = false;
        for function in self.functions {
            let bit = &mut self.filter[function.column(pair.0, self.filter_bits)];
            new |= !*bit;
            *bit = true;
        }
        new
    }

    /// The bits.
    pub fn bits(&self) -> &[bool] {
        &self.filter
    }
}

//! Source of all decisions.

use num_bigint::BigUint;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// A sequence of decisions, determined by a seed or by bytes.
#[derive(Clone, Debug)]
pub struct Choices(Source);

#[derive(Clone, Debug)]
enum Source {
    Seed(SmallRng),
    Bytes { bytes: Vec<u8>, at: usize },
}

impl Choices {
    /// Decisions determined by a seed.
    #[must_use]
    pub fn new(seed: u64) -> Choices {
        Choices(Source::Seed(SmallRng::seed_from_u64(seed)))
    }

    /// Decisions determined by bytes; behind their end each is the first of its
    /// possibilities.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Choices {
        Choices(Source::Bytes {
            bytes: bytes.to_vec(),
            at: 0,
        })
    }

    fn byte(&mut self) -> u8 {
        match &mut self.0 {
            Source::Seed(rng) => rng.random(),
            Source::Bytes { bytes, at } => {
                let byte = bytes.get(*at).copied().unwrap_or(0);
                *at += 1;
                byte
            }
        }
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound <= 1 {
            return 0;
        }
        match &mut self.0 {
            Source::Seed(rng) => rng.random_range(0..bound),
            Source::Bytes { .. } => {
                let mut number = usize::from(self.byte());
                if bound > 1 << 8 {
                    number = number << 8 | usize::from(self.byte());
                }
                number % bound
            }
        }
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below((high - low) as usize + 1) as u32
    }

    /// Yes in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) >= 100 - percent.min(100)
    }

    /// One of several; `None` if there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }

    /// One of several.
    pub fn one_of<T: Copy, const N: usize>(&mut self, from: [T; N]) -> T {
        from[self.below(N)]
    }

    /// A number of at most `width` bits: often small, or near the ends of the range.
    pub fn value(&mut self, width: u32) -> BigUint {
        let ones = (BigUint::from(1u32) << width) - 1u32;
        let value = match self.below(8) {
            0..=3 => BigUint::from(self.below(4)),
            4 => return &ones - (BigUint::from(self.below(3)) & &ones),
            5 => BigUint::from(1u32) << self.below(width as usize),
            6 => (BigUint::from(1u32) << self.below(width as usize + 1)) - 1u32,
            _ => self.uniform(width),
        };
        value & ones
    }

    /// A number of at most `width` bits, each as likely.
    pub fn uniform(&mut self, width: u32) -> BigUint {
        let bytes: Vec<u8> = (0..width.div_ceil(8)).map(|_| self.byte()).collect();
        BigUint::from_bytes_be(&bytes) & ((BigUint::from(1u32) << width) - 1u32)
    }
}

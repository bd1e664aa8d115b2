//! The hash functions of sketches: multiply-shift on vectors of 32-bit words (Dietzfelbinger
//! 1996; Thorup, *High Speed Hashing for Integers and Strings*, §3.5). `p4/lib/sketch.p4` is the
//! same in P4.

/// Words of a key at most.
pub(crate) const WORDS: usize = 4;

/// Coefficients of a function: one for each word, and the last one that is added.
const COEFFICIENTS: u64 = 8;

/// The coefficient `number` of the seed: splitmix64 (Steele, Lea, Flood 2014), from 0.
pub fn coefficient(seed: u64, number: u64) -> u64 {
    let step = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut mixed = seed.wrapping_add(step);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A function of a family that is strongly universal in its upper 33 bits: for a random seed any
/// two keys have independent, uniform values there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash {
    factors: [u64; WORDS],
    addend: u64,
}

impl Hash {
    /// Function `number` of the seed.
    pub fn new(seed: u64, number: u32) -> Hash {
        let first = u64::from(number) * COEFFICIENTS;
        let factor = |word: usize| coefficient(seed, first + word as u64);
        Hash {
            factors: core::array::from_fn(factor),
            addend: coefficient(seed, first + COEFFICIENTS - 1),
        }
    }

    /// All 64 bits, of which the upper ones are used.
    pub fn of(&self, words: [u32; WORDS]) -> u64 {
        let products = self.factors.iter().zip(words);
        products.fold(self.addend, |sum, (factor, word)| {
            sum.wrapping_add(factor.wrapping_mul(u64::from(word)))
        })
    }

    /// The upper `bits`, 1 to 33.
    pub fn column(&self, words: [u32; WORDS], bits: u32) -> usize {
        (self.of(words) >> (64 - bits)) as usize
    }
}

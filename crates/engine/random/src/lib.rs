//! Pseudo-random numbers that are the same on every machine and in every version: of the
//! `random` extern, of hosts, and of all simulations.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014). Written out because a seed that once failed must fail again
/// after any update of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The generator that `seed` names.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A generator whose numbers have nothing to do with this one's later ones.
    pub fn split(&mut self) -> Self {
        Self::new(self.next())
    }

    /// A number from `first` to `last`, both included.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        let span = last.saturating_sub(first).saturating_add(1);
        first + self.next() % span
    }

    /// A place in a list of `length` elements, which is not empty.
    pub fn place(&mut self, length: usize) -> usize {
        (self.next() % length.max(1) as u64) as usize
    }

    /// `true` with this chance in thousandths.
    pub fn permille(&mut self, chance: u32) -> bool {
        self.next() % 1000 < u64::from(chance)
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut random = Random::new(1_234_567);
        let numbers = [random.next(), random.next(), random.next()];
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(numbers, published);
    }

    #[test]
    fn ranges_include_their_ends() {
        let mut random = Random::new(1);
        let drawn: Vec<_> = (0..100).map(|_| random.between(3, 5)).collect();
        for number in 3..=5 {
            assert!(drawn.contains(&number));
        }
        assert!(drawn.iter().all(|number| (3..=5).contains(number)));
    }
}

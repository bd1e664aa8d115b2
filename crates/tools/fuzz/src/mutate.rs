//! Inputs from inputs: damaged at random, from a seed.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Longest input made.
pub const LONGEST: usize = 16 << 10;

/// Makes inputs from a corpus and a dictionary.
#[derive(Debug)]
pub struct Mutator<'a> {
    corpus: &'a [Vec<u8>],
    words: &'a [&'a str],
    rng: SmallRng,
}

impl<'a> Mutator<'a> {
    /// A mutator whose inputs `seed` determines.
    pub fn new(corpus: &'a [Vec<u8>], words: &'a [&'a str], seed: u64) -> Mutator<'a> {
        Mutator {
            corpus,
            words,
            rng: SmallRng::seed_from_u64(seed),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.rng.random_range(0..bound.max(1))
    }

    fn member(&mut self) -> &'a [u8] {
        let index = self.below(self.corpus.len());
        self.corpus.get(index).map_or(&[], Vec::as_slice)
    }

    /// A part of a length that is more often short.
    fn part(&mut self, length: usize) -> (usize, usize) {
        let start = self.below(length + 1);
        let longest = match self.below(3) {
            0 => 4,
            1 => 40,
            _ => length,
        };
        let end = (start + self.below(longest + 1)).min(length);
        (start, end)
    }

    /// The next input: a member of the corpus, damaged in one to eight places.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.member().to_vec();
        for _ in 0..=self.below(8) {
            self.damage(&mut input);
        }
        input.truncate(LONGEST);
        input
    }

    fn damage(&mut self, input: &mut Vec<u8>) {
        let (start, end) = self.part(input.len());
        match self.below(8) {
            0 => {
                input.drain(start..end);
            }
            1 => {
                let copy = input[start..end].to_vec();
                let at = self.below(input.len() + 1);
                input.splice(at..at, copy);
            }
            2 | 3 => {
                let index = self.below(self.words.len());
                let word = self
                    .words
                    .get(index)
                    .map_or(&[][..], |word| word.as_bytes());
                let end = if self.below(2) == 0 { start } else { end };
                input.splice(start..end, word.iter().copied());
            }
            4 => {
                let other = self.member();
                let (from, to) = self.part(other.len());
                input.splice(start..end, other[from..to].iter().copied());
            }
            5 => {
                if let Some(byte) = input.get_mut(start) {
                    *byte = self.rng.random();
                }
            }
            6 => {
                if let Some(byte) = input.get_mut(start) {
                    *byte ^= 1 << self.rng.random_range(0..8);
                }
            }
            _ => {
                if let Some(byte) = input.get_mut(start) {
                    const EDGES: [u8; 10] = [0, 1, 2, 0x7f, 0x80, 0xff, b'0', b'9', b'{', b'}'];
                    *byte = EDGES[self.rng.random_range(0..EDGES.len())];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_inputs() {
        let corpus = vec![b"header h { bit<8> a; }".to_vec(), b"x".to_vec()];
        let inputs = |seed| -> Vec<Vec<u8>> {
            let mut mutator = Mutator::new(&corpus, &["struct", "9999"], seed);
            (0..200).map(|_| mutator.next_input()).collect()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
        let distinct: std::collections::BTreeSet<_> = inputs(1).into_iter().collect();
        assert!(distinct.len() > 150, "{}", distinct.len());
    }

    #[test]
    fn without_a_corpus_there_are_inputs() {
        let mut mutator = Mutator::new(&[], &[], 1);
        for _ in 0..100 {
            assert!(mutator.next_input().len() <= LONGEST);
        }
    }
}

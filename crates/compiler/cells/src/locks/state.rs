//! State of a symbolic run at one place of the program.

use super::leaves::Leaf;
use crate::symbols::Symbol;

/// A set of small numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Set(Vec<u64>);

impl Set {
    pub fn add(&mut self, number: usize) {
        let word = number / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    pub fn remove(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / 64) {
            *word &= !(1 << (number % 64));
        }
    }

    pub fn has(&self, number: usize) -> bool {
        let word = self.0.get(number / 64);
        word.is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    pub fn unite(&mut self, other: &Set) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    pub fn intersect(&mut self, other: &Set) {
        self.0.truncate(other.0.len());
        for (word, kept) in self.0.iter_mut().zip(&other.0) {
            *word &= kept;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(at, word)| {
            (0..64)
                .filter(move |bit| word & (1 << bit) != 0)
                .map(move |bit| at * 64 + bit)
        })
    }
}

/// A leaf that holds what it held when the block of the pipeline began.
pub(super) const UNTOUCHED: Symbol = Symbol::MAX;

#[derive(Clone, Debug)]
pub(super) struct State {
    /// The value of each leaf.
    pub leaves: Vec<Symbol>,
    /// The elements that the present atomic block may have used.
    pub maybe: Set,
    /// The arrays that it has used on every path.
    pub surely: Set,
}

impl State {
    pub fn new(leaves: usize) -> State {
        State {
            leaves: vec![UNTOUCHED; leaves],
            maybe: Set::default(),
            surely: Set::default(),
        }
    }

    /// The leaves that differ from another state's.
    pub fn differing(&self, other: &State) -> Vec<Leaf> {
        let pairs = self.leaves.iter().zip(&other.leaves).enumerate();
        pairs
            .filter(|(_, (one, two))| one != two)
            .map(|(leaf, _)| leaf)
            .collect()
    }

    /// Takes over which arrays were used on another path to the same place.
    pub fn meet(&mut self, other: &State) {
        self.maybe.unite(&other.maybe);
        self.surely.intersect(&other.surely);
    }
}

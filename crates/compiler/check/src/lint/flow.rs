//! Facts that are certain at a place of a program.

/// A set of facts that hold on every path to a place: that a variable has a value, that a
/// header is invalid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Flow {
    words: Vec<u64>,
    /// No way leads here.
    dead: bool,
}

impl Flow {
    /// The flow of a place that is never reached.
    pub(super) fn dead() -> Flow {
        Flow {
            words: Vec::new(),
            dead: true,
        }
    }

    /// True if no path leads here.
    pub(super) fn is_dead(&self) -> bool {
        self.dead
    }

    /// True if a fact holds; nothing does where no path leads.
    pub(super) fn holds(&self, fact: usize) -> bool {
        !self.dead && self.bit(fact)
    }

    /// Makes a fact hold, or not.
    pub(super) fn set(&mut self, fact: usize, holds: bool) {
        let at = fact / 64;
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        if holds {
            self.words[at] |= 1 << (fact % 64);
        } else {
            self.words[at] &= !(1 << (fact % 64));
        }
    }

    /// Gives the facts from `at` on the values of those from `from` on.
    pub(super) fn copy(&mut self, from: usize, at: usize, count: usize) {
        let values: Vec<bool> = (from..from + count).map(|fact| self.bit(fact)).collect();
        for (fact, holds) in (at..).zip(values) {
            self.set(fact, holds);
        }
    }

    fn bit(&self, fact: usize) -> bool {
        let word = self.words.get(fact / 64).copied().unwrap_or_default();
        word >> (fact % 64) & 1 == 1
    }

    /// Makes facts hold and others not: a bit of `changed` that is one of `fails` is cleared, any
    /// other is set.
    pub(super) fn change(&mut self, changed: &Flow, fails: &Flow) {
        if self.words.len() < changed.words.len() {
            self.words.resize(changed.words.len(), 0);
        }
        for (position, changed) in changed.words.iter().enumerate() {
            let fails = fails.words.get(position).copied().unwrap_or_default();
            let word = &mut self.words[position];
            *word = *word & !changed | changed & !fails;
        }
    }

    /// Adds another path to this place.
    pub(super) fn join(&mut self, other: &Flow) {
        if other.dead {
            return;
        }
        if self.dead {
            self.clone_from(other);
            return;
        }
        self.words.truncate(other.words.len());
        for (word, also) in self.words.iter_mut().zip(&other.words) {
            *word &= also;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_holds_on_both_ways_holds_after_them() {
        let mut left = Flow::default();
        left.set(3, true);
        left.set(70, true);
        let mut right = Flow::default();
        right.set(3, true);
        right.set(1, true);
        left.join(&right);
        assert_eq!(
            [1, 3, 70].map(|fact| left.holds(fact)),
            [false, true, false]
        );
        left.join(&Flow::dead());
        assert!(left.holds(3) && !left.is_dead());
        let mut nowhere = Flow::dead();
        nowhere.join(&left);
        assert_eq!(nowhere, left);
    }
}

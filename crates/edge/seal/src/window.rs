//! Replay window: the messages of a life that came already.

/// Words of the window.
const WORDS: usize = 32;

/// Maximum distance of a message behind the newest one.
const SPAN: u64 = (WORDS as u64 - 1) * 64;

/// The newest counter and which of those before it came, 1984 of them. Messages may come
/// in any order within it. The bits lie in a ring of words, of which whole words are
/// cleared as the newest counter moves on (RFC 6479).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayWindow {
    newest: u64,
    words: [u64; WORDS],
}

/// Verdict of a window about a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// The number is new, and is recorded.
    First,
    /// The number came before.
    Again,
    /// Too old for the window; also 0, which no message bears.
    TooOld,
}

impl Default for ReplayWindow {
    fn default() -> ReplayWindow {
        ReplayWindow::new()
    }
}

impl ReplayWindow {
    /// A window that nothing came to yet.
    pub fn new() -> ReplayWindow {
        ReplayWindow {
            newest: 0,
            words: [0; WORDS],
        }
    }

    /// The greatest counter that came; 0 before the first.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Judges `counter`, and notes that it came.
    pub fn see(&mut self, counter: u64) -> Seen {
        if counter == 0 || counter + SPAN.min(u64::MAX - counter) < self.newest {
            return Seen::TooOld;
        }
        if counter > self.newest {
            let (old, new) = (self.newest / 64, counter / 64);
            for step in 1..=(new - old).min(WORDS as u64) {
                self.words[((old + step) % WORDS as u64) as usize] = 0;
            }
            self.newest = counter;
        }
        let word = &mut self.words[(counter / 64 % WORDS as u64) as usize];
        let bit = 1 << (counter % 64);
        if *word & bit != 0 {
            return Seen::Again;
        }
        *word |= bit;
        Seen::First
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_is_as_wide_as_it_says() {
        let mut window = ReplayWindow::new();
        assert_eq!(window.see(0), Seen::TooOld);
        assert_eq!(window.see(10_000), Seen::First);
        assert_eq!(window.see(10_000), Seen::Again);
        assert_eq!(window.see(10_000 - SPAN), Seen::First);
        assert_eq!(window.see(10_000 - SPAN), Seen::Again);
        assert_eq!(window.see(10_000 - SPAN - 1), Seen::TooOld);
        assert_eq!(window.see(u64::MAX), Seen::First);
        assert_eq!(window.see(u64::MAX), Seen::Again);
        assert_eq!(window.see(10_000), Seen::TooOld);
        assert_eq!(window.newest(), u64::MAX);
    }

    proptest! {
        /// Beside a set that forgets nothing: nothing is taken twice, and nothing within
        /// the span is refused that did not come.
        #[test]
        fn nothing_passes_twice(
            steps in proptest::collection::vec((0u64..5000, 0u64..4000), 1..300),
        ) {
            let mut window = ReplayWindow::new();
            let mut came = BTreeSet::new();
            let mut base = 0;
            for (forward, back) in steps {
                base += forward / 40;
                let counter = (base + forward).saturating_sub(back);
                let newest = came.last().copied().unwrap_or(0);
                let expected = if counter == 0 || counter + SPAN < newest {
                    Seen::TooOld
                } else if came.contains(&counter) {
                    Seen::Again
                } else {
                    Seen::First
                };
                prop_assert_eq!(window.see(counter), expected);
                if expected == Seen::First {
                    came.insert(counter);
                }
            }
        }
    }
}

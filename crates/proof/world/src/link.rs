//! Links that lose, duplicate, reorder and delay.

use serde::{Deserialize, Serialize};
use stateplane_random::Random;

/// Quality of a link: loss, duplication, reordering, delay. Chances are in thousandths; times in
/// µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkQuality {
    /// Chance that a frame is lost.
    pub loss: u32,
    /// Chance that a frame arrives twice.
    pub duplicate: u32,
    /// Least delay.
    pub delay: u64,
    /// Greatest further delay. Frames closer together than this may be exchanged.
    pub jitter: u64,
    /// Chance that a copy takes a long path.
    pub straggle: u32,
    /// Greatest further delay of such a copy.
    pub straggle_delay: u64,
}

impl LinkQuality {
    /// The link without faults: it only delays.
    #[must_use]
    pub const fn without_faults(self) -> Self {
        Self {
            loss: 0,
            duplicate: 0,
            jitter: 0,
            straggle: 0,
            ..self
        }
    }

    /// A link that only delays, and always alike.
    pub const fn whole(delay: u64) -> Self {
        Self {
            loss: 0,
            duplicate: 0,
            delay,
            jitter: 0,
            straggle: 0,
            straggle_delay: 0,
        }
    }

    /// The delays of the copies that arrive of one frame: none, one or two.
    pub fn carry(&self, random: &mut Random) -> impl Iterator<Item = u64> + use<> {
        let copies = if random.permille(self.loss) {
            0
        } else if random.permille(self.duplicate) {
            2
        } else {
            1
        };
        let mut delays = [None; 2];
        for delay in delays.iter_mut().take(copies) {
            let mut total = self.delay + random.between(0, self.jitter);
            if random.permille(self.straggle) {
                total += random.between(0, self.straggle_delay);
            }
            *delay = Some(total);
        }
        delays.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_link_loses_duplicates_and_delays_as_told() {
        let link = LinkQuality {
            loss: 100,
            duplicate: 200,
            delay: 50,
            jitter: 30,
            straggle: 100,
            straggle_delay: 1000,
        };
        let mut random = Random::new(7);
        let (mut copies, mut late) = ([0u32; 3], 0);
        for _ in 0..10_000 {
            let delays: Vec<_> = link.carry(&mut random).collect();
            copies[delays.len()] += 1;
            late += delays.iter().filter(|&&delay| delay > 80).count();
            assert!(delays.iter().all(|delay| (50..=1080).contains(delay)));
        }
        assert!((800..1200).contains(&copies[0]), "{copies:?}");
        assert!((1600..2000).contains(&copies[2]), "{copies:?}");
        assert!((700..1500).contains(&late), "{late}");
    }
}

//! Depths of actions: one for all packets, or a mix.

use crate::HazardError;
use stateplane_random::Random;
use std::fmt;
use std::str::FromStr;

/// Greatest depth, in cycles.
const MOST: u32 = 1 << 20;

/// Depths of actions in cycles, each with its weight. As text: `10`, or `1:0.9,30:0.1` for one
/// cycle in 90 % of packets and 30 in 10 %.
#[derive(Clone, Debug, PartialEq)]
pub struct Depths {
    /// Depths, each with the sum of the weights up to its own, as a share of all weights.
    parts: Vec<(u32, f64)>,
    text: String,
}

impl Depths {
    /// The same depth for every packet, 1 to 2^20 cycles.
    ///
    /// # Errors
    ///
    /// [`HazardError::Setting`] for a depth that is out of range.
    pub fn one(depth: u32) -> Result<Self, HazardError> {
        depth.to_string().parse()
    }

    /// The depth of a packet.
    pub fn draw(&self, random: &mut Random) -> u32 {
        if let [(depth, _)] = self.parts[..] {
            return depth;
        }
        let at = unit(random);
        let part = self.parts.iter().find(|(_, upper)| at < *upper);
        part.or(self.parts.last()).map_or(1, |(depth, _)| *depth)
    }
}

/// A number from 0 (included) to 1 (excluded).
pub(crate) fn unit(random: &mut Random) -> f64 {
    (random.next() >> 11) as f64 / (1_u64 << 53) as f64
}

impl FromStr for Depths {
    type Err = HazardError;

    fn from_str(text: &str) -> Result<Self, HazardError> {
        let refused = |part: &str| {
            HazardError::Setting(format!(
                "depth {part:?}: give cycles from 1 to {MOST}, or several with weights above 0, \
                 such as 1:0.9,30:0.1"
            ))
        };
        let mut parts = Vec::new();
        let mut sum = 0.0;
        for part in text.split(',') {
            let (depth, weight) = part.split_once(':').unwrap_or((part, "1"));
            let depth: u32 = depth.trim().parse().map_err(|_| refused(part))?;
            let weight: f64 = weight.trim().parse().map_err(|_| refused(part))?;
            if depth == 0 || depth > MOST || !weight.is_finite() || weight <= 0.0 {
                return Err(refused(part));
            }
            sum += weight;
            parts.push((depth, sum));
        }
        for (_, upper) in &mut parts {
            *upper /= sum;
        }
        let text = text.to_owned();
        Ok(Self { parts, text })
    }
}

impl fmt::Display for Depths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_drawn_by_its_weights() {
        let depths: Depths = "1:9,30:1".parse().unwrap();
        let mut random = Random::new(5);
        let long = (0..10_000).filter(|_| depths.draw(&mut random) == 30);
        assert!((900..1100).contains(&long.count()));
        assert_eq!(Depths::one(7).unwrap().draw(&mut random), 7);
    }

    #[test]
    fn what_is_no_depth_is_refused() {
        for text in ["", "0", "x", "3:0", "3:-1", "3:nan", "1,,2", "99999999"] {
            let refused = text.parse::<Depths>().unwrap_err();
            assert_eq!(refused.code(), "HZ001", "{text}");
        }
    }
}

//! How often each source sends, from counts of packets.

use crate::{Flow, HazardError};
use core::net::Ipv4Addr;
use stateplane_random::Random;

/// Sources with their shares of packets, drawn independently of each other by Vose's alias method
/// ("A linear algorithm for generating random numbers with a given distribution", 1991), which
/// takes the same time for any number of sources.
#[derive(Clone, Debug, PartialEq)]
pub struct Popularity {
    sources: Vec<Ipv4Addr>,
    /// For each source: below which share of 2^32 it is drawn itself, and what is drawn above.
    columns: Vec<(u32, u32)>,
}

impl Popularity {
    /// Reads a table of two columns, separated by white space: a source's IPv4 address, as a number
    /// or dotted, and its packets. Lines that are empty or begin with `#` are skipped.
    ///
    /// # Errors
    ///
    /// [`HazardError::Line`] for a line that is not understood; [`HazardError::Empty`] if no source
    /// has a packet.
    pub fn parse(text: &str) -> Result<Self, HazardError> {
        let mut counts = Vec::new();
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            counts.push(count(line).ok_or_else(|| HazardError::Line {
                line: at + 1,
                reason: "expected an IPv4 address, as a number or dotted, and its packets".into(),
            })?);
        }
        Self::new(&counts)
    }

    /// Sources with these numbers of packets.
    ///
    /// # Errors
    ///
    /// [`HazardError::Empty`] if no source has a packet.
    pub fn new(counts: &[(Ipv4Addr, u64)]) -> Result<Self, HazardError> {
        let counts = counts.iter().filter(|(_, count)| *count > 0);
        let (sources, counts): (Vec<_>, Vec<_>) = counts.copied().unzip();
        if sources.is_empty() {
            return Err(HazardError::Empty);
        }
        let all: f64 = counts.iter().map(|count| *count as f64).sum();
        let mean = all / counts.len() as f64;
        let mut left: Vec<f64> = counts.iter().map(|count| *count as f64 / mean).collect();
        let (mut below, mut above): (Vec<usize>, Vec<usize>) =
            (0..left.len()).partition(|&at| left[at] < 1.0);
        let mut columns: Vec<(u32, u32)> = (0..left.len() as u32).map(|at| (0, at)).collect();
        while let (Some(&low), Some(&high)) = (below.last(), above.last()) {
            below.pop();
            columns[low] = ((left[low] * 2f64.powi(32)) as u32, high as u32);
            left[high] -= 1.0 - left[low];
            if left[high] < 1.0 {
                above.pop();
                below.push(high);
            }
        }
        Ok(Self { sources, columns })
    }

    /// Number of sources.
    pub fn sources(&self) -> usize {
        self.sources.len()
    }

    /// A packet's source, as a place in [`Self::flows`].
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u32 {
        let bits = random.next();
        let place = ((bits >> 32) * self.columns.len() as u64) >> 32;
        let (own, alias) = self.columns[place as usize];
        if (bits as u32) < own {
            place as u32
        } else {
            alias
        }
    }

    /// The sources, as flows without destination.
    pub fn flows(&self) -> Vec<Option<Flow>> {
        let flow = |source: &Ipv4Addr| {
            let source = (*source).into();
            Some(Flow { source, rest: None })
        };
        self.sources.iter().map(flow).collect()
    }
}

fn count(line: &str) -> Option<(Ipv4Addr, u64)> {
    let mut fields = line.split_whitespace();
    let (source, count, None) = (fields.next()?, fields.next()?, fields.next()) else {
        return None;
    };
    let source = match source.parse::<u32>() {
        Ok(number) => number.into(),
        Err(_) => source.parse().ok()?,
    };
    Some((source, count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_drawn_by_their_counts() {
        let popularity = Popularity::parse("1\t100\n10.0.0.2\t700\n# none\n3\t0\n4 200\n").unwrap();
        assert_eq!(popularity.sources(), 3);
        let mut random = Random::new(3);
        let mut drawn = [0_u32; 3];
        for _ in 0..100_000 {
            drawn[popularity.draw(&mut random) as usize] += 1;
        }
        for (drawn, share) in drawn.into_iter().zip([0.1, 0.7, 0.2]) {
            assert!((f64::from(drawn) / 1e5 - share).abs() < 0.01, "{drawn}");
        }
    }

    #[test]
    fn lines_that_are_no_counts_are_refused_with_their_number() {
        for line in ["x 1", "1", "1 2 3", "1 -2", "1.2.3 4"] {
            let refused = Popularity::parse(&format!("1 2\n{line}\n")).unwrap_err();
            assert!(refused.to_string().starts_with("line 2: "), "{refused}");
        }
        assert_eq!(Popularity::parse("1 0\n"), Err(HazardError::Empty));
    }
}

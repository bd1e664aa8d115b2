//! Packets of locations as Zipf's law says.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Exponent of Zipf's law.
const EXPONENT: f64 = 1.05;

/// Bytes of packets, each as frequent as the others.
const LENGTHS: [u16; 4] = [64, 64, 576, 1500];

/// A source of packets: equal seeds give equal packets.
pub(super) struct Traffic {
    random: SmallRng,
    /// Of each column its share of the draws that hit it, and where the others go (Walker's alias
    /// method).
    columns: Vec<(f64, u32)>,
    /// Location by rank.
    places: Vec<u32>,
}

/// A packet that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    /// The location at which it is counted.
    pub(super) location: u32,
    /// Bytes of its IPv4 datagram.
    pub(super) length: u16,
}

impl Traffic {
    /// Packets of `locations`.
    pub(super) fn new(locations: u32, seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let count = locations as usize;
        let weights = (1..=count).map(|rank| (rank as f64).powf(-EXPONENT));
        let mut weights: Vec<f64> = weights.collect();
        let mean = weights.iter().sum::<f64>() / count as f64;
        for weight in &mut weights {
            *weight /= mean;
        }
        let mut columns = vec![(1.0, 0); count];
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..count).partition(|at| weights[*at] < 1.0);
        while let (Some(less), Some(more)) = (small.pop(), large.last().copied()) {
            columns[less] = (weights[less], more as u32);
            weights[more] -= 1.0 - weights[less];
            if weights[more] < 1.0 {
                large.pop();
                small.push(more);
            }
        }
        let mut places: Vec<u32> = (0..locations).collect();
        for at in (1..count).rev() {
            places.swap(at, random.random_range(0..=at));
        }
        Self {
            random,
            columns,
            places,
        }
    }

    /// The next packet.
    pub(super) fn packet(&mut self) -> Packet {
        let column = self.random.random_range(0..self.columns.len());
        let (share, other) = self.columns[column];
        let rank = if self.random.random::<f64>() < share {
            column
        } else {
            other as usize
        };
        Packet {
            location: self.places[rank],
            length: LENGTHS[self.random.random_range(0..LENGTHS.len())],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_have_the_shares_that_the_law_gives_them() {
        let mut traffic = Traffic::new(64, 3);
        let most = traffic.places[0];
        let mut counts = vec![0_u32; 64];
        for _ in 0..200_000 {
            counts[traffic.packet().location as usize] += 1;
        }
        let sum: f64 = (1..=64).map(|rank| f64::from(rank).powf(-EXPONENT)).sum();
        for (rank, place) in traffic.places.iter().enumerate() {
            let expected = 200_000.0 * (rank as f64 + 1.0).powf(-EXPONENT) / sum;
            let found = f64::from(counts[*place as usize]);
            assert!(
                (found - expected).abs() < 6.0 * expected.sqrt(),
                "{rank}: {found}"
            );
        }
        assert_eq!(counts.iter().max(), Some(&counts[most as usize]));
    }
}

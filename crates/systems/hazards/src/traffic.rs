//! Traffic: packets drawn from distributions, or those of a capture.

use crate::{Flow, HazardError, Popularity, Sizes};
use stateplane_random::Random;

/// A packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time since the first packet, in nanoseconds.
    pub at_ns: u64,
    /// Length in bytes, 1 to 65,535.
    pub bytes: u32,
    /// Addresses and ports; `None` without an IP header.
    pub flow: Option<Flow>,
}

/// Source of packets.
#[derive(Clone, Debug)]
pub enum Traffic {
    /// Packets drawn independently of each other.
    Drawn {
        /// Their sizes.
        sizes: Sizes,
        /// Their sources; without, packets have no flow.
        popularity: Option<Popularity>,
        /// Number of packets.
        packets: u64,
    },
    /// Packets of a capture, in their order.
    Recorded(Recorded),
}

/// Packets of a capture, with their ranks by size.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub(crate) records: Vec<Record>,
    /// Quantile of each packet's size; packets of one size share a range of quantiles.
    pub(crate) quantiles: Vec<f64>,
    /// The capture's distribution of sizes.
    pub sizes: Sizes,
}

impl Traffic {
    /// The packets of a capture.
    ///
    /// # Errors
    ///
    /// [`HazardError::Empty`] if there is none, [`HazardError::Setting`] for a length that is out
    /// of range.
    pub fn recorded(records: Vec<Record>) -> Result<Self, HazardError> {
        let sizes = Sizes::recorded(records.iter().map(|record| record.bytes).collect())?;
        // Among packets of one size, the rank has nothing to do with the order of arrival.
        let mut random = Random::new(0);
        let mut ranks: Vec<(u32, u64, usize)> = (0..records.len())
            .map(|at| (records[at].bytes, random.next(), at))
            .collect();
        ranks.sort_unstable();
        let mut quantiles = vec![0.0; records.len()];
        for (rank, (_, _, at)) in ranks.iter().enumerate() {
            quantiles[*at] = (rank as f64 + 0.5) / records.len() as f64;
        }
        Ok(Self::Recorded(Recorded {
            records,
            quantiles,
            sizes,
        }))
    }

    /// Number of packets.
    pub fn packets(&self) -> u64 {
        match self {
            Self::Drawn { packets, .. } => *packets,
            Self::Recorded(recorded) => recorded.records.len() as u64,
        }
    }

    /// The flows that packets name by their place.
    pub(crate) fn flows(&self) -> Vec<Option<Flow>> {
        match self {
            Self::Drawn { popularity, .. } => match popularity {
                Some(popularity) => popularity.flows(),
                None => vec![None],
            },
            Self::Recorded(recorded) => {
                let flows = recorded.records.iter().map(|record| record.flow);
                flows.collect()
            }
        }
    }
}

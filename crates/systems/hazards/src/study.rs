//! A study: traffic, the chip, the action, its locks and queues.

#[cfg(test)]
mod tests;

use crate::depth::unit;
use crate::traffic::Recorded;
use crate::{
    Depths, HazardError, Key, Outcome, Packet, Popularity, Queues, Scale, Sizes, Traffic, UNLOCKED,
    simulate,
};
use stateplane_random::Random;

/// Settings of one run.
#[derive(Clone, Debug)]
pub struct Study {
    /// Bytes that the switch reads in a cycle, at least 1.
    pub chunk: u32,
    /// Share of cycles in which it reads, above 0 up to 1; at 1 packets come back to back. Below,
    /// drawn packets come after exponentially distributed idle times, and those of a capture at
    /// their recorded times, on a scale that gives the share over the whole capture.
    pub utilisation: f64,
    /// Way of sizes from the least to the traffic's.
    pub scale: Scale,
    /// Depths of actions.
    pub depths: Depths,
    /// Fields that packets on the same state have in common.
    pub state: Key,
    /// Fields that packets under the same lock have in common; `None`: there is no lock.
    pub lock: Option<Key>,
    /// Number of locks to which keys are hashed, at least 1; `None`: one for each key.
    pub lock_values: Option<u32>,
    /// Queues, to which packets go by a hash of the lock's key (the state's, without lock).
    pub queues: Queues,
    /// Seed of all that is drawn. Equal seeds give equal runs.
    pub seed: u64,
}

impl Study {
    /// The paper's: 80 bytes a cycle, back to back, own sizes, one state, no lock, one queue.
    pub fn new(depths: Depths) -> Result<Self, HazardError> {
        Ok(Self {
            chunk: 80,
            utilisation: 1.0,
            scale: Scale::new(1.0, None)?,
            depths,
            state: Key::Global,
            lock: None,
            lock_values: None,
            queues: Queues {
                count: 1,
                capacity: None,
            },
            seed: 0,
        })
    }

    /// Runs the traffic's packets through the pipeline.
    ///
    /// # Errors
    ///
    /// [`HazardError`] for settings out of range, for keys that the traffic does not tell, and for
    /// traffic without packets.
    pub fn run(&self, traffic: &Traffic) -> Result<Outcome, HazardError> {
        simulate(self.packets(traffic)?, self.queues)
    }

    /// The traffic's packets, as they come to the queues.
    ///
    /// # Errors
    ///
    /// Those of [`Study::run`].
    pub fn packets<'a>(
        &'a self,
        traffic: &'a Traffic,
    ) -> Result<impl Iterator<Item = Packet> + 'a, HazardError> {
        let kinds = self.kinds(traffic)?;
        let (drawn, replayed) = match traffic {
            Traffic::Drawn { packets: 0, .. } => return Err(HazardError::Empty),
            Traffic::Drawn {
                sizes,
                popularity,
                packets,
            } => {
                let drawn = Drawn::new(self, sizes, popularity.as_ref(), kinds)?;
                (Some(drawn.take(*packets as usize)), None)
            }
            Traffic::Recorded(recorded) => (None, Some(Replay::new(self, recorded, kinds)?)),
        };
        Ok(drawn
            .into_iter()
            .flatten()
            .chain(replayed.into_iter().flatten()))
    }

    /// State, lock and queue of each flow.
    fn kinds(&self, traffic: &Traffic) -> Result<Vec<Kind>, HazardError> {
        let refused = |text: String| Err(HazardError::Setting(text));
        if self.chunk == 0 {
            return refused("chunk is 0; give the bytes that are read in a cycle".into());
        }
        if self.queues.count == 0 || self.lock_values == Some(0) {
            return refused("at least one queue and one value of locks are needed".into());
        }
        if !(self.utilisation > 0.0 && self.utilisation <= 1.0) {
            return refused(format!(
                "utilisation is {}; give a share of cycles above 0 and up to 1",
                self.utilisation
            ));
        }
        if self.lock.is_none() && self.lock_values.is_some() {
            return refused("values of locks without a lock; choose a lock".into());
        }
        let flows = traffic.flows();
        let states = self.state.numbers(&flows)?;
        let locks = match self.lock {
            Some(key) => key.numbers(&flows)?,
            None => states.clone(),
        };
        let kind = |(state, lock): (u32, u32)| Kind {
            state,
            lock: match (self.lock, self.lock_values) {
                (None, _) => UNLOCKED,
                (Some(_), None) => lock,
                (Some(_), Some(values)) => (hash(lock, 1) % u64::from(values)) as u32,
            },
            queue: (hash(lock, 2) % u64::from(self.queues.count)) as u32,
        };
        Ok(states.into_iter().zip(locks).map(kind).collect())
    }

    /// Cycles in which a packet is read.
    #[inline]
    fn chunks(&self, bytes: u32) -> u64 {
        u64::from(bytes.div_ceil(self.chunk))
    }
}

/// The hashes of locks and of queues have nothing to do with each other.
fn hash(number: u32, purpose: u64) -> u64 {
    Random::new(purpose << 32 | u64::from(number)).next()
}

#[derive(Clone, Copy)]
struct Kind {
    state: u32,
    lock: u32,
    queue: u32,
}

impl Kind {
    fn packet(self, arrival: u64, bytes: u32, depth: u32) -> Packet {
        Packet {
            arrival,
            bytes,
            depth,
            state: self.state,
            lock: self.lock,
            queue: self.queue,
        }
    }
}

/// Packets drawn from distributions, without end.
struct Drawn<'a> {
    study: &'a Study,
    sizes: &'a Sizes,
    popularity: Option<&'a Popularity>,
    kinds: Vec<Kind>,
    random: Random,
    /// Mean of the idle times between packets, in cycles.
    idle: f64,
    clock: f64,
    /// Cycle in which the input is free.
    free: u64,
}

impl<'a> Drawn<'a> {
    fn new(
        study: &'a Study,
        sizes: &'a Sizes,
        popularity: Option<&'a Popularity>,
        kinds: Vec<Kind>,
    ) -> Result<Self, HazardError> {
        /// Quantiles over which the mean is taken.
        const QUANTILES: u32 = 1 << 14;
        let chunks = |at: u32| {
            let share = (f64::from(at) + 0.5) / f64::from(QUANTILES);
            study.chunks(study.scale.bytes(share, sizes.quantile(share))) as f64
        };
        let mean = (0..QUANTILES).map(chunks).sum::<f64>() / f64::from(QUANTILES);
        Ok(Self {
            study,
            sizes,
            popularity,
            kinds,
            random: Random::new(study.seed),
            idle: mean * (1.0 / study.utilisation - 1.0),
            clock: 0.0,
            free: 0,
        })
    }
}

impl Iterator for Drawn<'_> {
    type Item = Packet;

    #[inline]
    fn next(&mut self) -> Option<Packet> {
        let share = unit(&mut self.random);
        let bytes = self.study.scale.bytes(share, self.sizes.quantile(share));
        let chunks = self.study.chunks(bytes);
        if self.idle > 0.0 {
            self.clock -= self.idle * (1.0 - unit(&mut self.random)).ln();
            self.free = self.free.max(self.clock as u64);
            self.clock += chunks as f64;
        }
        self.free += chunks;
        let flow = self
            .popularity
            .map_or(0, |popularity| popularity.draw(&mut self.random));
        let depth = self.study.depths.draw(&mut self.random);
        Some(self.kinds[flow as usize].packet(self.free, bytes, depth))
    }
}

/// Packets of a capture.
struct Replay<'a> {
    study: &'a Study,
    recorded: &'a Recorded,
    kinds: Vec<Kind>,
    random: Random,
    /// Cycles for each nanosecond of the capture.
    pace: f64,
    free: u64,
    at: usize,
}

impl<'a> Replay<'a> {
    fn new(
        study: &'a Study,
        recorded: &'a Recorded,
        kinds: Vec<Kind>,
    ) -> Result<Self, HazardError> {
        let mut replay = Self {
            study,
            recorded,
            kinds,
            random: Random::new(study.seed),
            pace: 0.0,
            free: 0,
            at: 0,
        };
        if study.utilisation < 1.0 {
            let last = recorded.records.iter().map(|record| record.at_ns).max();
            let Some(span @ 1..) = last else {
                return Err(HazardError::Setting(
                    "the capture's packets have no times; leave utilisation at 1".into(),
                ));
            };
            let places = 0..recorded.records.len();
            let chunks: u64 = places.map(|at| study.chunks(replay.bytes(at))).sum();
            replay.pace = chunks as f64 / study.utilisation / span as f64;
        }
        Ok(replay)
    }

    fn bytes(&self, at: usize) -> u32 {
        let own = f64::from(self.recorded.records[at].bytes);
        self.study.scale.bytes(self.recorded.quantiles[at], own)
    }
}

impl Iterator for Replay<'_> {
    type Item = Packet;

    #[inline]
    fn next(&mut self) -> Option<Packet> {
        let record = self.recorded.records.get(self.at)?;
        let bytes = self.bytes(self.at);
        let begin = (record.at_ns as f64 * self.pace) as u64;
        self.free = self.free.max(begin) + self.study.chunks(bytes);
        let depth = self.study.depths.draw(&mut self.random);
        let packet = self.kinds[self.at].packet(self.free, bytes, depth);
        self.at += 1;
        Some(packet)
    }
}

//! Orders of an experiment to a client in its node, and answers: JSON, a line each.

use serde::{Deserialize, Serialize};
use stateplane_peers::{Contest, Load};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// A request to a client. All but the service that is evaluated take the first three alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Give `keys` keys values of `value` bytes.
    Fill {
        /// Number of keys.
        keys: u64,
        /// Bytes of a value.
        value: usize,
    },
    /// Read and write them.
    Load(Load),
    /// Run transactions.
    Transactions(Contest),
    /// Read and write at a steady rate, and say when.
    Series(Series),
    /// Name the members of a group's chain.
    Chain {
        /// The group.
        group: u16,
    },
}

/// Reads and writes of the keys that were filled, by workers of each group that have one request
/// in flight at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Bytes of a value.
    pub value: usize,
    /// Writes in a million requests.
    pub writes_ppm: u32,
    /// Workers of all groups together; those of one group ask for its keys alone.
    pub workers: usize,
    /// µs between two requests of a worker, unless the answer takes longer.
    pub period_us: u64,
    /// Duration in ms.
    pub duration_ms: u64,
    /// Time in ms over which answers are counted together.
    pub bucket_ms: u64,
    /// Requests that take longer are named, in µs.
    pub slow_us: u64,
}

/// A request that took long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    /// Its group.
    pub group: u16,
    /// Time at which it was asked, in µs of the system's clock since it started.
    pub asked_us: u64,
    /// Time at which it was answered, or given up.
    pub ended_us: u64,
    /// True if it was a write.
    pub write: bool,
}

/// A series of answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Begin, in µs of the system's clock since it started.
    pub begun_us: u64,
    /// Answers in each bucket: reads and writes.
    pub buckets: Vec<[u64; 2]>,
    /// Requests that took long, as far as there is room for them.
    pub slow: Vec<Slow>,
}

/// Answer of a client. Parts that the order does not ask for are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// Why the order was not carried out.
    pub error: Option<String>,
    /// Requests answered, or transactions done, within the time.
    pub done: u64,
    /// Requests that another's lock refused, or that found no room.
    pub refused: u64,
    /// Requests without an answer, or with a wrong one.
    pub failed: u64,
    /// Why requests failed, and how often, as far as it is known.
    pub failures: BTreeMap<String, u64>,
    /// Time for which `done` was counted, in s.
    pub seconds: f64,
    /// µs within which 50, 99 and 99.9 % of them were answered.
    pub within_us: [f64; 3],
    /// Processor time of the client's process, in s.
    pub processor_s: f64,
    /// Answers over time.
    pub times: Option<Times>,
    /// Members of a chain, head first.
    pub chain: Vec<Ipv4Addr>,
}

impl Told {
    /// `done` by time.
    pub fn per_second(&self) -> f64 {
        self.done as f64 / self.seconds.max(1e-9)
    }

    /// Processor time of the client for one request or transaction, in µs.
    pub fn processor_us(&self) -> f64 {
        self.processor_s * 1e6 / (self.done.max(1) as f64)
    }
}

//! Services of others that replicate what they are told, and datagrams that only pass hops: what
//! the project's services are compared with, by clients that keep a number of requests in flight.
//!
//! What stands behind an answer: Redis, the memory of the master and of both replicas (`WAIT 2`),
//! nothing on disk; etcd, the log of two of three members, on disk or handed to the system.
//!
//! Redis is `redis-server` (Debian's package of that name); etcd 3.5 or newer is `etcd`, or is built
//! once with Go from its module `go.etcd.io/etcd/server/v3`.

#![allow(clippy::disallowed_types)]

mod echo;
mod etcd;
mod process;
mod redis;

pub use echo::Echo;
pub use etcd::Etcd;
pub use redis::Redis;

/// What a client asks for in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A new value, acknowledged when it is replicated.
    Write,
    /// A value, as new as all writes answered before.
    Read,
}

/// Times of answers, and the shares of them that were faster.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<u32>);

impl Latencies {
    /// Adds the time of one answer.
    pub fn add(&mut self, spent: std::time::Duration) {
        self.0
            .push(u32::try_from(spent.as_nanos()).unwrap_or(u32::MAX));
    }

    /// Adds times of others.
    pub fn append(&mut self, mut others: Latencies) {
        self.0.append(&mut others.0);
    }

    /// µs within which `share` of the answers came, 0 to 1; 0 without any.
    pub fn within(&mut self, share: f64) -> f64 {
        self.0.sort_unstable();
        let at = (self.0.len() as f64 * share) as usize;
        let at = at.min(self.0.len().saturating_sub(1));
        self.0.get(at).map_or(0.0, |ns| f64::from(*ns) / 1000.0)
    }
}

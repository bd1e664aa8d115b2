//! A service with connections to it, and the clients that load it.

use crate::measure::{Answers, Asked, Latencies, Load, ROUND, Sample};
use crate::process::Server;
use stateplane_random::Random;
use std::future::Future;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// Longest time after a load for requests under way.
const GRACE: Duration = Duration::from_secs(20);

/// A client's connection.
pub(crate) trait Connection: Send + 'static {
    /// Gives `key` a value of `length` bytes, and waits until that is replicated.
    fn put(&mut self, key: u64, length: usize) -> impl Future<Output = Result<(), String>> + Send;

    /// Bytes of the value of `key`.
    fn get(&mut self, key: u64) -> impl Future<Output = Result<usize, String>> + Send;
}

/// Servers, their files, and a connection for each client.
pub struct Service<C> {
    connections: Vec<C>,
    runtime: Runtime,
    value: usize,
    latencies: Latencies,
    _servers: Vec<Server>,
    _data: Vec<TempDir>,
}

/// The thread in which all clients of a service run.
pub(crate) fn runtime() -> Result<Runtime, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())
}

/// The name of `key`, 16 bytes.
pub(crate) fn name(key: u64) -> String {
    format!("{key:016}")
}

#[allow(
    private_bounds,
    reason = "which services there are is this crate's to say"
)]
impl<C: Connection> Service<C> {
    pub(crate) fn new(
        connections: Vec<C>,
        runtime: Runtime,
        value: usize,
        servers: Vec<Server>,
        data: Vec<TempDir>,
    ) -> Service<C> {
        Service {
            connections,
            runtime,
            value,
            latencies: Latencies::default(),
            _servers: servers,
            _data: data,
        }
    }

    pub(crate) fn parts(&mut self) -> (&Runtime, &mut Vec<C>) {
        (&self.runtime, &mut self.connections)
    }

    /// Gives all of `keys` keys values of `value` bytes.
    ///
    /// # Errors
    ///
    /// Why the service refuses one.
    pub fn fill(&mut self, keys: u64, value: usize) -> Result<(), String> {
        let stride = self.connections.len() as u64;
        let connections = std::mem::take(&mut self.connections);
        let filled = self.runtime.block_on(async move {
            let mut tasks = JoinSet::new();
            for (at, mut connection) in connections.into_iter().enumerate() {
                tasks.spawn(async move {
                    let mut done = Ok(());
                    let mut key = at as u64;
                    while key < keys && done.is_ok() {
                        done = connection.put(key, value).await;
                        key += stride;
                    }
                    (connection, done)
                });
            }
            tasks.join_all().await
        });
        let mut outcome = Ok(());
        for (connection, done) in filled {
            self.connections.push(connection);
            outcome = outcome.and(done);
        }
        self.value = value;
        outcome
    }

    /// Loads the service. Keys must have been filled. A request that is refused counts as failed.
    pub fn load(&mut self, load: &Load, seed: u64) -> Answers {
        let mut random = Random::new(seed);
        let connections = std::mem::take(&mut self.connections);
        let clients = load.in_flight.min(connections.len());
        let start = Instant::now();
        let end = start + load.duration();
        let load = *load;
        let ended = self.runtime.block_on(async move {
            let mut tasks = JoinSet::new();
            for (at, connection) in connections.into_iter().enumerate() {
                let random = random.split();
                let end = if at < clients { end } else { start };
                tasks.spawn(client(connection, load, random, end));
            }
            tasks.join_all().await
        });
        let mut all = Answers {
            spent: load.duration(),
            ..Answers::default()
        };
        for (connection, answers) in ended {
            self.connections.push(connection);
            all.answered += answers.answered;
            all.failed += answers.failed;
            all.latencies.append(answers.latencies);
        }
        all
    }

    /// Asks on all connections for half a second, for as many keys as there are connections.
    ///
    /// # Panics
    ///
    /// If the service refuses anything.
    pub fn round(&mut self, asked: Asked) -> Sample {
        let load = Load {
            value: self.value,
            keys: self.connections.len() as u64,
            writes_ppm: match asked {
                Asked::Write => 1_000_000,
                Asked::Read => 0,
            },
            in_flight: self.connections.len(),
            duration_ms: ROUND.as_millis() as u64,
        };
        let answers = self.load(&load, 1);
        assert_eq!(answers.failed, 0, "the service answers");
        self.latencies = answers.latencies;
        Sample {
            items: answers.answered,
            spent: answers.spent,
        }
    }

    /// Times of the answers in the last round.
    pub fn latencies(&mut self) -> &mut Latencies {
        &mut self.latencies
    }
}

/// One client, until `end`.
async fn client<C: Connection>(
    mut connection: C,
    load: Load,
    mut random: Random,
    end: Instant,
) -> (C, Answers) {
    let mut answers = Answers::default();
    loop {
        let sent = Instant::now();
        if sent >= end {
            return (connection, answers);
        }
        let key = random.between(0, load.keys - 1);
        let writes = random.between(0, 999_999) < u64::from(load.writes_ppm);
        let asked = async {
            if writes {
                connection.put(key, load.value).await
            } else {
                let length = connection.get(key).await?;
                (length == load.value)
                    .then_some(())
                    .ok_or_else(|| format!("{length} bytes of {}", load.value))
            }
        };
        let answered = tokio::time::timeout_at((end + GRACE).into(), asked).await;
        let now = Instant::now();
        match answered {
            Ok(Ok(())) if now <= end => {
                answers.answered += 1;
                answers.latencies.add(now - sent);
            }
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => answers.failed += 1,
        }
    }
}

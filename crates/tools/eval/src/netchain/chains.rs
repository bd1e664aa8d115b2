//! The client of the service that is evaluated: the one that ships, with many requests in flight.

use super::order::{Series, Slow, Times, Told};
use rustc_hash::FxHashMap;
use stateplane_coordination::{
    Agent, Chain, ConnectionEvent, Event, Operation, Place, Ticket, group_of,
};
use stateplane_host::coordination_client::{Client, ClientConfig};
use stateplane_peers::{Latencies, Load};
use stateplane_random::Random;
use stateplane_wire::coordination::{Key, Outcome};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

/// Time that an operation has, in µs.
const DEADLINE_US: u64 = 5_000_000;
/// Longest time until the groups serve, in µs.
const BEGIN_US: u64 = 40_000_000;
/// Requests in flight while keys are filled.
const FILLING: usize = 128;
/// Most requests of a series that are named.
const MOST_SLOW: usize = 50_000;

/// A client with a session.
pub struct Chains {
    client: Client,
    /// Groups of the keys that were filled, by key.
    groups: Vec<u16>,
    group_count: u16,
    pub(super) session: u32,
}

/// The end of an operation.
pub struct Ended {
    pub ticket: Ticket,
    /// Its outcome; none if it has no answer, or may have taken effect.
    pub outcome: Option<Outcome>,
    /// Bytes of the record that it shows.
    pub length: Option<usize>,
}

/// A request in flight.
struct Flying {
    worker: usize,
    key: u64,
    write: bool,
    asked_us: u64,
}

/// The client, and what it asks for.
struct Workers<'a> {
    count: usize,
    /// Keys of each worker, in turn; all keys if there is no list.
    keys: Vec<Vec<u64>>,
    all: u64,
    value: &'a [u8],
    writes_ppm: u32,
    period_us: u64,
    end_us: u64,
}

/// An answered request.
struct Answered {
    key: u64,
    write: bool,
    asked_us: u64,
    ended_us: u64,
    /// Why it failed, if it did.
    wrong: Option<String>,
}

/// The key of number `at`.
pub fn key(at: u64) -> Key {
    let mut key = [0; 16];
    key.copy_from_slice(format!("{at:016}").as_bytes());
    Key(key)
}

impl Chains {
    /// Opens a session with `lanes` lanes.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn open(controller: SocketAddrV4, lanes: u16) -> Result<Chains, String> {
        let config = ClientConfig {
            controllers: vec![controller],
            address: None,
            lanes,
            deadline_us: DEADLINE_US,
        };
        let mut client = Client::open(&config).map_err(|error| error.to_string())?;
        let end = client.now() + BEGIN_US;
        let mut session = None;
        let mut groups = 0;
        while groups == 0 || session.is_none() {
            while let Some(event) = client.poll_event() {
                if let ConnectionEvent::Opened { lanes, .. } = event {
                    session = Some(lanes.session);
                }
            }
            let agent = client.connection().agent();
            groups = agent.map_or(0, |agent| agent.settings().groups);
            if client.now() >= end {
                return Err("the controller gives no session".to_owned());
            }
            client.step(end).map_err(|error| error.to_string())?;
        }
        Ok(Chains {
            client,
            groups: Vec::new(),
            group_count: groups,
            session: session.unwrap_or_default(),
        })
    }

    pub(super) fn now(&self) -> u64 {
        self.client.now()
    }

    fn agent(&mut self) -> &mut Agent {
        let agent = self.client.connection().agent();
        agent.expect("the groups are known, and with them the agent")
    }

    pub(super) fn submit(&mut self, operation: Operation) -> Result<Ticket, String> {
        let now = self.client.now();
        let taken = self.agent().submit(now, operation);
        taken.map_err(|refused| refused.to_string())
    }

    /// The next operation that ended, if one did.
    pub(super) fn ended(&mut self) -> Option<Ended> {
        loop {
            let ConnectionEvent::Agent(event) = self.client.poll_event()? else {
                continue;
            };
            let (ticket, answer) = match event {
                Event::Answered { ticket, answer } => (ticket, Some(answer)),
                Event::Expired { ticket, .. }
                | Event::Unknown { ticket, .. }
                | Event::Failed { ticket, .. } => (ticket, None),
                Event::Resolved { .. }
                | Event::Entry { .. }
                | Event::ChainWanted { .. }
                | Event::LanesEnded => continue,
            };
            let record = answer.as_ref().and_then(|answer| answer.record.as_ref());
            return Some(Ended {
                ticket,
                length: record.map(|record| record.value.len()),
                outcome: answer.map(|answer| answer.outcome),
            });
        }
    }

    /// Waits until something happens, at most until `until`.
    pub(super) fn step(&mut self, until: u64) -> Result<(), String> {
        self.client.step(until).map_err(|error| error.to_string())
    }

    fn place(&self, at: u64) -> Place {
        match self.groups.get(at as usize) {
            Some(group) => Place::within(*group, key(at)),
            None => Place::of(key(at)),
        }
    }

    /// Members of the chain of `group`, as they are known.
    pub fn chain(&mut self, group: u16) -> Vec<Ipv4Addr> {
        let chain: Option<&Chain> = self.agent().chain(group);
        chain.map_or(Vec::new(), |chain| chain.members.clone())
    }

    /// Gives `keys` keys values of `length` bytes; those that are not answered are asked for again.
    ///
    /// # Errors
    ///
    /// The client cannot, or groups do not serve within 40 s.
    pub fn fill(&mut self, keys: u64, length: usize) -> Result<Told, String> {
        let groups = (0..keys).map(|at| group_of(&key(at), self.group_count));
        self.groups = groups.collect();
        let value = vec![b'v'; length];
        let mut waiting: Vec<u64> = (0..keys).rev().collect();
        let mut flying: FxHashMap<Ticket, u64> = FxHashMap::default();
        let begun = self.now();
        let mut told = Told::default();
        loop {
            while flying.len() < FILLING
                && let Some(at) = waiting.pop()
            {
                let operation = Operation::put(self.place(at), &value);
                flying.insert(self.submit(operation)?, at);
            }
            if flying.is_empty() {
                told.seconds = (self.now() - begun) as f64 / 1e6;
                return Ok(told);
            }
            self.step(u64::MAX)?;
            while let Some(ended) = self.ended() {
                let Some(at) = flying.remove(&ended.ticket) else {
                    continue;
                };
                match ended.outcome {
                    Some(Outcome::Done) => told.done += 1,
                    Some(_) => told.refused += 1,
                    None if self.now() - begun > BEGIN_US => {
                        return Err("the groups do not serve".to_owned());
                    }
                    None => waiting.push(at),
                }
            }
        }
    }

    /// Asks until the time is over, then waits for what is under way.
    fn drive(
        &mut self,
        workers: &Workers<'_>,
        random: &mut Random,
        mut answered: impl FnMut(Answered),
    ) -> Result<(), String> {
        let mut flying: FxHashMap<Ticket, Flying> = FxHashMap::default();
        let now = self.now();
        // Workers begin evenly spread over a period.
        let spread = |at: usize| now + workers.period_us * at as u64 / workers.count.max(1) as u64;
        let mut due: BTreeSet<(u64, usize)> =
            (0..workers.count).map(|at| (spread(at), at)).collect();
        loop {
            let now = self.now();
            if now >= workers.end_us {
                due.clear();
            }
            while let Some(&(at, worker)) = due.first()
                && at <= now
            {
                due.pop_first();
                let key = match workers.keys.get(worker % workers.keys.len().max(1)) {
                    Some(keys) if keys.is_empty() => continue,
                    Some(keys) => keys[random.place(keys.len())],
                    None => random.between(0, workers.all - 1),
                };
                let write = random.between(0, 999_999) < u64::from(workers.writes_ppm);
                let place = self.place(key);
                let operation = if write {
                    Operation::put(place, workers.value)
                } else {
                    Operation::read(place)
                };
                let asked_us = self.now();
                let flight = Flying {
                    worker,
                    key,
                    write,
                    asked_us,
                };
                flying.insert(self.submit(operation)?, flight);
            }
            if flying.is_empty() && due.is_empty() {
                return Ok(());
            }
            let until = due.first().map_or(u64::MAX, |(at, _)| *at);
            self.step(until)?;
            while let Some(ended) = self.ended() {
                let Some(flight) = flying.remove(&ended.ticket) else {
                    continue;
                };
                let ended_us = self.now();
                due.insert((flight.asked_us + workers.period_us, flight.worker));
                let expected = workers.value.len();
                let wrong = match (ended.outcome, ended.length) {
                    (Some(Outcome::Done), _) if flight.write => None,
                    (Some(Outcome::Done), Some(length)) if length == expected => None,
                    (Some(outcome), Some(length)) => Some(format!("{outcome:?}, {length} bytes")),
                    (Some(outcome), None) => Some(format!("{outcome:?}")),
                    (None, _) => Some("no answer".to_owned()),
                };
                answered(Answered {
                    key: flight.key,
                    write: flight.write,
                    asked_us: flight.asked_us,
                    ended_us,
                    wrong,
                });
            }
        }
    }

    /// Reads and writes keys that were filled.
    ///
    /// # Errors
    ///
    /// The client cannot.
    pub fn load(&mut self, load: &Load, seed: u64) -> Result<Told, String> {
        let end_us = self.now() + load.duration_ms * 1000;
        let workers = Workers {
            count: load.in_flight,
            keys: Vec::new(),
            all: load.keys,
            value: &vec![b'v'; load.value],
            writes_ppm: load.writes_ppm,
            period_us: 0,
            end_us,
        };
        let mut told = Told {
            seconds: load.duration().as_secs_f64(),
            ..Told::default()
        };
        let mut latencies = Latencies::default();
        self.drive(&workers, &mut Random::new(seed), |answered| {
            if let Some(wrong) = answered.wrong {
                told.failed += 1;
                *told.failures.entry(wrong).or_default() += 1;
            } else if answered.ended_us <= end_us {
                told.done += 1;
                latencies.add(Duration::from_micros(answered.ended_us - answered.asked_us));
            }
        })?;
        told.within_us = [0.5, 0.99, 0.999].map(|share| latencies.within(share));
        Ok(told)
    }

    /// Reads and writes at a steady rate, and says when.
    ///
    /// # Errors
    ///
    /// The client cannot.
    pub fn series(&mut self, series: &Series, seed: u64) -> Result<Told, String> {
        let begun_us = self.now();
        let mut keys = vec![Vec::new(); usize::from(self.group_count)];
        for (at, group) in self.groups.iter().enumerate() {
            keys[usize::from(*group)].push(at as u64);
        }
        let workers = Workers {
            count: series.workers,
            keys,
            all: self.groups.len() as u64,
            value: &vec![b'v'; series.value],
            writes_ppm: series.writes_ppm,
            period_us: series.period_us,
            end_us: begun_us + series.duration_ms * 1000,
        };
        let bucket_us = series.bucket_ms * 1000;
        let count = series.duration_ms.div_ceil(series.bucket_ms) as usize;
        let mut times = Times {
            begun_us,
            buckets: vec![[0; 2]; count],
            slow: Vec::new(),
        };
        let mut told = Told::default();
        let groups = self.groups.clone();
        self.drive(&workers, &mut Random::new(seed), |answered| {
            let good = answered.wrong.is_none();
            told.done += u64::from(good);
            if let Some(wrong) = answered.wrong {
                told.failed += 1;
                *told.failures.entry(wrong).or_default() += 1;
            }
            let at = (answered.ended_us - begun_us) / bucket_us;
            if let (true, Some(bucket)) = (good, times.buckets.get_mut(at as usize)) {
                bucket[usize::from(answered.write)] += 1;
            }
            let spent = answered.ended_us - answered.asked_us;
            if spent > series.slow_us && times.slow.len() < MOST_SLOW {
                times.slow.push(Slow {
                    group: groups[answered.key as usize],
                    asked_us: answered.asked_us,
                    ended_us: answered.ended_us,
                    write: answered.write,
                });
            }
        })?;
        told.seconds = series.duration_ms as f64 / 1000.0;
        told.times = Some(times);
        Ok(told)
    }
}

//! Transactions on the locks of the service that is evaluated: what `stateplane_peers` runs on
//! those of others.

use super::chains::Chains;
use super::order::Told;
use rustc_hash::FxHashMap;
use stateplane_coordination::{Operation, Owner, Place, Ticket};
use stateplane_peers::{Contest, Latencies};
use stateplane_random::Random;
use stateplane_wire::coordination::{Key, Outcome};
use std::collections::BTreeSet;
use std::time::Duration;

/// Answer that a client waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The lock of the hot item.
    Hot,
    /// Those of the others.
    Cold,
    /// That what it has is given back, after a whole transaction or not.
    Return { whole: bool },
    /// The next attempt.
    Pause,
}

/// A client with a transaction under way.
struct Transactor {
    owner: Owner,
    items: Vec<u64>,
    taken: Vec<u64>,
    waits: usize,
    stage: Stage,
    attempt: u32,
    begun_us: u64,
}

/// All clients, on one session.
struct Clients<'a> {
    chains: &'a mut Chains,
    contest: Contest,
    random: Random,
    all: Vec<Transactor>,
    flying: FxHashMap<Ticket, (usize, u64)>,
    pausing: BTreeSet<(u64, usize)>,
    end_us: u64,
    told: Told,
    latencies: Latencies,
}

/// The place of the lock of `item`.
fn place(item: u64) -> Place {
    let mut key = [0; 16];
    key.copy_from_slice(format!("lock{item:012}").as_bytes());
    Place::of(Key(key))
}

/// Runs the contest.
///
/// # Errors
///
/// The client cannot.
pub fn run(chains: &mut Chains, contest: &Contest, seed: u64) -> Result<Told, String> {
    let session = chains.session;
    let client = |at: usize| Transactor {
        owner: Owner {
            session,
            handle: at as u32 + 1,
        },
        items: Vec::new(),
        taken: Vec::new(),
        waits: 0,
        stage: Stage::Pause,
        attempt: 0,
        begun_us: 0,
    };
    let end_us = chains.now() + contest.duration_ms * 1000;
    let mut clients = Clients {
        chains,
        contest: *contest,
        random: Random::new(seed),
        all: (0..contest.clients).map(client).collect(),
        flying: FxHashMap::default(),
        pausing: BTreeSet::new(),
        end_us,
        told: Told::default(),
        latencies: Latencies::default(),
    };
    clients.run()?;
    let mut told = clients.told;
    told.seconds = contest.duration_ms as f64 / 1000.0;
    let mut latencies = clients.latencies;
    told.within_us = [0.5, 0.99, 0.999].map(|share| latencies.within(share));
    Ok(told)
}

impl Clients<'_> {
    fn run(&mut self) -> Result<(), String> {
        for at in 0..self.all.len() {
            self.begin(at)?;
        }
        loop {
            let now = self.chains.now();
            while let Some(&(due, at)) = self.pausing.first()
                && due <= now
            {
                self.pausing.pop_first();
                self.attempt(at)?;
            }
            if self.flying.is_empty() && self.pausing.is_empty() {
                return Ok(());
            }
            let until = self.pausing.first().map_or(u64::MAX, |(due, _)| *due);
            self.chains.step(until)?;
            while let Some(ended) = self.chains.ended() {
                if let Some((at, item)) = self.flying.remove(&ended.ticket) {
                    self.ended(at, item, ended.outcome)?;
                }
            }
        }
    }

    /// A new transaction, unless the time is over.
    fn begin(&mut self, at: usize) -> Result<(), String> {
        let now = self.chains.now();
        let client = &mut self.all[at];
        client.items = self.contest.draw(&mut self.random);
        client.begun_us = now;
        client.attempt = 0;
        self.attempt(at)
    }

    fn attempt(&mut self, at: usize) -> Result<(), String> {
        if self.chains.now() >= self.end_us {
            return Ok(());
        }
        let client = &mut self.all[at];
        client.stage = Stage::Hot;
        let hot = client.items[0];
        self.acquire(at, hot)
    }

    fn acquire(&mut self, at: usize, item: u64) -> Result<(), String> {
        let owner = self.all[at].owner;
        self.ask(at, item, Operation::acquire(place(item), owner, false))
    }

    fn ask(&mut self, at: usize, item: u64, operation: Operation) -> Result<(), String> {
        let ticket = self.chains.submit(operation)?;
        self.all[at].waits += 1;
        self.flying.insert(ticket, (at, item));
        Ok(())
    }

    fn ended(&mut self, at: usize, item: u64, outcome: Option<Outcome>) -> Result<(), String> {
        let client = &mut self.all[at];
        client.waits -= 1;
        let acquires = matches!(client.stage, Stage::Hot | Stage::Cold);
        match outcome {
            Some(Outcome::Done) if acquires => client.taken.push(item),
            Some(Outcome::Done) => {}
            Some(_) => self.told.refused += 1,
            None => self.told.failed += 1,
        }
        if self.all[at].waits > 0 {
            return Ok(());
        }
        match self.all[at].stage {
            Stage::Hot if self.all[at].taken.is_empty() => {
                self.pause(at);
                Ok(())
            }
            Stage::Hot => {
                self.all[at].stage = Stage::Cold;
                let others = self.all[at].items[1..].to_vec();
                others
                    .into_iter()
                    .try_for_each(|item| self.acquire(at, item))
            }
            Stage::Cold => {
                let client = &mut self.all[at];
                let whole = client.taken.len() == client.items.len();
                client.stage = Stage::Return { whole };
                let (owner, taken) = (client.owner, std::mem::take(&mut client.taken));
                taken
                    .into_iter()
                    .try_for_each(|item| self.ask(at, item, Operation::release(place(item), owner)))
            }
            Stage::Return { whole: true } => {
                let now = self.chains.now();
                if now <= self.end_us {
                    self.told.done += 1;
                    let spent = Duration::from_micros(now - self.all[at].begun_us);
                    self.latencies.add(spent);
                }
                self.begin(at)
            }
            Stage::Return { whole: false } | Stage::Pause => {
                self.pause(at);
                Ok(())
            }
        }
    }

    fn pause(&mut self, at: usize) {
        let client = &mut self.all[at];
        client.stage = Stage::Pause;
        client.attempt += 1;
        let pause = Contest::pause(&mut self.random, client.attempt);
        let due = self.chains.now() + pause.as_micros() as u64;
        self.pausing.insert((due, at));
    }
}

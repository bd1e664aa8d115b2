//! The workers: clients of the service, each with an operation of each of its workers in flight.

mod client;

use super::line::Line;
use super::watcher;
use crate::agent::stop_at_end_of_input;
use crate::error::LabError;
use clap::Args;
use client::Workers;
use stateplane_apps::Random;
use stateplane_host::coordination_client::{Client, ClientConfig};
use stateplane_wire::coordination::Key;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Time in µs that an operation has.
const DEADLINE_US: u64 = 1_000_000;
/// Time in µs for which what is open in the end is waited for.
pub(super) const DRAIN_US: u64 = 5_000_000;
/// Least and greatest time in µs for which a client lives that dies.
const LIFE_US: (u64, u64) = (300_000, 1_500_000);
/// Values of a group.
const VALUES: u8 = 2;
/// The lock of a group.
const LOCK: u8 = VALUES;
/// The record of a group whose writes bear the token of the lock.
const FENCED: u8 = LOCK + 1;

/// Arguments of the workers.
#[derive(Clone, Debug, Args)]
pub struct WorkersArguments {
    /// Address of the controller.
    #[arg(long)]
    pub controller: Ipv4Addr,
    /// Workers, each with one operation at a time.
    #[arg(long)]
    pub workers: u16,
    /// Clients that they are of, each with a session and chains of its own.
    #[arg(long)]
    pub clients: u16,
    /// True if the last client dies and is replaced, over and over.
    #[arg(long)]
    pub dies: bool,
    /// Groups whose keys they use: the first ones.
    #[arg(long)]
    pub groups: u16,
    /// Microseconds between two operations of a worker.
    #[arg(long)]
    pub interval_us: u64,
    /// Seed of their choices.
    #[arg(long)]
    pub seed: u64,
}

/// Name of a group in histories.
pub fn group_name(group: u16) -> String {
    format!("g{group}")
}

/// Key and name of a record of a group.
fn record_key(record: u8) -> (Key, String) {
    let (kind, letter) = match record {
        LOCK => (2, 'l'),
        FENCED => (3, 'f'),
        _ => (1, 'k'),
    };
    let mut key = [0; 16];
    (key[0], key[15]) = (kind, record);
    (Key(key), format!("{letter}{record}"))
}

/// Name of the record with a key, if it is one of the workers'.
pub(super) fn name_of(key: Key) -> Option<String> {
    let known = (0..=FENCED).map(record_key);
    known
        .into_iter()
        .find_map(|(own, name)| (own == key).then_some(name))
}

/// State that the clients share.
pub(super) struct Shared {
    pub(super) arguments: WorkersArguments,
    stop: Arc<AtomicBool>,
    /// Threads of workers that have not ended.
    pub(super) working: AtomicU16,
    /// Newest change of each group that a worker was answered for.
    newest: BTreeMap<String, AtomicU64>,
    /// Number of the last operation or list.
    asked: AtomicU64,
    /// Number of the last logical client.
    named: AtomicU32,
    out: Mutex<io::BufWriter<io::Stdout>>,
}

impl Shared {
    /// A client of the service with so many lanes.
    pub(super) fn client(&self, lanes: u16) -> io::Result<Client> {
        let controller = self.arguments.controller;
        Client::open(&ClientConfig {
            controllers: vec![SocketAddrV4::new(
                controller,
                stateplane_wire::control::PORT,
            )],
            address: None,
            lanes,
            deadline_us: DEADLINE_US,
        })
    }

    /// Number of a new logical client.
    pub(super) fn name(&self) -> u32 {
        self.named.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Number of the newest change of a group that a worker was answered for; 0 without one.
    pub(super) fn newest(&self, group: u16) -> u64 {
        let newest = self.newest.get(&group_name(group));
        newest.map_or(0, |newest| newest.load(Ordering::Acquire))
    }

    fn changed(&self, group: &str, number: u64) {
        if let Some(newest) = self.newest.get(group) {
            newest.fetch_max(number, Ordering::AcqRel);
        }
    }

    pub(super) fn write(&self, line: &Line) -> io::Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::to_writer(&mut *out, line)?;
        out.write_all(b"\n")
    }
}

/// Runs the workers until standard input ends, and then until no operation is open or 5 s have
/// passed. Writes [`Line`]s on standard output.
///
/// # Errors
/// `LAB003` if the system gives no socket or thread, or the lines cannot be written.
pub fn workers(arguments: &WorkersArguments) -> Result<(), LabError> {
    let written = |reason| LabError::file("standard output", reason);
    run(arguments).map_err(written)
}

fn run(arguments: &WorkersArguments) -> io::Result<()> {
    let clients = arguments.clients.clamp(1, arguments.workers.max(1));
    let shared = Shared {
        arguments: arguments.clone(),
        stop: stop_at_end_of_input()?,
        asked: AtomicU64::new(0),
        named: AtomicU32::new(0),
        working: AtomicU16::new(clients),
        newest: (0..arguments.groups)
            .map(|group| (group_name(group), AtomicU64::new(0)))
            .collect(),
        out: Mutex::new(io::BufWriter::new(io::stdout())),
    };
    let mut random = Random::new(arguments.seed);
    let ended = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for client in 0..clients {
            let random = random.split();
            let of_each = arguments.workers / clients;
            let more = u16::from(client < arguments.workers % clients);
            let dies = arguments.dies && client + 1 == clients;
            let shared = &shared;
            threads.push(scope.spawn(move || {
                let served = serve(shared, of_each + more, dies, random);
                if served.is_err() {
                    shared.stop.store(true, Ordering::Relaxed);
                }
                shared.working.fetch_sub(1, Ordering::AcqRel);
                served
            }));
        }
        let shared = &shared;
        threads.push(scope.spawn(move || {
            let watched = watcher::watch(shared);
            if watched.is_err() {
                shared.stop.store(true, Ordering::Relaxed);
            }
            watched
        }));
        let ended = threads.into_iter().map(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err(io::Error::other("a client's thread panicked")))
        });
        ended.collect::<Vec<io::Result<()>>>()
    });
    ended.into_iter().collect::<io::Result<()>>()?;
    let mut out = shared.out.lock().unwrap_or_else(PoisonError::into_inner);
    out.flush()
}

/// Lets one client run, or, if it dies, one after the other.
fn serve(shared: &Shared, workers: u16, dies: bool, mut random: Random) -> io::Result<()> {
    loop {
        let lives_us = dies.then(|| random.between(LIFE_US.0, LIFE_US.1));
        let mut of = Workers::open(shared, workers, lives_us, random.split())?;
        if !of.run()? {
            return Ok(());
        }
    }
}

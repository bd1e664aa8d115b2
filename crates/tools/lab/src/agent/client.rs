//! The asking end.

use super::conversation::{self, Conversation, End};
use super::{Broken, PATIENCE_MS, STACK, now_ms, reason, stop_at_end_of_input};
use crate::error::LabError;
use clap::Args;
use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddrV4, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of gaps that a report lists; the longest is always known.
const MOST_STALLS: usize = 50_000;
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// Number of new connections that may be open at a time; more are not begun.
const MOST_NEW: u64 = 500;

/// Arguments of a client agent.
#[derive(Clone, Debug, Args)]
pub struct ClientArguments {
    /// JSON file with the connections to open, a [`Plan`].
    #[arg(long)]
    pub plan: PathBuf,
    /// Maximum duration in seconds, if standard input does not end before.
    #[arg(long, default_value_t = 300)]
    pub seconds: u64,
}

/// The connections that a client opens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Connections that stay until the end.
    pub long_lived: Vec<Planned>,
    /// Time over which the long-lived connections are opened, in milliseconds.
    pub ramp_ms: u64,
    /// Time from one question of a connection to its next, in milliseconds, if the
    /// answer has come by then.
    pub interval_ms: u64,
    /// Gaps at least this long are listed in the report, in milliseconds.
    pub listed_stall_ms: u64,
    /// Destinations of new connections, taken in turn.
    pub new_to: Vec<SocketAddrV4>,
    /// New connections opened per second.
    pub new_per_second: f64,
    /// Exchanges of a new connection before it is closed.
    pub new_exchanges: u32,
    /// Number of the first new connection; the others count up.
    pub first_new: u64,
    /// Time without an answer after which a connection counts as broken, in milliseconds.
    #[serde(default = "patience_ms")]
    pub patience_ms: u64,
}

fn patience_ms() -> u64 {
    PATIENCE_MS
}

/// A connection to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// Its number, unique in the run, not 0.
    pub connection: u64,
    /// Address and port to bind to; several connections may share them if their
    /// destinations differ.
    pub source: SocketAddrV4,
    /// Destination of the connections.
    pub destination: SocketAddrV4,
}

/// Progress of a client, once every 200 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Connections begun so far.
    pub opened: u64,
    /// Connections begun and neither ended nor broken.
    pub open: u64,
    /// Connections broken so far.
    pub broken: u64,
    /// Wrong bytes received so far.
    pub wrong_bytes: u64,
    /// Exchanges (question and answer, in both directions) completed so far.
    pub exchanges: u64,
}

/// A gap between two completed steps of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// The connection's number.
    pub connection: u64,
    /// When the earlier step was completed, in milliseconds since the Unix epoch.
    pub from_ms: u64,
    /// Length in milliseconds.
    pub length_ms: u64,
}

/// Report of a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientReport {
    /// Number of connections begun, those that failed to open among them.
    pub opened: u64,
    /// Of these, long-lived ones.
    pub long_lived: u64,
    /// Connections closed in order by both ends.
    pub ended_in_order: u64,
    /// Connections that broke: refused, reset, ended early, or without an answer
    /// for [`Plan::patience_ms`].
    pub broken: Vec<Broken>,
    /// Number of wrong bytes received.
    pub wrong_bytes: u64,
    /// Exchanges completed.
    pub exchanges: u64,
    /// Exchanges per second of the slowest long-lived connection over its life.
    pub slowest_rate: f64,
    /// The longest gap of any connection that was open, in milliseconds.
    pub longest_stall_ms: u64,
    /// The longest time in which a connection was opened, in milliseconds: a handshake that a failure
    /// hits is sent again after a second (RFC 6298, section 2).
    pub longest_opening_ms: u64,
    /// Gaps of at least [`Plan::listed_stall_ms`].
    pub stalls: Vec<Stall>,
}

/// Output line of a client, as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// Progress of the client.
    Progress(Progress),
    /// Report of the client; the last line.
    Report(ClientReport),
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    opened: AtomicU64,
    ended: AtomicU64,
    broken: AtomicU64,
    wrong_bytes: AtomicU64,
    exchanges: AtomicU64,
    new_open: AtomicU64,
    report: Mutex<ClientReport>,
}

impl Shared {
    fn report(&self) -> MutexGuard<'_, ClientReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) -> Progress {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (ended, broken) = (load(&self.ended), load(&self.broken));
        let opened = load(&self.opened);
        Progress {
            at_ms: now_ms(),
            opened,
            open: opened.saturating_sub(ended + broken),
            broken,
            wrong_bytes: load(&self.wrong_bytes),
            exchanges: load(&self.exchanges),
        }
    }
}

/// Life of one connection.
struct Caller<'a> {
    shared: &'a Shared,
    connection: u64,
    patience: Duration,
    listed_ms: u64,
    last_step: Instant,
    last_step_ms: u64,
    longest_ms: u64,
    opening_ms: u64,
    exchanges: u64,
}

impl<'a> Caller<'a> {
    fn new(shared: &'a Shared, connection: u64, plan: &Plan) -> Self {
        shared.opened.fetch_add(1, Ordering::Relaxed);
        Self {
            shared,
            connection,
            patience: Duration::from_millis(plan.patience_ms),
            listed_ms: plan.listed_stall_ms,
            last_step: Instant::now(),
            last_step_ms: now_ms(),
            longest_ms: 0,
            opening_ms: 0,
            exchanges: 0,
        }
    }

    /// ms since the last step.
    fn gap_ms(&self) -> u64 {
        u64::try_from(self.last_step.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The connection is open.
    fn opened(&mut self) {
        self.opening_ms = self.gap_ms();
        self.last_step = Instant::now();
        self.last_step_ms = now_ms();
    }

    /// Closes the gap since the last step.
    fn step(&mut self) {
        let length_ms = self.gap_ms();
        self.longest_ms = self.longest_ms.max(length_ms);
        if length_ms >= self.listed_ms {
            let mut report = self.shared.report();
            if report.stalls.len() < MOST_STALLS {
                report.stalls.push(Stall {
                    connection: self.connection,
                    from_ms: self.last_step_ms,
                    length_ms,
                });
            }
        }
        self.last_step = Instant::now();
        self.last_step_ms = now_ms();
    }

    fn live(
        &mut self,
        source: Option<SocketAddrV4>,
        destination: SocketAddrV4,
        interval: Duration,
        most: Option<u32>,
    ) -> io::Result<()> {
        let mut stream = connect(source, destination, self.patience)?;
        self.opened();
        let mut talk = Conversation::new(self.connection, End::Client);
        let mut buffer = Vec::new();
        let mut opening = conversation::hello(self.connection).to_vec();
        let mut turn = 0;
        while most.is_none_or(|most| turn < most) && !self.shared.stop.load(Ordering::Relaxed) {
            let asked = Instant::now();
            opening.extend(talk.message());
            stream.write_all(&opening)?;
            opening.clear();
            buffer.resize(talk.expected_length(), 0);
            stream.read_exact(&mut buffer)?;
            let wrong = talk.accept(&buffer);
            self.shared.wrong_bytes.fetch_add(wrong, Ordering::Relaxed);
            self.shared.exchanges.fetch_add(1, Ordering::Relaxed);
            self.exchanges += 1;
            turn += 1;
            self.step();
            std::thread::sleep(interval.saturating_sub(asked.elapsed()));
        }
        stream.shutdown(Shutdown::Write)?;
        self.last_step = Instant::now();
        let left = stream.read(&mut [0; 1])?;
        self.step();
        if left > 0 {
            self.shared.wrong_bytes.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn end(mut self, result: io::Result<()>, long_lived: bool, begun: Instant) {
        if result.is_err() {
            self.step();
        }
        let counter = if result.is_ok() {
            &self.shared.ended
        } else {
            &self.shared.broken
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let mut report = self.shared.report();
        report.longest_stall_ms = report.longest_stall_ms.max(self.longest_ms);
        report.longest_opening_ms = report.longest_opening_ms.max(self.opening_ms);
        if long_lived {
            let rate = self.exchanges as f64 / begun.elapsed().as_secs_f64().max(1e-3);
            let first = report.long_lived == 0;
            report.slowest_rate = if first {
                rate
            } else {
                report.slowest_rate.min(rate)
            };
            report.long_lived += 1;
        }
        match result {
            Ok(()) => report.ended_in_order += 1,
            Err(error) => report.broken.push(Broken {
                connection: self.connection,
                reason: reason(&error),
                at_ms: now_ms(),
            }),
        }
    }
}

fn connect(
    source: Option<SocketAddrV4>,
    destination: SocketAddrV4,
    patience: Duration,
) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    if let Some(source) = source {
        // Lets connections to different destinations share an address and port.
        socket.set_reuse_address(true)?;
        socket.bind(&source.into())?;
    }
    socket.connect_timeout(&destination.into(), patience)?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    Ok(stream)
}

/// Carries out a plan until `stop` says so or `limit` has passed; then lets every
/// connection finish its exchange and closes it. `progress` is called every 200 ms.
pub(super) fn call(
    plan: &Plan,
    limit: Duration,
    stop: &AtomicBool,
    mut progress: impl FnMut(Progress),
) -> io::Result<ClientReport> {
    let shared = Shared::default();
    let interval = Duration::from_millis(plan.interval_ms);
    let begun = Instant::now();
    let result = std::thread::scope(|scope| -> io::Result<()> {
        let shared = &shared;
        let stopped = || stop.load(Ordering::Relaxed) || begun.elapsed() > limit;
        let start = |planned: Planned, delay: Duration| {
            std::thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, move || {
                    std::thread::sleep(delay);
                    let mut caller = Caller::new(shared, planned.connection, plan);
                    let born = Instant::now();
                    let result =
                        caller.live(Some(planned.source), planned.destination, interval, None);
                    caller.end(result, true, born);
                })
                .map(drop)
        };
        let start_new = |connection: u64, destination: SocketAddrV4| {
            shared.new_open.fetch_add(1, Ordering::Relaxed);
            let most = Some(plan.new_exchanges);
            std::thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, move || {
                    let mut caller = Caller::new(shared, connection, plan);
                    let born = Instant::now();
                    let result = caller.live(None, destination, interval, most);
                    caller.end(result, false, born);
                    shared.new_open.fetch_sub(1, Ordering::Relaxed);
                })
                .map(drop)
        };
        let mut drive = || -> io::Result<()> {
            let count = plan.long_lived.len().max(1) as u32;
            for (planned, index) in plan.long_lived.iter().zip(0u32..) {
                start(
                    *planned,
                    Duration::from_millis(plan.ramp_ms) * index / count,
                )?;
            }
            let every = Duration::try_from_secs_f64(1.0 / plan.new_per_second)
                .ok()
                .filter(|_| !plan.new_to.is_empty());
            let mut next_new = every.map(|every| (begun + every, every));
            let mut made = 0u64;
            let mut next_progress = begun;
            while !stopped() {
                let now = Instant::now();
                if let Some((at, every)) = next_new
                    && now >= at
                {
                    let destination = plan.new_to[made as usize % plan.new_to.len()];
                    if shared.new_open.load(Ordering::Relaxed) < MOST_NEW {
                        start_new(plan.first_new + made, destination)?;
                        made += 1;
                    }
                    next_new = Some((at + every, every));
                }
                if now >= next_progress {
                    progress(shared.progress());
                    next_progress += PROGRESS_EVERY;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            Ok(())
        };
        let result = drive();
        shared.stop.store(true, Ordering::Relaxed);
        result
    });
    progress(shared.progress());
    result?;
    let mut report = shared.report().clone();
    report.opened = shared.opened.load(Ordering::Relaxed);
    report.wrong_bytes = shared.wrong_bytes.load(Ordering::Relaxed);
    report.exchanges = shared.exchanges.load(Ordering::Relaxed);
    Ok(report)
}

/// Carries out the plan until standard input ends, writing [`Line`]s.
///
/// # Errors
/// `LAB003` if the plan cannot be read, `LAB016` if threads or output fail.
pub fn client(arguments: &ClientArguments) -> Result<(), LabError> {
    let failed = |reason| LabError::Socket {
        what: "the agent's threads, standard input and output".to_owned(),
        reason,
    };
    let path = &arguments.plan;
    let plan: Plan = std::fs::read(path)
        .and_then(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::other))
        .map_err(|reason| LabError::file(path, reason))?;
    let stop = stop_at_end_of_input().map_err(failed)?;
    let limit = Duration::from_secs(arguments.seconds);
    let report = call(&plan, limit, &stop, |progress| {
        // A reader that is gone shows at the report.
        let _ = print(&Line::Progress(progress));
    })
    .map_err(failed)?;
    print(&Line::Report(report)).map_err(failed)
}

fn print(line: &Line) -> io::Result<()> {
    let text = serde_json::to_string(line).map_err(io::Error::other)?;
    writeln!(io::stdout(), "{text}")
}

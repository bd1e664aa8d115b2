//! A worker: takes the lock, adds one to the resource's value, and gives the lock back.

use super::resource::{Answer, Request};
use super::{LOCK, TTL_S};
use crate::agent::{now_us, stop_at_end_of_input_with};
use crate::error::LabError;
use clap::Args;
use serde::{Deserialize, Serialize};
use stateplane_coordination::{Name, Wait};
use stateplane_host::coordination_client::{Client, ClientConfig, LockClient, SessionClient};
use stateplane_peers::EtcdLock;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Line that asks a worker to be slow the next time that it has the lock.
pub(super) const HOLD: &str = "hold";
/// Time for which it is slow then, between reading and writing.
const SLOW: Duration = Duration::from_millis(500);
/// Time for which a worker has the lock otherwise.
const BUSY: Duration = Duration::from_millis(1);
/// Time in µs that an operation has.
const DEADLINE_US: u64 = 5_000_000;
/// Time in µs between two looks at whether to go on.
const LOOK_US: u64 = 50_000;
/// Time between two attempts to get a session.
const AGAIN: Duration = Duration::from_millis(100);

/// Arguments of a worker.
#[derive(Clone, Debug, Args)]
pub struct WorkerArguments {
    /// Number of the worker, from 1.
    #[arg(long)]
    pub number: u32,
    /// TCP port of the resource, on loopback.
    #[arg(long)]
    pub resource: u16,
    /// Address of the coordination service's controller.
    #[arg(long, required_unless_present = "etcd")]
    pub controller: Option<Ipv4Addr>,
    /// Members of etcd, whose lock is taken in place of the coordination service's.
    #[arg(long, value_delimiter = ',', conflicts_with = "controller")]
    pub etcd: Vec<SocketAddrV4>,
}

/// A line of a worker. Times are µs since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum WorkerLine {
    /// It has the lock.
    Acquired {
        /// When.
        at_us: u64,
        /// The fencing token.
        token: u64,
    },
    /// It has the lock, and is slow as it was asked.
    Holding {
        /// When.
        at_us: u64,
        /// The fencing token.
        token: u64,
    },
    /// Its session was ended, and it opens another.
    Lost {
        /// When.
        at_us: u64,
    },
}

/// A lock, whose session is kept alive while a method runs.
trait Lock {
    /// Waits for the lock until `stop` is true or the session is lost.
    fn acquire(&mut self, stop: &AtomicBool) -> io::Result<Option<u64>>;
    /// Lets time pass.
    fn pause(&mut self, time: Duration) -> io::Result<()>;
    /// Gives the lock back.
    fn release(&mut self) -> io::Result<()>;
    /// True if the session may have been ended.
    fn is_lost(&self) -> bool;
}

impl Lock for LockClient {
    fn acquire(&mut self, stop: &AtomicBool) -> io::Result<Option<u64>> {
        self.begin(Wait::Forever).map_err(io::Error::other)?;
        while !stop.load(Ordering::Relaxed) && !LockClient::is_lost(self) {
            match self.attempt() {
                Some(Ok(token)) => return Ok(Some(token)),
                // The queue is full, or the operation was given up: it asks again.
                Some(Err(_)) => {
                    Lock::pause(self, AGAIN)?;
                    self.begin(Wait::Forever).map_err(io::Error::other)?;
                }
                None => {
                    let now = self.session().now();
                    self.step(now + LOOK_US)?;
                }
            }
        }
        Ok(None)
    }

    fn pause(&mut self, time: Duration) -> io::Result<()> {
        let end = self.session().now() + time.as_micros() as u64;
        while self.session().now() < end {
            self.step(end)?;
        }
        Ok(())
    }

    fn release(&mut self) -> io::Result<()> {
        let end = self.session().now() + u64::from(TTL_S) * 1_000_000;
        LockClient::release(self, end);
        Ok(())
    }

    fn is_lost(&self) -> bool {
        LockClient::is_lost(self)
    }
}

impl Lock for EtcdLock {
    fn acquire(&mut self, stop: &AtomicBool) -> io::Result<Option<u64>> {
        Ok(EtcdLock::acquire(self, || stop.load(Ordering::Relaxed)))
    }

    fn pause(&mut self, time: Duration) -> io::Result<()> {
        EtcdLock::pause(self, time);
        Ok(())
    }

    fn release(&mut self) -> io::Result<()> {
        EtcdLock::release(self);
        Ok(())
    }

    fn is_lost(&self) -> bool {
        EtcdLock::is_lost(self)
    }
}

impl WorkerArguments {
    /// The lock, with a session of its own.
    fn open(&self) -> io::Result<Box<dyn Lock>> {
        let Some(controller) = self.controller else {
            let lock = EtcdLock::open(&self.etcd, self.number as usize, LOCK, TTL_S);
            return Ok(Box::new(lock.map_err(io::Error::other)?));
        };
        let controller = SocketAddrV4::new(controller, stateplane_wire::control::PORT);
        let config = ClientConfig {
            controllers: vec![controller],
            address: None,
            lanes: 2,
            deadline_us: DEADLINE_US,
        };
        let (client, opened) = Client::connect(&config, None).map_err(io::Error::other)?;
        let mut session = SessionClient::open(client, &opened).map_err(io::Error::other)?;
        let end = session.now() + DEADLINE_US;
        if !session.wait_connected(end)? {
            return Err(io::Error::other("no session could be opened"));
        }
        let name = Name::new(LOCK.as_bytes()).map_err(io::Error::other)?;
        let place = name.lock_place(opened.groups);
        Ok(Box::new(LockClient::new(session, place)))
    }
}

/// Works until standard input ends. Writes [`WorkerLine`]s on standard output.
///
/// # Errors
/// `LAB016` if the resource cannot be reached, or the system refuses.
pub fn worker(arguments: &WorkerArguments) -> Result<(), LabError> {
    run(arguments).map_err(|reason| LabError::Socket {
        what: format!("worker {}", arguments.number),
        reason,
    })
}

fn run(arguments: &WorkerArguments) -> io::Result<()> {
    let hold = Arc::new(AtomicBool::new(false));
    let asked = hold.clone();
    let stop = stop_at_end_of_input_with(move |line| {
        if line == HOLD {
            asked.store(true, Ordering::Relaxed);
        }
    })?;
    let mut resource = Resource::connect(arguments)?;
    let mut lock = arguments.open()?;
    while !stop.load(Ordering::Relaxed) {
        if lock.is_lost() {
            say(WorkerLine::Lost { at_us: now_us() })?;
            match arguments.open() {
                Ok(opened) => lock = opened,
                Err(_) => {
                    std::thread::sleep(AGAIN);
                    continue;
                }
            }
        }
        let Some(token) = lock.acquire(&stop)? else {
            continue;
        };
        say(WorkerLine::Acquired {
            at_us: now_us(),
            token,
        })?;
        let value = resource.ask(token, None)?.value;
        if hold.swap(false, Ordering::Relaxed) {
            say(WorkerLine::Holding {
                at_us: now_us(),
                token,
            })?;
            lock.pause(SLOW)?;
        } else {
            lock.pause(BUSY)?;
        }
        // A worker that was frozen does not know it: it writes, and the resource decides.
        resource.ask(token, Some(value + 1))?;
        lock.release()?;
    }
    Ok(())
}

fn say(line: WorkerLine) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(&line)?)
}

/// The resource, as a worker reaches it.
struct Resource {
    worker: u32,
    stream: BufReader<TcpStream>,
}

impl Resource {
    fn connect(arguments: &WorkerArguments) -> io::Result<Resource> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, arguments.resource))?;
        stream.set_nodelay(true)?;
        Ok(Resource {
            worker: arguments.number,
            stream: BufReader::new(stream),
        })
    }

    fn ask(&mut self, token: u64, write: Option<u64>) -> io::Result<Answer> {
        let request = Request {
            worker: self.worker,
            token,
            write,
        };
        let text = serde_json::to_string(&request)?;
        writeln!(self.stream.get_mut(), "{text}")?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

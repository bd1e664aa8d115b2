//! The answering end.

use super::conversation::{self, Conversation, End};
use super::{Broken, PATIENCE_MS, STACK, now_ms, reason, stop_at_end_of_input};
use crate::error::LabError;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Arguments of a server agent.
#[derive(Clone, Debug, Args)]
pub struct ServerArguments {
    /// Address to listen on.
    #[arg(long, default_value = "0.0.0.0")]
    pub address: Ipv4Addr,
    /// TCP ports to listen on.
    #[arg(long, value_delimiter = ',', required = true)]
    pub ports: Vec<u16>,
    /// Milliseconds without a question after which a connection counts as broken.
    #[arg(long, default_value_t = PATIENCE_MS)]
    pub patience_ms: u64,
}

/// Report of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerReport {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections that the client closed between two exchanges.
    pub ended_in_order: u64,
    /// Number of wrong bytes received.
    pub wrong_bytes: u64,
    /// Connections that broke.
    pub broken: Vec<Broken>,
}

/// A server's misbehaviour, by which the client's checks are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// Flips a bit of each message from this one on.
    #[cfg(test)]
    Corrupt(u32),
    /// Resets the connection in place of this answer.
    #[cfg(test)]
    Reset(u32),
    /// Closes the connection in place of this answer.
    #[cfg(test)]
    Close(u32),
}

struct Shared {
    patience: Duration,
    fault: Fault,
    accepted: AtomicU64,
    ended_in_order: AtomicU64,
    wrong_bytes: AtomicU64,
    broken: Mutex<Vec<Broken>>,
    stop: AtomicBool,
}

/// A server that accepts until dropped.
pub(super) struct Server {
    shared: Arc<Shared>,
    /// Addresses at which the server listens, in the order of the given ports.
    #[cfg(test)]
    pub(super) addresses: Vec<SocketAddrV4>,
}

impl Server {
    pub(super) fn start(
        address: Ipv4Addr,
        ports: &[u16],
        patience_ms: u64,
        fault: Fault,
    ) -> Result<Self, LabError> {
        let shared = Arc::new(Shared {
            patience: Duration::from_millis(patience_ms),
            fault,
            accepted: AtomicU64::new(0),
            ended_in_order: AtomicU64::new(0),
            wrong_bytes: AtomicU64::new(0),
            broken: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        #[cfg(test)]
        let mut addresses = Vec::new();
        for port in ports {
            let wanted = SocketAddrV4::new(address, *port);
            let failed = |reason| LabError::Socket {
                what: format!("the agent cannot listen on {wanted}"),
                reason,
            };
            let listener = TcpListener::bind(wanted).map_err(failed)?;
            // Accepting is interrupted at times to see whether to stop.
            socket2::SockRef::from(&listener)
                .set_read_timeout(Some(Duration::from_millis(200)))
                .map_err(failed)?;
            #[cfg(test)]
            if let Ok(std::net::SocketAddr::V4(bound)) = listener.local_addr() {
                addresses.push(bound);
            }
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .spawn(move || accept(&listener, &shared))
                .map_err(failed)?;
        }
        Ok(Self {
            shared,
            #[cfg(test)]
            addresses,
        })
    }

    pub(super) fn report(&self) -> ServerReport {
        let shared = &self.shared;
        ServerReport {
            accepted: shared.accepted.load(Ordering::Relaxed),
            ended_in_order: shared.ended_in_order.load(Ordering::Relaxed),
            wrong_bytes: shared.wrong_bytes.load(Ordering::Relaxed),
            broken: shared
                .broken
                .lock()
                .map(|broken| broken.clone())
                .unwrap_or_default(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while !shared.stop.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            continue;
        };
        shared.accepted.fetch_add(1, Ordering::Relaxed);
        let shared = Arc::clone(shared);
        let started = std::thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || serve(stream, &shared));
        // Without a thread the stream is dropped and the client sees the end.
        drop(started);
    }
}

fn serve(stream: TcpStream, shared: &Shared) {
    let mut connection = 0;
    match converse(stream, shared, &mut connection) {
        Ok(()) => {
            shared.ended_in_order.fetch_add(1, Ordering::Relaxed);
        }
        Err(error) => {
            if let Ok(mut broken) = shared.broken.lock() {
                broken.push(Broken {
                    connection,
                    reason: reason(&error),
                    at_ms: now_ms(),
                });
            }
        }
    }
}

fn converse(mut stream: TcpStream, shared: &Shared, connection: &mut u64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(shared.patience))?;
    stream.set_write_timeout(Some(shared.patience))?;
    let mut hello = [0; conversation::HELLO];
    stream.read_exact(&mut hello)?;
    let (number, wrong) = conversation::read_hello(hello);
    *connection = number;
    shared.wrong_bytes.fetch_add(wrong, Ordering::Relaxed);
    let mut talk = Conversation::new(number, End::Server);
    let mut buffer = Vec::new();
    for turn in 0u32.. {
        buffer.resize(talk.expected_length(), 0);
        // The client may end the connection here, and nowhere else.
        let first = stream.read(&mut buffer)?;
        if first == 0 {
            break;
        }
        stream.read_exact(&mut buffer[first..])?;
        shared
            .wrong_bytes
            .fetch_add(talk.accept(&buffer), Ordering::Relaxed);
        #[cfg_attr(not(test), allow(unused_mut))]
        let mut message = talk.message();
        match shared.fault {
            Fault::None => {}
            #[cfg(test)]
            Fault::Corrupt(from) => {
                if turn >= from {
                    message[10] ^= 4;
                }
            }
            #[cfg(test)]
            Fault::Reset(at) => {
                if turn == at {
                    return socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
                }
            }
            #[cfg(test)]
            Fault::Close(at) => {
                if turn == at {
                    return Ok(());
                }
            }
        }
        let _ = turn;
        stream.write_all(&message)?;
    }
    Ok(())
}

/// Serves until standard input ends, then prints a [`ServerReport`] as one line of
/// JSON. Prints `ready` when it listens.
///
/// # Errors
/// `LAB016` if it cannot listen.
pub fn server(arguments: &ServerArguments) -> Result<(), LabError> {
    let failed = |reason| LabError::Socket {
        what: "the agent's standard input and output".to_owned(),
        reason,
    };
    let server = Server::start(
        arguments.address,
        &arguments.ports,
        arguments.patience_ms,
        Fault::None,
    )?;
    let stop = stop_at_end_of_input().map_err(failed)?;
    println!("ready");
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let report = serde_json::to_string(&server.report()).map_err(io::Error::other);
    writeln!(io::stdout(), "{}", report.map_err(failed)?).map_err(failed)
}

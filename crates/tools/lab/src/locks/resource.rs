//! The resource that the lock guards: a value, and the highest fencing token that wrote it.

use crate::agent::{now_us, stop_at_end_of_input};
use crate::error::LabError;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time between two looks at whether to go on.
const LOOK: Duration = Duration::from_millis(20);

/// Arguments of the resource.
#[derive(Clone, Debug, Args)]
pub struct ResourceArguments {
    /// TCP port at which it listens, on loopback.
    #[arg(long)]
    pub port: u16,
}

/// A request, a line of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Number of the worker.
    pub worker: u32,
    /// Fencing token of the lock that it holds.
    pub token: u64,
    /// The value to write; without one the value is read.
    pub write: Option<u64>,
}

/// An answer, a line of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The value after the request.
    pub value: u64,
    /// False if a higher token wrote before, and the value stays.
    pub accepted: bool,
}

/// A write, as the resource logs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteLine {
    /// Time in µs since the Unix epoch.
    pub at_us: u64,
    /// The worker.
    pub worker: u32,
    /// Its token.
    pub token: u64,
    /// The value that it wrote, or was to write.
    pub value: u64,
    /// False if it was refused.
    pub accepted: bool,
}

/// The resource's contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    value: u64,
    token: u64,
}

impl Contents {
    /// Carries out a request.
    pub(super) fn take(&mut self, request: &Request) -> Answer {
        let accepted = request.token >= self.token;
        if let (true, Some(value)) = (accepted, request.write) {
            *self = Contents {
                value,
                token: request.token,
            };
        }
        Answer {
            value: self.value,
            accepted,
        }
    }
}

/// Serves until standard input ends. Says `ready`, and then each write as a [`WriteLine`].
///
/// # Errors
/// `LAB016` if it cannot listen.
pub fn resource(arguments: &ResourceArguments) -> Result<(), LabError> {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, arguments.port);
    let failed = |reason| LabError::Socket {
        what: format!("the resource at {address}"),
        reason,
    };
    let stop = stop_at_end_of_input().map_err(failed)?;
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    println!("ready");
    let contents = Arc::new(Mutex::new(Contents::default()));
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                let contents = contents.clone();
                // A worker that goes ends its thread; what it said is logged.
                std::thread::spawn(move || serve(&stream, &contents));
            }
            Err(_) => std::thread::sleep(LOOK),
        }
    }
    Ok(())
}

fn serve(stream: &TcpStream, contents: &Mutex<Contents>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    for line in BufReader::new(stream).lines() {
        let request: Request = serde_json::from_str(&line?)?;
        let answer = {
            let mut contents = contents.lock().unwrap_or_else(PoisonError::into_inner);
            let answer = contents.take(&request);
            // The lines stand in the order of the writes.
            if let Some(value) = request.write {
                let line = WriteLine {
                    at_us: now_us(),
                    worker: request.worker,
                    token: request.token,
                    value,
                    accepted: answer.accepted,
                };
                println!("{}", serde_json::to_string(&line)?);
            }
            answer
        };
        writeln!(&mut &*stream, "{}", serde_json::to_string(&answer)?)?;
    }
    Ok(())
}

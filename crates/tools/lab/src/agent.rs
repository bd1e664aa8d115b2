//! The lab's own TCP traffic: many long-lived connections, and new ones at a steady
//! rate, over which both ends ask and answer and check every byte.
//!
//! A client and a server run in namespaces as processes of their own
//! (`stateplane lab agent client|server`); they write JSON lines on standard output
//! and come to an end when their standard input is closed. A tap
//! (`stateplane lab agent tap`) tells which connections pass a switch. Hosts
//! (`stateplane lab agent hosts`) speak to the applications that are no mere carriers.

pub mod client;
mod conversation;
pub mod hosts;
pub mod raw;
pub mod server;
pub mod tap;
#[cfg(test)]
mod tests;

pub use client::client;
pub use hosts::hosts;
pub use server::server;
pub use tap::tap;

use serde::{Deserialize, Serialize};
use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds that either end waits for the next message before the connection counts as broken,
/// unless told otherwise.
pub const PATIENCE_MS: u64 = 10_000;

/// Stack of a connection's thread in bytes.
const STACK: usize = 128 << 10;

/// Reason of a connection that was not opened, since a router had no way.
pub(crate) const UNREACHABLE: &str = "unreachable";

/// A connection that did not end in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// Number of the connection, 0 if the server never learned it.
    pub connection: u64,
    /// Reason, such as `reset`, `timeout`, `refused`, `unreachable` or `ended early`.
    pub reason: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// Milliseconds since the Unix epoch, comparable between the processes of one machine.
pub(crate) fn now_ms() -> u64 {
    now_us() / 1000
}

/// Microseconds since the Unix epoch, comparable between the processes of one machine.
pub(crate) fn now_us() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
        })
}

/// The command of an agent.
pub(crate) fn command(program: &Path, words: &[&str]) -> Vec<String> {
    let mut command = vec![
        program.display().to_string(),
        "lab".to_owned(),
        "agent".to_owned(),
    ];
    command.extend(words.iter().map(|word| (*word).to_owned()));
    command
}

/// A flag that rises when standard input ends, at which a parent's death arrives too.
///
/// # Errors
/// If no thread can be made.
pub fn stop_at_end_of_input() -> io::Result<Arc<AtomicBool>> {
    stop_at_end_of_input_with(|_| ())
}

/// As [`stop_at_end_of_input`]; gives `take` the lines that come before.
///
/// # Errors
/// If no thread can be made.
pub fn stop_at_end_of_input_with(
    mut take: impl FnMut(&str) + Send + 'static,
) -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    std::thread::Builder::new().spawn(move || {
        let mut line = String::new();
        while io::stdin()
            .lock()
            .read_line(&mut line)
            .is_ok_and(|read| read > 0)
        {
            take(line.trim_end());
            line.clear();
        }
        raised.store(true, Ordering::Relaxed);
    })?;
    Ok(stop)
}

/// The reason of a failure in the words of the report.
fn reason(error: &io::Error) -> String {
    use io::ErrorKind as E;
    match error.kind() {
        E::ConnectionRefused => "refused".to_owned(),
        E::ConnectionReset | E::ConnectionAborted | E::BrokenPipe => "reset".to_owned(),
        E::WouldBlock | E::TimedOut => "timeout".to_owned(),
        E::UnexpectedEof => "ended early".to_owned(),
        E::NetworkUnreachable | E::HostUnreachable => UNREACHABLE.to_owned(),
        _ => error.to_string(),
    }
}

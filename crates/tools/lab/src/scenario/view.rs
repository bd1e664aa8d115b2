//! A control plane's view of what the switches count, while the one with the traffic is killed.
//!
//! An engine of sync follows a register of both switches (`lab/view.toml`). A client reads both
//! views again and again for the whole run; what it was told is compared with what the hosts know of
//! their packets, whose answers say which switch they crossed. It reads and changes the flows that the
//! store has, too.

mod judge;
mod reader;
mod report;
mod stored;
#[cfg(test)]
mod tests;
mod truth;

pub use reader::{ReaderArguments, reader};
pub use report::{GroupReport, ViewReport};

use super::fault::Fault;
use super::report::Move;
use super::sessions;
use crate::error::LabError;
use crate::interrupt;
use crate::process::Process;
use crate::running::Lab;
use judge::judge;
use reader::{INTERVAL_MS, Reading};
use stateplane_history::replication::History;
use std::time::{Duration, Instant};
use stored::judge_stored;
use truth::{Silences, Truth};

/// Name of the scenario.
pub const NAME: &str = "view";
/// Switches, whose names the engine's groups bear: the one that fails, and the other.
const SWITCHES: [&str; 2] = ["s1", "s2"];
/// Locations at which each switch counts packets, by their source ports.
const LOCATIONS: usize = 64;
/// Flows of the engine: the numbers, as the store has them.
const FLOWS: &str = "numbers";
/// Node of the engine.
const ENGINE: &str = "engine";
/// The engine's address for clients, in its node.
const RPC: &str = "http://127.0.0.1:9560";
/// Time for views to become what the registers hold, once traffic has stopped.
const LAST: Duration = Duration::from_secs(1);
/// Time that the client has for its end.
const ENDING: Duration = Duration::from_secs(5);

/// A client that reads both views.
pub(super) struct Client(Process);

impl Client {
    /// Starts it in the engine's node.
    pub(super) fn begin(
        lab: &Lab,
        agent: impl Fn(&[&str]) -> Vec<String>,
    ) -> Result<Self, LabError> {
        let interval = INTERVAL_MS.to_string();
        let mut words = vec!["view-reader", "--engine", RPC, "--interval-ms", &interval];
        for switch in SWITCHES {
            words.extend(["--group", switch]);
        }
        words.extend(["--flows", FLOWS]);
        lab.spawn(ENGINE, "view-reader", &agent(&words)).map(Self)
    }

    /// Ends it once the views have had the time to become exact; gives what it was told.
    ///
    /// # Errors
    /// `LAB008` if it ended before, `LAB014` if it left no readings.
    pub(super) fn end(mut self) -> Result<Vec<Reading>, LabError> {
        interrupt::wait_until(Instant::now() + LAST)?;
        if let Some(status) = self.0.ended() {
            return Err(self.0.failure(format!("ended by itself ({status})")));
        }
        self.0.close_input();
        self.0.wait_until(Instant::now() + ENDING)?;
        sessions::lines(&self.0)
    }
}

/// Compares what a client was told with what the hosts saw; the report, and what is wrong.
pub(super) fn examine(
    readings: &[Reading],
    history: &History,
    moves: &[(Fault, Move)],
) -> (ViewReport, Vec<String>) {
    let silences = Silences::of(moves);
    let truth = Truth::of(history, &silences);
    let (mut report, mut wrong) = judge(readings, &truth, &silences);
    let servers_fail = moves.iter().any(|(fault, _)| fault.is_of_store());
    let (stored, objections) = judge_stored(readings, &truth, servers_fail);
    report.stored = stored;
    wrong.extend(objections);
    (report, wrong)
}

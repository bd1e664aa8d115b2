//! A client of the engine that reads views again and again, and writes down what it was told.

use super::stored::follow_flows;
use crate::agent::{now_us, stop_at_end_of_input};
use crate::error::LabError;
use clap::Args;
use serde::{Deserialize, Serialize};
use stateplane_view::proto::v1::{ReadAllValuesRequest, ReadAllValuesResponse};
use stateplane_view::{code_of, connect, unpack};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tonic::Status;

/// Milliseconds between two readings of a group.
pub(super) const INTERVAL_MS: u64 = 20;

/// Arguments of the client.
#[derive(Clone, Debug, Args)]
pub struct ReaderArguments {
    /// Address of the engine, as a URL.
    #[arg(long)]
    pub engine: String,
    /// Groups of the engine; may be given several times.
    #[arg(long = "group", required = true)]
    pub groups: Vec<String>,
    /// Flows of the engine, which are read as often and changed now and then.
    #[arg(long)]
    pub flows: Option<String>,
    /// Milliseconds between two readings of a group, which is also the time that the engine has
    /// for an answer.
    #[arg(long)]
    pub interval_ms: u64,
}

/// One request and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The group.
    pub group: String,
    /// When the engine was asked, in µs since the Unix epoch.
    pub asked_us: u64,
    /// When the answer was there.
    pub answered_us: u64,
    /// The answer.
    pub answer: Answer,
}

/// Answer of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// A complete view.
    View(Seen),
    /// Code and text of a refusal.
    Refused(String),
    /// A flow that the store has was changed; code and text of a refusal if it was not.
    Changed(Option<String>),
}

/// A complete view, and what is promised of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// E; none while it is unbounded.
    pub bound: Option<u64>,
    /// All but so many locations are within `within`.
    pub all_but: u64,
    /// A bound of these.
    pub within: u64,
    /// The mark is not older, in µs.
    pub age_us: u64,
    /// Views that began since the engine started.
    pub generation: u64,
    /// The switch's name for its start.
    pub incarnation: u32,
    /// Values by location.
    pub values: Vec<u64>,
}

/// The answer in a message of the engine.
fn seen(said: &ReadAllValuesResponse) -> Answer {
    let Some(told) = &said.told else {
        return Answer::Refused("values without a promise".to_owned());
    };
    Answer::View(Seen {
        bound: told.bound,
        all_but: told.all_but,
        within: told.within,
        age_us: told.age_us,
        generation: told.generation,
        incarnation: told.incarnation,
        values: unpack(&said.values).collect(),
    })
}

/// Code and text of a refusal.
pub(super) fn reason(status: &Status) -> String {
    let code = code_of(status).unwrap_or_default();
    format!("{code} {}", status.message())
}

/// Writes a line of JSON: the answer to a request, with when it was asked and answered.
pub(super) fn write_down(
    group: &str,
    (asked_us, answered_us): (u64, u64),
    answer: Answer,
) -> io::Result<()> {
    let reading = Reading {
        group: group.to_owned(),
        asked_us,
        answered_us,
        answer,
    };
    let line = serde_json::to_string(&reading).map_err(io::Error::other)?;
    writeln!(io::stdout().lock(), "{line}")
}

/// Reads one group until `stop`, and writes a line of JSON for each answer.
async fn follow(arguments: &ReaderArguments, group: &str, stop: &AtomicBool) -> io::Result<()> {
    let interval = Duration::from_millis(arguments.interval_ms);
    let opened = connect(arguments.engine.clone()).await;
    let mut client = opened.map_err(io::Error::other)?;
    let mut next = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(next.saturating_duration_since(Instant::now())).await;
        // One that was late goes on from now.
        next = next.max(Instant::now()) + interval;
        let request = ReadAllValuesRequest {
            group: group.to_owned(),
            limits: None,
            patience_us: interval.as_micros() as u64,
        };
        let asked_us = now_us();
        let said = client.read_all_values(request).await;
        let answered_us = now_us();
        let answer = match said {
            Ok(said) => seen(said.get_ref()),
            Err(status) => Answer::Refused(reason(&status)),
        };
        write_down(group, (asked_us, answered_us), answer)?;
    }
    Ok(())
}

/// Reads all groups until standard input ends.
///
/// # Errors
/// `LAB013` without an interval, `LAB016` if the engine cannot be reached.
pub fn reader(arguments: &ReaderArguments) -> Result<(), LabError> {
    if arguments.interval_ms == 0 {
        return Err(LabError::Options("--interval-ms must be at least 1".into()));
    }
    let failed = |reason| LabError::Socket {
        what: format!("the engine at {}", arguments.engine),
        reason,
    };
    let stop = stop_at_end_of_input().map_err(failed)?;
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
    };
    let run = |group: &str| runtime()?.block_on(follow(arguments, group, &stop));
    std::thread::scope(|scope| {
        // A group whose view is incomplete lets no other wait.
        let groups = arguments.groups.iter();
        let mut threads: Vec<_> = groups.map(|group| scope.spawn(|| run(group))).collect();
        if let Some(flows) = &arguments.flows {
            threads.push(scope.spawn(|| {
                let runtime = runtime()?;
                runtime.block_on(follow_flows(arguments, flows, &stop))
            }));
        }
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
    .map_err(failed)
}

//! Real TCP connections through the switches.

use super::list::{Sessions, node, other};
use super::report::SessionsReport;
use crate::agent::UNREACHABLE;
use crate::agent::client::{ClientReport, Line, Plan, Planned};
use crate::agent::server::ServerReport;
use crate::demo::broken;
use crate::error::LabError;
use crate::process::Process;
use crate::running::Lab;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

/// Below the range from which the kernel takes ports by itself.
const FIRST_SOURCE_PORT: u16 = 20_000;
const LONG_LIVED: u16 = 16;
const NEW_PER_SECOND: f64 = 4.0;
const NEW_EXCHANGES: u32 = 10;
const FIRST_NEW: u64 = 1_000_000;
const RAMP_MS: u64 = 1000;
const INTERVAL_MS: u64 = 80;
/// A gap this long is no pause between two questions.
const LISTED_MS: u64 = 120;
/// Either end of a connection waits so long for the other. TCP doubles its waits: what the store is
/// away for (5 s), it may wait as long again and more.
const PATIENCE_MS: u64 = 15_000;
/// For all connections to come to their end.
const ENDING: Duration = Duration::from_secs(20);

/// Client and server at work.
pub(super) struct Talk {
    client: Process,
    server: Process,
}

impl Talk {
    pub(super) fn begin(
        lab: &Lab,
        sessions: &Sessions,
        agent: impl Fn(&[&str]) -> Vec<String>,
    ) -> Result<Self, LabError> {
        let from = node(sessions.from);
        let ports: Vec<String> = sessions.ports.iter().map(u16::to_string).collect();
        let patience = PATIENCE_MS.to_string();
        let words = ["server", "--ports", &ports.join(","), "--patience-ms"];
        let command = agent(&[&words[..], &[&patience]].concat());
        let mut server = lab.spawn(node(other(sessions.from)), "tcp-server", &command)?;
        server.wait_for_line("ready")?;
        let address = lab
            .topology()
            .address_of(from)
            .unwrap_or(Ipv4Addr::UNSPECIFIED);
        let path = lab.directory().join("tcp-plan.json");
        let text = serde_json::to_string(&plan(sessions, address)).map_err(std::io::Error::other);
        text.and_then(|text| std::fs::write(&path, text))
            .map_err(|reason| LabError::file(&path, reason))?;
        let command = agent(&["client", "--plan", &path.display().to_string()]);
        let client = lab.spawn(from, "tcp-client", &command)?;
        Ok(Self { client, server })
    }

    /// Ends all connections; returns their outcome, and the client's report. In the times
    /// `without_store`, in ms, routers may have no way for new ones, which then do not count as broken.
    pub(super) fn end(
        mut self,
        without_store: &[Range<u64>],
    ) -> Result<(SessionsReport, ClientReport), LabError> {
        for process in [&mut self.client, &mut self.server] {
            process.close_input();
            process.wait_until(Instant::now() + ENDING)?;
        }
        let mut client: ClientReport = last_line(&self.client, |line| match line {
            Line::Report(report) => Some(report),
            Line::Progress(_) => None,
        })?;
        let server: ServerReport = last_line(&self.server, Some)?;
        let unreachable = set_unreachable_aside(&mut client, without_store);
        let (broken, reasons) = broken(&[&client], std::slice::from_ref(&server));
        let report = SessionsReport {
            opened: client.opened,
            unreachable,
            broken,
            reasons,
            wrong_bytes: client.wrong_bytes + server.wrong_bytes,
            exchanges: client.exchanges,
        };
        Ok((report, client))
    }
}

/// The longest stall that belongs to the period from a move to the next, in milliseconds;
/// times are in milliseconds since the Unix epoch. A connection's last step lies up to a
/// question's time before the move.
pub(super) fn longest_stall(client: &ClientReport, from: u64, to: u64) -> u64 {
    let period = from..to;
    let within = client
        .stalls
        .iter()
        .filter(|stall| period.contains(&(stall.from_ms + LISTED_MS)));
    within.map(|stall| stall.length_ms).max().unwrap_or(0)
}

/// Removes from the broken connections those for which routers had no way at one of the times, and
/// counts them.
fn set_unreachable_aside(client: &mut ClientReport, times: &[Range<u64>]) -> u64 {
    let before = client.broken.len();
    client.broken.retain(|it| {
        it.reason != UNREACHABLE || !times.iter().any(|time| time.contains(&it.at_ms))
    });
    (before - client.broken.len()) as u64
}

fn plan(sessions: &Sessions, address: Ipv4Addr) -> Plan {
    let (to, port) = sessions.to;
    let destination = SocketAddrV4::new(to.into(), port);
    Plan {
        long_lived: (0..LONG_LIVED)
            .map(|number| Planned {
                connection: u64::from(number) + 1,
                source: SocketAddrV4::new(address, FIRST_SOURCE_PORT + number),
                destination,
            })
            .collect(),
        ramp_ms: RAMP_MS,
        interval_ms: INTERVAL_MS,
        listed_stall_ms: LISTED_MS,
        new_to: vec![destination],
        new_per_second: NEW_PER_SECOND,
        new_exchanges: NEW_EXCHANGES,
        first_new: FIRST_NEW,
        patience_ms: PATIENCE_MS,
    }
}

/// Parses the last line of a process's output.
pub(super) fn last_line<L: serde::de::DeserializeOwned, R>(
    process: &Process,
    read: impl Fn(L) -> Option<R>,
) -> Result<R, LabError> {
    let output = std::fs::read_to_string(process.output()).unwrap_or_default();
    let last = output.lines().next_back();
    let line = last.and_then(|line| serde_json::from_str(line).ok());
    line.and_then(read)
        .ok_or_else(|| no_report(process, Path::new(process.log())))
}

/// Parses each line of a process's output.
pub(super) fn lines<L: serde::de::DeserializeOwned>(process: &Process) -> Result<Vec<L>, LabError> {
    let output = std::fs::read_to_string(process.output()).unwrap_or_default();
    let lines = output.lines().map(serde_json::from_str);
    let lines = lines.collect::<Result<Vec<L>, _>>();
    lines.map_err(|_| no_report(process, Path::new(process.log())))
}

/// Parses the whole output of a process.
pub(super) fn whole_output<L: serde::de::DeserializeOwned>(
    process: &Process,
) -> Result<L, LabError> {
    let output = std::fs::read_to_string(process.output()).unwrap_or_default();
    serde_json::from_str(&output).map_err(|_| no_report(process, Path::new(process.log())))
}

fn no_report(process: &Process, log: &Path) -> LabError {
    LabError::Agent {
        name: process.name().to_owned(),
        log: log.to_path_buf(),
        tail: crate::tool::tail(log, 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Broken;

    #[test]
    fn connections_without_a_way_are_set_aside_only_while_the_store_was_away() {
        let broken = |reason: &str, at_ms| Broken {
            connection: 1,
            reason: reason.to_owned(),
            at_ms,
        };
        let mut client = ClientReport {
            broken: vec![
                broken(UNREACHABLE, 15),
                broken(UNREACHABLE, 25),
                broken("timeout", 15),
            ],
            ..ClientReport::default()
        };
        assert_eq!(set_unreachable_aside(&mut client, &[0..5, 10..20]), 1);
        assert_eq!(
            client.broken,
            [broken(UNREACHABLE, 25), broken("timeout", 15)]
        );
    }
}

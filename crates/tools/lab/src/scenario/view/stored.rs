//! Flows that the store has, as the engine tells them: a client that reads and changes them, and
//! objections to what it was told.
//!
//! * The view goes on, whichever switch is dead, as long as the store's servers are there.
//! * No number steps back, over all switches and all their starts.
//! * The view is true, with E = 0: the numbers of the flows of a location together are at least the
//!   packets that had come back before the view's age, and at most those that had been sent.
//! * Changes of flows under traffic, which take the lease from the switch that has it, are made. Each adds
//!   nothing, so that numbers go on; the history of the hosts says whether they do.

use super::judge::{BEGINNING_US, CLOCK_US, LATE_IN, YOUNG_US, first_few};
use super::reader::{Answer, ReaderArguments, Reading, Seen, reason, write_down};
use super::report::StoredReport;
use super::truth::Truth;
use super::{FLOWS, LOCATIONS};
use crate::agent::now_us;
use stateplane_view::proto::v1::write_flow_request::Change;
use stateplane_view::proto::v1::{
    AddToState, ReadFlowsRequest, ReadFlowsResponse, WriteFlowRequest, flows_client::FlowsClient,
};
use stateplane_view::{flows_client, open};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tonic::transport::Channel;

/// Readings between two changes of a flow.
const CHANGES: u64 = 10;
/// Time that the engine has for a change, in µs.
const CHANGE_US: u64 = 2_000_000;
/// Refusals that say that a change did not come in time, or that nobody knows whether it did.
const IN_VAIN: [&str; 2] = ["SYNC024", "SYNC035"];
/// The numbers of flows by location: the low bits of the source port, which ends the key.
fn seen(said: &ReadFlowsResponse) -> Answer {
    let Some(told) = &said.told else {
        return Answer::Refused("flows without a promise".to_owned());
    };
    let mut values = vec![0; LOCATIONS];
    for flow in &said.flows {
        let port = flow
            .key
            .last_chunk()
            .map_or(0, |port| u16::from_be_bytes(*port));
        let number = flow
            .state
            .first_chunk()
            .map_or(0, |it| u64::from_be_bytes(*it));
        values[usize::from(port) % LOCATIONS] += number;
    }
    Answer::View(Seen {
        bound: Some(0),
        age_us: told.age_us,
        values,
        ..Seen::default()
    })
}

/// Reads the flows until `stop`, changes one now and then, and writes a line of JSON for each answer.
pub(super) async fn follow_flows(
    arguments: &ReaderArguments,
    name: &str,
    stop: &AtomicBool,
) -> io::Result<()> {
    let interval = Duration::from_millis(arguments.interval_ms);
    let opened = open(arguments.engine.clone()).await;
    let mut client = flows_client(opened.map_err(io::Error::other)?);
    let mut next = Instant::now();
    let mut readings = 0;
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(next.saturating_duration_since(Instant::now())).await;
        next = next.max(Instant::now()) + interval;
        let request = ReadFlowsRequest {
            name: name.to_owned(),
            patience_us: interval.as_micros() as u64,
            ..ReadFlowsRequest::default()
        };
        let asked_us = now_us();
        let said = client.read(request).await;
        let times = (asked_us, now_us());
        readings += 1;
        match said {
            Ok(said) => {
                let said = said.get_ref();
                write_down(name, times, seen(said))?;
                let place = readings as usize / CHANGES as usize;
                let flow = said.flows.get(place % said.flows.len().max(1));
                if let Some(flow) = flow.filter(|_| readings % CHANGES == 0) {
                    change(&mut client, name, &flow.key).await?;
                }
            }
            Err(status) => write_down(name, times, Answer::Refused(reason(&status)))?,
        }
    }
    Ok(())
}

/// Adds nothing to a flow's number, under a lease.
async fn change(client: &mut FlowsClient<Channel>, name: &str, key: &[u8]) -> io::Result<()> {
    let request = WriteFlowRequest {
        name: name.to_owned(),
        key: key.to_vec().into(),
        change: Some(Change::Add(AddToState::default())),
        patience_us: CHANGE_US,
        ..WriteFlowRequest::default()
    };
    let asked_us = now_us();
    let said = client.write(request).await;
    let refused = said.err().map(|status| reason(&status));
    write_down(name, (asked_us, now_us()), Answer::Changed(refused))
}

/// The flows in the eyes of the client.
#[derive(Default)]
struct Stored {
    report: StoredReport,
    wrong: Vec<String>,
    from_us: Option<u64>,
    last: Option<Vec<u64>>,
}

impl Stored {
    fn object(&mut self, at: u64, what: &str) {
        let from = self.from_us.unwrap_or(at);
        let after = at.saturating_sub(from) as f64 / 1e6;
        self.wrong
            .push(format!("view of the store, {after:.3} s on: {what}"));
    }

    fn take(&mut self, reading: &Reading, truth: &Truth) {
        let at = reading.asked_us;
        let from = *self.from_us.get_or_insert(at);
        match &reading.answer {
            Answer::View(seen) => {
                self.report.readings += 1;
                self.report.greatest_age_ms =
                    self.report.greatest_age_ms.max(seen.age_us as f64 / 1000.0);
                let is_late = seen.age_us > YOUNG_US && at > from + BEGINNING_US;
                self.report.late += u64::from(is_late);
                self.judge(reading, seen, truth);
            }
            Answer::Refused(_) => {
                self.report.readings += 1;
                self.report.late += u64::from(at > from + BEGINNING_US);
            }
            Answer::Changed(None) => self.report.changes += 1,
            Answer::Changed(Some(refused)) => {
                self.report.in_vain += 1;
                if !IN_VAIN.iter().any(|code| refused.starts_with(code)) {
                    self.object(at, &format!("a change is refused: {refused}"));
                }
            }
        }
    }

    fn judge(&mut self, reading: &Reading, seen: &Seen, truth: &Truth) {
        let at = reading.asked_us;
        let mark = at.saturating_sub(seen.age_us + CLOCK_US);
        let before = self.last.replace(seen.values.clone());
        let before = before.unwrap_or_else(|| vec![0; LOCATIONS]);
        for (location, (old, new)) in before.iter().zip(&seen.values).enumerate() {
            if new < old {
                let what =
                    format!("the flows of location {location} step back from {old} to {new}");
                self.object(at, &what);
            }
            let least = truth.received_at(location, mark);
            let most = truth.sent(location, reading.answered_us);
            if !(least..=most).contains(new) {
                let what = format!(
                    "the flows of location {location} are told to have {new} packets, of which {least} \
                     had come back {} ms ago and {most} had been sent",
                    seen.age_us / 1000
                );
                self.object(at, &what);
            }
        }
    }

    fn end(&mut self, servers_fail: bool) {
        let last = self.last.clone().unwrap_or_default();
        self.report.told = last.iter().sum();
        if !servers_fail && self.report.late * LATE_IN > self.report.readings {
            let what = format!(
                "{} of {} readings were refused or older than {} ms",
                self.report.late,
                self.report.readings,
                YOUNG_US / 1000
            );
            self.object(self.from_us.unwrap_or(0), &what);
        }
    }
}

/// Compares what was told of flows with what is known. `servers_fail` if servers of the store did.
pub(super) fn judge_stored(
    readings: &[Reading],
    truth: &Truth,
    servers_fail: bool,
) -> (StoredReport, Vec<String>) {
    let mut stored = Stored::default();
    let own = readings.iter().filter(|reading| reading.group == FLOWS);
    let mut ordered: Vec<&Reading> = own.collect();
    ordered.sort_by_key(|reading| reading.answered_us);
    for reading in ordered {
        stored.take(reading, truth);
    }
    stored.end(servers_fail);
    (stored.report, first_few(stored.wrong, "the store"))
}

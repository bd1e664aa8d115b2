//! Flows that an engine follows behind the tails of a store's chains, and the requests that wait for
//! them.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::sync::Arc;

use stateplane_observe::{
    Change, ChangeError, Event, Faults, Observer, Operation, Outcome, Settings, Told,
};
use stateplane_wire::replication::{Key, RefusalCode};

use super::report::FlowsReport;
use super::{FlowsFile, Reply, SyncError, ViewError};
use crate::clock::boot_time_us;

pub use request::{FlowRecord, FlowsChange, FlowsDone, FlowsReading, FlowsRequest};
pub use snapshots::{ArraysView, SnapshotsReading};

pub(super) use snapshots::Arrays;

mod request;
mod snapshots;

/// Reads and changes that wait at one time, each.
const MOST_WAITING: usize = 64;

/// Times as long as packing a view took, for which subscribers are told that view.
const RESTS: u64 = 9;

/// A view whose records were packed.
#[derive(Clone, Copy)]
struct Packed {
    revision: u64,
    /// Time as of which it is, in µs.
    as_of: u64,
    /// Time until which subscribers are told it, in µs.
    rests_until: u64,
}

/// Longest number that an addition takes, in bytes.
const WIDEST: u8 = 8;

struct WaitingRead {
    request: FlowsRequest,
    /// When it was asked, in µs.
    since: u64,
    end: u64,
    reply: Reply<FlowsReading>,
}

/// An answer that is not given yet.
type Answer = Box<dyn FnOnce() + Send>;

/// One section `[[flows]]`.
pub(super) struct Flows {
    pub(super) file: FlowsFile,
    pub(super) observer: Observer,
    /// The records of all flows, and of which view they are.
    records: Arc<Vec<FlowRecord>>,
    packed: Option<Packed>,
    reads: Vec<WaitingRead>,
    changes: BTreeMap<u64, Reply<FlowsDone>>,
    answers: Vec<Answer>,
    arrays: Vec<Arrays>,
    /// Counts of this start; the observer's state is told beside them.
    counts: FlowsReport,
}

impl Flows {
    /// Begins to follow the flows of a section. The incarnation is one that no other start had.
    pub(super) fn begin(now: u64, file: &FlowsFile, incarnation: u32) -> Result<Flows, SyncError> {
        let settings = Settings {
            stores: file.stores.clone(),
            switch: file.switch,
            incarnation: incarnation.max(1),
            classes: file.classes.iter().copied().collect(),
            told_classes: file.snapshots.iter().map(|it| it.class).collect(),
            poll_us: file.poll_us,
            retry_us: file.retry_us,
            most_flows: file.most_flows,
            faults: Faults::default(),
        };
        let observer = Observer::new(settings, now).map_err(|error| SyncError::Setting {
            group: file.name.clone(),
            field: error.field(),
            must: error.to_string(),
        })?;
        Ok(Flows {
            file: file.clone(),
            observer,
            records: Arc::default(),
            packed: None,
            reads: Vec::new(),
            changes: BTreeMap::new(),
            answers: Vec::new(),
            arrays: file.snapshots.iter().map(Arrays::new).collect(),
            counts: FlowsReport::default(),
        })
    }

    pub(super) fn handle_datagram(&mut self, now: u64, from: SocketAddrV4, bytes: &[u8]) {
        self.observer.handle_datagram(now, from, bytes);
    }

    /// The next datagram to be sent, and its receiver.
    pub(super) fn poll_transmit(&mut self) -> Option<(SocketAddrV4, Vec<u8>)> {
        self.observer.poll_transmit()
    }

    /// The whole view as it is; `None` while it is incomplete.
    pub(super) fn reading(&mut self, now: u64) -> Option<FlowsReading> {
        let told = self.observer.told(now)?;
        let revision = self.observer.revision();
        if self.packed.is_none_or(|packed| packed.revision != revision) {
            let begin = boot_time_us();
            self.records = Arc::new(self.packed_anew());
            let end = boot_time_us();
            self.packed = Some(Packed {
                revision,
                as_of: now.saturating_sub(told.age_us),
                rests_until: now + RESTS * (end - begin),
            });
        }
        Some(FlowsReading {
            told,
            records: self.records.clone(),
        })
    }

    /// The whole view as it is, or as it was if it was packed of late: packing a view of many flows takes the
    /// engine's time, of which subscribers get a part. `None` while it is incomplete.
    pub(super) fn present(&mut self, now: u64) -> Option<FlowsReading> {
        let mut told = self.observer.told(now)?;
        let revision = self.observer.revision();
        let rests = |packed: &Packed| packed.revision != revision && now < packed.rests_until;
        match self.packed.filter(rests) {
            Some(packed) => {
                told.age_us = now.saturating_sub(packed.as_of);
                told.flows = self.records.len();
                let records = self.records.clone();
                Some(FlowsReading { told, records })
            }
            None => self.reading(now),
        }
    }

    /// All records; those that did not change share their states with the present ones.
    fn packed_anew(&self) -> Vec<FlowRecord> {
        let mut old = self.records.iter().peekable();
        let record = |(shard, key, flow): (u16, &Key, &_)| {
            while old
                .next_if(|it| (it.shard, &it.key) < (shard, key))
                .is_some()
            {}
            let same = old.next_if(|it| (it.shard, &it.key) == (shard, key));
            let flow: &stateplane_observe::Flow = flow;
            match same.filter(|it| it.revision == flow.revision) {
                Some(record) => record.clone(),
                None => FlowRecord::new(shard, key, flow),
            }
        };
        self.observer.flows().map(record).collect()
    }

    /// The flows for which `request` asks, of the view as it is.
    fn chosen(&mut self, now: u64, request: &FlowsRequest) -> Option<FlowsReading> {
        let told = self.observer.told(now)?;
        let is_chosen = |key: &Key| request.class.is_none_or(|class| key.class() == class);
        let records = if let Some(key) = &request.key {
            let found = self.observer.flow(key).filter(|_| is_chosen(key));
            found
                .map(|(shard, flow)| FlowRecord::new(shard, key, flow))
                .collect()
        } else if request.class.is_some() {
            let all = self.observer.flows().filter(|(_, key, _)| is_chosen(key));
            all.map(|(shard, key, flow)| FlowRecord::new(shard, key, flow))
                .collect()
        } else {
            return self.reading(now);
        };
        Some(FlowsReading {
            told,
            records: Arc::new(records),
        })
    }

    pub(super) fn begin_read(
        &mut self,
        now: u64,
        request: FlowsRequest,
        reply: Reply<FlowsReading>,
    ) {
        if self.reads.len() >= MOST_WAITING {
            return reply(Err(ViewError::Busy(format!(
                "{MOST_WAITING} reads of flows"
            ))));
        }
        let told = self.observer.told(now);
        if request.fresh || !told.is_some_and(|told| request.is_met_by(&told)) {
            self.observer.look_again(now);
        }
        self.reads.push(WaitingRead {
            since: now,
            end: now.saturating_add(request.patience_us),
            request,
            reply,
        });
    }

    pub(super) fn begin_change(&mut self, now: u64, change: FlowsChange, reply: Reply<FlowsDone>) {
        match self.try_begin(now, change) {
            Ok(ticket) => drop(self.changes.insert(ticket, reply)),
            Err(error) => reply(Err(error)),
        }
    }

    fn try_begin(&mut self, now: u64, change: FlowsChange) -> Result<u64, ViewError> {
        let busy = || ViewError::Busy(format!("{MOST_WAITING} changes of flows"));
        let flows = || self.file.name.clone();
        if !self.file.writes {
            return Err(ViewError::FlowsReadOnly(flows()));
        }
        if self.changes.len() >= MOST_WAITING {
            return Err(busy());
        }
        self.told(now)?;
        let operation = self.checked(&change)?;
        let begun = self.observer.begin(
            now,
            Change {
                key: change.key,
                shard: change.shard,
                operation,
                end: now.saturating_add(change.patience_us),
            },
        );
        begun.map_err(|error| match error {
            ChangeError::UnknownFlow => ViewError::UnknownFlow {
                flows: flows(),
                shards: Vec::new(),
            },
            ChangeError::SeveralShards(shards) => ViewError::UnknownFlow {
                flows: flows(),
                shards,
            },
            ChangeError::Busy(_) => busy(),
            ChangeError::Incomplete => ViewError::FlowsIncomplete(flows()),
        })
    }

    /// The operation, with the length of an addition that goes to the end of the state.
    fn checked(&self, change: &FlowsChange) -> Result<Operation, ViewError> {
        let Operation::Add { at, length, amount } = change.operation else {
            return Ok(change.operation.clone());
        };
        if length > WIDEST {
            let message = format!("an addition takes 1 to {WIDEST} bytes, not {length}");
            return Err(ViewError::Malformed(message));
        }
        let is_asked = |shard: u16| change.shard.is_none_or(|asked| asked == shard);
        let mut found = self.observer.flow(&change.key);
        let Some((_, flow)) = found.find(|(shard, _)| is_asked(*shard)) else {
            return Err(ViewError::UnknownFlow {
                flows: self.file.name.clone(),
                shards: Vec::new(),
            });
        };
        let whole = flow.state.len();
        let left = whole.saturating_sub(usize::from(at));
        let length = match length {
            0 if left > usize::from(WIDEST) => {
                let message = format!(
                    "an addition takes {WIDEST} bytes at most, and the state has {left} from byte {at} \
                     on: name the number's first byte and its length"
                );
                return Err(ViewError::Malformed(message));
            }
            0 => left,
            length => usize::from(length),
        };
        if length == 0 || length > left {
            return Err(ViewError::StateLength { length: whole });
        }
        Ok(Operation::Add {
            at,
            length: length as u8,
            amount,
        })
    }

    /// Does what is due, and what the datagrams that came let it do.
    pub(super) fn turn(&mut self, now: u64) {
        self.observer.handle_timeout(now);
        while let Some((_, key, flow)) = self.observer.poll_changed() {
            for arrays in &mut self.arrays {
                arrays.take(&key, flow.map(|flow| flow.state.as_slice()));
            }
        }
        while let Some(event) = self.observer.poll_event() {
            self.handle_event(event);
        }
        self.settle_reads(now);
    }

    fn handle_event(&mut self, event: Event) {
        let flows = self.file.name.as_str();
        match event {
            Event::Complete => tracing::info!(flows, "the view of flows is complete"),
            Event::Silent { chain } => {
                tracing::warn!(flows, chain, "the chain is silent: the view of flows ages");
            }
            Event::Back { chain } => tracing::info!(flows, chain, "the chain is back"),
            Event::Done { ticket, outcome } => {
                if let Some(reply) = self.changes.remove(&ticket) {
                    let said = self.done(outcome);
                    self.answers.push(Box::new(move || reply(said)));
                }
            }
        }
    }

    /// The answer to a change with this outcome.
    fn done(&mut self, outcome: Outcome) -> Result<FlowsDone, ViewError> {
        let counts = &mut self.counts;
        match outcome {
            Outcome::Done {
                epoch,
                sequence,
                state,
            } => {
                counts.made += 1;
                Ok(FlowsDone::Made {
                    epoch,
                    sequence,
                    state,
                })
            }
            Outcome::Mismatch { state } => {
                counts.mismatched += 1;
                Ok(FlowsDone::Mismatch { state })
            }
            Outcome::Refused(code) => {
                counts.refused += 1;
                Err(ViewError::StoreRefused {
                    reason: meaning(code),
                })
            }
            Outcome::BadState { length } => {
                counts.refused += 1;
                Err(ViewError::StateLength {
                    length: length.into(),
                })
            }
            Outcome::TimedOut => {
                counts.timed_out += 1;
                Err(ViewError::NotInTime)
            }
            Outcome::Unknown => {
                counts.unknown += 1;
                let message = "the store did not say whether it has the write";
                Err(ViewError::Unknown(message.to_owned()))
            }
        }
    }

    fn settle_reads(&mut self, now: u64) {
        if self.reads.is_empty() {
            return;
        }
        let (told, as_of) = (self.observer.told(now), self.observer.as_of());
        for read in std::mem::take(&mut self.reads) {
            let is_new = !read.request.fresh || as_of.is_some_and(|as_of| as_of >= read.since);
            let is_met = is_new && told.is_some_and(|told| read.request.is_met_by(&told));
            let said = if is_met && let Some(reading) = self.chosen(now, &read.request) {
                self.counts.reads += 1;
                Ok(reading)
            } else if now >= read.end {
                self.counts.unmet += 1;
                Err(self.unmet_by(told))
            } else {
                self.reads.push(read);
                continue;
            };
            let reply = read.reply;
            self.answers.push(Box::new(move || reply(said)));
        }
    }

    fn unmet_by(&self, told: Option<Told>) -> ViewError {
        let flows = self.file.name.clone();
        match told {
            None => ViewError::FlowsIncomplete(flows),
            Some(told) => ViewError::FlowsUnmet {
                flows,
                met: format!("its age is {} µs", told.age_us),
            },
        }
    }

    /// Snapshots of a name; `None` if this section has no such name.
    pub(super) fn arrays(&self, name: &str) -> Option<&Arrays> {
        self.arrays.iter().find(|arrays| arrays.name() == name)
    }

    /// All snapshots of this section.
    pub(super) fn all_arrays(&mut self) -> impl Iterator<Item = &mut Arrays> {
        self.arrays.iter_mut()
    }

    /// The promise of the view; an error while it is incomplete.
    pub(super) fn told(&self, now: u64) -> Result<Told, ViewError> {
        let told = self.observer.told(now);
        told.ok_or_else(|| ViewError::FlowsIncomplete(self.file.name.clone()))
    }

    /// Answers that may be given.
    pub(super) fn take_answers(&mut self) -> Vec<Answer> {
        std::mem::take(&mut self.answers)
    }

    /// When reads that wait are over, or the observer has something to do; in µs.
    pub(super) fn due(&self) -> Option<u64> {
        let ends = self.reads.iter().map(|read| read.end);
        ends.chain(self.observer.poll_timeout()).min()
    }

    /// The engine leads no more: nobody knows what became of changes that began, and the rest is
    /// refused with `standby`.
    pub(super) fn give_up(self, standby: &ViewError) {
        self.answers.into_iter().for_each(|answer| answer());
        for read in self.reads {
            (read.reply)(Err(standby.clone()));
        }
        for reply in self.changes.into_values() {
            let message = "the engine lost its lease meanwhile".to_owned();
            reply(Err(ViewError::Unknown(message)));
        }
    }

    /// Requests that wait.
    pub(super) fn waiting(&self) -> usize {
        self.reads.len() + self.changes.len()
    }

    /// Counts and view.
    pub(super) fn report(&self, now: u64) -> FlowsReport {
        let (told, counters) = (self.observer.told(now), self.observer.counters());
        FlowsReport {
            name: self.file.name.clone(),
            complete: told.is_some(),
            age_us: told.map(|told| told.age_us),
            chains: told.map_or(0, |told| told.chains),
            flows: told.map_or(0, |told| told.flows),
            changes: self.observer.revision(),
            waiting: self.waiting(),
            received: counters.received,
            sent: counters.sent,
            elsewhere: counters.elsewhere,
            foreign: counters.foreign,
            late: counters.late,
            ..self.counts.clone()
        }
    }
}

/// The store's refusal, in words for who asked for a change.
fn meaning(code: RefusalCode) -> &'static str {
    match code {
        RefusalCode::Fenced => "another owner took the lease",
        RefusalCode::NoRecord => "there is no such flow, and its class is not created by requests",
        RefusalCode::ParkingFull => "too many requests wait for the flow or on the server",
        RefusalCode::PoolExhausted => "no port is left in the range of the shard",
        RefusalCode::WrongServer => "the server asked is not the head of the chain",
        RefusalCode::WrongChainEpoch => "the chain has another configuration",
        RefusalCode::BadState => {
            "the state's length is not that of the class, or the class is unknown"
        }
        RefusalCode::StoreFull => "the store has no room for another flow or holder",
        RefusalCode::NotWritable => "only shared leases of the flow's class exist: it is only read",
        RefusalCode::QuotaExceeded => "the tenant has as many flows as its quota allows",
    }
}

#[cfg(test)]
mod tests;

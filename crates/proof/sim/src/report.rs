//! Report of a run.

use crate::options::Options;
use stateplane_history::replication::{History, Violation};
use std::fmt;

/// Events shown of each violation.
const SHOWN_EVENTS: usize = 30;
/// Violations shown of each run.
const SHOWN_VIOLATIONS: usize = 3;

/// Maximum number of events of a history that is printed whole.
const SHOWN_WHOLE: usize = 200;

/// Event counts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Packets that switches took.
    pub inputs: u64,
    /// Packets that switches released.
    pub outputs: u64,
    /// Leases granted to another switch than the flow's last one.
    pub owner_changes: u64,
    /// Shared leases granted, also again.
    pub shared_grants: u64,
    /// Flows whose sequence numbers wrapped.
    pub sequence_wraps: u64,
    /// Packets that found no slot in the flow table.
    pub table_full: u64,
    /// Deaths of switches.
    pub deaths: u64,
    /// Requests that switches sent again.
    pub retransmissions: u64,
    /// Refusals by the store.
    pub refusals: u64,
    /// Times that the store asked for a lease.
    pub recalls: u64,
    /// Protocol frames lost, on links and at switches that were dead or cut off.
    pub lost: u64,
    /// Protocol frames that arrived twice.
    pub duplicated: u64,
    /// Times that a switch took its data ports down.
    pub aloof: u64,
    /// Public ports taken by the head.
    pub ports_taken: u64,
    /// Public ports given back by the head.
    pub ports_freed: u64,
    /// Connections that hosts opened, where they count them.
    pub opened: u64,
    /// Ports of ended connections that the store gave to others before their time, as far as the
    /// servers that are alive at the end know.
    pub reclaimed: u64,
    /// Deaths of store servers.
    pub store_deaths: u64,
    /// Chains that a server left because its disk had lost entries.
    pub chains_lost: u64,
    /// Disks that were refused, and emptied.
    pub disks_emptied: u64,
    /// Store servers that ended because their disk took no more.
    pub disk_failures: u64,
    /// Starts of store servers that failed because their disk took no more.
    pub failed_starts: u64,
    /// Configurations of chains that the controller made.
    pub configurations: u64,
    /// Snapshots that joining replicas installed.
    pub snapshots: u64,
    /// Longest time in µs for which a head waited for the holders of a flow for which another
    /// asked.
    pub longest_wait: u64,
    /// Shards withheld from a switch, as far as the servers that are alive at the end know.
    pub withheld: u64,
    /// Longest time in µs from the death of a store server until a shard that it
    /// served answered again.
    pub longest_resumption: u64,
}

/// The result of one run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// Options of the run.
    pub options: Options,
    /// Violations that the checkers found.
    pub violations: Vec<Violation>,
    /// Other errors: frames that no host would take, a store whose replicas do not agree.
    pub anomalies: Vec<String>,
    /// Everything that happened.
    pub history: History,
    /// Event counts.
    pub coverage: Coverage,
    /// A number over everything that was sent and when: equal for equal runs.
    pub trace: u64,
    /// Faults of the run, by true time in µs.
    pub faults: Vec<(u64, String)>,
    /// Numbers of drawn packets of hosts and of drawn faults.
    pub planned: (usize, usize),
}

impl Report {
    /// True if the run has no violation and no anomaly.
    pub fn is_good(&self) -> bool {
        self.violations.is_empty() && self.anomalies.is_empty()
    }

    /// First objection, in words that are equal for equal objections.
    pub fn objection(&self) -> Option<String> {
        let named = |violation: &Violation| violation.checker.to_owned();
        let anomaly = self.anomalies.first().map(|anomaly| {
            let is_sign = |c: char| c.is_alphabetic() || c == ' ';
            anomaly.chars().filter(|c| is_sign(*c)).collect()
        });
        self.violations.first().map(named).or(anomaly)
    }

    /// True if the checker of that name objects.
    pub fn objects(&self, checker: &str) -> bool {
        self.violations.iter().any(|v| v.checker == checker)
    }
}

impl Report {
    /// Writes faults and events in the order of time.
    fn write_timeline(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut faults = self.faults.iter().peekable();
        for (index, event) in self.history.events.iter().enumerate() {
            while let Some((at, fault)) = faults.next_if(|(at, _)| *at <= event.at) {
                writeln!(f, "     fault: {at} {fault}")?;
            }
            writeln!(f, "    {index:6}: {event}")?;
        }
        for (at, fault) in faults {
            writeln!(f, "     fault: {at} {fault}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    /// One line if nothing is wrong; otherwise what is, the last events that led to
    /// it, and how to run it again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Coverage {
            inputs,
            outputs,
            owner_changes,
            shared_grants,
            sequence_wraps,
            table_full,
            deaths,
            retransmissions,
            refusals,
            recalls,
            lost,
            duplicated,
            aloof,
            ports_taken,
            ports_freed,
            opened,
            reclaimed,
            store_deaths,
            chains_lost,
            disks_emptied,
            disk_failures,
            failed_starts,
            configurations,
            snapshots,
            longest_wait,
            withheld,
            longest_resumption,
        } = self.coverage;
        writeln!(
            f,
            "seed {} of {} in {}: {inputs} packets in, {outputs} out; {owner_changes} changes of owner, {recalls} recalls, {shared_grants} shared leases granted, {sequence_wraps} sequence wraps, {table_full} packets without a slot, {deaths} deaths, {retransmissions} retransmissions, {refusals} refusals, {lost} protocol frames lost, {duplicated} duplicated, data ports down {aloof} times, requests waited for {longest_wait} µs at most, shards withheld {withheld} times, {ports_taken} public ports taken, {ports_freed} given back; trace {:016x}",
            self.seed, self.options.program, self.options.scenario.name, self.trace
        )?;
        if self.options.scenario.cluster.is_some() {
            writeln!(
                f,
                "    {store_deaths} deaths of store servers, {disks_emptied} disks refused, {chains_lost} chains left for what a disk lost, {configurations} configurations of chains, {snapshots} snapshots installed, answers again after {longest_resumption} µs at most"
            )?;
        }
        if opened > 0 {
            let seconds = self.options.scenario.traffic as f64 / 1e6;
            let rate = opened as f64 / seconds;
            writeln!(
                f,
                "    {opened} connections opened in {seconds} s of virtual time, {rate:.1} a second; {reclaimed} ports given to others when theirs had ended"
            )?;
        }
        if disk_failures > 0 {
            writeln!(
                f,
                "    {disk_failures} store servers ended by a failing disk, {failed_starts} starts failed by it"
            )?;
        }
        if self.is_good() {
            return Ok(());
        }
        for anomaly in &self.anomalies {
            writeln!(f, "wrong: {anomaly}")?;
        }
        let is_short = self.history.events.len() <= SHOWN_WHOLE;
        if is_short {
            self.write_timeline(f)?;
        }
        for violation in self.violations.iter().take(SHOWN_VIOLATIONS) {
            writeln!(f, "violated: {violation}")?;
            if is_short {
                continue;
            }
            for index in violation.relevant(&self.history, SHOWN_EVENTS) {
                writeln!(f, "    {index:6}: {}", self.history.events[index])?;
            }
        }
        if let Some(more) = self.violations.len().checked_sub(SHOWN_VIOLATIONS + 1) {
            writeln!(f, "and {} more violations", more + 1)?;
        }
        writeln!(f, "run it again: {}", self.options.command(self.seed))
    }
}

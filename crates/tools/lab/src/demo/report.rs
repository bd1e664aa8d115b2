//! Report of the demonstration.

use super::expect;
use crate::expectation::Expectation;
use crate::page::write_table;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Kind of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// With protection, nothing fails.
    NoFailure,
    /// Without protection, the switch fails and returns.
    Unprotected,
    /// With protection, the switch fails and returns.
    Protected,
}

impl Kind {
    /// All runs in the order of the figure.
    pub const ALL: [Self; 3] = [Self::NoFailure, Self::Unprotected, Self::Protected];

    /// True if a switch fails.
    pub const fn fails(self) -> bool {
        !matches!(self, Self::NoFailure)
    }

    /// The name, which is also that of the topology's variant.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoFailure => "no-failure",
            Self::Unprotected => "unprotected",
            Self::Protected => "protected",
        }
    }

    /// The name for people.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::NoFailure => "no failure",
            Self::Unprotected => "unprotected",
            Self::Protected => "protected",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

pub use crate::plot::Point;

/// The figures of one run. Connections are the agents'; `iperf3` has its own fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Kind of the run.
    pub name: Kind,
    /// Connections begun.
    pub opened: u64,
    /// Of these, long-lived ones.
    pub long_lived: u64,
    /// Connections that broke: refused, reset, ended early, or 10 s without an answer.
    pub broken: u64,
    /// Number of broken connections for each reason.
    pub broken_reasons: BTreeMap<String, u64>,
    /// Bytes that came wrong, at either end.
    pub wrong_bytes: u64,
    /// Exchanges (a question and an answer in both directions) completed.
    pub exchanges: u64,
    /// Exchanges per second of the slowest long-lived connection over its life.
    pub slowest_rate: f64,
    /// The longest gap between two completed steps of any open connection, in milliseconds.
    pub longest_stall_ms: u64,
    /// The longest time in which a connection was opened, in milliseconds.
    pub longest_opening_ms: u64,
    /// The longest gap from the failure to the restart; 0 if none was longer than
    /// questions usually are apart.
    pub stall_failover_ms: u64,
    /// The longest gap from the restart on.
    pub stall_failback_ms: u64,
    /// Mean rate at which the `iperf3` server received before the failure, in Mb/s;
    /// in a run without failure, in the same period.
    pub throughput_before_mbps: f64,
    /// Throughput in the 2 s from the failure on, in which the routes change.
    pub throughput_at_mbps: f64,
    /// Throughput between failure and restart.
    pub throughput_during_mbps: f64,
    /// Throughput from 3 s after the restart on.
    pub throughput_after_mbps: f64,
    /// True if `iperf3` ended as planned, its connections whole.
    pub iperf_completed: bool,
    /// The longest time in which the `iperf3` server received nothing, in
    /// milliseconds, to its interval of 200 ms.
    pub iperf_stall_ms: u64,
    /// The switch that carried the `iperf3` stream outwards at the time of the failure.
    pub iperf_switch: String,
    /// The switch that was killed.
    pub killed_switch: Option<String>,
    /// Share of the long-lived connections that went out through each switch shortly before the
    /// time of the failure.
    pub switch_shares: BTreeMap<String, f64>,
    /// Seconds from the start of the traffic to the failure.
    pub killed_at_s: Option<f64>,
    /// Seconds from the start of the traffic to the restart.
    pub restarted_at_s: Option<f64>,
    /// Length of the run in seconds.
    pub seconds: u64,
    /// Rate at which the `iperf3` server received, in Mb/s.
    pub throughput_mbps: Vec<Point>,
    /// Exchanges per second of all connections together.
    pub exchanges_per_second: Vec<Point>,
}

/// The figures of all runs, and whether they are as they should be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DemoReport {
    /// The runs in the order in which they were made.
    pub runs: Vec<RunReport>,
    /// Expectations, with findings.
    pub expectations: Vec<Expectation>,
}

impl DemoReport {
    pub(super) fn new(runs: Vec<RunReport>) -> Self {
        let expectations = runs.iter().flat_map(expect::of).collect();
        Self { runs, expectations }
    }

    /// True if everything that must hold does.
    pub fn met(&self) -> bool {
        self.expectations.iter().all(|expectation| expectation.met)
    }

    /// The report as JSON text.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The table's head and rows.
    pub(super) fn table(&self) -> Vec<Vec<String>> {
        let head = [
            "run",
            "opened",
            "broken",
            "wrong bytes",
            "longest stall",
            "slowest opening",
            "stream before",
            "at the failure",
            "switch down",
            "switch back",
            "stream",
        ];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for run in &self.runs {
            rows.push(vec![
                run.name.title().to_owned(),
                run.opened.to_string(),
                run.broken.to_string(),
                run.wrong_bytes.to_string(),
                format!("{:.2} s", run.longest_stall_ms as f64 / 1000.0),
                format!("{:.2} s", run.longest_opening_ms as f64 / 1000.0),
                rate(run.throughput_before_mbps),
                rate(run.throughput_at_mbps),
                rate(run.throughput_during_mbps),
                rate(run.throughput_after_mbps),
                if run.iperf_completed {
                    "completed"
                } else {
                    "broken"
                }
                .to_owned(),
            ]);
        }
        rows
    }
}

/// A rate with its unit.
pub(super) fn rate(mbps: f64) -> String {
    if mbps < 1000.0 {
        format!("{mbps:.0} Mb/s")
    } else {
        format!("{:.2} Gb/s", mbps / 1000.0)
    }
}

impl RunReport {
    /// The result in one sentence.
    fn sentence(&self) -> String {
        let stream = if self.iperf_completed {
            let before = rate(self.throughput_before_mbps);
            format!("the stream of {before} went on")
        } else {
            "the stream broke".to_owned()
        };
        let event = match &self.killed_switch {
            Some(switch) => format!("{switch} was killed"),
            None => "no switch failed".to_owned(),
        };
        format!(
            "{}: {event}; {} of {} connections broke, {} bytes were wrong, {stream}, and the longest \
             stall was {:.2} s.",
            self.name.title(),
            self.broken,
            self.opened,
            self.wrong_bytes,
            self.longest_stall_ms as f64 / 1000.0,
        )
    }
}

/// The table, the expectations and the results as sentences, for a terminal.
impl fmt::Display for DemoReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_table(f, &self.table())?;
        writeln!(f)?;
        for expectation in &self.expectations {
            writeln!(f, "{expectation}")?;
        }
        writeln!(f)?;
        for run in &self.runs {
            writeln!(f, "{}", run.sentence())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::expect::example;

    #[test]
    fn a_rate_has_the_unit_that_fits() {
        assert_eq!(rate(19.6), "20 Mb/s");
        assert_eq!(rate(999.4), "999 Mb/s");
        assert_eq!(rate(1234.0), "1.23 Gb/s");
    }

    #[test]
    fn the_report_tells_the_rate_around_the_failure_and_the_result_plainly() {
        let mut run = example(Kind::Protected);
        run.throughput_before_mbps = 1500.0;
        run.throughput_at_mbps = 120.0;
        let text = DemoReport::new(vec![run]).to_string();
        for told in [
            "1.50 Gb/s",
            "120 Mb/s",
            "protected: s1 was killed; 0 of 200 connections broke, 0 bytes were wrong, the stream of \
             1.50 Gb/s went on, and the longest stall was 0.42 s.",
        ] {
            assert!(text.contains(told), "{text}");
        }
    }
}

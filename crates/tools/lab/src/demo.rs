//! The demonstration: connections through a switch that fails, with and without
//! protection, as in Fig. 14 of the RedPlane paper.
//!
//! Three runs of the same topology carry the same traffic: an `iperf3` stream and the
//! connections of the [`agent`](crate::agent). In the first nothing fails. In
//! `unprotected` and `protected` the switch that carries `iperf3` is killed and later
//! started again; the two differ by the topology's variants of these names.

mod expect;
mod figures;
mod iperf;
mod modes;
mod plan;
mod plot;
mod report;
mod sight;
mod trial;

pub use crate::expectation::Expectation;
pub(crate) use figures::broken;
pub use report::{DemoReport, Kind, RunReport};

use crate::error::LabError;
use crate::page::Page;
use crate::show::Show;
use crate::topology::Topology;
use crate::{interrupt, page, tool};
use clap::Args;
use std::path::PathBuf;

/// Maximum duration of one run, in seconds.
const LONGEST: u64 = 600;

/// Options of the demonstration.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Topology file with the variants no-failure, unprotected and protected.
    #[arg(long, default_value = "lab/nat.toml")]
    pub topology: PathBuf,
    /// Directory for result.html and result.json.
    #[arg(long, default_value = "target/demo")]
    pub output: PathBuf,
    /// Directory for the logs of every process, a folder for each run.
    #[arg(long, default_value = "target/lab")]
    pub logs: PathBuf,
    /// Runs to make, in this order.
    #[arg(long, value_delimiter = ',', default_values_t = Kind::ALL)]
    pub runs: Vec<Kind>,
    /// Length of a run in seconds.
    #[arg(long, default_value_t = 38)]
    pub seconds: u64,
    /// Second at which the switch is killed.
    #[arg(long, default_value_t = 12)]
    pub kill_at: u64,
    /// Second at which it is started again.
    #[arg(long, default_value_t = 24)]
    pub restart_at: u64,
    /// Long-lived connections that check every byte.
    #[arg(long, default_value_t = 120)]
    pub connections: usize,
    /// Milliseconds between the questions of one connection.
    #[arg(long, default_value_t = 95)]
    pub interval_ms: u64,
    /// New connections opened per second, during the outage too.
    #[arg(long, default_value_t = 5.0)]
    pub new_per_second: f64,
    /// Seal the messages between switches and stores, with keys drawn for each run.
    #[arg(long)]
    pub keys: bool,
    /// Rate of the iperf3 stream in Mb/s; as fast as the machine allows unless set.
    #[arg(long)]
    pub rate_mbps: Option<u32>,
}

impl Options {
    fn check(&self) -> Result<(), LabError> {
        let refuse = |problem: &str| Err(LabError::Options(problem.to_owned()));
        if self.kill_at < 6 {
            return refuse("--kill-at must be at least 6 s: traffic settles before");
        }
        if self.restart_at < self.kill_at + 3 || self.seconds < self.restart_at + 6 {
            return refuse(
                "--restart-at must be 3 s after --kill-at and 6 s before the end (--seconds)",
            );
        }
        if self.seconds > LONGEST {
            return refuse("--seconds must be at most 600");
        }
        if !(2..=2000).contains(&self.connections) {
            return refuse("--connections must be 2 to 2000");
        }
        if !(5..=5000).contains(&self.interval_ms) {
            return refuse("--interval-ms must be 5 to 5000");
        }
        if !(self.new_per_second >= 0.0 && self.new_per_second <= 200.0) {
            return refuse("--new-per-second must be 0 to 200");
        }
        if self
            .rate_mbps
            .is_some_and(|rate| !(1..=100_000).contains(&rate))
        {
            return refuse("--rate-mbps must be 1 to 100000");
        }
        if self.runs.is_empty() {
            return refuse("--runs names no run");
        }
        Ok(())
    }
}

/// Makes the runs and writes `result.json` and `result.html`. [`DemoReport::met`] tells whether all
/// expectations were met.
///
/// # Errors
/// `LAB013` for contradictory options, `LAB012` for a topology without traffic, and
/// everything that [`Lab::up`](crate::Lab::up) refuses. Nothing is left behind.
pub fn run(options: &Options) -> Result<DemoReport, LabError> {
    interrupt::install();
    options.check()?;
    tool::require_root()?;
    tool::require(&tool::BUILDING)?;
    tool::require(&tool::MEASURING)?;
    let topology = Topology::load(&options.topology)?;
    if topology.traffic.is_none() {
        return Err(LabError::NoTraffic(topology.path));
    }
    let mut show = Show::new();
    let mut runs = Vec::new();
    for kind in &options.runs {
        runs.push(trial::run(&topology, options, *kind, &mut show)?);
    }
    show.finish();
    let report = DemoReport::new(runs);
    page::write(&options.output, "result.json", &report.json())?;
    let page = page(&report)?;
    page::write(&options.output, "result.svg", &page.plot)?;
    page::write(&options.output, "result.html", &page.html())?;
    Ok(report)
}

/// The page with table, plot and expectations.
fn page(report: &DemoReport) -> Result<Page<'_>, LabError> {
    Ok(Page {
        title: "Stateplane: a switch fails",
        heading: "A switch fails under live TCP connections",
        about: "A NAT in P4 on two switches. The one that carries iperf3 is killed and later \
                started again, without and with replicated state; the same traffic without a \
                failure for comparison (after RedPlane, SIGCOMM 2021, Fig. 14).",
        plot: plot::svg(report)?,
        table: report.table(),
        expectations: &report.expectations,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect::example;

    #[test]
    fn the_page_needs_nothing_else() {
        let report = DemoReport::new(Kind::ALL.map(example).to_vec());
        let page = page(&report).unwrap().html();
        assert!(page.contains("<svg") && page.contains("<table>"));
        for outside in ["src=", "href=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}

//! A lock that workers share while what keeps it fails: `stateplane lab demo-coordination`.
//!
//! Workers in the node `host`, each a process, take the lock by turns. Its holder reads the value of
//! a [`resource`] and writes the next one with the lock's fencing token, which the resource checks.
//! Meanwhile members of the service are killed and started again, one is cut off while it lives,
//! and a holder is frozen until its session was ended. The same happens to the coordination service
//! (`lab/coordination.toml`), whose victims are the head, the middle and the tail of the lock's
//! chain, and to etcd (`lab/etcd.toml`), whose victim is the leader.

mod plot;
mod report;
pub mod resource;
mod running;
#[cfg(test)]
mod tests;
pub mod worker;

pub use report::{FaultReport, LocksReport, ServiceReport};
pub use resource::{ResourceArguments, resource};
pub use running::{LeaderArguments, leader};
pub use worker::{WorkerArguments, worker};

use crate::error::LabError;
use crate::page::Page;
use crate::show::Show;
use crate::{interrupt, page, tool};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Name of the lock.
const LOCK: &str = "demo";
/// Seconds without a sign of life after which a session, and with it its lock, may be ended: the
/// default of the coordination service, which etcd's leases get too.
const TTL_S: u32 = 10;

/// A service that keeps the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// The coordination service.
    Stateplane,
    /// etcd with three members.
    Etcd,
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Stateplane, Self::Etcd];
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stateplane => "stateplane",
            Self::Etcd => "etcd",
        })
    }
}

/// Place of a victim in the lock's chain; etcd's victim is the leader in place of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Head,
    Middle,
    Tail,
}

/// Something that is done to a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A member gets SIGKILL.
    Kill(Place),
    /// It is started again.
    Restart,
    /// The network's port to a member goes down; the member lives on.
    Cut(Place),
    /// The port comes up again.
    Heal,
    /// The holder of the lock gets SIGSTOP between reading the resource and writing it.
    Freeze,
    /// It gets SIGCONT.
    Thaw,
}

/// The steps, with the seconds at which they are taken. Those that undo a step stand after it.
const STEPS: [(u64, Step); 10] = [
    (3, Step::Kill(Place::Head)),
    (5, Step::Restart),
    (8, Step::Kill(Place::Middle)),
    (10, Step::Restart),
    (13, Step::Kill(Place::Tail)),
    (15, Step::Restart),
    (18, Step::Cut(Place::Tail)),
    (21, Step::Heal),
    (24, Step::Freeze),
    (39, Step::Thaw),
];
/// Seconds of a run.
const END_S: u64 = 43;

/// Options of the demonstration.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Folder of the topologies coordination.toml and etcd.toml.
    #[arg(long, default_value = "lab")]
    pub topologies: PathBuf,
    /// Directory for coordination.html and coordination.json.
    #[arg(long, default_value = "target/demo")]
    pub output: PathBuf,
    /// Directory for the logs of every process, a folder for each service.
    #[arg(long, default_value = "target/lab")]
    pub logs: PathBuf,
    /// Services that keep the lock, one after the other.
    #[arg(long, value_delimiter = ',', default_values_t = Service::ALL)]
    pub services: Vec<Service>,
    /// Workers that share the lock.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub workers: u32,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Makes the runs and writes `coordination.json` and `coordination.html`. etcd is left out, with a
/// message, where there is none and Go cannot build it. [`LocksReport::met`] tells whether all
/// expectations were met.
///
/// # Errors
/// Everything that [`Lab::up`](crate::Lab::up) refuses; `LAB008` and `LAB014` if an agent fails.
/// Nothing is left behind.
pub fn run(options: &Options) -> Result<LocksReport, LabError> {
    interrupt::install();
    tool::require_root()?;
    tool::require(&tool::BUILDING)?;
    let mut show = Show::new();
    let mut services = Vec::new();
    for service in &options.services {
        let etcd = match service {
            Service::Stateplane => None,
            Service::Etcd => match stateplane_peers::etcd_program() {
                Ok(program) => Some(program),
                Err(reason) => {
                    show.event(&format!("etcd is left out: {reason}"));
                    continue;
                }
            },
        };
        services.push(running::run(options, *service, etcd.as_deref(), &mut show)?);
    }
    show.finish();
    let report = LocksReport::new(services);
    page::write(&options.output, "coordination.json", &report.json())?;
    page::write(&options.output, "coordination.html", &page(&report)?.html())?;
    Ok(report)
}

/// The page with table, plot and expectations.
fn page(report: &LocksReport) -> Result<Page<'_>, LabError> {
    Ok(Page {
        title: "Stateplane: a lock survives",
        heading: "A lock survives the switches that keep it",
        about: "Workers share a lock. Its holder writes to a resource with the lock's fencing \
                token. Members of the service are killed and started again, one is cut off while \
                it lives, and a holder is frozen until its session was ended, after which its write \
                comes too late and is refused.",
        plot: plot::svg(report)?,
        table: report.table(),
        expectations: &report.expectations,
    })
}

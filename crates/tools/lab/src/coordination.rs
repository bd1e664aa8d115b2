//! The coordination service under faults: `stateplane lab run coordination`.
//!
//! Four switches, a controller and a reaper run as in `lab/coordination.toml`; workers in the node
//! `host`, of several clients of which one dies over and over, read, write and list a few records
//! and take locks, while switches, the controller and links fail by turns. The history of the workers (`docs/coordination-histories.md`) is judged by
//! the checkers of `stateplane_history::coordination`.

pub(crate) mod fault;
mod kills;
mod line;
mod report;
mod series;
#[cfg(test)]
mod tests;
mod watcher;
mod workers;

pub use fault::{Fault, FaultKind, Frames};
pub(crate) use kills::{ChainLine, chains};
pub use kills::{Kill, KillsReport, Position, run as run_kills};
pub use line::{Ask, Line, OperationLine, RecordLine, ScanLine, ToldLine, UNKNOWN, history};
pub use report::Report;
pub use series::{SeriesReport, run_many};
pub use workers::{WorkersArguments, workers};

use crate::error::LabError;
use crate::process::Process;
use crate::running::{Lab, Setting};
use crate::topology::Topology;
use crate::{agent, interrupt, tool};
use clap::Args;
use stateplane_apps::Random;
use stateplane_history::coordination::{History, Told, write_lines};
use stateplane_host::clock::boot_time_us;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the scenario.
pub const NAME: &str = "coordination";
/// Description of the scenario, for `lab list`.
pub const ABOUT: &str =
    "records and locks of the coordination service, while switches and its controller fail";

pub(crate) const CONTROLLER: &str = "10.20.0.20";
/// File of the controller's decisions, in `lab/coordination/deployment.toml`.
const DECISIONS: &str = "groups.log";
/// Time for which the workers go on after the time within which groups serve.
const AFTERWARDS: Duration = Duration::from_secs(1);
/// Time that the workers have for what is open in the end.
const DRAIN: Duration = Duration::from_secs(20);

/// Load of the service.
#[derive(Clone, Copy, Debug, Args)]
pub struct Load {
    /// Workers, each with one operation in flight, 1 to 256; of `coordination`
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: u16,
    /// Clients that the workers are of, each with a session and with chains that it learns itself;
    /// of `coordination`
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub clients: u16,
    /// Groups whose keys they use, 1 to 64; of `coordination`
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub groups: u16,
    /// Microseconds from an operation of a worker, or a message of a lane, to its next; of
    /// `coordination` and `multicast`
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    pub interval_us: u64,
}

/// Options of the run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The topology's file.
    pub topology: PathBuf,
    /// Folder of the logs and the history.
    pub directory: PathBuf,
    /// Seconds under faults, 1 to 60.
    pub seconds: u64,
    /// Seed of the operations and faults.
    pub seed: u64,
    /// Threads of each switch.
    pub switch_workers: u8,
    /// Time in ms within which each group serves once faults are over.
    pub serves_ms: u64,
    /// Load of the service.
    pub load: Load,
}

/// Runs the service and judges it. [`Report::met`] tells whether nothing was objected to.
///
/// # Errors
/// `LAB013` for options out of range, `LAB014` if the workers left no history, and everything that
/// [`Lab::up`] refuses. Nothing is left behind.
pub fn run(options: &Options) -> Result<Report, LabError> {
    if !(1..=60).contains(&options.seconds) {
        return Err(LabError::Options("--seconds must be 1 to 60".to_owned()));
    }
    let mut service = Service::start(options, true)?;
    let mut random = Random::new(options.seed);
    let faults = fault::run(
        &mut service.lab,
        &mut random,
        service.started,
        options.seconds,
    )?;
    let finished = service.finish(options)?;
    let name = format!("history-{}.jsonl", options.seed);
    let path = write(&options.directory.join(name), &finished.history)?;
    Ok(Report::new(options.seed, path, &finished, faults))
}

/// Everything that is known of a run when it is over.
struct Finished {
    /// Lines that the workers wrote.
    lines: Vec<Line>,
    /// Their history.
    history: History,
    /// Groups that lost all their members, and with them their state (rule 17): they serve no more.
    lost: Vec<String>,
}

impl Finished {
    /// Groups that serve and whose watch never began.
    fn unwatched(&self) -> impl Iterator<Item = &str> {
        let groups = self.history.system.groups.iter();
        groups.map(|group| &*group.0).filter(|group| {
            let told = |line: &Line| matches!(line, Line::Told(told) if told.group == *group);
            !self.lines.iter().any(told)
        })
    }
}

/// The service, and workers that use it.
struct Service {
    lab: Lab,
    workers: Process,
    started: Instant,
}

impl Service {
    /// Starts switches, controller, reaper and workers, of which those of one client die and are
    /// replaced if `dies`.
    fn start(options: &Options, dies: bool) -> Result<Service, LabError> {
        interrupt::install();
        if !(100..=60_000).contains(&options.serves_ms) {
            let problem = "--serves-ms must be 100 to 60000";
            return Err(LabError::Options(problem.to_owned()));
        }
        tool::require_root()?;
        tool::require(&tool::BUILDING)?;
        tool::require(&[("bridge", "iproute2"), ("nft", "nftables")])?;
        let program = program()?;
        let setting = Setting {
            keys: false,
            variant: String::new(),
            directory: options.directory.clone(),
            stateplane: program.clone(),
        };
        forget(&options.directory)?;
        let mut topology = Topology::load(&options.topology)?;
        topology.set_switch_workers(options.switch_workers);
        let lab = Lab::up(topology, &setting)?;
        let mut command = agent::command(&program, &["workers", "--controller", CONTROLLER]);
        for (name, value) in [
            ("workers", u64::from(options.load.workers)),
            ("clients", u64::from(options.load.clients)),
            ("groups", u64::from(options.load.groups)),
            ("interval-us", options.load.interval_us),
            ("seed", options.seed),
        ] {
            command.extend([format!("--{name}"), value.to_string()]);
        }
        command.extend(dies.then(|| "--dies".to_owned()));
        let workers = lab.spawn("host", "workers", &command)?;
        Ok(Service {
            lab,
            workers,
            started: Instant::now(),
        })
    }

    /// Waits until the groups have to serve again after the last fault, and ends all.
    fn finish(mut self, options: &Options) -> Result<Finished, LabError> {
        let whole = boot_time_us() * 1000;
        let serves = Duration::from_millis(options.serves_ms);
        interrupt::wait_until(Instant::now() + serves)?;
        let mut lost = down(&self.lab)?;
        interrupt::wait_until(Instant::now() + AFTERWARDS)?;
        if !lost.is_empty() {
            let still = down(&self.lab)?;
            lost.retain(|group| still.contains(group));
        }
        self.lab.check_processes()?;
        let workers = &mut self.workers;
        workers.close_input();
        if workers.wait_until(Instant::now() + DRAIN)?.is_none() {
            return Err(workers.failure("did not come to an end".to_owned()));
        }
        let said = std::fs::read_to_string(workers.output())
            .map_err(|reason| LabError::file(workers.output(), reason))?;
        let no_history = || LabError::Agent {
            name: "workers".to_owned(),
            log: workers.log().to_path_buf(),
            tail: tool::tail(workers.log(), 10),
        };
        let lines: Result<Vec<Line>, _> = said.lines().map(serde_json::from_str).collect();
        let mut lines = lines.map_err(|_| no_history())?;
        if lines.is_empty() {
            return Err(no_history());
        }
        // The watch of a lost group has no end up to which all changes were told.
        lines.retain(|line| {
            let Line::Told(told) = line else {
                return true;
            };
            told.told != Told::End.name() || !lost.contains(&told.group)
        });
        let groups = (0..options.load.groups).map(workers::group_name);
        lines.push(Line::Whole {
            at_ns: whole,
            groups: groups.filter(|group| !lost.contains(group)).collect(),
            serves_within_ns: options.serves_ms * 1_000_000,
        });
        let history = history(&lines).map_err(|_| no_history())?;
        self.lab.down()?;
        Ok(Finished {
            lines,
            history,
            lost,
        })
    }
}

/// Names of the groups without a member that lives.
fn down(lab: &Lab) -> Result<Vec<String>, LabError> {
    let down = chains(lab)?.into_iter().filter(|chain| !chain.lives());
    Ok(down.map(|chain| workers::group_name(chain.group)).collect())
}

/// Output of `stateplane ctl coordination` with `words`, in a lab with `lab/coordination.toml`.
fn operate(lab: &Lab, words: &[&str]) -> Result<String, LabError> {
    let file = lab.directory().join("controller.toml");
    let (program, file) = (program()?.display().to_string(), file.display().to_string());
    let namespace = lab.run().namespace("ctl");
    let mut all = vec!["ip", "netns", "exec", &namespace, &program];
    all.extend(["ctl", "coordination", "--config", &file]);
    all.extend(words);
    tool::run(&all, "")
}

/// Waits until every group has all its members.
///
/// # Errors
/// `LAB006` after 30 s.
pub(crate) fn wait_whole(lab: &Lab) -> Result<(), LabError> {
    operate(lab, &["wait", "30"]).map(drop)
}

/// Removes the controller's decisions of an earlier run in `directory`: a controller that finds
/// them takes the groups for those that the switches have lost.
///
/// # Errors
/// `LAB003`.
pub fn forget(directory: &Path) -> Result<(), LabError> {
    let decisions = directory.join(DECISIONS);
    match std::fs::remove_file(&decisions) {
        Err(reason) if reason.kind() != std::io::ErrorKind::NotFound => {
            Err(LabError::file(&decisions, reason))
        }
        _ => Ok(()),
    }
}

/// The program that runs.
pub(crate) fn program() -> Result<PathBuf, LabError> {
    std::env::current_exe().map_err(|reason| LabError::file("/proc/self/exe", reason))
}

fn write(path: &Path, history: &History) -> Result<PathBuf, LabError> {
    let written = File::create(path).map(BufWriter::new).and_then(|mut file| {
        write_lines(history, &mut file)?;
        file.flush()
    });
    written.map_err(|reason| LabError::file(path, reason))?;
    Ok(path.to_owned())
}

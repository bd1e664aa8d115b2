//! Multicast under faults: `stateplane lab run multicast`.
//!
//! Switches, a controller and hosts run as in `lab/multicast.toml`: three receivers of each of two
//! groups, and two hosts with two senders each, while leaders, other switches, the controller,
//! senders and receivers die and return, and links lose, double and reorder. The hosts' lines are a history
//! (`stateplane_history::multicast`), which its checkers judge. With the store, replicas of its shards
//! stand where the receivers do, and its clients where the senders do.

mod fault;
mod hosts;
mod kills;
mod record;
mod report;
mod series;
mod stops;
mod store;
#[cfg(test)]
mod tests;

pub use fault::{Fault, FaultKind};
pub use hosts::{ReceiverArguments, SenderArguments, receiver, sender};
pub use kills::{Gaps, Kill, KillsReport, Role, run as run_kills};
pub use report::{Counts, Report, Touched};
pub use series::{SeriesReport, run_many};
pub use stops::{End, Stop, StopsReport, Worst, run as run_stops};
pub use store::{ClientArguments, ReplicaArguments, client, replica};

use crate::coordination::{forget, program};
use crate::error::LabError;
use crate::process::Process;
use crate::running::{Lab, Setting};
use crate::topology::{Kind, Topology};
use crate::{agent, interrupt, tool};
use clap::Args;
use stateplane_apps::Random;
use stateplane_history::multicast::{Event, EventKind, History, MulticastEvent};
use stateplane_host::clock::boot_time_us;
use stateplane_host::controller::MulticastView;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the scenario.
pub const NAME: &str = "multicast";
/// Description of the scenario, for `lab list`.
pub const ABOUT: &str =
    "ordered messages to two groups, while leaders, other switches, hosts and the controller fail";

const CONTROLLER: &str = "10.30.0.20";
/// Port of the fabric that takes the frames to a switch that is deaf.
const ELSEWHERE: &str = "ctl";
/// Groups of `lab/multicast/deployment.toml`.
const GROUPS: u8 = 2;
/// Entries of a group's window, which the deployment does not change.
const WINDOW: u32 = 1024;
/// Receivers of each group.
const RECEIVERS: [[&str; 3]; GROUPS as usize] = [["h1", "h2", "h3"], ["h4", "h5", "h6"]];
/// Hosts with senders.
const SENDERS: [&str; 2] = ["w1", "w2"];
/// Senders of each host.
const OF_HOST: u32 = 2;
/// Numbers that a host has in histories; it takes the next when it joins again.
const NUMBERS: u32 = 1000;
/// Time for which senders go on after the last fault.
const AFTERWARDS: Duration = Duration::from_secs(1);
/// Time within which replicas of the store have their states.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// Time that agents have for their end.
const DRAIN: Duration = Duration::from_secs(15);

/// Load of the groups.
#[derive(Clone, Copy, Debug, Args)]
#[group(id = "multicast-load")]
pub struct Load {
    /// Run the key-value store over multicast: replicas and clients in place of receivers and
    /// senders; of `multicast`
    #[arg(long, conflicts_with_all = ["kills", "stops"])]
    pub store: bool,
    /// Messages that each of the four senders has under way together, or clients of the store, 1 to
    /// 32; of `multicast`
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub lanes: u8,
    /// Messages that address both groups, or operations that name several keys, in thousandths; of
    /// `multicast`
    #[arg(long, value_name = "PERMILLE", default_value_t = 300, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub several: u32,
    /// Milliseconds within which every message arrives, and every operation is answered, once faults
    /// are over; of `multicast`
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(2000..=60_000))]
    pub arrives_ms: u64,
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
    /// Seed of the messages and faults.
    pub seed: u64,
    /// Threads of each switch.
    pub switch_workers: u8,
    /// Microseconds from a message of a lane to its next.
    pub interval_us: u64,
    /// Load of the groups.
    pub load: Load,
}

/// Runs the groups and judges what their hosts tell. [`Report::met`] tells whether nothing was
/// objected to.
///
/// # Errors
/// `LAB013` for options out of range, `LAB008` if a host does not come to its end, and everything
/// that [`Lab::up`] refuses. Nothing is left behind.
pub fn run(options: &Options) -> Result<Report, LabError> {
    if !(1..=60).contains(&options.seconds) {
        return Err(LabError::Options("--seconds must be 1 to 60".to_owned()));
    }
    let mut service = Service::start(options)?;
    let mut random = Random::new(options.seed);
    let faults = fault::run(&mut service, &mut random, options.seconds)?;
    let history = service.finish(options)?;
    let name = file_of(&options.seed.to_string(), options.load.store);
    let path = write(&options.directory.join(name), &history)?;
    Ok(Report::new(options.seed, path, &history, faults))
}

/// Name of the file of a history.
fn file_of(seed: &str, store: bool) -> String {
    let what = if store { "store" } else { "history" };
    format!("{what}-{seed}.txt")
}

/// Part of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Sender,
    Receiver { group: u8 },
}

/// A host's process.
struct Agent {
    node: String,
    part: Part,
    /// Its first number in histories.
    number: u32,
    process: Process,
}

/// The groups, and hosts that use them.
struct Service {
    lab: Lab,
    options: Options,
    program: PathBuf,
    /// Agents by name, such as `w1b` or `h4`.
    agents: BTreeMap<String, Agent>,
    /// Agents that were started.
    count: u32,
    /// The first agents are there: replicas that begin from here on take a peer's state.
    begun: bool,
    /// Events of agents that were killed, and their deaths.
    events: Vec<Event>,
    started: Instant,
}

impl Service {
    /// Starts switches, controller, receivers and, when these are listed, senders.
    fn start(options: &Options) -> Result<Service, LabError> {
        interrupt::install();
        tool::require_root()?;
        tool::require(&tool::BUILDING)?;
        tool::require(&[
            ("bridge", "iproute2"),
            ("tc", "iproute2"),
            ("nft", "nftables"),
        ])?;
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
        let mut service = Service {
            lab,
            options: options.clone(),
            program,
            agents: BTreeMap::new(),
            count: 0,
            begun: false,
            events: Vec::new(),
            started: Instant::now(),
        };
        service.wait_whole()?;
        for (group, nodes) in (0..).zip(RECEIVERS) {
            for node in nodes {
                service.spawn(node, node, Part::Receiver { group })?;
            }
        }
        for agent in service.agents.values_mut() {
            agent.process.wait_for_line(hosts::LISTED)?;
        }
        service.begun = true;
        for node in SENDERS {
            for letter in ["a", "b"].into_iter().take(OF_HOST as usize) {
                service.spawn(node, &format!("{node}{letter}"), Part::Sender)?;
            }
        }
        service.started = Instant::now();
        Ok(service)
    }

    /// Starts a host's agent.
    fn spawn(&mut self, node: &str, name: &str, part: Part) -> Result<(), LabError> {
        self.count += 1;
        let number = self.count * NUMBERS;
        let (word, settings) = self.words(node, number, part)?;
        let mut command = agent::command(&self.program, &[word, "--controller", CONTROLLER]);
        let settings = settings.into_iter().chain([format!("--node={number}")]);
        command.extend(settings);
        // Each has files of its own: the lines of those that were killed stay.
        let process = self
            .lab
            .spawn(node, &format!("{name}-{}", self.count), &command)?;
        let agent = Agent {
            node: node.to_owned(),
            part,
            number,
            process,
        };
        self.agents.insert(name.to_owned(), agent);
        Ok(())
    }

    /// Name and arguments of an agent.
    fn words(
        &self,
        node: &str,
        number: u32,
        part: Part,
    ) -> Result<(&'static str, Vec<String>), LabError> {
        let (load, options) = (self.options.load, &self.options);
        Ok(match (part, load.store) {
            (Part::Sender, store) => {
                let seed = options.seed ^ (u64::from(number) << 32);
                let settings = vec![
                    format!("--groups={GROUPS}"),
                    format!("--lanes={}", load.lanes),
                    format!("--interval-us={}", options.interval_us),
                    format!("--several={}", load.several),
                    format!("--seed={seed}"),
                ];
                let word = if store {
                    "multicast-client"
                } else {
                    "multicast-sender"
                };
                (word, settings)
            }
            (Part::Receiver { group }, false) => {
                ("multicast-receiver", vec![format!("--group={group}")])
            }
            (Part::Receiver { group }, true) => {
                let mut settings = vec![format!("--shard={group}"), format!("--shards={GROUPS}")];
                for (shard, nodes) in RECEIVERS.iter().enumerate() {
                    for other in nodes.iter().filter(|other| **other != node) {
                        let address = self.address(other)?;
                        settings.push(format!("--peer={shard}={address}"));
                    }
                }
                if !self.begun {
                    settings.push("--empty".to_owned());
                }
                ("multicast-replica", settings)
            }
        })
    }

    /// Address of a host.
    fn address(&self, node: &str) -> Result<Ipv4Addr, LabError> {
        let address = self.lab.topology().address_of(node);
        address.ok_or_else(|| LabError::Options(format!("{node} has no address")))
    }

    /// Waits until every replica of the store has a state.
    ///
    /// # Errors
    /// `LAB008` after 30 s.
    fn wait_ready(&mut self) -> Result<(), LabError> {
        if !self.options.load.store {
            return Ok(());
        }
        let deadline = Instant::now() + READY_LIMIT;
        for name in self.names(true) {
            let Some(agent) = self.agents.get_mut(&name) else {
                continue;
            };
            while !store::says_ready(&agent.process.output()) {
                interrupt::check()?;
                if Instant::now() > deadline || agent.process.ended().is_some() {
                    let seconds = READY_LIMIT.as_secs();
                    let failure = format!("has no state within {seconds} s");
                    return Err(agent.process.failure(failure));
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(())
    }

    /// Names of the receivers, or of the senders.
    fn names(&self, receivers: bool) -> Vec<String> {
        let agents = self.agents.iter();
        let agents = agents.filter(|(_, agent)| (agent.part != Part::Sender) == receivers);
        agents.map(|(name, _)| name.clone()).collect()
    }

    /// Names of the nodes of agents.
    fn hosts(&self) -> impl Iterator<Item = String> {
        let nodes = self.agents.values().map(|agent| agent.node.clone());
        nodes
            .collect::<std::collections::BTreeSet<String>>()
            .into_iter()
    }

    /// Names of the switches.
    fn switches(&self) -> impl Iterator<Item = String> {
        let nodes = self.lab.topology().nodes.iter();
        let switches = nodes.filter(|node| node.kind == Kind::Switch);
        let switches = switches.map(|node| node.name.clone());
        switches.collect::<Vec<String>>().into_iter()
    }

    /// SIGKILL to an agent.
    fn kill(&mut self, name: &str) -> Result<(), LabError> {
        let Some(agent) = self.agents.get_mut(name) else {
            return Ok(());
        };
        agent.process.kill();
        let at = boot_time_us();
        let events = record::read(&agent.process.output())?;
        let node = record::last_node(&events).unwrap_or(agent.number);
        self.events.extend(events);
        let kind = EventKind::Died { node };
        self.events.push(Event { at, kind });
        Ok(())
    }

    /// Another agent takes the place of one that was killed.
    fn replace(&mut self, name: &str) -> Result<(), LabError> {
        let Some(agent) = self.agents.remove(name) else {
            return Ok(());
        };
        self.spawn(&agent.node, name, agent.part)
    }

    fn signal(&mut self, name: &str, signal: &str) -> Result<(), LabError> {
        match self.agents.get(name) {
            Some(agent) => agent.process.signal(signal),
            None => Ok(()),
        }
    }

    /// The controller's view of the groups.
    ///
    /// # Errors
    /// `LAB006`, also if `wait` seconds pass before every group is whole, where one is to wait.
    fn status(&self, wait: Option<u64>) -> Result<MulticastView, LabError> {
        let file = self.lab.directory().join("controller.toml");
        let (program, file) = (self.program.display(), file.display());
        let (program, file) = (program.to_string(), file.to_string());
        let namespace = self.lab.run().namespace("ctl");
        let mut all = vec!["ip", "netns", "exec", &namespace, &program];
        all.extend(["multicast", "status", "--json", "--config", &file]);
        let wait = wait.map(|seconds| seconds.to_string());
        if let Some(seconds) = &wait {
            all.extend(["--wait", seconds]);
        }
        // 1 says that a group has no leader, which is a status too.
        let codes: &[i32] = if wait.is_some() { &[0] } else { &[0, 1] };
        let said = tool::run_to(&all, "", codes)?;
        view(&said)
            .ok_or_else(|| LabError::Options(format!("`multicast status` says no status: {said}")))
    }

    /// Waits until every group has all its members.
    ///
    /// # Errors
    /// `LAB006` after 30 s.
    fn wait_whole(&self) -> Result<(), LabError> {
        self.status(Some(30)).map(drop)
    }

    /// Names of the switches that lead groups.
    fn leaders(&self) -> Result<BTreeMap<u8, String>, LabError> {
        let view = self.status(None)?;
        let name = |address: Ipv4Addr| {
            let mut ends = self.lab.topology().ends();
            let (_, end) =
                ends.find(|(_, end)| end.address.is_some_and(|of| of.address == address))?;
            Some(end.node.clone())
        };
        let groups = view.groups.iter();
        let leaders = groups.filter_map(|group| Some((group.group, name(group.leader?)?)));
        Ok(leaders.collect())
    }

    /// Ends the run after its last fault: senders go on for a time and end, what is under way
    /// arrives. Gives the history.
    fn finish(mut self, options: &Options) -> Result<History, LabError> {
        let kind = EventKind::Of(MulticastEvent::Whole);
        let at = boot_time_us();
        self.events.push(Event { at, kind });
        let whole = Instant::now();
        interrupt::wait_until(whole + AFTERWARDS)?;
        self.lab.check_processes()?;
        let (senders, receivers) = (self.names(false), self.names(true));
        self.end(&senders)?;
        // What has to arrive has this time.
        interrupt::wait_until(whole + Duration::from_millis(options.load.arrives_ms))?;
        self.end(&receivers)?;
        self.lab.down()?;
        let within = options.load.arrives_ms * 1000;
        Ok(record::history(self.events, within, WINDOW))
    }

    /// Lets agents come to their end, and takes their lines.
    fn end(&mut self, names: &[String]) -> Result<(), LabError> {
        for name in names {
            if let Some(agent) = self.agents.get_mut(name) {
                agent.process.close_input();
            }
        }
        let deadline = Instant::now() + DRAIN;
        for name in names {
            let Some(agent) = self.agents.get_mut(name) else {
                continue;
            };
            match agent.process.wait_until(deadline)? {
                Some(status) if status.success() => {}
                Some(status) => return Err(agent.process.failure(format!("failed ({status})"))),
                None => {
                    let failure = "did not come to an end".to_owned();
                    return Err(agent.process.failure(failure));
                }
            }
            self.events.extend(record::read(&agent.process.output())?);
        }
        Ok(())
    }
}

/// The view in what `stateplane multicast status --json` says.
fn view(said: &str) -> Option<MulticastView> {
    let mut said: serde_json::Value = serde_json::from_str(said).ok()?;
    serde_json::from_value(said.get_mut("multicast")?.take()).ok()
}

fn write(path: &Path, history: &History) -> Result<PathBuf, LabError> {
    std::fs::write(path, history.to_string()).map_err(|reason| LabError::file(path, reason))?;
    Ok(path.to_owned())
}

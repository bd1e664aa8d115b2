//! `stateplane lab …`.

use crate::agent::client::ClientArguments;
use crate::agent::hosts::HostsArguments;
use crate::agent::server::ServerArguments;
use crate::agent::tap::TapArguments;
use crate::coordination::{self, WorkersArguments};
use crate::demo::{self, Options};
use crate::error::LabError;
use crate::multicast::{
    self, ClientArguments as StoreClientArguments, ReceiverArguments, ReplicaArguments,
    SenderArguments,
};
use crate::scenario::ReaderArguments;
use crate::standing::{self, Change};
use crate::topology::Topology;
use crate::{agent, locks, rootless, runs, scenario};
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Scenarios that are no applications.
const OTHERS: [(&str, &str); 2] = [
    (coordination::NAME, coordination::ABOUT),
    (multicast::NAME, multicast::ABOUT),
];

/// Subcommands of `stateplane lab`.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Build a topology, start its processes, and keep it until ^C or `lab down`.
    Up(standing::UpArguments),
    /// Take the labs of `lab up` down, and remove what dead ones left.
    Down {
        /// Also take down the labs of commands that run, such as `lab demo`; the commands end.
        #[arg(long)]
        all: bool,
    },
    /// Run a command in a node of the lab that root brought up last with `lab up`.
    ///
    /// The lab of an ordinary user lies in namespaces of its own: `nsenter --user --net
    /// --mount --target PID` enters those of its process.
    Exec {
        /// The node.
        node: String,
        /// Program and arguments.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Make a node of that lab fail: kill its processes and take its links down, as when its machine
    /// loses power.
    Fail {
        /// The node.
        node: String,
    },
    /// Bring a node that failed back: its links and its processes.
    Recover {
        /// The node.
        node: String,
    },
    /// Kill a switch that carries live TCP connections, and report the effect.
    Demo(Options),
    /// Kill switches that keep a lock which workers share, and report the effect beside etcd's.
    DemoCoordination(locks::Options),
    /// Run applications, the coordination service or multicast, while links and switches fail, and
    /// check the histories.
    Run(RunArguments),
    /// List the scenarios of `lab run`.
    List {
        /// Print them as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Agents of the traffic of demonstration and scenarios, which start them in the nodes.
    #[command(subcommand, hide = true)]
    Agent(Agent),
}

/// Agent
#[derive(Clone, Debug, Subcommand)]
pub enum Agent {
    /// Open connections, send questions and check the answers.
    Client(ClientArguments),
    /// Accept connections, answer and check.
    Server(ServerArguments),
    /// Report which connections pass a switch.
    Tap(TapArguments),
    /// Exchange packets with an application from both sides.
    Hosts(HostsArguments),
    /// Read and write records of the coordination service.
    Workers(WorkersArguments),
    /// Send messages to groups.
    MulticastSender(SenderArguments),
    /// Receive the messages of a group.
    MulticastReceiver(ReceiverArguments),
    /// Keep a shard of the store over multicast.
    MulticastReplica(ReplicaArguments),
    /// Read and write records of the store over multicast.
    MulticastClient(StoreClientArguments),
    /// Keep the value that a lock guards.
    Resource(locks::ResourceArguments),
    /// Read the views of an engine.
    ViewReader(ReaderArguments),
    /// Take a lock again and again, and write to the resource.
    LockWorker(locks::WorkerArguments),
    /// Tell which member of etcd leads.
    EtcdLeader(locks::LeaderArguments),
}

/// Arguments of `stateplane lab run`.
#[derive(Clone, Debug, Args)]
pub struct RunArguments {
    #[command(flatten)]
    options: scenario::Options,
    /// Seconds under faults, of `coordination` and `multicast`
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Milliseconds within which each group serves once faults are over, of `coordination`
    #[arg(long, default_value_t = 2000)]
    serves_ms: u64,
    /// Runs of `coordination` or `multicast`, with this seed and those after it
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// Kill the head, the middle and the tail of groups, each this often, in place of faults of all
    /// kinds, and measure how long operations wait, of `coordination`; kill this many leaders of
    /// groups, and measure how long deliveries pause, of `multicast`
    #[arg(long, value_name = "KILLS", conflicts_with = "runs", value_parser = clap::value_parser!(u32).range(1..=1000))]
    kills: Option<u32>,
    /// Stop this many receivers, one after the other, every other one until it is taken off its list,
    /// and measure what senders still send and how soon messages go on, of `multicast`
    #[arg(long, value_name = "STOPS", conflicts_with_all = ["runs", "kills"], value_parser = clap::value_parser!(u32).range(1..=1000))]
    stops: Option<u32>,
    #[command(flatten)]
    load: coordination::Load,
    #[command(flatten)]
    multicast: multicast::Load,
}

impl Command {
    /// Runs the subcommand. The exit code is 1 where the demonstration or a scenario has an
    /// unexpected result, and the command's own for `exec`.
    ///
    /// # Errors
    /// Returns the errors of the lab; `LAB130` after ^C.
    pub fn run(&self) -> Result<ExitCode, LabError> {
        match self {
            Self::Up(arguments) => standing::up(arguments),
            Self::Down { all } => {
                let count = runs::down(*all)?;
                let labs = if count == 1 { "lab" } else { "labs" };
                println!("{count} {labs} taken down");
                Ok(ExitCode::SUCCESS)
            }
            Self::Exec { node, command } => standing::exec(node, command),
            Self::Fail { node } => standing::ask(Change::Fail, node),
            Self::Recover { node } => standing::ask(Change::Recover, node),
            Self::Demo(options) => {
                rootless::become_root()?;
                let report = demo::run(options)?;
                println!("{report}");
                println!("plot     {}", options.output.join("result.html").display());
                println!("figures  {}", options.output.join("result.json").display());
                Ok(ExitCode::from(u8::from(!report.met())))
            }
            Self::DemoCoordination(options) => {
                rootless::become_root()?;
                let report = locks::run(options)?;
                if options.json {
                    println!("{}", report.json());
                } else {
                    println!("{report}");
                    println!(
                        "plot     {}",
                        options.output.join("coordination.html").display()
                    );
                    println!(
                        "figures  {}",
                        options.output.join("coordination.json").display()
                    );
                }
                Ok(ExitCode::from(u8::from(!report.met())))
            }
            Self::Agent(agent) => agent.run().map(|()| ExitCode::SUCCESS),
            Self::Run(arguments) => {
                rootless::become_root()?;
                if arguments.options.scenarios == [coordination::NAME] {
                    return arguments.coordination();
                }
                if arguments.options.scenarios == [multicast::NAME] {
                    return arguments.multicast();
                }
                if arguments.options.scenarios == [scenario::VIEW] {
                    return arguments.view();
                }
                arguments.applications()
            }
            Self::List { json: true } => {
                let mut all = serde_json::json!(scenario::scenarios());
                if let Some(all) = all.as_array_mut() {
                    all.extend(scenario::watched().map(|it| serde_json::json!(it)));
                    for (name, about) in OTHERS {
                        all.push(serde_json::json!({"name": name, "about": about}));
                    }
                }
                println!("{}", json(&all));
                Ok(ExitCode::SUCCESS)
            }
            Self::List { json: false } => {
                for scenario in scenario::scenarios().into_iter().chain(scenario::watched()) {
                    println!("{:15}  {}", scenario.name, scenario.about);
                }
                for (name, about) in OTHERS {
                    println!("{name:15}  {about}");
                }
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

impl Agent {
    fn run(&self) -> Result<(), LabError> {
        match self {
            Self::Client(arguments) => agent::client(arguments),
            Self::Server(arguments) => agent::server(arguments),
            Self::Tap(arguments) => agent::tap(arguments),
            Self::Hosts(arguments) => agent::hosts(arguments),
            Self::Workers(arguments) => coordination::workers(arguments),
            Self::MulticastSender(arguments) => multicast::sender(arguments),
            Self::MulticastReceiver(arguments) => multicast::receiver(arguments),
            Self::MulticastReplica(arguments) => multicast::replica(arguments),
            Self::MulticastClient(arguments) => multicast::client(arguments),
            Self::Resource(arguments) => locks::resource(arguments),
            Self::ViewReader(arguments) => scenario::reader(arguments),
            Self::LockWorker(arguments) => locks::worker(arguments),
            Self::EtcdLeader(arguments) => locks::leader(arguments),
        }
    }
}

impl RunArguments {
    /// The options of the coordination service's runs.
    fn service(&self) -> coordination::Options {
        coordination::Options {
            topology: self.options.topology.with_file_name("coordination.toml"),
            directory: self.options.logs.join(coordination::NAME),
            seconds: self.seconds,
            seed: self.options.seed,
            switch_workers: self.options.switch_workers,
            serves_ms: self.serves_ms,
            load: self.load,
        }
    }

    /// The options of multicast's runs.
    fn groups(&self) -> multicast::Options {
        multicast::Options {
            topology: self.options.topology.with_file_name("multicast.toml"),
            directory: self.options.logs.join(multicast::NAME),
            seconds: self.seconds,
            seed: self.options.seed,
            switch_workers: self.options.switch_workers,
            interval_us: self.load.interval_us,
            load: self.multicast,
        }
    }

    /// Runs applications; `all` has a run with a view, one of the coordination service and one of
    /// multicast too.
    fn applications(&self) -> Result<ExitCode, LabError> {
        let reports = scenario::run(&self.options)?;
        let mut met = reports.iter().all(scenario::ScenarioReport::met);
        let mut objects = serde_json::json!(reports);
        if !self.options.json {
            for report in &reports {
                print!("{report}");
            }
        }
        if self.options.scenarios.iter().any(|name| name == "all") {
            let watched = self.watched()?;
            let report = coordination::run(&self.service())?;
            let groups = multicast::run(&self.groups())?;
            met &= watched.met() && report.met() && groups.met();
            match objects.as_array_mut() {
                Some(all) if self.options.json => {
                    all.extend([
                        serde_json::json!(watched),
                        serde_json::json!(report),
                        serde_json::json!(groups),
                    ]);
                }
                _ => print!("{watched}{report}{groups}"),
            }
        }
        if self.options.json {
            println!("{}", json(&objects));
        }
        Ok(ExitCode::from(u8::from(!met)))
    }

    /// The report of the run with a view.
    fn watched(&self) -> Result<scenario::ScenarioReport, LabError> {
        let topology = self.options.topology.with_file_name("view.toml");
        scenario::run_view(&Topology::load(topology)?, &self.options)
    }

    fn view(&self) -> Result<ExitCode, LabError> {
        let report = self.watched()?;
        if self.options.json {
            println!("{}", json(&[&report]));
        } else {
            print!("{report}");
        }
        Ok(ExitCode::from(u8::from(!report.met())))
    }

    fn coordination(&self) -> Result<ExitCode, LabError> {
        let options = self.service();
        if let Some(kills) = self.kills {
            let report = coordination::run_kills(&options, kills)?;
            self.tell(&report);
            return Ok(ExitCode::from(u8::from(!report.met())));
        }
        if self.runs == 1 {
            let report = coordination::run(&options)?;
            self.tell(&report);
            return Ok(ExitCode::from(u8::from(!report.met())));
        }
        let report = coordination::run_many(&options, self.runs)?;
        self.tell(&report);
        Ok(ExitCode::from(u8::from(!report.met())))
    }

    fn multicast(&self) -> Result<ExitCode, LabError> {
        let options = self.groups();
        if let Some(kills) = self.kills {
            let report = multicast::run_kills(&options, kills)?;
            self.tell(&report);
            return Ok(ExitCode::from(u8::from(!report.met())));
        }
        if let Some(stops) = self.stops {
            let report = multicast::run_stops(&options, stops)?;
            self.tell(&report);
            return Ok(ExitCode::from(u8::from(!report.met())));
        }
        if self.runs == 1 {
            let report = multicast::run(&options)?;
            self.tell(&report);
            return Ok(ExitCode::from(u8::from(!report.met())));
        }
        let report = multicast::run_many(&options, self.runs)?;
        self.tell(&report);
        Ok(ExitCode::from(u8::from(!report.met())))
    }

    fn tell<T: serde::Serialize + std::fmt::Display>(&self, report: &T) {
        if self.options.json {
            println!("{}", json(report));
        } else {
            print!("{report}");
        }
    }
}

fn json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

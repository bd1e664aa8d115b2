//! A run: a service, the workers that use its lock, and what is done to it.

use super::resource::WriteLine;
use super::worker::{HOLD, WorkerLine};
use super::{END_S, FaultReport, LOCK, Options, Place, STEPS, Service, ServiceReport, Step};
use crate::agent::{self, now_us};
use crate::coordination::{self, CONTROLLER};
use crate::error::LabError;
use crate::process::Process;
use crate::running::{Lab, Setting};
use crate::show::Show;
use crate::tail::Tail;
use crate::topology::Topology;
use crate::{interrupt, tool};
use clap::Args;
use serde::de::DeserializeOwned;
use stateplane_coordination::{Name, group_of};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Node of the workers and the resource.
const HOST: &str = "host";
/// The bridge between all nodes.
const BRIDGE: &str = "fabric";
/// TCP port of the resource.
const PORT: u16 = 7100;
/// Number of groups, in `lab/coordination/deployment.toml`.
const GROUPS: u16 = 64;
/// Members of etcd, in `lab/etcd.toml`.
const ETCD: [&str; 3] = ["e1", "e2", "e3"];
/// Longest time for a service to begin, for a worker to have the lock, and for agents to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(5);
/// The worker that is frozen, by its place.
const FROZEN: usize = 0;

/// Addresses of etcd's members.
fn etcd_members() -> Vec<SocketAddrV4> {
    let addresses = (1..).take(ETCD.len());
    let addresses =
        addresses.map(|number| SocketAddrV4::new(Ipv4Addr::new(10, 20, 0, number), 2379));
    addresses.collect()
}

/// Arguments of the question who leads etcd.
#[derive(Clone, Debug, Args)]
pub struct LeaderArguments {
    /// The members.
    #[arg(long, value_delimiter = ',', required = true)]
    pub members: Vec<SocketAddrV4>,
}

/// Prints the place of the member that leads.
///
/// # Errors
/// `LAB013` if none does.
pub fn leader(arguments: &LeaderArguments) -> Result<(), LabError> {
    let place = stateplane_peers::etcd_leader(&arguments.members).map_err(LabError::Options)?;
    println!("{place}");
    Ok(())
}

struct Running {
    service: Service,
    program: PathBuf,
    lab: Lab,
    resource: Process,
    workers: Vec<Process>,
    /// The member that is dead or cut off.
    victim: String,
    faults: Vec<FaultReport>,
    started_us: u64,
}

/// Runs the steps against `service`.
///
/// # Errors
/// As [`super::run`].
pub(super) fn run(
    options: &Options,
    service: Service,
    etcd: Option<&Path>,
    show: &mut Show,
) -> Result<ServiceReport, LabError> {
    show.event(&format!(
        "{service}: {} workers share a lock",
        options.workers
    ));
    let mut running = Running::start(options, service, etcd)?;
    let begun = Instant::now();
    for (at, step) in STEPS {
        running.wait(begun, at, show)?;
        let told = running.take(step)?;
        show.event(&format!("{service}: {at:2} s: {told}"));
    }
    running.wait(begun, END_S, show)?;
    running.finish()
}

impl Running {
    fn start(options: &Options, service: Service, etcd: Option<&Path>) -> Result<Self, LabError> {
        let program = coordination::program()?;
        let directory = options.logs.join(format!("lock-{service}"));
        let topology = match service {
            Service::Stateplane => "coordination.toml",
            Service::Etcd => "etcd.toml",
        };
        prepare(&directory, etcd)?;
        let setting = Setting {
            keys: false,
            variant: String::new(),
            directory,
            stateplane: program.clone(),
        };
        let lab = Lab::up(Topology::load(options.topologies.join(topology))?, &setting)?;
        let port = PORT.to_string();
        let words = agent::command(&program, &["resource", "--port", &port]);
        let mut resource = lab.spawn(HOST, "resource", &words)?;
        resource.wait_for_line("ready")?;
        let mut running = Running {
            service,
            program,
            lab,
            resource,
            workers: Vec::new(),
            victim: String::new(),
            faults: Vec::new(),
            started_us: 0,
        };
        running.wait_for_service()?;
        let (option, value) = match service {
            Service::Stateplane => ("--controller", CONTROLLER.to_owned()),
            Service::Etcd => ("--etcd", members()),
        };
        for number in 1..=options.workers {
            let name = format!("worker-{number}");
            let number = number.to_string();
            let words = ["lock-worker", "--number", &number, "--resource", &port];
            let mut command = agent::command(&running.program, &words);
            command.extend([option.to_owned(), value.clone()]);
            running
                .workers
                .push(running.lab.spawn(HOST, &name, &command)?);
        }
        for worker in &mut running.workers {
            worker.wait_for_line(r#"{"event":"acquired""#)?;
        }
        running.started_us = now_us();
        Ok(running)
    }

    fn wait_for_service(&self) -> Result<(), LabError> {
        let deadline = Instant::now() + PATIENCE;
        match self.service {
            Service::Stateplane => coordination::wait_whole(&self.lab),
            Service::Etcd => loop {
                match self.etcd_leader() {
                    Err(error) if Instant::now() > deadline => return Err(error),
                    Err(_) => interrupt::wait_until(Instant::now() + LOOK)?,
                    Ok(_) => return Ok(()),
                }
            },
        }
    }

    /// The member of etcd that leads.
    fn etcd_leader(&self) -> Result<String, LabError> {
        let namespace = self.lab.run().namespace(HOST);
        let question = ["etcd-leader", "--members", &members()];
        let question = agent::command(&self.program, &question);
        let mut words = vec!["ip", "netns", "exec", &namespace];
        words.extend(question.iter().map(String::as_str));
        let said = tool::run(&words, "")?;
        let place: Option<usize> = said.trim().parse().ok();
        let name = place.and_then(|place| ETCD.get(place));
        name.map(|name| (*name).to_owned())
            .ok_or_else(|| LabError::Options(format!("no member of etcd is {said:?}")))
    }

    /// The member at `place` of the lock's chain, or etcd's leader, with the name of the place.
    fn member(&self, place: Place) -> Result<(String, &'static str), LabError> {
        if self.service == Service::Etcd {
            return Ok((self.etcd_leader()?, "leader"));
        }
        let name =
            Name::new(LOCK.as_bytes()).map_err(|error| LabError::Options(error.to_string()))?;
        let place_of_lock = name.lock_place(GROUPS);
        let group = place_of_lock
            .group
            .unwrap_or_else(|| group_of(&place_of_lock.key, GROUPS));
        let chains = coordination::chains(&self.lab)?;
        let chain = chains.iter().find(|chain| chain.group == group);
        let members = chain
            .map(coordination::ChainLine::members)
            .unwrap_or_default();
        let (member, called) = match place {
            Place::Head => (members.first(), "head"),
            Place::Middle => (members.get(1), "middle"),
            Place::Tail => (members.last(), "tail"),
        };
        let [.., number] = member
            .ok_or_else(|| LabError::Options(format!("group {group} has no {called}")))?
            .octets();
        Ok((format!("s{number}"), called))
    }

    /// Takes a step, and tells it.
    fn take(&mut self, step: Step) -> Result<String, LabError> {
        match step {
            Step::Kill(place) => {
                let (member, called) = self.member(place)?;
                self.begin(format!("{called} {member} killed"));
                if let Some(process) = self.lab.process(&member) {
                    process.kill();
                }
                self.victim = member;
            }
            Step::Cut(place) => {
                let (member, called) = self.member(place)?;
                self.begin(format!("{called} {member} cut off alive"));
                self.lab.lower(BRIDGE, &member)?;
                self.victim = member;
            }
            Step::Freeze => {
                self.hold()?;
                self.begin("holder frozen".to_owned());
                self.workers[FROZEN].signal("STOP")?;
            }
            Step::Restart => {
                let victim = self.victim.clone();
                self.lab.start(&victim)?;
                return Ok(self.end(format!("{victim} started again")));
            }
            Step::Heal => {
                let victim = self.victim.clone();
                self.lab.raise(BRIDGE, std::slice::from_ref(&victim))?;
                return Ok(self.end(format!("{victim} reachable again")));
            }
            Step::Thaw => {
                self.workers[FROZEN].signal("CONT")?;
                return Ok(self.end("the holder goes on".to_owned()));
            }
        }
        Ok(self
            .faults
            .last()
            .map_or_else(String::new, |fault| fault.what.clone()))
    }

    fn since_start(&self) -> f64 {
        now_us().saturating_sub(self.started_us) as f64 / 1e6
    }

    fn begin(&mut self, what: String) {
        let at = self.since_start();
        self.faults.push(FaultReport {
            what,
            from_s: at,
            until_s: at,
            longest_wait_ms: None,
        });
    }

    fn end(&mut self, told: String) -> String {
        let at = self.since_start();
        if let Some(fault) = self.faults.last_mut() {
            fault.until_s = at;
        }
        told
    }

    /// Waits until the worker that is to be frozen has the lock.
    fn hold(&mut self) -> Result<(), LabError> {
        let worker = &mut self.workers[FROZEN];
        let mut tail = Tail::new(worker.output());
        tail.lines();
        worker.tell(HOLD)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let lines = tail.lines();
            let holds = |line: &String| {
                matches!(serde_json::from_str(line), Ok(WorkerLine::Holding { .. }))
            };
            if lines.iter().any(holds) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(worker.failure("did not get the lock".to_owned()));
            }
            interrupt::wait_until(Instant::now() + LOOK)?;
        }
    }

    fn wait(&mut self, begun: Instant, second: u64, show: &mut Show) -> Result<(), LabError> {
        let end = begun + Duration::from_secs(second);
        while Instant::now() < end {
            let at = begun.elapsed().as_secs();
            show.status(format!("{}: {at:2} of {END_S} s", self.service));
            let next = Instant::now() + Duration::from_millis(500);
            interrupt::wait_until(next.min(end))?;
            for worker in &mut self.workers {
                if let Some(status) = worker.ended() {
                    return Err(worker.failure(format!("ended by itself ({status})")));
                }
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<ServiceReport, LabError> {
        let ended_us = now_us();
        let deadline = Instant::now() + PATIENCE;
        for worker in &mut self.workers {
            worker.close_input();
        }
        let mut lost = 0;
        for worker in &mut self.workers {
            if worker.wait_until(deadline)?.is_none() {
                return Err(worker.failure("did not come to an end".to_owned()));
            }
            let lines = lines_of::<WorkerLine>(&worker.output())?;
            let lost_by = lines
                .iter()
                .filter(|line| matches!(line, WorkerLine::Lost { .. }));
            lost += lost_by.count();
        }
        self.resource.close_input();
        self.resource.wait_until(deadline)?;
        let writes: Vec<WriteLine> = lines_of(&self.resource.output())?;
        let report = ServiceReport::new(
            self.service,
            self.workers.len(),
            &writes,
            [self.started_us, ended_us],
            self.faults,
            lost,
        );
        self.lab.down()?;
        Ok(report)
    }
}

fn members() -> String {
    let members = etcd_members();
    let members: Vec<String> = members.iter().map(ToString::to_string).collect();
    members.join(",")
}

/// Removes what an earlier run left in `directory`, and puts a link to etcd there, by which its
/// topology finds it.
fn prepare(directory: &Path, etcd: Option<&Path>) -> Result<(), LabError> {
    let failed = |reason| LabError::file(directory, reason);
    if directory.exists() {
        std::fs::remove_dir_all(directory).map_err(failed)?;
    }
    std::fs::create_dir_all(directory).map_err(failed)?;
    let Some(etcd) = etcd else {
        return Ok(());
    };
    let etcd = match etcd.components().count() {
        1 => tool::find(&etcd.to_string_lossy()).unwrap_or_else(|| etcd.to_owned()),
        _ => etcd.canonicalize().map_err(failed)?,
    };
    std::os::unix::fs::symlink(etcd, directory.join("etcd")).map_err(failed)
}

/// The lines of JSON in an agent's output that are a `T`.
fn lines_of<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, LabError> {
    let text = std::fs::read_to_string(path).map_err(|reason| LabError::file(path, reason))?;
    Ok(text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}

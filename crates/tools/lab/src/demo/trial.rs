//! One run: traffic, failure, restart.

use super::iperf::{self, Interval};
use super::report::{Kind, Point, RunReport, rate};
use super::sight::Sight;
use super::{Options, figures, modes, plan};
use crate::agent::client::{ClientReport, Line, Progress};
use crate::agent::now_ms;
use crate::agent::server::ServerReport;
use crate::error::LabError;
use crate::process::Process;
use crate::running::{Lab, Setting};
use crate::show::Show;
use crate::tail::Tail;
use crate::topology::{Topology, Traffic};
use crate::{agent, interrupt, tool};
use std::collections::BTreeSet;
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Seconds before the failure at which looking at the switches' traffic begins, and
/// at which what was seen is read.
const LOOK_FROM_S: f64 = 2.5;
const LOOK_TO_S: f64 = 0.3;
/// Seconds for which it lasts; every connection sends many times in it.
const LOOK_FOR_S: f64 = 1.5;
/// Maximum time for agents and `iperf3` to end.
const ENDING: Duration = Duration::from_secs(14);
/// Seconds from the failure on in which throughput counts as at the failure.
const FAILING_S: f64 = 2.0;
/// Seconds after the restart from which throughput counts as after.
const SETTLED_S: f64 = 3.0;

struct Client {
    process: Process,
    tail: Tail,
    latest: Progress,
    progress: Vec<Progress>,
    report: Option<ClientReport>,
}

impl Client {
    fn read(&mut self) {
        for line in self.tail.lines() {
            match serde_json::from_str(&line) {
                Ok(Line::Progress(progress)) => {
                    self.latest = progress;
                    self.progress.push(progress);
                }
                Ok(Line::Report(report)) => self.report = Some(report),
                Err(_) => {}
            }
        }
    }
}

/// `iperf3`'s server as it prints.
struct Receiver {
    process: Process,
    tail: Tail,
    intervals: Vec<Interval>,
    /// Seconds from the start of the traffic to the start of the stream: the least
    /// that any line's arrival allows.
    offset_s: f64,
}

impl Receiver {
    fn read(&mut self, now_s: f64) {
        for interval in self
            .tail
            .lines()
            .iter()
            .filter_map(|line| iperf::interval(line))
        {
            self.offset_s = self.offset_s.min(now_s - interval.to_s);
            self.intervals.push(interval);
        }
    }

    fn points(&self) -> Vec<Point> {
        self.intervals
            .iter()
            .map(|i| ((i.from_s + i.to_s) / 2.0 + self.offset_s, i.mbps))
            .collect()
    }
}

struct Trial<'a> {
    options: &'a Options,
    kind: Kind,
    lab: Lab,
    traffic: Traffic,
    begun: Instant,
    begun_ms: u64,
    clients: Vec<Client>,
    servers: Vec<Process>,
    receiver: Receiver,
    sender: Process,
    program: PathBuf,
    /// Sources and destinations of the long-lived connections.
    planned: BTreeSet<(SocketAddrV4, SocketAddrV4)>,
    state: String,
}

/// Brings the topology up in the run's variant, makes the run and takes it down.
pub(super) fn run(
    topology: &Topology,
    options: &Options,
    kind: Kind,
    show: &mut Show,
) -> Result<RunReport, LabError> {
    let Some(traffic) = topology.traffic.clone() else {
        return Err(LabError::NoTraffic(topology.path.clone()));
    };
    show.status(format!("{}: building {}", kind.title(), topology.name));
    let program =
        std::env::current_exe().map_err(|reason| LabError::file("/proc/self/exe", reason))?;
    let setting = Setting {
        variant: kind.name().to_owned(),
        directory: options.logs.join(format!("{}-{kind}", topology.name)),
        stateplane: program,
        keys: options.keys,
    };
    let lab = Lab::up(topology.clone(), &setting)?;
    lab.wait_for_routes(&traffic.chooser)?;
    for line in modes::of_switches(&lab.topology().processes, lab.directory()) {
        show.event(&format!("{}: {line}", kind.title()));
    }
    let mut trial = Trial::begin(lab, traffic, &setting, options, kind)?;
    let report = trial.go(show)?;
    let Trial {
        lab,
        clients,
        servers,
        receiver,
        sender,
        ..
    } = trial;
    drop((clients, servers, receiver, sender));
    lab.down()?;
    Ok(report)
}

impl<'a> Trial<'a> {
    fn begin(
        lab: Lab,
        traffic: Traffic,
        setting: &Setting,
        options: &'a Options,
        kind: Kind,
    ) -> Result<Self, LabError> {
        let agent = |words: &[&str]| agent::command(&setting.stateplane, words);
        let plans = plan::make(lab.topology(), &traffic, options);
        let planned = plans
            .values()
            .flat_map(|plan| &plan.long_lived)
            .map(|planned| (planned.source, planned.destination))
            .collect();
        let ports: Vec<String> = plan::PORTS.iter().map(u16::to_string).collect();
        let ports = ports.join(",");
        let mut servers = Vec::new();
        for node in &traffic.servers {
            let name = format!("server-{node}");
            servers.push(lab.spawn(node, &name, &agent(&["server", "--ports", &ports]))?);
        }
        let mut receiver = lab.spawn(&traffic.iperf_server, "iperf3-server", &iperf::server())?;
        for server in &mut servers {
            server.wait_for_line("ready")?;
        }
        receiver.wait_for_line(iperf::LISTENING)?;
        let limit = (options.seconds + 10).to_string();
        let begun = Instant::now();
        let begun_ms = now_ms();
        let mut clients = Vec::new();
        for (node, plan) in &plans {
            let path = lab.directory().join(format!("plan-{node}.json"));
            let text = serde_json::to_string(plan).map_err(std::io::Error::other);
            text.and_then(|text| std::fs::write(&path, text))
                .map_err(|reason| LabError::file(&path, reason))?;
            let path = path.display().to_string();
            let command = agent(&["client", "--plan", &path, "--seconds", &limit]);
            let process = lab.spawn(node, &format!("client-{node}"), &command)?;
            clients.push(Client {
                tail: Tail::new(process.output()),
                process,
                latest: Progress::default(),
                progress: Vec::new(),
                report: None,
            });
        }
        let address = plan::address(lab.topology(), &traffic.iperf_server);
        let command = iperf::client(address, options.seconds - 1, options.rate_mbps);
        let sender = lab.spawn(&traffic.iperf_client, "iperf3-client", &command)?;
        Ok(Self {
            options,
            kind,
            begun,
            begun_ms,
            clients,
            servers,
            receiver: Receiver {
                tail: Tail::new(receiver.output()),
                process: receiver,
                intervals: Vec::new(),
                offset_s: f64::INFINITY,
            },
            sender,
            program: setting.stateplane.clone(),
            planned,
            state: "both switches up".to_owned(),
            traffic,
            lab,
        })
    }

    fn now_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    fn go(&mut self, show: &mut Show) -> Result<RunReport, LabError> {
        let kill_at = self.options.kill_at as f64;
        let restart_at = self.options.restart_at as f64;
        self.watch_until(kill_at - LOOK_FROM_S, show)?;
        let taps = self.tap()?;
        self.watch_until(kill_at - LOOK_TO_S, show)?;
        let sight = Sight::new(taps, &self.planned, iperf::PORT)?;
        let carrier = sight.iperf_switch.clone();
        if carrier.is_empty() {
            return Err(self
                .sender
                .failure("sent nothing through any switch".to_owned()));
        }
        self.watch_until(kill_at, show)?;
        let (mut killed_at_s, mut restarted_at_s) = (None, None);
        if self.kind.fails() {
            killed_at_s = Some(self.now_s());
            self.lab.fail(&carrier)?;
            self.happened(show, format!("{carrier} killed, its links down"));
            self.watch_until(restart_at, show)?;
            restarted_at_s = Some(self.now_s());
            self.lab.recover(&carrier)?;
            self.happened(show, format!("{carrier} back"));
        }
        self.watch_until(self.options.seconds as f64, show)?;
        let iperf_completed = self.end(show)?;
        self.report(sight, iperf_completed, killed_at_s, restarted_at_s)
    }

    fn happened(&mut self, show: &mut Show, what: String) {
        show.event(&format!(
            "{:>12} {:5.1} s  {what}",
            self.kind.title(),
            self.now_s()
        ));
        self.state = what;
    }

    /// Looks at what the chooser sends to each switch, at the chooser's end of the link:
    /// AF_XDP takes frames at the switch before a tap there could see them.
    fn tap(&self) -> Result<Vec<(String, Process)>, LabError> {
        let topology = self.lab.topology();
        let entrances = plan::entrances(topology, &self.traffic);
        entrances
            .into_iter()
            .map(|end| {
                let seconds = LOOK_FOR_S.to_string();
                let words = [
                    "tap",
                    "--towards",
                    &end.mac.to_string(),
                    "--seconds",
                    &seconds,
                ];
                let name = format!("tap-{}", end.node);
                let command = agent::command(&self.program, &words);
                let neighbours = topology.neighbours(end);
                let at = neighbours.first().map_or(&end.node, |far| &far.node);
                Ok((end.node.clone(), self.lab.spawn(at, &name, &command)?))
            })
            .collect()
    }

    fn watch_until(&mut self, second: f64, show: &mut Show) -> Result<(), LabError> {
        while self.now_s() < second {
            interrupt::check()?;
            self.lab.check_processes()?;
            self.look(show);
            for client in &mut self.clients {
                if let Some(status) = client.process.ended() {
                    return Err(client
                        .process
                        .failure(format!("ended by itself ({status})")));
                }
            }
            std::thread::sleep(Duration::from_millis(40));
        }
        Ok(())
    }

    fn look(&mut self, show: &mut Show) {
        let now = self.now_s();
        self.receiver.read(now);
        for client in &mut self.clients {
            client.read();
        }
        let total = |of: fn(&Progress) -> u64| -> u64 {
            self.clients.iter().map(|client| of(&client.latest)).sum()
        };
        let stream = self.receiver.intervals.last().map_or(0.0, |last| last.mbps);
        show.status(format!(
            "{:>12} {now:5.1} s  stream {:>9}  {} open of {} opened  {} broken  {} wrong bytes  [{}]",
            self.kind.title(),
            rate(stream),
            total(|p| p.open),
            total(|p| p.opened),
            total(|p| p.broken),
            total(|p| p.wrong_bytes),
            self.state,
        ));
    }

    /// Lets all traffic come to its end; tells whether `iperf3` did so as planned.
    fn end(&mut self, show: &mut Show) -> Result<bool, LabError> {
        let deadline = Instant::now() + ENDING;
        for client in &mut self.clients {
            client.process.close_input();
        }
        for client in &mut self.clients {
            client.process.wait_until(deadline)?;
        }
        self.look(show);
        let sent = self
            .sender
            .wait_until(Instant::now() + Duration::from_secs(3))?;
        let received = if sent.is_some() {
            let soon = Instant::now() + Duration::from_secs(3);
            self.receiver.process.wait_until(soon)?
        } else {
            None
        };
        for server in &mut self.servers {
            server.close_input();
        }
        for server in &mut self.servers {
            server.wait_until(Instant::now() + Duration::from_secs(3))?;
        }
        self.lab.check_processes()?;
        let fine = |status: Option<std::process::ExitStatus>| status.is_some_and(|s| s.success());
        Ok(fine(sent) && fine(received))
    }

    fn report(
        &self,
        sight: Sight,
        iperf_completed: bool,
        killed_at_s: Option<f64>,
        restarted_at_s: Option<f64>,
    ) -> Result<RunReport, LabError> {
        let clients = self
            .clients
            .iter()
            .map(|client| {
                client
                    .report
                    .as_ref()
                    .ok_or_else(|| no_report(&client.process))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let servers = self
            .servers
            .iter()
            .map(server_report)
            .collect::<Result<Vec<_>, _>>()?;
        let points = self.receiver.points();
        let kill_s = killed_at_s.unwrap_or(self.options.kill_at as f64);
        let restart_s = restarted_at_s.unwrap_or(self.options.restart_at as f64);
        let end_s = self.options.seconds as f64 - 1.5;
        let at_ms = |second: f64| self.begun_ms + (second * 1000.0) as u64;
        let (failover, failback) = match restarted_at_s {
            Some(_) => figures::stalls(&clients, at_ms(kill_s), at_ms(restart_s)),
            None => (0, 0),
        };
        let (broken, broken_reasons) = figures::broken(&clients, &servers);
        Ok(RunReport {
            name: self.kind,
            opened: clients.iter().map(|client| client.opened).sum(),
            long_lived: clients.iter().map(|client| client.long_lived).sum(),
            broken,
            broken_reasons,
            wrong_bytes: clients.iter().map(|c| c.wrong_bytes).sum::<u64>()
                + servers.iter().map(|s| s.wrong_bytes).sum::<u64>(),
            exchanges: clients.iter().map(|client| client.exchanges).sum(),
            slowest_rate: clients
                .iter()
                .map(|client| client.slowest_rate)
                .fold(f64::INFINITY, f64::min),
            longest_stall_ms: longest(&clients, |client| client.longest_stall_ms),
            longest_opening_ms: longest(&clients, |client| client.longest_opening_ms),
            stall_failover_ms: failover,
            stall_failback_ms: failback,
            throughput_before_mbps: figures::mean(&points, 2.0, kill_s),
            throughput_at_mbps: figures::mean(&points, kill_s, kill_s + FAILING_S),
            throughput_during_mbps: figures::mean(&points, kill_s, restart_s),
            throughput_after_mbps: figures::mean(&points, restart_s + SETTLED_S, end_s),
            iperf_completed,
            iperf_stall_ms: iperf::longest_stall_ms(&self.receiver.intervals),
            killed_switch: self.kind.fails().then(|| sight.iperf_switch.clone()),
            iperf_switch: sight.iperf_switch,
            switch_shares: sight.shares,
            killed_at_s,
            restarted_at_s,
            seconds: self.options.seconds,
            throughput_mbps: points,
            exchanges_per_second: self.exchange_rate(),
        })
    }

    /// Exchanges per second of all clients, over periods of half a second.
    fn exchange_rate(&self) -> Vec<Point> {
        const PERIOD_MS: u64 = 500;
        let done_at = |ms: u64| -> f64 {
            let clients = self.clients.iter();
            clients
                .map(|client| figures::exchanges_at(&client.progress, ms))
                .sum()
        };
        (0..self.options.seconds * 1000 / PERIOD_MS)
            .map(|period| {
                let from = self.begun_ms + period * PERIOD_MS;
                let count = done_at(from + PERIOD_MS) - done_at(from);
                let middle_ms = period * PERIOD_MS + PERIOD_MS / 2;
                (middle_ms as f64 / 1000.0, count * 1000.0 / PERIOD_MS as f64)
            })
            .collect()
    }
}

fn server_report(process: &Process) -> Result<ServerReport, LabError> {
    let output = std::fs::read_to_string(process.output()).unwrap_or_default();
    output
        .lines()
        .rev()
        .find_map(|line| serde_json::from_str(line).ok())
        .ok_or_else(|| no_report(process))
}

pub(super) fn no_report(process: &Process) -> LabError {
    LabError::Agent {
        name: process.name().to_owned(),
        log: process.log().to_path_buf(),
        tail: tool::tail(process.log(), 15),
    }
}

/// The longest time of any client, in ms.
fn longest(clients: &[&ClientReport], of: impl Fn(&ClientReport) -> u64) -> u64 {
    clients.iter().map(|client| of(client)).max().unwrap_or(0)
}

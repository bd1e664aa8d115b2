//! One trial: a network is built, a probe sends through it, and everything is taken down.

#![allow(clippy::disallowed_methods, reason = "a trial waits for its processes")]

use crate::error::EvalError;
use crate::network::{Setup, VARIANT};
use crate::probe::{ProbeArguments, ProbeReport};
use crate::processors::{Awake, Processors, TOOLS};
use stateplane_lab::{InterfaceTraffic, Lab, Setting, interrupt, require};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Before anything is measured: a protected switch has heard of its store, and leases of the
/// warm-up were granted.
const SETTLING: Duration = Duration::from_millis(300);
/// Longest time over that of sending for a probe to come to its end.
const ENDING: Duration = Duration::from_secs(30);

/// Folders of trials' files and logs.
#[derive(Clone, Debug)]
pub struct Place {
    /// The folder of `eval.toml`.
    pub lab: PathBuf,
    /// For logs, a folder for each trial.
    pub logs: PathBuf,
    /// A capture whose flows and lengths of packets are used where times are taken.
    pub capture: Option<PathBuf>,
    /// The program that is the switch, the store and the probe.
    pub stateplane: PathBuf,
}

/// Outcome of a trial.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Report of the probe.
    pub probe: ProbeReport,
    /// Traffic on the switch's link to its store meanwhile: received is what the switch sent.
    pub fabric: InterfaceTraffic,
    /// Traffic on the host's interfaces, inside and outside.
    pub host: [InterfaceTraffic; 2],
    /// Time for which these were counted, in seconds.
    pub counted_s: f64,
}

impl Outcome {
    /// Bytes of replication per second, in both directions.
    pub fn replication_bytes_per_s(&self) -> f64 {
        (self.fabric.received_bytes + self.fabric.sent_bytes) as f64 / self.counted_s
    }

    /// Bytes per second that the switch received from hosts and sent to them.
    pub fn own_bytes_per_s(&self) -> f64 {
        let of = |at: &InterfaceTraffic| at.received_bytes + at.sent_bytes;
        self.host.iter().map(of).sum::<u64>() as f64 / self.counted_s
    }
}

/// A network that is up, and may be measured more than once.
pub struct Trial {
    lab: Lab,
    stateplane: PathBuf,
    name: String,
    probes: u32,
    processors: Option<Processors>,
    _awake: Option<Awake>,
}

impl Trial {
    /// Builds it. `name` is that of its folder of logs.
    ///
    /// # Errors
    /// Refusals of the lab.
    pub fn begin(place: &Place, setup: &Setup, name: &str) -> Result<Self, EvalError> {
        let directory = place.logs.join(name);
        let mut topology = setup.topology(&place.lab, &directory)?;
        let processors = Processors::here();
        if let Some(processors) = &processors {
            require(&TOOLS)?;
            for process in &mut topology.processes {
                processors.place(&process.name, &mut process.command);
            }
        }
        let setting = Setting {
            variant: VARIANT.to_owned(),
            directory,
            stateplane: place.stateplane.clone(),
            keys: false,
        };
        let lab = Lab::up(topology, &setting)?;
        interrupt::wait_until(Instant::now() + SETTLING)?;
        Ok(Self {
            lab,
            stateplane: place.stateplane.clone(),
            name: name.to_owned(),
            probes: 0,
            processors,
            _awake: Awake::keep(),
        })
    }

    /// Sends what `arguments` say through it.
    ///
    /// # Errors
    /// `LAB008` if the probe or what it goes through ends by itself, `EV005` if nothing comes
    /// through.
    pub fn probe(&mut self, arguments: &ProbeArguments) -> Result<Outcome, EvalError> {
        self.probes += 1;
        let name = format!("probe{}", self.probes);
        let command = command(&self.stateplane, arguments, self.processors.as_ref());
        let before = self.counters()?;
        let begun = Instant::now();
        let mut process = self.lab.spawn("hosts", &name, &command)?;
        let longest = arguments.duration() + ENDING;
        let Some(status) = process.wait_until(begun + longest)? else {
            let what = format!("did not end within {} s", longest.as_secs());
            return Err(process.failure(what).into());
        };
        let counted_s = begun.elapsed().as_secs_f64();
        let after = self.counters()?;
        self.lab.check_processes()?;
        let said = std::fs::read_to_string(process.output()).unwrap_or_default();
        let report = said.lines().next_back();
        let report = report.and_then(|line| serde_json::from_str(line).ok());
        let Some(probe): Option<ProbeReport> = report else {
            return Err(process.failure(format!("left no report ({status})")).into());
        };
        let [fabric, inside, outside] = std::array::from_fn(|at| since(before[at], after[at]));
        let outcome = Outcome {
            probe,
            fabric,
            host: [inside, outside],
            counted_s: counted_s.max(0.001),
        };
        if outcome.probe.received == 0 {
            return Err(EvalError::Nothing {
                what: self.name.clone(),
                reason: "no packet came through".to_owned(),
                logs: self.lab.directory().to_path_buf(),
            });
        }
        Ok(outcome)
    }

    /// Takes it down.
    ///
    /// # Errors
    /// `LAB006` if something cannot be removed.
    pub fn end(self) -> Result<(), EvalError> {
        Ok(self.lab.down()?)
    }

    fn counters(&self) -> Result<[InterfaceTraffic; 3], EvalError> {
        Ok([
            self.lab.traffic_at("fabric", "s1")?,
            self.lab.traffic_at("hosts", "inside")?,
            self.lab.traffic_at("hosts", "outside")?,
        ])
    }
}

fn since(before: InterfaceTraffic, after: InterfaceTraffic) -> InterfaceTraffic {
    InterfaceTraffic {
        received_bytes: after.received_bytes - before.received_bytes,
        received_frames: after.received_frames - before.received_frames,
        sent_bytes: after.sent_bytes - before.sent_bytes,
        sent_frames: after.sent_frames - before.sent_frames,
    }
}

fn command(
    stateplane: &Path,
    arguments: &ProbeArguments,
    processors: Option<&Processors>,
) -> Vec<String> {
    let mut words = vec![stateplane.display().to_string()];
    words.extend(["eval", "probe"].map(str::to_owned));
    words.push(arguments.application.name().to_owned());
    for (name, value) in [
        ("--frames", arguments.frames),
        ("--warm-up", arguments.warm_up),
        ("--rate", arguments.rate),
        ("--flood-ms", arguments.flood_ms),
        ("--window", arguments.window),
        ("--flow-packets", arguments.flow_packets),
        ("--padding", arguments.padding as u64),
        ("--updates", arguments.updates.into()),
    ] {
        words.extend([name.to_owned(), value.to_string()]);
    }
    if let Some(capture) = &arguments.capture {
        words.extend(["--capture".to_owned(), capture.display().to_string()]);
    }
    if let Some(processors) = processors {
        processors.place_host(arguments.floods(), &mut words);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::{Plan, paced};
    use crate::probe::traffic::Application;

    #[test]
    fn a_flood_takes_what_others_leave() {
        let plan = Plan {
            runs: 1,
            quick: true,
        };
        let paced = paced(Application::of("nat").unwrap(), plan);
        let flood = ProbeArguments {
            flood_ms: 100,
            ..paced.clone()
        };
        let processors = Processors {
            switch: "1".to_owned(),
            host: "0".to_owned(),
            others: "0".to_owned(),
            host_first: true,
        };
        for (arguments, first) in [(paced, ["chrt", "--rr"]), (flood, ["chrt", "--idle"])] {
            let words = command(Path::new("stateplane"), &arguments, Some(&processors));
            assert_eq!(words[..2], first);
        }
    }
}

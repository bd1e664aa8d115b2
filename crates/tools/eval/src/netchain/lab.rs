//! The services, each with a client, in the lab: the switches of `lab/coordination.toml`, and a node
//! without links for each service of others, whose servers and client share its loopback interface.

use super::client::System;
use super::order::{Order, Told};
use crate::error::EvalError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use stateplane_lab::coordination::forget;
use stateplane_lab::topology::{Kind, Node, Topology};
use stateplane_lab::{Lab, Setting};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The node that all switches, the controller and the host are joined to.
const FABRIC: &str = "fabric";
/// The controller's configuration, with sizes to be filled in.
const DEPLOYMENT: &str = "eval/coordination.toml";

/// Sizes of the switches' program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Virtual groups.
    pub groups: u16,
    /// Slots of each group.
    pub slots: u16,
    /// Lanes of each group.
    pub lanes: u16,
}

/// Folders in which experiments find and leave files.
#[derive(Clone, Debug)]
pub struct Place {
    /// The lab's folder.
    pub lab: PathBuf,
    /// For logs, a folder for each network.
    pub logs: PathBuf,
    /// The program that is everything.
    pub stateplane: PathBuf,
    /// Silence in ms after which the controller takes a switch for dead.
    pub detection_ms: u16,
}

/// The lab with clients of services.
pub struct Network {
    pub lab: Lab,
    clients: BTreeMap<System, Client>,
    stateplane: PathBuf,
    /// Services that cannot be had, and why.
    pub missing: Vec<String>,
}

/// A client in its node.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    what: &'static str,
    logs: PathBuf,
}

impl Network {
    /// Builds it, without clients, and waits until all groups are whole. `arguments` come behind those of each switch's command.
    ///
    /// # Errors
    /// Refusals of the lab.
    pub fn up(
        place: &Place,
        name: &str,
        sizes: Sizes,
        arguments: &[&str],
    ) -> Result<Network, EvalError> {
        let mut topology = Topology::load(place.lab.join("coordination.toml"))?;
        for system in &System::ALL[1..] {
            topology.nodes.push(Node {
                name: system.node().to_owned(),
                kind: Kind::Host,
                routes: Vec::new(),
            });
        }
        // Sessions of experiments need no keepalives.
        topology
            .processes
            .retain(|process| process.name != "reaper");
        for process in &mut topology.processes {
            if process.name == "controller" {
                process.config = vec![DEPLOYMENT.to_owned()];
                let values = [
                    ("detection_ms", place.detection_ms),
                    ("groups", sizes.groups),
                    ("slots", sizes.slots),
                    ("lanes", sizes.lanes),
                ];
                let values = values.map(|(name, value)| (name.to_owned(), value.to_string()));
                process.set.extend(values);
            } else {
                for (name, value) in [
                    ("GROUPS", sizes.groups),
                    ("SLOTS", sizes.slots),
                    ("LANES", sizes.lanes),
                ] {
                    process.command.push("-D".to_owned());
                    process.command.push(format!("COORDINATION_{name}={value}"));
                }
                let arguments = arguments.iter().map(|argument| (*argument).to_owned());
                process.command.extend(arguments);
            }
        }
        let setting = Setting {
            variant: String::new(),
            directory: place.logs.join(name),
            stateplane: place.stateplane.clone(),
            keys: false,
        };
        forget(&setting.directory)?;
        let network = Network {
            lab: Lab::up(topology, &setting)?,
            clients: BTreeMap::new(),
            stateplane: place.stateplane.clone(),
            missing: Vec::new(),
        };
        network.operate(&["wait", "60"])?;
        Ok(network)
    }

    /// Starts the services of others that can be had, and a client of each of `systems`, with
    /// `clients` connections or lanes.
    ///
    /// # Errors
    /// If the client of the service that is evaluated does not begin.
    pub fn serve(&mut self, systems: &[System], clients: u16) -> Result<(), EvalError> {
        for system in systems {
            match self.client(*system, clients) {
                Ok(client) => {
                    self.clients.insert(*system, client);
                }
                Err(error) if *system == System::Stateplane => return Err(error),
                Err(EvalError::Nothing { what, reason, .. }) => {
                    self.missing.push(format!("{what}: {reason}"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn client(&self, system: System, clients: u16) -> Result<Client, EvalError> {
        let word = clap::ValueEnum::to_possible_value(&system);
        let word = word.as_ref().map_or("", |word| word.get_name());
        let mut words = vec!["eval", "client", word, "--clients"];
        let clients = clients.to_string();
        words.push(&clients);
        self.start(system.node(), &words, system.name())
    }

    /// Starts this program in `node`; it must say `ready`, and then answers line by line.
    ///
    /// # Errors
    /// The other answer.
    pub fn start(
        &self,
        node: &str,
        words: &[&str],
        what: &'static str,
    ) -> Result<Client, EvalError> {
        let logs = self.lab.directory().to_path_buf();
        let log = logs.join(format!("client-{node}.log"));
        let file = File::create(&log).map_err(|reason| EvalError::file(&log, reason))?;
        let wrong = |reason| EvalError::file(&self.stateplane, reason);
        let mut child = Command::new("ip")
            .args(["netns", "exec", &self.lab.run().namespace(node)])
            .arg(&self.stateplane)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .map_err(wrong)?;
        let missing = || wrong(std::io::ErrorKind::BrokenPipe.into());
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(missing)?;
        let mut client = Client {
            child,
            input,
            output: BufReader::new(output),
            what,
            logs,
        };
        let said = client.line();
        if said == "ready" {
            return Ok(client);
        }
        let _ = client.child.wait();
        if !said.is_empty() {
            return Err(client.nothing(&said));
        }
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        Err(client.nothing(said.trim()))
    }

    /// Services with a client, in the order of tables.
    pub fn systems(&self) -> Vec<System> {
        self.clients.keys().copied().collect()
    }

    /// The client of a service that has one.
    ///
    /// # Errors
    /// `EV005` if it has none.
    pub fn of(&mut self, system: System) -> Result<&mut Client, EvalError> {
        let logs = self.lab.directory().to_path_buf();
        self.clients.get_mut(&system).ok_or(EvalError::Nothing {
            what: system.name().to_owned(),
            reason: "it has no client".to_owned(),
            logs,
        })
    }

    /// Lets a share of the packets be lost, 0 to 1: of those that enter a switch or the host, or
    /// that a server or client of others receives from the loopback interface.
    ///
    /// # Errors
    /// `EV003` if nftables refuses.
    pub fn lose(&self, share: f64) -> Result<(), EvalError> {
        const ALL: u64 = 1_000_000;
        let lost = (share * ALL as f64).round() as u64;
        let mut places = vec![(FABRIC, "bridge", "forward")];
        for system in self.systems() {
            if system != System::Stateplane {
                places.push((system.node(), "inet", "input"));
            }
        }
        for (node, family, hook) in places {
            let mut rules = format!(
                "add table {family} loss\n\
                 add chain {family} loss some {{ type filter hook {hook} priority 0; }}\n\
                 flush chain {family} loss some\n"
            );
            if lost > 0 {
                rules +=
                    &format!("add rule {family} loss some numgen random mod {ALL} < {lost} drop\n");
            }
            self.run(node, &["nft", "-f", "-"], &rules)?;
        }
        Ok(())
    }

    /// Runs a command in a node to its end and gives what it prints.
    ///
    /// # Errors
    /// `EV003` with what it says if it fails.
    pub fn run(&self, node: &str, words: &[&str], input: &str) -> Result<String, EvalError> {
        let refused = |reason: String| EvalError::Refused {
            what: words.join(" "),
            reason,
        };
        let wrong = |error: std::io::Error| refused(error.to_string());
        let mut child = Command::new("ip")
            .args(["netns", "exec", &self.lab.run().namespace(node)])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(wrong)?;
        if let Some(mut pipe) = child.stdin.take() {
            pipe.write_all(input.as_bytes()).map_err(wrong)?;
        }
        let output = child.wait_with_output().map_err(wrong)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(refused(said.trim().to_owned()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs `stateplane ctl coordination` with `words`.
    ///
    /// # Errors
    /// `EV003` with what it says if it fails.
    pub fn operate(&self, words: &[&str]) -> Result<String, EvalError> {
        let file = self.lab.directory().join("controller.toml");
        let (program, file) = (display(&self.stateplane), display(&file));
        let mut all = vec![&*program, "ctl", "coordination", "--config", &*file];
        all.extend(words);
        self.run("ctl", &all, "")
    }

    /// Ends the clients, and takes all down.
    ///
    /// # Errors
    /// `LAB006` if something cannot be removed.
    pub fn down(self) -> Result<(), EvalError> {
        drop(self.clients);
        Ok(self.lab.down()?)
    }
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

impl Client {
    fn line(&mut self) -> String {
        let mut line = String::new();
        let _ = self.output.read_line(&mut line);
        line.trim().to_owned()
    }

    fn nothing(&self, reason: &str) -> EvalError {
        EvalError::Nothing {
            what: self.what.to_owned(),
            reason: reason.to_owned(),
            logs: self.logs.clone(),
        }
    }

    /// Gives it an order; [`hear`](Self::hear) has the answer.
    ///
    /// # Errors
    /// `EV005` if it has ended.
    pub fn tell(&mut self, order: &impl Serialize) -> Result<(), EvalError> {
        let line = serde_json::to_string(order).unwrap_or_default();
        let written = self.input.as_mut().map(|input| writeln!(input, "{line}"));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(self.nothing("its client ended")),
        }
    }

    /// Gives it something to do, and waits for the answer.
    ///
    /// # Errors
    /// `EV005` if it has ended.
    pub fn exchange<A: DeserializeOwned>(&mut self, ask: &impl Serialize) -> Result<A, EvalError> {
        self.tell(ask)?;
        let line = self.line();
        let answer = serde_json::from_str(&line);
        answer.map_err(|_| self.nothing("it ended"))
    }

    /// Waits for its answer.
    ///
    /// # Errors
    /// `EV005` if it has ended, or did not carry the order out.
    pub fn hear(&mut self) -> Result<Told, EvalError> {
        let line = self.line();
        let told: Option<Told> = serde_json::from_str(&line).ok();
        match told {
            Some(Told {
                error: Some(error), ..
            }) => Err(self.nothing(&error)),
            Some(told) => Ok(told),
            None => Err(self.nothing("its client ended")),
        }
    }

    /// Gives it an order, and waits for the answer.
    ///
    /// # Errors
    /// Those of [`tell`](Self::tell) and [`hear`](Self::hear).
    pub fn ask(&mut self, order: &Order) -> Result<Told, EvalError> {
        self.tell(order)?;
        self.hear()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The end of its input ends it, and it ends its servers.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

//! The services, each with a client, in the lab: the switches of `lab/coordination.toml`, and a node
//! without links for each service of others, whose servers and client share its loopback interface.

use super::client::System;
use super::order::{Order, Told};
use crate::error::EvalError;
use crate::nodes::{self, Client, FABRIC};
use crate::options::Place;
use stateplane_lab::coordination::forget;
use stateplane_lab::topology::{Kind, Node, Topology};
use stateplane_lab::{Lab, Setting};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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

/// The lab with clients of services.
pub struct Network {
    pub lab: Lab,
    clients: BTreeMap<System, Client>,
    stateplane: PathBuf,
    /// Services that cannot be had, and why.
    pub missing: Vec<String>,
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
        Client::start(&self.lab, &self.stateplane, node, words, what)
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
        let mut places = vec![(FABRIC, "bridge", "forward")];
        for system in self.systems() {
            if system != System::Stateplane {
                places.push((system.node(), "inet", "input"));
            }
        }
        for (node, family, hook) in places {
            let rules = nodes::loss(family, hook, share);
            self.run(node, &["nft", "-f", "-"], &rules)?;
        }
        Ok(())
    }

    /// Runs a command in a node to its end and gives what it prints.
    ///
    /// # Errors
    /// `EV003` with what it says if it fails.
    pub fn run(&self, node: &str, words: &[&str], input: &str) -> Result<String, EvalError> {
        nodes::run(&self.lab, node, words, input)
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

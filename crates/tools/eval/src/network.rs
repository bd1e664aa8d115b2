//! Network between the two sides of the measuring host.

use crate::error::EvalError;
use crate::probe::traffic::Application;
use crate::series;
use stateplane_apps::spec::{self, Bare};
use stateplane_lab::LabError;
use stateplane_lab::topology::{Kind, Route, Topology};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Name of the variant that is made for each trial.
pub const VARIANT: &str = "measured";
/// Further arguments of a switch that has a controller: that of `lab/eval.toml`, and
/// CONTROLLER_PORT of `apps/nat/controlled.p4`.
const CONTROLLED: [&str; 4] = ["--p4runtime", "127.0.0.1:9559", "--cpu-port", "510"];
const STORES: [&str; 3] = ["st0", "st1", "st2"];
/// Parts of the key space where they lie on several servers, so that each of three has about a
/// third.
const SPREAD_SHARDS: u16 = 16;
/// The switch's node and process.
pub const SWITCH: &str = "s1";
/// The keeper of the state of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// A switch with the application's program, and its state in that switch alone.
    Bare,
    /// The program with state that an external controller makes, over P4Runtime.
    Controlled,
    /// The same program with its state in a store.
    Protected(Store),
    /// Linux's NAT, alone.
    Linux,
    /// Linux's NAT, with its connections sent to another by conntrackd.
    LinuxSynced,
}

/// Structure of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// One chain of this many servers, 1 to 3, keeps all shards.
    Chain(u8),
    /// The shards lie on this many servers, 1 to 3, each shard on one server.
    Servers(u8),
}

/// A trial's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Application of the switch.
    pub application: Application,
    /// System that runs it.
    pub system: System,
    /// µs from one snapshot to the next.
    pub snapshot_us: u64,
    /// Tenants, at least 1, each with its sketch.
    pub tenants: u32,
    /// True if packets of a flow leave in the order in which they came (rule 26 of
    /// `docs/replication-protocol.md`); only a comparison does without.
    pub in_order: bool,
}

impl Setup {
    /// The application's state in the paper's chain of three.
    pub fn protected(application: Application) -> Self {
        Self {
            application,
            system: System::Protected(Store::Chain(3)),
            snapshot_us: 25_000,
            tenants: 1,
            in_order: true,
        }
    }

    /// The same application without replication.
    pub fn bare(application: Application) -> Self {
        Self {
            system: System::Bare,
            ..Self::protected(application)
        }
    }

    /// Bytes of state of a flow.
    pub fn state_bytes(&self) -> u32 {
        self.application.room().class().state_length.into()
    }

    /// The application without replication, where that is a program of its own and this is it.
    fn bare_program(&self) -> Option<&'static Bare> {
        let bare = self.application.room().measured.bare.as_ref();
        bare.filter(|_| self.system == System::Bare)
    }

    /// The program, from the repository's root.
    fn program(&self) -> String {
        let room = self.application.room();
        let controlled = room.measured.controlled.as_ref();
        let other = match self.system {
            System::Bare => self.bare_program().map(|bare| &bare.program),
            System::Controlled => controlled,
            _ => None,
        };
        format!("{}/{}", room.folder(), other.unwrap_or(&room.program))
    }

    /// Parts of the key space.
    fn shards(&self) -> u16 {
        let room = self.application.room();
        let spread = room.measured.shards_macro.is_some();
        match self.system {
            System::Protected(Store::Servers(_)) if spread => SPREAD_SHARDS,
            _ => room.shards,
        }
    }

    /// True if the application keeps sketches, and packets wait for nothing.
    pub fn keeps_sketches(&self) -> bool {
        self.application.room().measured.tenants_macro.is_some()
    }

    /// Macros with which the program is compiled.
    fn defines(&self) -> Vec<String> {
        let measured = &self.application.room().measured;
        let mut defines = Vec::new();
        if let Some(name) = &measured.shards_macro {
            defines.push(format!("{name}={}", self.shards()));
        }
        if let Some(name) = &measured.tenants_macro {
            defines.push(format!("{name}={}", self.tenants));
        }
        if !self.in_order {
            defines.push("REPLICATION_FAULT_RELEASE_ORDER".to_owned());
        }
        if self.system == System::Bare && self.bare_program().is_none() {
            defines.push("REPLICATION_OFF".to_owned());
        }
        defines
    }

    /// The program, from the repository's root, and what it is compiled with.
    pub fn source(&self) -> (String, Vec<String>) {
        (self.program(), self.defines())
    }

    /// The topology of `lab` (the folder of `eval.toml`) with this in it. Files that it needs
    /// are written to `directory`.
    ///
    /// # Errors
    /// `EV002` for a file that cannot be read or written, and what the lab refuses.
    pub fn topology(&self, lab: &Path, directory: &Path) -> Result<Topology, EvalError> {
        let mut topology = Topology::load(lab.join("eval.toml"))?;
        match self.system {
            System::Bare => {
                topology.processes.retain(|process| process.name == SWITCH);
            }
            System::Controlled => {
                topology.processes.retain(|process| process.node == SWITCH);
                for process in &mut topology.processes {
                    if process.name == SWITCH {
                        process.command.extend(CONTROLLED.map(str::to_owned));
                    }
                }
            }
            System::Protected(store) => {
                let (Store::Chain(count) | Store::Servers(count)) = store;
                let used = &STORES[..usize::from(count.clamp(1, 3))];
                topology.processes.retain(|process| {
                    process.name == SWITCH || used.contains(&process.name.as_str())
                });
            }
            System::Linux | System::LinuxSynced => linux(&mut topology, self.system, lab)?,
        }
        let values = self.values(lab, directory)?;
        for process in &mut topology.processes {
            if let System::Protected(Store::Servers(_)) = self.system
                && let Some(at) = STORES.iter().position(|name| *name == process.name)
            {
                let own = format!("\"10.10.0.1{}\"", at + 1);
                process.set.insert("chain".to_owned(), own);
            }
            if process.name == SWITCH && process.command.iter().any(|word| word == "${program}") {
                for define in self.defines() {
                    process.command.extend(["-D".to_owned(), define]);
                }
            }
        }
        topology.variants.insert(VARIANT.to_owned(), values);
        Ok(topology)
    }

    fn values(&self, lab: &Path, directory: &Path) -> Result<BTreeMap<String, String>, EvalError> {
        let room = self.application.room();
        let protected = matches!(self.system, System::Protected(_));
        let bare = self.bare_program();
        let controlled = self.system == System::Controlled;
        let text = |text: &str| text.to_owned();
        let class = match bare {
            Some(_) => String::new(),
            None => format!("../{}/{}#replication", room.folder(), spec::FILE),
        };
        let switch = match (bare, &room.measured.switch) {
            (Some(bare), _) => bare.switch.clone(),
            (None, Some(switch)) => switch.clone(),
            (None, None) => format!("../{}/switch.toml", room.folder()),
        };
        let chain = match self.system {
            System::Protected(Store::Chain(count)) => addresses(count),
            _ => addresses(1),
        };
        let mut values: BTreeMap<&str, String> = BTreeMap::from([
            ("program", format!("${{lab}}/../{}", self.program())),
            ("class", class),
            ("switch", switch),
            ("routes", text("apps/routes.toml")),
            ("replication", String::new()),
            ("besides", String::new()),
            ("chain", chain),
            ("shards", self.shards().to_string()),
            ("snapshot_us", self.snapshot_us.to_string()),
        ]);
        if controlled {
            values.insert("besides", text("eval/controlled.toml"));
        }
        if let Some(bare) = bare {
            values.insert("routes", String::new());
            let own = bare.values.iter();
            values.extend(own.map(|(name, value)| (name.as_str(), value.clone())));
        }
        if protected {
            values.insert("replication", text("apps/replication.toml"));
        }
        if protected && let Some(besides) = &room.measured.besides {
            values.insert("besides", besides.clone());
        }
        if let System::Protected(Store::Servers(count)) = self.system {
            let path = spread(lab, directory, self.shards(), count)?;
            values.insert("replication", path.display().to_string());
        }
        let owned = values
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        Ok(owned.collect())
    }
}

/// The addresses of the first `count` store servers, as a TOML list has them.
fn addresses(count: u8) -> String {
    let list: Vec<String> = (1..=count.clamp(1, 3))
        .map(|server| format!("\"10.10.0.1{server}\""))
        .collect();
    list.join(", ")
}

/// The switch's part of replication with shard n of `shards` on server n modulo `count`.
fn spread(lab: &Path, directory: &Path, shards: u16, count: u8) -> Result<PathBuf, EvalError> {
    let source = lab.join("apps/replication.toml");
    let text = std::fs::read_to_string(&source).map_err(|e| EvalError::file(&source, e))?;
    let heads: Vec<String> = (0..count.clamp(1, 3))
        .map(|server| {
            let last = server + 1;
            format!("{{ address = \"10.10.0.1{last}\", mac = \"02:00:00:00:c0:0{server}\" }}")
        })
        .collect();
    let own = |line: &str| !line.starts_with("shards = ") && !line.starts_with("heads = ");
    let mut spread: String = text
        .split_inclusive('\n')
        .filter(|line| own(line))
        .collect();
    let _ = writeln!(spread, "shards = {shards}\nheads = [{}]", heads.join(", "));
    let path = directory.join("replication.toml");
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&path, spread))
        .map_err(|e| EvalError::file(&path, e))?;
    series::absolute(&path)
}

/// Makes the switch a Linux router with the rules of `lab/linux`, and lends it the processes
/// of there.
fn linux(topology: &mut Topology, system: System, lab: &Path) -> Result<(), EvalError> {
    let of = Topology::load(lab.join("linux/nat.toml"))?;
    let wanted: &[&str] = match system {
        System::LinuxSynced => &["nft1", "sync1", "sync2"],
        _ => &["nft1"],
    };
    topology.processes = of.processes;
    topology
        .processes
        .retain(|process| wanted.contains(&process.name.as_str()));
    for process in &mut topology.processes {
        for config in &mut process.config {
            *config = match config.as_str() {
                "${conntrackd}" => "linux/conntrackd.conf".to_owned(),
                name => format!("linux/{name}"),
            };
        }
        for word in &mut process.command {
            *word = word.replace("${lab}/", "${lab}/linux/");
        }
    }
    let place = || LabError::Unknown {
        kind: "node",
        name: SWITCH.to_owned(),
        known: "none of that name in eval.toml".to_owned(),
    };
    let node = topology.nodes.iter_mut().find(|node| node.name == SWITCH);
    let node = node.ok_or_else(place)?;
    node.kind = Kind::Router;
    for (to, via) in [
        ("10.0.0.0/16", [10, 1, 1, 1]),
        ("198.51.0.0/16", [10, 2, 1, 1]),
    ] {
        node.routes.push(Route {
            to: to.parse().map_err(|reason| EvalError::Refused {
                what: to.to_owned(),
                reason: format!("{reason:?}"),
            })?,
            via: vec![via.into()],
            metric: None,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_lab::read_template;

    fn lab() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lab")
    }

    #[test]
    fn every_application_has_its_files() {
        let directory = tempfile::tempdir().unwrap();
        for application in Application::all() {
            let bare = Setup::bare(application);
            let controlled = application
                .room()
                .measured
                .controlled
                .as_ref()
                .map(|_| Setup {
                    system: System::Controlled,
                    ..bare
                });
            let setups = [bare, Setup::protected(application)];
            for setup in setups.into_iter().chain(controlled) {
                let topology = setup.topology(&lab(), directory.path()).unwrap();
                let values = &topology.variants[VARIANT];
                let names = ["class", "switch", "routes", "replication", "besides"];
                for name in names.map(|name| &values[name]) {
                    assert!(
                        name.is_empty() || read_template(&lab().join(name)).is_ok(),
                        "{name}"
                    );
                }
                let program = values["program"].replace("${lab}", &lab().display().to_string());
                assert!(Path::new(&program).exists(), "{program}");
            }
        }
    }

    #[test]
    fn stores_are_as_many_as_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let mut setup = Setup::protected(Application::of("key-value").unwrap());
        for (store, processes, chain) in [
            (Store::Chain(1), 2, "\"10.10.0.11\""),
            (
                Store::Chain(3),
                4,
                "\"10.10.0.11\", \"10.10.0.12\", \"10.10.0.13\"",
            ),
            (Store::Servers(2), 3, "\"10.10.0.11\""),
        ] {
            setup.system = System::Protected(store);
            let topology = setup.topology(&lab(), directory.path()).unwrap();
            assert_eq!(topology.processes.len(), processes);
            assert_eq!(topology.variants[VARIANT]["chain"], chain);
        }
        let written = std::fs::read_to_string(directory.path().join("replication.toml")).unwrap();
        assert!(written.contains("shards = 16\n") && !written.contains("shards = 4\n"));
        let heads = written.lines().find(|line| line.starts_with("heads = "));
        let heads = heads.expect("heads of the chains");
        for (server, address) in ["10.10.0.11", "10.10.0.12"].iter().enumerate() {
            assert!(heads.contains(&format!("\"{address}\"")), "{heads}");
            assert!(
                heads.contains(&format!("02:00:00:00:c0:0{server}")),
                "{heads}"
            );
        }
        assert!(written.contains("links = [0, 1]\n"));
    }

    #[test]
    fn a_controlled_switch_has_a_controller_with_two_replicas() {
        let setup = Setup {
            system: System::Controlled,
            ..Setup::bare(Application::of("nat").unwrap())
        };
        let topology = setup.topology(&lab(), Path::new(".")).unwrap();
        let names: Vec<_> = topology.processes.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, [SWITCH, "controller2", "controller1", "controller0"]);
        let command = topology.processes[0].command.join(" ");
        assert!(command.ends_with(&CONTROLLED.join(" ")), "{command}");
    }

    #[test]
    fn linux_takes_the_place_of_the_switch() {
        let mut setup = Setup::bare(Application::of("nat").unwrap());
        for (system, count) in [(System::Linux, 1), (System::LinuxSynced, 3)] {
            setup.system = system;
            let topology = setup.topology(&lab(), Path::new(".")).unwrap();
            assert_eq!(topology.node("s1").unwrap().kind, Kind::Router);
            assert_eq!(topology.processes.len(), count);
            for process in &topology.processes {
                assert!(process.config.iter().all(|name| lab().join(name).exists()));
            }
        }
    }
}

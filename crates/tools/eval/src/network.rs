//! Network between the two sides of the measuring host.

use crate::error::EvalError;
use crate::probe::traffic::Application;
use stateplane_lab::LabError;
use stateplane_lab::topology::{Kind, Route, Topology};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Name of the variant that is made for each trial.
pub const VARIANT: &str = "measured";
/// What the switch is told besides where it has a controller: that of `lab/eval.toml`, and
/// CONTROLLER_PORT of `apps/nat/controlled.p4`.
const CONTROLLED: [&str; 4] = ["--p4runtime", "127.0.0.1:9559", "--cpu-port", "510"];
const STORES: [&str; 3] = ["st0", "st1", "st2"];
/// Parts of the key space, as the applications have them.
const SHARDS: u8 = 4;
/// So many where they lie on several servers, so that each of three has about a third.
const SPREAD_SHARDS: u8 = 16;
/// The switch's node and process.
pub const SWITCH: &str = "s1";
/// Who keeps the state of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// A switch with the application's program, and its state in that switch alone.
    Bare,
    /// The NAT with mappings that an external controller makes, over P4Runtime.
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
    /// µs from one snapshot to the next, of heavy hitters.
    pub snapshot_us: u64,
    /// Tenants of heavy hitters, at least 1, each with its sketch.
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
        match self.application {
            Application::Nat | Application::LoadBalancer => 6,
            Application::Firewall => 1,
            Application::ServingGateway => 17,
            Application::HeavyHitter => 16,
            Application::Counter => 8,
            Application::KeyValue => 9,
        }
    }

    /// The program, below `p4/`, and whether it is one that lacks replication, rather than
    /// one in which it can be switched off.
    fn program(&self) -> (&'static str, bool) {
        match (self.application, self.system) {
            (Application::Nat, System::Bare) => ("apps/nat/unprotected.p4", true),
            (Application::Nat, System::Controlled) => ("apps/nat/controlled.p4", true),
            (Application::Nat, _) => ("apps/nat/nat.p4", false),
            (Application::Firewall, _) => ("apps/firewall/firewall.p4", false),
            (Application::LoadBalancer, _) => ("apps/load-balancer/load_balancer.p4", false),
            (Application::ServingGateway, _) => ("apps/serving-gateway/serving_gateway.p4", false),
            (Application::HeavyHitter, _) => ("apps/heavy-hitter/heavy_hitter.p4", false),
            (Application::Counter, _) => ("apps/counter/counter.p4", false),
            (Application::KeyValue, _) => ("apps/key-value/key_value.p4", false),
        }
    }

    /// Parts of the key space.
    fn shards(&self) -> u8 {
        match (self.application, self.system) {
            (Application::KeyValue, System::Protected(Store::Servers(_))) => SPREAD_SHARDS,
            _ => SHARDS,
        }
    }

    /// Macros with which the program is compiled.
    fn defines(&self) -> Vec<String> {
        let mut defines = Vec::new();
        if self.application == Application::KeyValue {
            defines.push(format!("KEY_VALUE_SHARDS={}", self.shards()));
        }
        if self.application == Application::HeavyHitter {
            defines.push(format!("SNAPSHOT_KEYS={}", self.tenants));
        }
        if !self.in_order {
            defines.push("REPLICATION_FAULT_RELEASE_ORDER".to_owned());
        }
        if self.system == System::Bare && !self.program().1 {
            defines.push("REPLICATION_OFF".to_owned());
        }
        defines
    }

    /// The program, below `p4/`, and what it is compiled with.
    pub fn source(&self) -> (&'static str, Vec<String>) {
        (self.program().0, self.defines())
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
        let name = self.application.name();
        let sketches = self.application == Application::HeavyHitter;
        let protected = matches!(self.system, System::Protected(_));
        let nat_alone = self.application == Application::Nat && self.system == System::Bare;
        let controlled = self.system == System::Controlled;
        let text = |text: &str| text.to_owned();
        let class = match nat_alone {
            true => String::new(),
            false => format!("../apps/{name}/store.toml"),
        };
        let switch = match self.application {
            _ if nat_alone => text("nat/switch-unprotected.toml"),
            Application::HeavyHitter => text("eval/heavy-hitter.toml"),
            _ => format!("../apps/{name}/switch.toml"),
        };
        let chain = match self.system {
            System::Protected(Store::Chain(count)) => addresses(count),
            _ => addresses(1),
        };
        let mut values: BTreeMap<&str, String> = BTreeMap::from([
            ("program", format!("${{lab}}/../{}", self.program().0)),
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
        if nat_alone {
            values.insert("routes", String::new());
            for (name, value) in [
                ("other", "2"),
                ("first_port", "1024"),
                ("last_port", "65535"),
                ("other_half", "1"),
            ] {
                values.insert(name, text(value));
            }
        }
        if protected {
            values.insert("replication", text("apps/replication.toml"));
        }
        if protected && sketches {
            values.insert("besides", text("eval/heavy-hitter-walk.toml"));
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
fn spread(lab: &Path, directory: &Path, shards: u8, count: u8) -> Result<PathBuf, EvalError> {
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
    std::path::absolute(&path).map_err(|e| EvalError::file(&path, e))
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
    use clap::ValueEnum;

    fn lab() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lab")
    }

    #[test]
    fn every_application_has_its_files() {
        let directory = tempfile::tempdir().unwrap();
        for &application in Application::value_variants() {
            let bare = Setup::bare(application);
            let controlled = (application == Application::Nat).then_some(Setup {
                system: System::Controlled,
                ..bare
            });
            let setups = [bare, Setup::protected(application)];
            for setup in setups.into_iter().chain(controlled) {
                let topology = setup.topology(&lab(), directory.path()).unwrap();
                let values = &topology.variants[VARIANT];
                let names = ["class", "switch", "routes", "replication", "besides"];
                for name in names.map(|name| &values[name]) {
                    assert!(name.is_empty() || lab().join(name).exists(), "{name}");
                }
                let program = values["program"].replace("${lab}", &lab().display().to_string());
                assert!(Path::new(&program).exists(), "{program}");
            }
        }
    }

    #[test]
    fn stores_are_as_many_as_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let mut setup = Setup::protected(Application::KeyValue);
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
            ..Setup::bare(Application::Nat)
        };
        let topology = setup.topology(&lab(), Path::new(".")).unwrap();
        let names: Vec<_> = topology.processes.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, [SWITCH, "controller2", "controller1", "controller0"]);
        let command = topology.processes[0].command.join(" ");
        assert!(command.ends_with(&CONTROLLED.join(" ")), "{command}");
    }

    #[test]
    fn linux_takes_the_place_of_the_switch() {
        let mut setup = Setup::bare(Application::Nat);
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

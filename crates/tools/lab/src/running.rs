//! A topology brought up.

use crate::address::Prefix;
use crate::error::LabError;
use crate::keys::Keys;
use crate::process::Process;
use crate::runs::{self, Run};
use crate::topology::{Node, STEERED_METRIC, Topology};
use crate::{interrupt, setup, template, tool};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Settings for bringing up a topology.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The variant, one of the topology's; empty for none.
    pub variant: String,
    /// Folder of logs, rendered configurations and reports; made if missing.
    pub directory: PathBuf,
    /// The program that `${stateplane}` stands for.
    pub stateplane: PathBuf,
    /// True if the processes that declare `keys` get files of keys, and so seal their messages.
    pub keys: bool,
}

/// Traffic of an interface; frames count without their check sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceTraffic {
    /// Bytes that came.
    pub received_bytes: u64,
    /// Frames that came.
    pub received_frames: u64,
    /// Bytes that left.
    pub sent_bytes: u64,
    /// Frames that left.
    pub sent_frames: u64,
}

/// A topology that is up: namespaces, links and processes. Dropping it takes
/// everything down.
#[derive(Debug)]
pub struct Lab {
    topology: Topology,
    run: Run,
    directory: PathBuf,
    values: BTreeMap<String, String>,
    keys: Option<Keys>,
    processes: BTreeMap<String, Process>,
}

impl Lab {
    /// Builds the namespaces and starts the processes in the order of the file, each
    /// after the one before is ready. What dead labs left is removed first.
    ///
    /// # Errors
    /// `LAB001`, `LAB002` without root or a tool; `LAB003` if the directory cannot be
    /// written; `LAB005` for a value that a template lacks; `LAB006` to `LAB008` if a
    /// step fails, the protecting of a program among them; `LAB009` for an unknown
    /// variant; `LAB130` when interrupted. Nothing is left behind then.
    pub fn up(topology: Topology, setting: &Setting) -> Result<Self, LabError> {
        tool::require_root()?;
        tool::require(&tool::BUILDING)?;
        let mut values = match topology.variants.get(&setting.variant) {
            Some(values) => values.clone(),
            None if setting.variant.is_empty() => BTreeMap::new(),
            None => {
                return Err(unknown(
                    "variant",
                    &setting.variant,
                    topology.variants.keys(),
                ));
            }
        };
        std::fs::create_dir_all(&setting.directory)
            .map_err(|reason| LabError::file(&setting.directory, reason))?;
        for (name, path) in [
            ("lab", topology.directory()),
            ("variant", PathBuf::from(&setting.variant)),
            ("run", setting.directory.clone()),
            ("stateplane", setting.stateplane.clone()),
        ] {
            values.insert(name.to_owned(), path.display().to_string());
        }
        // A variant's values may build on these.
        for name in topology
            .variants
            .get(&setting.variant)
            .into_iter()
            .flat_map(BTreeMap::keys)
        {
            let filled = template::fill(&values[name], &values).map_err(|problem| {
                refuse(&topology, format!("variant {}", setting.variant), problem)
            })?;
            values.insert(name.clone(), filled);
        }
        make_program(&setting.stateplane, &values)?;
        let keys = if setting.keys {
            Some(Keys::draw(&topology)?)
        } else {
            None
        };
        runs::sweep()?;
        let run = Run::new(&topology.name);
        run.write_record()?;
        let mut lab = Self {
            topology,
            run,
            directory: setting.directory.clone(),
            values,
            keys,
            processes: BTreeMap::new(),
        };
        lab.build()?;
        for index in 0..lab.topology.processes.len() {
            let process = &lab.topology.processes[index];
            if process.only.is_empty() || process.only.contains(&setting.variant) {
                let name = process.name.clone();
                lab.start(&name)?;
            }
        }
        Ok(lab)
    }

    fn build(&self) -> Result<(), LabError> {
        let batch = setup::create(&self.topology, |node| self.run.namespace(node));
        tool::run(&["ip", "-batch", "-"], &batch)?;
        std::thread::scope(|scope| {
            let workers: Vec<_> = self
                .topology
                .nodes
                .iter()
                .map(|node| scope.spawn(|| self.set_up(node)))
                .collect();
            workers.into_iter().try_for_each(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })
    }

    fn set_up(&self, node: &Node) -> Result<(), LabError> {
        let lowered: Vec<&str> = self
            .topology
            .processes
            .iter()
            .filter(|process| process.node == node.name)
            .flat_map(|process| process.raises.iter().map(String::as_str))
            .collect();
        let script = setup::script(&self.topology, node, &lowered);
        let namespace = self.run.namespace(&node.name);
        let printed = tool::run(&["ip", "netns", "exec", &namespace, "sh"], &script)?;
        setup::check_offloads(&node.name, &printed)
    }

    /// The topology.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The run's record.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Folder of the logs.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn node(&self, name: &str) -> Result<&Node, LabError> {
        self.topology
            .node(name)
            .ok_or_else(|| unknown("node", name, self.topology.nodes.iter().map(|n| &n.name)))
    }

    /// Runs `ip -batch` in a node's namespace and gives what it prints, as JSON where
    /// the command has such output.
    pub(crate) fn ip(&self, node: &str, batch: &str) -> Result<String, LabError> {
        self.node(node)?;
        let namespace = self.run.namespace(node);
        tool::run(&["ip", "-n", &namespace, "-json", "-batch", "-"], batch)
    }

    /// Starts a command in a node's namespace, beside the topology's processes.
    ///
    /// # Errors
    /// `LAB003` if its logs cannot be written, `LAB006` if it cannot be started, `LAB009`
    /// for an unknown node.
    pub fn spawn(&self, node: &str, name: &str, command: &[String]) -> Result<Process, LabError> {
        self.node(node)?;
        Process::start(&self.run.namespace(node), name, command, &self.directory)
    }

    /// Starts a process of the topology: renders its configuration and waits until it
    /// is ready (at most 30 s).
    ///
    /// # Errors
    /// `LAB003`, `LAB005`, `LAB008`, `LAB009`, `LAB130` as for [`up`](Self::up).
    pub fn start(&mut self, name: &str) -> Result<(), LabError> {
        let all = &self.topology.processes;
        let declared = all
            .iter()
            .find(|process| process.name == name)
            .ok_or_else(|| unknown("process", name, all.iter().map(|p| &p.name)))?;
        let mut values = self.values.clone();
        for (key, value) in &declared.set {
            let filled = self.fill(name, value, &values)?;
            values.insert(key.clone(), filled);
        }
        if !declared.config.is_empty() {
            let mut text = String::new();
            for config in &declared.config {
                let config = self.fill(name, config, &values)?;
                if config.is_empty() {
                    continue;
                }
                let source = self.topology.directory().join(config);
                let part =
                    template::read(&source).map_err(|reason| LabError::file(&source, reason))?;
                text.push_str(&self.fill(name, &part, &values)?);
                text.push('\n');
            }
            let rendered = self.directory.join(format!("{name}.toml"));
            std::fs::write(&rendered, text).map_err(|reason| LabError::file(&rendered, reason))?;
            values.insert("config".to_owned(), rendered.display().to_string());
        }
        let mut command = declared
            .command
            .iter()
            .map(|word| self.fill(name, word, &values))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(keys) = &self.keys {
            command.extend(keys.arguments(declared, &self.directory)?);
        }
        let node = declared.node.clone();
        let ready = declared.ready.clone();
        let mut process = self.spawn(&node, name, &command)?;
        if let Some(line) = ready {
            process.wait_for_line(&line)?;
        }
        self.processes.insert(name.to_owned(), process);
        Ok(())
    }

    fn fill(
        &self,
        process: &str,
        text: &str,
        values: &BTreeMap<String, String>,
    ) -> Result<String, LabError> {
        template::fill(text, values)
            .map_err(|problem| refuse(&self.topology, format!("process {process}"), problem))
    }

    /// A process of the topology that was started.
    pub fn process(&mut self, name: &str) -> Option<&mut Process> {
        self.processes.get_mut(name)
    }

    /// Sends a signal, such as `STOP`, to a process of the topology, if it runs.
    ///
    /// # Errors
    /// `LAB006`.
    pub fn signal(&mut self, process: &str, signal: &str) -> Result<(), LabError> {
        match self.process(process) {
            Some(process) => process.signal(signal),
            None => Ok(()),
        }
    }

    /// Kills processes of the topology with one SIGKILL for all; their nodes keep their links.
    ///
    /// # Errors
    /// `LAB006`.
    pub fn kill(&mut self, processes: &[String]) -> Result<(), LabError> {
        let mut killed: Vec<Process> = processes
            .iter()
            .filter_map(|name| self.processes.remove(name))
            .collect();
        let ids: Vec<String> = killed.iter().map(|it| it.id().to_string()).collect();
        runs::signal("KILL", ids.iter().map(String::as_str))?;
        killed.iter_mut().for_each(Process::kill);
        Ok(())
    }

    /// Refuses if a process of the topology has ended by itself.
    ///
    /// # Errors
    /// `LAB008` with the end of its log.
    pub fn check_processes(&mut self) -> Result<(), LabError> {
        for process in self.processes.values_mut() {
            if let Some(status) = process.ended() {
                return Err(process.failure(format!("ended by itself ({status})")));
            }
        }
        Ok(())
    }

    /// Makes a node fail: its processes get SIGKILL and all its links go down, so
    /// that its neighbours lose carrier.
    ///
    /// # Errors
    /// `LAB006` if a link cannot be taken down, `LAB009` for an unknown node.
    pub fn fail(&mut self, node: &str) -> Result<(), LabError> {
        self.node(node)?;
        for declared in &self.topology.processes {
            if declared.node == node
                && let Some(mut process) = self.processes.remove(&declared.name)
            {
                process.kill();
            }
        }
        let batch: String = self
            .topology
            .ends_of(node)
            .map(|(_, end)| format!("link set {} down\n", end.interface))
            .collect();
        self.ip(node, &batch)?;
        Ok(())
    }

    /// Brings a failed node back: first the links that no process raises, then its
    /// processes.
    ///
    /// # Errors
    /// As [`start`](Self::start), and `LAB006`.
    pub fn recover(&mut self, node: &str) -> Result<(), LabError> {
        self.node(node)?;
        let declared: Vec<_> = self
            .topology
            .processes
            .iter()
            .filter(|process| process.node == node)
            .cloned()
            .collect();
        let at_once: Vec<String> = self
            .topology
            .ends_of(node)
            .map(|(_, end)| end.interface.clone())
            .filter(|interface| !declared.iter().any(|p| p.raises.contains(interface)))
            .collect();
        self.raise(node, &at_once)?;
        for process in &declared {
            if process.only.is_empty() || process.only.iter().any(|v| *v == self.values["variant"])
            {
                self.start(&process.name)?;
            }
        }
        Ok(())
    }

    /// Raises interfaces of a node and gives it its neighbours and routes again.
    pub(crate) fn raise(&self, node: &str, interfaces: &[String]) -> Result<(), LabError> {
        let mut batch: String = interfaces
            .iter()
            .map(|interface| format!("link set {interface} up\n"))
            .collect();
        batch.push_str(&setup::reachability(&self.topology, self.node(node)?));
        self.ip(node, &batch)?;
        Ok(())
    }

    /// Takes an interface of a node down; the other end loses carrier.
    pub(crate) fn lower(&self, node: &str, interface: &str) -> Result<(), LabError> {
        self.ip(node, &format!("link set {interface} down\n"))?;
        Ok(())
    }

    /// Makes a router use the last of several routes to one destination, with any metrics.
    ///
    /// # Errors
    /// `LAB006` if a route cannot be set, `LAB009` for an unknown node.
    pub fn steer(&self, router: &str) -> Result<(), LabError> {
        let mut batch = String::new();
        for (to, via) in self.ways(router)? {
            let _ = writeln!(
                batch,
                "route replace {to} metric {STEERED_METRIC} via {via}"
            );
        }
        self.ip(router, &batch).map(drop)
    }

    /// Undoes [`steer`](Self::steer).
    ///
    /// # Errors
    /// As [`steer`](Self::steer).
    pub fn release(&self, router: &str) -> Result<(), LabError> {
        let mut batch = String::new();
        for (to, via) in self.ways(router)? {
            let _ = writeln!(batch, "route delete {to} metric {STEERED_METRIC} via {via}");
        }
        self.ip(router, &batch).map(drop)
    }

    /// The destinations to which a router has routes of several metrics, and the next hop
    /// of the last.
    fn ways(&self, router: &str) -> Result<BTreeMap<Prefix, Ipv4Addr>, LabError> {
        let mut ways = BTreeMap::new();
        for route in &self.node(router)?.routes {
            if let (Some(_), Some(via)) = (route.metric, route.via.first()) {
                ways.insert(route.to.network(), *via);
            }
        }
        Ok(ways)
    }

    /// Bytes and frames that an interface received and sent since it was made.
    ///
    /// # Errors
    /// `LAB006` if the interface does not exist, `LAB009` for an unknown node.
    pub fn traffic_at(&self, node: &str, interface: &str) -> Result<InterfaceTraffic, LabError> {
        self.node(node)?;
        let namespace = self.run.namespace(node);
        let words = [
            "ip", "-n", &namespace, "-json", "-s", "link", "show", interface,
        ];
        let printed = tool::run(&words, "")?;
        let value: serde_json::Value = serde_json::from_str(&printed).unwrap_or_default();
        let count = |way: &str, what: &str| value[0]["stats64"][way][what].as_u64().unwrap_or(0);
        Ok(InterfaceTraffic {
            received_bytes: count("rx", "bytes"),
            received_frames: count("rx", "packets"),
            sent_bytes: count("tx", "bytes"),
            sent_frames: count("tx", "packets"),
        })
    }

    /// Waits until every next hop of a router's multipath routes works.
    ///
    /// # Errors
    /// `LAB010` after 5 s, `LAB006`, `LAB009`, `LAB130`.
    pub fn wait_for_routes(&self, router: &str) -> Result<(), LabError> {
        const LIMIT: Duration = Duration::from_secs(5);
        let deadline = Instant::now() + LIMIT;
        loop {
            interrupt::check()?;
            let Some(gateway) = self.broken_next_hop(router)? else {
                return Ok(());
            };
            if Instant::now() > deadline {
                return Err(LabError::NoRoute {
                    node: router.to_owned(),
                    gateway: gateway.to_string(),
                    seconds: LIMIT.as_secs(),
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A next hop of a multipath route whose link has no carrier.
    pub(crate) fn broken_next_hop(&self, router: &str) -> Result<Option<Ipv4Addr>, LabError> {
        let printed = self.ip(router, "route show\n")?;
        let value: serde_json::Value = serde_json::from_str(&printed).unwrap_or_default();
        let routes = value.as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(routes
            .iter()
            .flat_map(|route| route["nexthops"].as_array().into_iter().flatten())
            .find(|hop| {
                let flags = hop["flags"]
                    .as_array()
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                flags
                    .iter()
                    .any(|flag| flag == "linkdown" || flag == "dead")
            })
            .and_then(|hop| hop["gateway"].as_str()?.parse().ok()))
    }

    /// Takes everything down.
    ///
    /// # Errors
    /// `LAB006` if a namespace cannot be removed.
    pub fn down(mut self) -> Result<(), LabError> {
        self.processes.clear();
        self.run.remove()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.processes.clear();
        // A lab that cannot be removed here keeps its record, and the next sweep tries again.
        let _ = self.run.remove();
    }
}

fn unknown<'a>(
    kind: &'static str,
    name: &str,
    known: impl Iterator<Item = &'a String>,
) -> LabError {
    let known: Vec<_> = known.map(String::as_str).collect();
    LabError::Unknown {
        kind,
        name: name.to_owned(),
        known: if known.is_empty() {
            "none".to_owned()
        } else {
            known.join(", ")
        },
    }
}

/// Has the variant's `program` made of the one that it `protects` or `synchronises`, if it does.
fn make_program(stateplane: &Path, values: &BTreeMap<String, String>) -> Result<(), LabError> {
    let Some(program) = values.get("program") else {
        return Ok(());
    };
    let stateplane = stateplane.display().to_string();
    let synchronised = values.get("synchronises");
    if let Some(annotated) = values.get("protects") {
        let protected = synchronised.unwrap_or(program);
        tool::run(&[&stateplane, "protect", annotated, "-o", protected], "")?;
    }
    if let Some(plain) = synchronised {
        tool::run(&[&stateplane, "sync", plain, "-o", program], "")?;
    }
    Ok(())
}

fn refuse(topology: &Topology, place: String, problem: String) -> LabError {
    LabError::Topology {
        path: topology.path.clone(),
        place,
        problem,
        help: "declare it under `set`, or in [variant.NAME]".to_owned(),
    }
}

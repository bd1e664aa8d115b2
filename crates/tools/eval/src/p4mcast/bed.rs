//! The network of one system: its processes in the places of the switches, hosts that send and
//! receive, and loads.

use super::copies;
use super::order::{Load, Told, within};
use super::system::{self, RECEIVERS, SENDERS, Shape, System};
use crate::error::EvalError;
use crate::nodes::{self, Client, FABRIC};
use crate::options::Place;
use crate::processors::Awake;
use crate::series;
use stateplane_host::clock::boot_time_us;
use stateplane_lab::topology::{Kind, Link, Process, Topology};
use stateplane_lab::{Lab, Setting};
use stateplane_peers::{EtcdMember, etcd_members};
use std::fmt::Write as _;

/// Numbers of the switches by place: those for which the controller's ring gives each of two groups
/// switches of its own, the first three places to the first.
const NUMBERS: [u8; 6] = [1, 3, 5, 2, 6, 8];
/// Time in µs in which all hosts have heard of a load.
const HEARD_US: u64 = 30_000;

/// Times of a load in µs.
#[derive(Clone, Copy, Debug)]
pub struct Spans {
    /// Warm-up.
    pub warm_us: u64,
    /// Deliveries count.
    pub counted_us: u64,
    /// All that was sent comes.
    pub drain_us: u64,
}

/// Messages of a load.
#[derive(Clone, Copy, Debug)]
pub struct Messages {
    /// Bytes of a frame.
    pub frame: usize,
    /// Messages per second of all senders together; as many as there may be if `None`.
    pub rate: Option<f64>,
    /// Messages in a thousand that address all groups.
    pub several_permille: u32,
}

/// Outcome of a load.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Messages delivered per second; one to two groups is one.
    pub per_second: f64,
    /// µs within which 50 and 99 % of them were delivered.
    pub within_us: [Option<f64>; 2],
    /// Receivers of each group delivered the same messages in the same order.
    pub same_order: bool,
    /// Processor time in µs, for a message, of the senders and of the receivers.
    pub hosts_us: [f64; 2],
}

/// A system that is up.
pub struct Bed {
    system: System,
    shape: Shape,
    lab: Lab,
    senders: Vec<Client>,
    receivers: Vec<Client>,
    in_flight: u8,
    loads: u16,
    _members: Vec<EtcdMember>,
    _awake: Option<Awake>,
}

impl Bed {
    /// Builds the network, starts the system, and waits until it is ready. Each of two senders has
    /// `wanted` messages in flight, or as many as the system can have.
    ///
    /// # Errors
    /// Refusals of the lab; `EV005` if a part does not begin.
    pub fn up(place: &Place, system: System, shape: Shape, wanted: u8) -> Result<Bed, EvalError> {
        let in_flight = system.window(shape, wanted);
        let mut topology = Topology::load(place.lab.join("eval/p4mcast.toml"))?;
        let mut members = Vec::new();
        let used = match system {
            System::Stateplane | System::Primcast | System::Poster => shape.places(),
            System::Limit => 1,
            System::Etcd => shape.members,
        };
        arrange(&mut topology, system, shape, used, place.detection_ms);
        if system == System::Etcd {
            let places: Vec<_> = (0..used).map(system::place).collect();
            members = etcd_members(&places).map_err(|reason| EvalError::Nothing {
                what: system.name().to_owned(),
                reason,
                logs: place.logs.clone(),
            })?;
            for (at, member) in (0..).zip(&members) {
                topology.processes.push(process(at, &member.command, None));
            }
        }
        let name = format!("p4mcast-{}", system.word());
        let setting = Setting {
            variant: String::new(),
            directory: place.logs.join(name),
            stateplane: place.stateplane.clone(),
            keys: false,
        };
        stateplane_lab::coordination::forget(&setting.directory)?;
        let lab = Lab::up(topology, &setting)?;
        if system == System::Stateplane {
            let file = lab.directory().join("controller.toml");
            let (program, file) = (place.stateplane.display(), file.display());
            let (program, file) = (program.to_string(), file.to_string());
            let words = [&program, "multicast", "status", "--wait", "60"];
            let words = [&words[..], &["--config", &file]].concat();
            nodes::run(&lab, "ctl", &words, "")?;
        }
        let start = |node: &str, number: u8, receives: bool| {
            let mut words = ["eval", "multicast-host"].map(str::to_owned).to_vec();
            words.push(system.word());
            for (option, value) in [
                ("--number", number),
                ("--in-flight", in_flight),
                ("--groups", shape.groups),
                ("--members", shape.members),
            ] {
                words.extend([option.to_owned(), value.to_string()]);
            }
            words.extend(receives.then(|| "--receives".to_owned()));
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            Client::start(&lab, &place.stateplane, node, &words, system.name())
        };
        let receivers = 0..shape.groups * RECEIVERS;
        let receivers = receivers.map(|at| start(&format!("h{}", at + 1), at, true));
        let receivers = receivers.collect::<Result<_, _>>()?;
        let senders = (0..SENDERS).map(|at| start(&format!("w{}", at + 1), at, false));
        let senders = senders.collect::<Result<_, _>>()?;
        Ok(Bed {
            system,
            shape,
            lab,
            senders,
            receivers,
            in_flight,
            loads: 0,
            _members: members,
            _awake: Awake::keep(),
        })
    }

    /// Lets a share of the packets be lost, 0 to 1, on each way between two nodes.
    ///
    /// # Errors
    /// `EV003` if nftables refuses.
    pub fn lose(&self, share: f64) -> Result<(), EvalError> {
        let rules = nodes::loss("bridge", "forward", share);
        nodes::run(&self.lab, FABRIC, &["nft", "-f", "-"], &rules).map(drop)
    }

    /// Makes a load.
    ///
    /// # Errors
    /// `EV005` if a host did not carry it out, `LAB008` if a process has ended, `LAB130` after ^C.
    pub fn load(&mut self, messages: &Messages, spans: &Spans) -> Result<Measured, EvalError> {
        series::check_interrupt()?;
        self.lab.check_processes()?;
        self.loads += 1;
        let period = messages.rate.map(|rate| f64::from(SENDERS) * 1e9 / rate);
        let start_us = boot_time_us() + HEARD_US;
        let from_us = start_us + spans.warm_us;
        let to_us = from_us + spans.counted_us;
        // Watchers may be behind what was answered.
        let drain_us = match self.system {
            System::Etcd => 2 * spans.drain_us,
            _ => spans.drain_us,
        };
        let load = Load {
            number: self.loads,
            start_us,
            from_us,
            to_us,
            end_us: to_us + drain_us,
            frame: messages.frame,
            in_flight: self.in_flight.into(),
            period_ns: period.map_or(0, |period| period as u64),
            groups: self.shape.groups,
            several_permille: messages.several_permille,
        };
        for host in self.receivers.iter_mut().chain(&mut self.senders) {
            host.tell(&load)?;
        }
        let hear = |hosts: &mut Vec<Client>| -> Result<Vec<Told>, EvalError> {
            let mut all = Vec::new();
            for host in hosts {
                let told: Told = host.answer()?;
                if let Some(error) = &told.error {
                    return Err(host.nothing(error));
                }
                all.push(told);
            }
            Ok(all)
        };
        let receivers = hear(&mut self.receivers)?;
        let senders = hear(&mut self.senders)?;
        Ok(self.measured(&load, &senders, &receivers))
    }

    fn measured(&self, load: &Load, senders: &[Told], receivers: &[Told]) -> Measured {
        let groups: Vec<&[Told]> = match self.system {
            // Each receiver gets all.
            System::Etcd => vec![receivers],
            _ => receivers.chunks(RECEIVERS.into()).collect(),
        };
        let mean = |told: &[Told], which: usize| {
            let sum: u64 = told.iter().map(|told| told.delivered[which]).sum();
            sum as f64 / told.len().max(1) as f64
        };
        let one: f64 = groups.iter().map(|group| mean(group, 0)).sum();
        let delivered = one + mean(receivers, 1);
        let seconds = (load.to_us - load.from_us) as f64 / 1e6;
        let same = |group: &&[Told]| {
            group
                .windows(2)
                .all(|pair| (pair[0].count, pair[0].digest) == (pair[1].count, pair[1].digest))
        };
        let sent: u64 = senders.iter().map(|told| told.sent).sum();
        let spent = |told: &[Told]| {
            let spent: f64 = told.iter().map(|told| told.processor_s).sum();
            spent * 1e6 / sent.max(1) as f64
        };
        Measured {
            per_second: delivered / seconds,
            within_us: [0.5, 0.99].map(|share| within(receivers.iter(), share)),
            same_order: groups.iter().all(same),
            hosts_us: [spent(senders), spent(receivers)],
        }
    }

    /// Ends the hosts, and takes all down.
    ///
    /// # Errors
    /// `LAB006` if something cannot be removed.
    pub fn down(self) -> Result<(), EvalError> {
        drop((self.senders, self.receivers));
        Ok(self.lab.down()?)
    }
}

fn node(place: u8) -> String {
    format!("s{}", place + 1)
}

/// A process in a place.
fn process(place: u8, command: &[String], ready: Option<&str>) -> Process {
    Process {
        name: node(place),
        node: node(place),
        command: command.to_vec(),
        config: Vec::new(),
        set: std::collections::BTreeMap::new(),
        ready: ready.map(str::to_owned),
        raises: Vec::new(),
        only: Vec::new(),
        keys: None,
    }
}

/// Puts a system's processes into the `used` places.
fn arrange(topology: &mut Topology, system: System, shape: Shape, used: u8, detection_ms: u16) {
    let places: Vec<String> = (0..used).map(node).collect();
    let is_used = |process: &Process| match system {
        System::Primcast | System::Etcd => false,
        System::Stateplane if process.name == "controller" => true,
        _ => places.contains(&process.name),
    };
    topology.processes.retain(is_used);
    if system != System::Stateplane {
        // No controller is to be reached.
        let of_controller = |link: &Link| link.ends.iter().any(|end| end.interface == "mgmt");
        topology.links.retain(|link| !of_controller(link));
    }
    if system.is_software() {
        let switches = topology.nodes.iter();
        let switches = switches.filter(|node| node.kind == Kind::Switch);
        let switches: Vec<String> = switches.map(|node| node.name.clone()).collect();
        for end in topology.links.iter_mut().flat_map(|link| &mut link.ends) {
            end.kernel |= switches.contains(&end.node) && end.interface == "eth0";
        }
    }
    if system == System::Primcast {
        for place in 0..used {
            let mut command = ["${stateplane}", "eval", "multicast-member"]
                .map(str::to_owned)
                .to_vec();
            for (option, value) in [
                ("--place", place),
                ("--groups", shape.groups),
                ("--members", shape.members),
            ] {
                command.extend([option.to_owned(), value.to_string()]);
            }
            let member = process(place, &command, Some("ready"));
            topology.processes.push(member);
        }
    }
    for process in &mut topology.processes {
        let mut set = |name: &str, value: String| process.set.insert(name.to_owned(), value);
        if process.name == "controller" {
            let mut switches = String::new();
            for place in 0..used {
                let (number, address) = (NUMBERS[usize::from(place)], system::place(place));
                let _ = writeln!(
                    switches,
                    "[[multicast.switch]]\nnumber = {number}\naddress = \"{address}\""
                );
            }
            set("groups", shape.groups.to_string());
            set("replicas", shape.members.to_string());
            set("detection_ms", detection_ms.to_string());
            set("switches", switches);
            continue;
        }
        let place = places.iter().position(|name| *name == process.name);
        let place = place.unwrap_or(0) as u8;
        match system {
            System::Stateplane => {
                set("number", NUMBERS[usize::from(place)].to_string());
            }
            System::Poster | System::Limit => {
                set("copies", copies::config(system, shape, place));
                process.config = vec!["p4mcast/copies.toml".to_owned()];
                let program = format!("${{lab}}/p4mcast/{}.p4", system.word());
                process.command = ["${stateplane}", "run", &program, "--port", "0=eth0"]
                    .map(str::to_owned)
                    .to_vec();
                process
                    .command
                    .extend(["--config", "${config}"].map(str::to_owned));
            }
            System::Primcast | System::Etcd => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_membership::Ring;

    #[test]
    fn groups_have_switches_of_their_own_in_the_places_of_other_systems() {
        let virtual_nodes = 64;
        let ring = Ring::new(NUMBERS.map(u32::from), virtual_nodes);
        for (group, places) in (0..).zip(NUMBERS.chunks(3)) {
            let mut servers = ring.servers(group, 3);
            let mut places: Vec<u32> = places.iter().copied().map(u32::from).collect();
            servers.sort_unstable();
            places.sort_unstable();
            assert_eq!(servers, places);
        }
    }

    #[test]
    fn each_system_has_its_processes_in_its_places() {
        let lab = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../lab/eval/p4mcast.toml"
        );
        let two = Shape {
            groups: 2,
            members: 3,
        };
        for (system, used, words) in [
            (System::Stateplane, 6, 7),
            (System::Primcast, 6, 6),
            (System::Etcd, 3, 0),
            (System::Poster, 6, 6),
            (System::Limit, 1, 1),
        ] {
            let mut topology = Topology::load(lab).unwrap();
            arrange(&mut topology, system, two, used, 1000);
            assert_eq!(topology.processes.len(), words, "{system:?}");
            let mut ends = topology.links.iter().flat_map(|link| &link.ends);
            let kernels = ends.any(|end| end.node == "s1" && end.interface == "eth0" && end.kernel);
            assert_eq!(kernels, system.is_software(), "{system:?}");
        }
    }
}

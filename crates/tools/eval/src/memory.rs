//! A switch and its store in memory, in virtual time: the cores that ship, joined by links
//! with a delay and a chance of loss. Equal seeds give equal runs.

use crate::error::EvalError;
use crate::network::{Setup, VARIANT};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use stateplane_apps::number_in;
use stateplane_host::deployment::{Deployment, DeploymentError};
use stateplane_host::switch::SwitchFile;
use stateplane_ir::Program;
use stateplane_lab::{fill, read_template};
use stateplane_native::Native;
use stateplane_runtime::Engine as _;
use stateplane_store::{Destination, Replica};
use stateplane_switch::{Generator, Limits, Port, Switch, SwitchConfig, Transmit};
use stateplane_wire::{ethernet, ipv4, replication, udp};
use stateplane_world::{
    Clock, LinkQuality, Net, Node, NodePort, NodeSpec, Random, Step, Topology, exchange,
};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

const STORE: Port = 2;
/// When a switch begins to live, in µs.
const BEGIN: u64 = 1_000_000;
/// Time until the switch's ports are open: a few periods of its probes.
const OPENING_US: u64 = 300_000;

/// Compiles a setup's program from the library.
///
/// # Errors
/// `EV003` with what the compiler says.
pub fn compile(setup: &Setup) -> Result<Program, EvalError> {
    let (program, defines) = setup.source();
    let mut source = stateplane_compile::shipped(&program);
    for define in defines {
        let (name, body) = define.split_once('=').unwrap_or((&define, "1"));
        source = source.define(name, body);
    }
    source.program().map_err(|refused| EvalError::Refused {
        what: program,
        reason: refused.to_string(),
    })
}

/// Quality of the links to the store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Links {
    /// Delay of one direction, with the store's own time, in µs.
    pub delay_us: u64,
    /// Share of the requests that are lost, 0 to 1.
    pub loss: f64,
}

/// Counts of packets and bytes that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Requests, those lost included.
    pub requests: u64,
    /// Bytes of requests.
    pub request_bytes: u64,
    /// Bytes of replies.
    pub reply_bytes: u64,
    /// Frames that left to hosts.
    pub released: u64,
    /// The most copies that the switch held at a time.
    pub most_held: u64,
}

/// Position at which a packet of the probe was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// At a port to hosts, by which it left.
    Left,
    /// On board of a request, lost ones included.
    Request,
    /// On board of a reply.
    Reply,
}

/// A frame with a packet of the probe in it, which bears its number
/// ([`crate::probe::traffic::frame`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight {
    /// When, in µs of virtual time.
    pub at: u64,
    /// The packet's number.
    pub number: u64,
    /// Bytes of the frame.
    pub bytes: u64,
    /// Position of the observation.
    pub seen: Seen,
}

/// Ends of the link between switch and store.
const SWITCH_END: NodePort = NodePort::new(0, STORE);
const STORE_END: NodePort = NodePort::new(1, 0);

/// The switch as a node.
struct Core(Switch<Native>);

impl Node for Core {
    type Message = Vec<u8>;
    type Transmit = Transmit;

    fn handle_message(&mut self, now: u64, port: u16, _: NodePort, frame: Vec<u8>) {
        self.0.handle_frame(now, port, &frame);
    }

    fn handle_timeout(&mut self, now: u64) {
        self.0.handle_timeout(now);
    }

    fn poll_transmit(&mut self, _: u64) -> Option<Transmit> {
        self.0.poll_transmit()
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.0.poll_timeout()
    }
}

/// A switch and a chain of three.
pub struct Bed {
    switch: Core,
    replicas: Vec<Replica>,
    net: Net<Vec<u8>, ()>,
    /// Share of the requests that are lost.
    loss: f64,
    random: SmallRng,
    /// Virtual time in µs.
    pub now: u64,
    /// Counts since [`Bed::forget`].
    pub passed: Passed,
    sights: Option<Vec<Sight>>,
}

impl Bed {
    /// Builds it from the files of `lab`. `edit` may change the switch's configuration
    /// before it is read.
    ///
    /// # Errors
    /// `EV002` for a file that cannot be read, `EV003` for one that is refused.
    pub fn new(
        lab: &Path,
        setup: &Setup,
        links: Links,
        edit: impl Fn(String) -> String,
    ) -> Result<Self, EvalError> {
        let refused = |what: &str, reason: String| EvalError::Refused {
            what: what.to_owned(),
            reason,
        };
        let (switch_text, store_text) = configurations(lab, setup)?;
        let native = Native::new(compile(setup)?, Default::default())
            .map_err(|error| refused("the program", error.to_string()))?;
        let config = SwitchConfig {
            ports: vec![0, 1, STORE],
            limits: Limits {
                held: 1 << 20,
                ..Limits::default()
            },
            ..SwitchConfig::default()
        };
        let mut switch = Switch::new(native, config)
            .map_err(|error| refused("the switch", error.to_string()))?;
        let path = Path::new("switch.toml");
        let mut random = SmallRng::seed_from_u64(1);
        SwitchFile::parse(path, &edit(switch_text))
            .and_then(|file| file.apply(&mut switch, &mut || random.random()))
            .map_err(|error| refused("the switch's configuration", error.to_string()))?;
        stateplane_setup::hold_terms(switch.engine_mut().state_mut(), 0);
        let mut replicas = Vec::new();
        if let Some(text) = store_text {
            let told =
                |error: DeploymentError| refused("the store's configuration", error.to_string());
            let mut deployment = Deployment::parse(Path::new("store.toml"), &text).map_err(told)?;
            for address in deployment.replication().map_err(told)?.chain.clone() {
                deployment.listen = address;
                let config = deployment
                    .replica_config()
                    .map_err(|error| refused("the store's configuration", error.to_string()))?;
                let replica = Replica::new(config, 1)
                    .map_err(|error| refused("the store", error.to_string()))?;
                replicas.push(replica);
            }
        }
        let mut topology = Topology {
            nodes: vec![NodeSpec::default(); 2],
            links: Vec::new(),
        };
        // Requests alone are lost, which `Bed` sees to.
        let quality = LinkQuality::whole(links.delay_us);
        topology.join(SWITCH_END, STORE_END, quality);
        let mut net = Net::new(&topology, Random::new(1));
        let begun = Clock {
            offset: BEGIN,
            ..Clock::TRUE
        };
        net.set_clock(SWITCH_END.node, begun);
        let mut bed = Self {
            switch: Core(switch),
            replicas,
            net,
            loss: links.loss,
            random,
            now: BEGIN,
            passed: Passed::default(),
            sights: None,
        };
        // A protected switch opens its ports when it has heard of its store.
        bed.advance(BEGIN + OPENING_US);
        bed.forget();
        Ok(bed)
    }

    /// Adds a packet generator.
    ///
    /// # Errors
    /// `EV003` if the switch refuses it.
    pub fn generate(&mut self, generator: Generator) -> Result<(), EvalError> {
        self.switch
            .0
            .add_generator(generator)
            .map_err(|error| EvalError::Refused {
                what: "a packet generator".to_owned(),
                reason: error.to_string(),
            })
    }

    /// The switch.
    pub fn switch(&mut self) -> &mut Switch<Native> {
        &mut self.switch.0
    }

    /// Begins to count anew.
    pub fn forget(&mut self) {
        self.passed = Passed::default();
    }

    /// Begins to note each frame with a packet of the probe in it.
    pub fn watch(&mut self) {
        self.sights = Some(Vec::new());
    }

    /// Observations since [`Bed::watch`], in the order of time. Nothing is noted from then on.
    pub fn sights(&mut self) -> Vec<Sight> {
        self.sights.take().unwrap_or_default()
    }

    /// Gives the switch a frame.
    pub fn frame(&mut self, port: Port, frame: &[u8]) {
        self.switch.0.handle_frame(self.now, port, frame);
        self.drain();
    }

    /// Gives the switch a frame that leaves at once, and takes what leaves from it: the switch alone,
    /// without the net around it.
    ///
    /// # Panics
    ///
    /// If the switch sends anything to the store.
    pub fn pass(&mut self, port: Port, frame: &[u8]) {
        self.switch.0.handle_frame(self.now, port, frame);
        while let Some(transmit) = self.switch.0.poll_transmit() {
            assert_ne!(transmit.port, STORE, "a packet that reads asks the store");
            self.switch.0.recycle(transmit.frame);
        }
    }

    /// Lets time pass until `until`.
    pub fn advance(&mut self, until: u64) {
        let end = until.saturating_sub(BEGIN);
        // The caller may have given the switch something to do.
        self.drain();
        loop {
            // Of arrivals and timeouts at one time, the arrivals come first.
            let now = self.net.now();
            if self.step_before(now + 1) {
                continue;
            }
            if self
                .switch
                .poll_timeout()
                .is_some_and(|due| due <= self.now)
            {
                self.switch.handle_timeout(self.now);
                self.drain();
            } else if !self.step_before(end + 1) {
                break;
            }
        }
        self.net.rest_until(end);
        self.now = self.now.max(until);
    }

    /// Lets the net's next step before `end` happen; false if there is none. A timeout only lets
    /// time pass to it.
    fn step_before(&mut self, end: u64) -> bool {
        let Some(step) = self.net.next_before(end) else {
            return false;
        };
        self.now = self.net.local(SWITCH_END.node);
        if let Step::Message { from, to, message } = step {
            if to == STORE_END {
                self.ask(&message);
            } else {
                self.switch.handle_message(self.now, to.port, from, message);
                self.drain();
            }
        }
        true
    }

    fn drain(&mut self) {
        for transmit in self.net.poll(SWITCH_END.node, &mut self.switch) {
            if transmit.port != STORE {
                self.passed.released += 1;
                self.note(&transmit.frame, Seen::Left);
                self.switch.0.recycle(transmit.frame);
                continue;
            }
            self.passed.requests += 1;
            self.passed.request_bytes += transmit.frame.len() as u64;
            self.note(&transmit.frame, Seen::Request);
            if self.loss == 0.0 || self.random.random::<f64>() >= self.loss {
                self.net.send(SWITCH_END, STORE_END, &transmit.frame);
            }
        }
        let held = self.switch.0.occupancy().held;
        self.passed.most_held = self.passed.most_held.max(held);
    }

    fn note(&mut self, frame: &[u8], seen: Seen) {
        let Some(sights) = &mut self.sights else {
            return;
        };
        if let Some(number) = number_in(frame) {
            sights.push(Sight {
                at: self.now,
                number,
                bytes: frame.len() as u64,
                seen,
            });
        }
    }

    /// Gives a request to the head, carries everything along the chain, and sends replies.
    fn ask(&mut self, frame: &[u8]) {
        let Some((from, message)) = message_in(frame) else {
            return;
        };
        let Some(head) = self.replicas.first_mut() else {
            return;
        };
        head.handle_request(self.now, from, message);
        let mut replies = Vec::new();
        let now = self.now;
        let poll = |replica: &mut Replica| replica.poll_transmit(now);
        exchange(
            &mut self.replicas,
            poll,
            |replicas, from, transmit| match transmit.to {
                Destination::Switch(to) => replies.push((to, transmit.bytes)),
                Destination::Replica(to) => {
                    let to = usize::from(to);
                    replicas[to].handle_chain(now, from as u8, &transmit.bytes);
                }
            },
        );
        for (to, message) in replies {
            let frame = frame_of(Ipv4Addr::new(10, 10, 0, 13), to, &message);
            self.passed.reply_bytes += frame.len() as u64;
            self.note(&frame, Seen::Reply);
            self.net.send(STORE_END, SWITCH_END, &frame);
        }
    }
}

fn message_in(frame: &[u8]) -> Option<(SocketAddrV4, &[u8])> {
    let frame = ethernet::Packet::new_checked(frame).ok()?;
    let datagram = ipv4::Packet::new_checked(frame.payload()).ok()?;
    let from = datagram.source();
    let segment = udp::Packet::new_checked(datagram.payload()).ok()?;
    let from = SocketAddrV4::new(from, segment.source_port());
    Some((from, segment.payload()))
}

/// A store's reply, to the switch's address of `lab/apps/replication.toml`.
fn frame_of(from: Ipv4Addr, to: SocketAddrV4, message: &[u8]) -> Vec<u8> {
    let segment = udp::Repr {
        source_port: replication::PORT,
        destination_port: to.port(),
        payload: message,
    };
    let segment = segment.to_vec(from, *to.ip()).unwrap_or_default();
    let datagram = ipv4::Repr::new(from, *to.ip(), ipv4::PROTOCOL_UDP, &segment);
    let mut frame = vec![2, 0, 0, 0, 0xa1, 2, 2, 0, 0, 0, 0xc0, 2];
    frame.extend(ethernet::TYPE_IPV4.to_be_bytes());
    frame.extend(datagram.to_vec().unwrap_or_default());
    frame
}

/// The files of the switch and, if there is one, of the store, as the lab would write them.
fn configurations(lab: &Path, setup: &Setup) -> Result<(String, Option<String>), EvalError> {
    let topology = setup.topology(lab, Path::new("."))?;
    let values = topology.variants.get(VARIANT).cloned().unwrap_or_default();
    let of = |name: &str| -> Result<Option<String>, EvalError> {
        let Some(process) = topology.processes.iter().find(|p| p.name == name) else {
            return Ok(None);
        };
        let refused = |reason| EvalError::Refused {
            what: format!("the configuration of {name}"),
            reason,
        };
        let mut values = values.clone();
        values.extend(process.set.clone());
        let mut text = String::new();
        for config in &process.config {
            let config = fill(config, &values).map_err(refused)?;
            if config.is_empty() {
                continue;
            }
            let path = lab.join(config);
            let part = read_template(&path).map_err(|e| EvalError::file(&path, e))?;
            text.push_str(&fill(&part, &values).map_err(refused)?);
            text.push('\n');
        }
        Ok(Some(text))
    };
    Ok((of("s1")?.unwrap_or_default(), of("st0")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::applications;
    use crate::probe::traffic::{Application, frame, place};

    fn lab() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lab")
    }

    fn application(name: &str) -> Application {
        Application::of(name).unwrap()
    }

    fn counted(links: Links) -> (Passed, u64) {
        let setup = Setup::protected(application("counter"));
        let mut bed = Bed::new(&lab(), &setup, links, |text| text).unwrap();
        for number in 0..100 {
            let (side, bytes) = frame(application("counter"), place(number, 4, 100), number, 0, 0);
            bed.frame(side as Port, &bytes);
            bed.advance(bed.now + 1000);
        }
        bed.advance(bed.now + 3_000_000);
        (bed.passed, bed.switch().occupancy().held)
    }

    #[test]
    fn every_packet_is_released_over_links_that_lose_nothing() {
        let (passed, held) = counted(Links {
            delay_us: 10,
            loss: 0.0,
        });
        assert_eq!(passed.released, 100);
        assert!(passed.requests >= 104, "{passed:?}");
        assert_eq!(held, 0);
    }

    #[test]
    fn runs_repeat_and_losses_are_sent_again() {
        let lossy = Links {
            delay_us: 10,
            loss: 0.3,
        };
        let (passed, held) = counted(lossy);
        assert_eq!((passed, held), counted(lossy));
        // A lost packet stays lost, its write does not.
        assert!(passed.released < 100 && passed.released > 40, "{passed:?}");
        assert!(passed.requests > 110, "{passed:?}");
        assert_eq!(held, 0);
    }

    #[test]
    fn a_switch_alone_asks_nobody() {
        for application in ["counter", "firewall", "nat"].map(application) {
            let links = Links {
                delay_us: 10,
                loss: 0.0,
            };
            let setup = Setup::bare(application);
            let mut bed = Bed::new(&lab(), &setup, links, |text| text).unwrap();
            for number in 0..20 {
                let (side, bytes) = frame(application, place(number, 4, 5), number, 0, 0);
                bed.frame(side as Port, &bytes);
            }
            assert_eq!(bed.passed.released, 20, "{application:?}");
            assert_eq!(bed.passed.requests, 0, "{application:?}");
        }
    }

    #[test]
    fn every_application_goes_on_with_its_store_and_without() {
        let compared = applications().unwrap().into_iter().map(|(of, _)| of);
        for application in compared.chain([application("key-value")]) {
            for setup in [Setup::bare(application), Setup::protected(application)] {
                let links = Links {
                    delay_us: 10,
                    loss: 0.0,
                };
                let mut bed = Bed::new(&lab(), &setup, links, |text| text).unwrap();
                for number in 0..200 {
                    let (side, bytes) = frame(application, place(number, 4, 50), number, 0, 30);
                    bed.frame(side as Port, &bytes);
                    bed.advance(bed.now + 500);
                }
                assert_eq!(
                    bed.passed.released, 200,
                    "{application:?} {:?}",
                    setup.system
                );
            }
        }
    }
}

//! Many switches' terms with the servers of a store under a controller, in virtual time: the cores
//! that ship, without programs and records.

use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_chains::{Controller, Rows, Settings, Transmit};
use stateplane_store::{Config, Datagram, Recipient, Server};
use stateplane_term::{Term, Terms};
use stateplane_wire::control::{self, ChainConfig, Member};
use stateplane_wire::term::is_term;
use stateplane_wire::{chain, replication};
use stateplane_world::{Clock, LinkQuality, Net, Node, NodePort, NodeSpec, Random, Step, Topology};
use std::collections::BTreeSet;
use std::ops::AddAssign;

/// Silence in µs after which a server is taken for dead.
pub const DETECTION: u64 = 200_000;
/// µs between heartbeats of a server to the controller.
const REPORT: u64 = 50_000;
/// µs until the controller's log keeps a configuration.
const LOG: u64 = 2_000;
/// µs between two looks at all terms.
const LOOK: u64 = 5_000;
/// µs over which the switches start, after the servers.
const STARTS: u64 = 500_000;
/// Drift of clocks, in parts per million.
const DRIFT: u32 = 100;

/// Between a switch and a server, and between servers.
const NEAR: LinkQuality = LinkQuality {
    jitter: 50,
    ..LinkQuality::whole(100)
};
/// Between the controller and a switch: with the time that the process beside the switch takes to
/// change its table.
const FAR: LinkQuality = LinkQuality {
    jitter: 4_000,
    ..LinkQuality::whole(1_000)
};

/// Port of a switch towards the store, and of a server for switches.
const REQUESTS: u16 = 0;
/// Port of a server for other servers and the controller, and of the controller.
const LINKS: u16 = 1;
/// Port of a switch towards the controller.
const ROWS: u16 = 2;

const CONTROLLER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 3, 0, 0), control::PORT);

fn address(network: u8, number: usize, port: u16) -> SocketAddrV4 {
    let [.., high, low] = (number as u32).to_be_bytes();
    SocketAddrV4::new(Ipv4Addr::new(10, network, high, low), port)
}

fn number_of(address: Ipv4Addr) -> usize {
    let [.., high, low] = address.octets();
    u16::from_be_bytes([high, low]).into()
}

fn switch_address(switch: usize) -> SocketAddrV4 {
    address(0, switch, replication::PORT)
}

fn request_address(server: usize) -> SocketAddrV4 {
    address(1, server, replication::PORT)
}

fn link_address(server: usize) -> SocketAddrV4 {
    address(2, server, chain::PORT)
}

/// A datagram and its source.
type Message = (SocketAddrV4, Vec<u8>);

enum Happening {
    /// A switch asks the controller where the heads are, from its start on.
    Ask { switch: usize },
    /// The controller's log keeps a configuration.
    Stored(ChainConfig),
    /// All terms are looked at.
    Look,
}

/// Datagrams that were sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Heartbeats of switches.
    pub heartbeats: u64,
    /// Replies to them.
    pub replies: u64,
    /// Questions for backing, and answers to them.
    pub backing: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.heartbeats += other.heartbeats;
        self.replies += other.replies;
        self.backing += other.backing;
    }
}

/// Ends and new beginnings of the terms for a shard, over all switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Looks that found a term's deadline passed.
    pub passed: u64,
    /// Terms that began anew.
    pub moved: u64,
    /// The last time at which a term began anew.
    pub moved_at: u64,
    /// Most µs from when a term had ended until it began anew.
    pub longest: u64,
}

/// A switch that has its terms written at once.
struct Switch {
    terms: Terms,
    rows: Rows,
    /// It asks the controller for more news.
    asks: bool,
    /// The terms as they were written, by shard.
    written: Vec<Term>,
}

impl Node for Switch {
    type Message = Message;
    type Transmit = (Ipv4Addr, Vec<u8>);

    fn handle_message(&mut self, now: u64, port: u16, _: NodePort, (from, bytes): Message) {
        if port == REQUESTS {
            assert!(self.terms.handle_reply(now, *from.ip(), &bytes));
            return;
        }
        let news = self.rows.handle_message(&bytes);
        self.asks |= !news.is_empty();
        for row in news {
            self.terms
                .set_head(now, row.shard, *row.head.ip(), row.epoch);
        }
    }

    fn handle_timeout(&mut self, _: u64) {}

    fn poll_transmit(&mut self, now: u64) -> Option<Self::Transmit> {
        self.terms.poll_heartbeat(now)
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.terms.poll_timeout()
    }
}

/// A server without a disk.
struct Store(Server);

impl Node for Store {
    type Message = Message;
    type Transmit = Datagram;

    fn handle_message(&mut self, now: u64, port: u16, _: NodePort, (from, bytes): Message) {
        match port {
            REQUESTS => self.0.handle_request(now, from, &bytes),
            _ if from == CONTROLLER => self.0.handle_control(now, &bytes),
            _ => self.0.handle_link(now, from, &bytes),
        }
    }

    fn handle_timeout(&mut self, now: u64) {
        self.0.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: u64) -> Option<Datagram> {
        self.0.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.0.poll_timeout()
    }
}

struct Planner(Controller);

impl Node for Planner {
    type Message = Message;
    type Transmit = Transmit;

    fn handle_message(&mut self, now: u64, _: u16, _: NodePort, (from, bytes): Message) {
        self.0.handle_message(now, from, &bytes);
    }

    fn handle_timeout(&mut self, now: u64) {
        self.0.handle_timeout(now);
    }

    fn poll_transmit(&mut self, _: u64) -> Option<Transmit> {
        self.0.poll_transmit()
    }

    fn poll_timeout(&self) -> Option<u64> {
        Some(self.0.poll_timeout())
    }
}

/// How many there are of everything.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub switches: usize,
    pub servers: usize,
    pub shards: u16,
    pub replicas: u8,
}

/// See the module.
pub struct Fleet {
    shape: Shape,
    net: Net<Message, Happening>,
    switches: Vec<Switch>,
    /// `None` of one that is dead.
    stores: Vec<Option<Store>>,
    planner: Planner,
    counts: Counts,
    /// By shard.
    seen: Vec<Seen>,
}

impl Fleet {
    /// A fleet that has just been switched on.
    pub fn new(shape: Shape, seed: u64) -> Fleet {
        let mut net = Net::new(&topology(shape), Random::new(seed));
        for node in 0..=shape.switches + shape.servers {
            let clock = Clock::draw(&mut net.random, 0, DRIFT);
            net.set_clock(node, clock);
        }
        let mut switches = Vec::new();
        for switch in 0..shape.switches {
            let number = switch as u32 + 1;
            let incarnation = net.random.between(1, u32::MAX.into()) as u32;
            switches.push(Switch {
                terms: Terms::new(number, incarnation, shape.shards),
                rows: Rows::new(number),
                asks: false,
                written: vec![Term::default(); shape.shards.into()],
            });
            let start = STARTS / 5 + net.random.between(0, STARTS);
            net.plan(start, Happening::Ask { switch });
        }
        let mut stores = Vec::new();
        for server in 0..shape.servers {
            let identity = Member {
                server: server as u32 + 1,
                incarnation: net.random.between(1, u32::MAX.into()) as u32,
                requests: request_address(server),
                links: link_address(server),
            };
            let template = Config {
                stream: net.random.between(1, u32::MAX.into()) as u32,
                ..Config::new(1, 0).with_shards(shape.shards)
            };
            let now = net.local(shape.switches + server);
            let store = Server::managed(template, identity, REPORT, now).expect("a server");
            stores.push(Some(Store(store)));
        }
        let settings = Settings {
            founders: shape.servers as u16,
            detection: DETECTION,
            ..Settings::new(shape.shards, shape.replicas)
        };
        let now = net.local(shape.switches + shape.servers);
        let planner = Controller::new(settings, 1, [], now).expect("a controller");
        net.plan(LOOK, Happening::Look);
        let mut fleet = Fleet {
            shape,
            net,
            switches,
            stores,
            planner: Planner(planner),
            counts: Counts::default(),
            seen: vec![Seen::default(); shape.shards.into()],
        };
        (0..shape.servers).for_each(|server| fleet.after_store(server));
        fleet.after_controller();
        fleet
    }

    /// True time.
    pub fn now(&self) -> u64 {
        self.net.now()
    }

    /// A number over all that happened.
    pub fn trace(&self) -> u64 {
        self.net.trace()
    }

    /// The controller.
    pub fn controller(&self) -> &Controller {
        &self.planner.0
    }

    /// The servers that keep `shard`, head first.
    pub fn keepers(&self, shard: u16) -> Vec<usize> {
        let config = self.controller().configuration(shard);
        let members = config.map_or(&[][..], |config| &config.members);
        let servers = members.iter().map(|member| member.server as usize - 1);
        servers.collect()
    }

    /// The shards whose chains `server` is in, and those of them that it heads.
    pub fn shards_of(&self, server: usize) -> (BTreeSet<u16>, BTreeSet<u16>) {
        let all = (0..self.shape.shards).map(|shard| (shard, self.keepers(shard)));
        let kept: Vec<_> = all
            .filter(|(_, keepers)| keepers.contains(&server))
            .collect();
        let heads = kept.iter().filter(|(_, keepers)| keepers[0] == server);
        let headed = heads.map(|(shard, _)| *shard).collect();
        (kept.iter().map(|(shard, _)| *shard).collect(), headed)
    }

    /// Pairs of a server that heads chains and one that is in some of these.
    pub fn backed_pairs(&self) -> usize {
        let pairs: BTreeSet<(usize, usize)> = (0..self.shape.shards)
            .flat_map(|shard| {
                let keepers = self.keepers(shard);
                let others: Vec<usize> = keepers.iter().skip(1).copied().collect();
                others.into_iter().map(move |other| (keepers[0], other))
            })
            .collect();
        pairs.len()
    }

    /// Number of terms that last.
    pub fn lasting(&self, shard: u16) -> usize {
        let switches = (0..self.shape.switches).filter(|switch| {
            let now = self.net.local(*switch);
            now < self.switches[*switch].terms.term(shard).deadline
        });
        switches.count()
    }

    /// True if each switch has a term for each shard.
    pub fn all_last(&self) -> bool {
        (0..self.shape.shards).all(|shard| self.lasting(shard) == self.shape.switches)
    }

    /// Lapses that the switches count.
    pub fn lapses(&self) -> u64 {
        self.switches
            .iter()
            .map(|switch| switch.terms.lapses())
            .sum()
    }

    /// Datagrams sent, and ends and beginnings of each shard's terms, since this was called last.
    pub fn take_counts(&mut self) -> (Counts, Vec<Seen>) {
        let nothing = vec![Seen::default(); self.shape.shards.into()];
        (
            core::mem::take(&mut self.counts),
            core::mem::replace(&mut self.seen, nothing),
        )
    }

    /// Lets the operator drain a server, or end that.
    pub fn drain(&mut self, server: usize, drained: bool) {
        let local = self.net.local(self.controller_place());
        self.planner.0.drain(local, server as u32 + 1, drained);
        self.after_controller();
    }

    /// Kills a server without a word.
    pub fn kill(&mut self, server: usize) {
        self.stores[server] = None;
        self.net.die(self.store_place(server));
    }

    /// Lets `time` µs pass.
    pub fn pass(&mut self, time: u64) {
        let end = self.now() + time;
        while let Some(step) = self.net.next_before(end) {
            self.take(step);
        }
        self.net.rest_until(end);
    }

    /// Lets time pass until `done`, which is asked every 5 ms; returns how much.
    ///
    /// # Panics
    ///
    /// If that takes more than `most` µs.
    pub fn pass_until(&mut self, most: u64, done: impl Fn(&Fleet) -> bool) -> u64 {
        let begin = self.now();
        while !done(self) {
            let passed = self.now() - begin;
            assert!(passed <= most, "not done after {passed} µs");
            self.pass(LOOK);
        }
        self.now() - begin
    }

    fn store_place(&self, server: usize) -> usize {
        self.shape.switches + server
    }

    fn controller_place(&self) -> usize {
        self.shape.switches + self.shape.servers
    }

    fn take(&mut self, step: Step<Message, Happening>) {
        let (switches, controller) = (self.shape.switches, self.controller_place());
        match step {
            Step::Message { from, to, message } => {
                let (node, local) = (to.node, self.net.local(to.node));
                if node < switches {
                    let switch = &mut self.switches[node];
                    switch.handle_message(local, to.port, from, message);
                    if core::mem::take(&mut switch.asks) {
                        self.ask(node);
                    }
                    self.after_switch(node);
                } else if node == controller {
                    self.planner.handle_message(local, to.port, from, message);
                    self.after_controller();
                } else if let Some(store) = &mut self.stores[node - switches] {
                    store.handle_message(local, to.port, from, message);
                    self.after_store(node - switches);
                }
            }
            Step::Timeout { node } => {
                let local = self.net.local(node);
                if node < switches {
                    self.after_switch(node);
                } else if node == controller {
                    self.planner.handle_timeout(local);
                    self.after_controller();
                } else if let Some(store) = &mut self.stores[node - switches] {
                    store.handle_timeout(local);
                    self.after_store(node - switches);
                }
            }
            Step::Event(Happening::Ask { switch }) => {
                self.ask(switch);
                let next = self.now() + Rows::PERIOD;
                self.net.plan(next, Happening::Ask { switch });
            }
            Step::Event(Happening::Stored(config)) => {
                let local = self.net.local(controller);
                self.planner.0.handle_stored(local, &config);
                self.after_controller();
            }
            Step::Event(Happening::Look) => self.look(),
            Step::Lost { .. } => {}
        }
    }

    /// A switch asks the controller for news of heads.
    fn ask(&mut self, switch: usize) {
        let question = (switch_address(switch), self.switches[switch].rows.ask());
        let to = NodePort::new(self.controller_place(), LINKS);
        self.net.send(NodePort::new(switch, ROWS), to, &question);
    }

    /// Sees which deadlines have passed.
    fn look(&mut self) {
        for (place, switch) in self.switches.iter().enumerate() {
            let now = self.net.local(place);
            for (term, seen) in switch.written.iter().zip(&mut self.seen) {
                seen.passed += u64::from(term.deadline > 0 && term.deadline <= now);
            }
        }
        let next = self.now() + LOOK;
        self.net.plan(next, Happening::Look);
    }

    fn after_switch(&mut self, place: usize) {
        let (now, local) = (self.now(), self.net.local(place));
        let switch = &mut self.switches[place];
        while let Some((shard, term)) = switch.terms.poll_change() {
            let number = usize::from(shard);
            let before = core::mem::replace(&mut switch.written[number], term);
            if before.deadline > 0 && before.since != term.since {
                let seen = &mut self.seen[number];
                seen.moved += 1;
                seen.moved_at = now;
                seen.longest = seen.longest.max(local.saturating_sub(before.deadline));
            }
        }
        for (head, bytes) in self.net.poll(place, switch) {
            self.counts.heartbeats += u64::from(is_term(&bytes));
            let to = NodePort::new(self.store_place(number_of(head)), REQUESTS);
            let heartbeat = (switch_address(place), bytes);
            self.net
                .send(NodePort::new(place, REQUESTS), to, &heartbeat);
        }
    }

    fn after_store(&mut self, server: usize) {
        let place = self.store_place(server);
        let Some(store) = &mut self.stores[server] else {
            return;
        };
        let (requests, links) = (NodePort::new(place, REQUESTS), NodePort::new(place, LINKS));
        for Datagram { to, bytes } in self.net.poll(place, store) {
            let of_term = u64::from(is_term(&bytes));
            let (from, to, source) = match to {
                Recipient::Switch(to) => {
                    self.counts.replies += of_term;
                    let to = NodePort::new(number_of(*to.ip()), REQUESTS);
                    (requests, to, request_address(server))
                }
                Recipient::Neighbour(to) => {
                    self.counts.backing += of_term;
                    let to = NodePort::new(self.store_place(number_of(*to.ip())), LINKS);
                    (links, to, link_address(server))
                }
                Recipient::Controller => {
                    let to = NodePort::new(self.controller_place(), LINKS);
                    (links, to, link_address(server))
                }
            };
            self.net.send(from, to, &(source, bytes.to_vec()));
        }
    }

    fn after_controller(&mut self) {
        let place = self.controller_place();
        let kept = self.now() + LOG;
        while let Some(config) = self.planner.0.poll_record() {
            self.net.plan(kept, Happening::Stored(config));
        }
        for Transmit { to, bytes } in self.net.poll(place, &mut self.planner) {
            let number = number_of(*to.ip());
            let to = if to.port() == chain::PORT {
                NodePort::new(self.store_place(number), LINKS)
            } else {
                NodePort::new(number, ROWS)
            };
            let from = NodePort::new(place, LINKS);
            self.net.send(from, to, &(CONTROLLER, bytes));
        }
    }
}

/// Every switch reaches every server and the controller; these reach each other.
fn topology(shape: Shape) -> Topology {
    let controller = shape.switches + shape.servers;
    let mut topology = Topology {
        nodes: vec![NodeSpec::default(); controller + 1],
        links: Vec::new(),
    };
    let at = NodePort::new;
    for switch in 0..shape.switches {
        for server in shape.switches..controller {
            topology.join(at(switch, REQUESTS), at(server, REQUESTS), NEAR);
        }
        topology.join(at(switch, ROWS), at(controller, LINKS), FAR);
    }
    for server in shape.switches..controller {
        for other in server + 1..=controller {
            topology.join(at(server, LINKS), at(other, LINKS), NEAR);
        }
    }
    topology
}

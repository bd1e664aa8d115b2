//! The applications on a switch that gets everything: packets, answers of the store,
//! answers that were changed or cut, random messages, garbage; while time passes.
//! Nothing panics, no packet is lost without being counted, and what leaves is well
//! formed.

use num_bigint::BigUint;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use stateplane_interp::{Interp, Options};
use stateplane_ir::Program;
use stateplane_runtime::{Engine, Entry, KeyMatch, TargetState, Value};
use stateplane_setup::{Chain, Hold, Probe, Replication, Server, TERM, Term, element};
use stateplane_switch::{Port, Switch, SwitchConfig, Transmit};
use stateplane_wire::replication::{
    HEADER_LENGTH, Key, MessageType, PORT, Packet, RefusalCode, Repr,
};
use stateplane_wire::{checksum, ethernet, ipv4, tcp, udp};
use stateplane_world::{Clock, LinkQuality, Net, Node, NodePort, NodeSpec, Random, Topology};
use std::net::Ipv4Addr;
use std::sync::LazyLock;

const INSIDE: Port = 0;
const OUTSIDE: Port = 1;
const STORE: Port = 2;

const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);
const HEAD: Ipv4Addr = Ipv4Addr::new(10, 255, 1, 1);
const PUBLIC: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const SWITCH_ID: u32 = 1;
const INCARNATION: u32 = 77;
const CHAIN_EPOCH: u32 = 3;
const SHARDS: u16 = 4;
/// Requests that can still be answered.
const ASKED: usize = 8;

struct App {
    program: Program,
    is_nat: bool,
    state_bytes: usize,
}

fn app(path: &str, is_nat: bool) -> App {
    let source = stateplane_compile::shipped(path).define("REPLICATION_BUCKETS", "2");
    let program = source
        .program()
        .unwrap_or_else(|refused| panic!("{refused}"));
    let state_bytes = if is_nat { 6 } else { 8 };
    App {
        program,
        is_nat,
        state_bytes,
    }
}

static NAT: LazyLock<App> = LazyLock::new(|| app("apps/nat/nat.p4", true));
static COUNTER: LazyLock<App> = LazyLock::new(|| app("apps/counter/counter.p4", false));

fn insert(state: &mut TargetState, table: &str, key: KeyMatch, action: &str, data: &[u64]) {
    let entry = Entry {
        keys: vec![key],
        priority: 0,
        action: action.into(),
        data: data.iter().copied().map(BigUint::from).collect(),
    };
    let table = state.table_mut(table).expect("a table");
    table.insert(&entry).expect("an entry that fits");
}

fn number(address: Ipv4Addr) -> u64 {
    address.to_bits().into()
}

fn switch(app: &App) -> Switch<Interp> {
    let mut engine =
        Interp::new(app.program.clone(), Options::default()).expect("a program that loads");
    let state = engine.state_mut();
    let exact = |value: u64| KeyMatch::Exact(value.into());
    for (network, port) in [([10, 0, 0, 0], INSIDE), ([198, 51, 100, 0], OUTSIDE)] {
        let network = KeyMatch::Prefix {
            value: number(network.into()).into(),
            length: 24,
        };
        let gateway = u64::from(port) + 1;
        insert(state, "routes", network, "via", &[gateway]);
        let next = [port.into(), 3, 1];
        insert(state, "neighbours", exact(gateway), "forward", &next);
    }
    if app.is_nat {
        insert(state, "interfaces", exact(INSIDE.into()), "inside", &[]);
        let public = exact(number(PUBLIC));
        insert(state, "public_addresses", public, "is_public", &[]);
    }
    let config = SwitchConfig {
        ports: vec![INSIDE, OUTSIDE, STORE],
        ..SwitchConfig::default()
    };
    let mut switch = Switch::new(engine, config).expect("a configuration that fits");
    let head = Server {
        address: HEAD,
        mac: [0, 0, 0, 0, 0, 2],
    };
    let chain = Chain {
        head,
        epoch: CHAIN_EPOCH,
        mtu: 450,
    };
    let replication = Replication {
        switch: SWITCH_ID,
        address: SWITCH,
        mac: [0, 0, 0, 0, 0, 1],
        port: STORE,
        chains: vec![chain; SHARDS.into()],
        hold: Hold {
            first_us: 5_000,
            longest_us: 160_000,
        },
        probe: Probe {
            shard: 1,
            period_us: 400_000,
            ..Probe::default()
        },
    };
    replication
        .apply(&mut switch, INCARNATION, true)
        .expect("a replicated program");
    switch
}

fn in_ethernet(datagram: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend_from_slice(&ethernet::TYPE_IPV4.to_be_bytes());
    frame.extend_from_slice(datagram);
    frame
}

fn in_ipv4(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let datagram = ipv4::Repr::new(from, to, protocol, payload).to_vec();
    in_ethernet(&datagram.expect("a short payload"))
}

/// A frame of the store to the switch.
fn message_frame(message: &[u8]) -> Vec<u8> {
    let datagram = udp::Repr {
        source_port: PORT,
        destination_port: PORT,
        payload: message,
    };
    let datagram = datagram.to_vec(HEAD, SWITCH).expect("a short message");
    in_ipv4(HEAD, SWITCH, ipv4::PROTOCOL_UDP, &datagram)
}

/// A packet between hosts.
#[derive(Clone, Debug)]
struct Data {
    outward: bool,
    is_tcp: bool,
    host: u8,
    port: u16,
    payload: Vec<u8>,
}

impl Data {
    fn frame(&self, is_nat: bool) -> (Port, Vec<u8>) {
        let inside = Ipv4Addr::new(10, 0, 0, self.host);
        let outside = Ipv4Addr::new(198, 51, 100, 1);
        let here = if is_nat { PUBLIC } else { inside };
        let (from, to, source_port, destination_port, port) = if self.outward {
            (inside, outside, self.port, 5000, INSIDE)
        } else {
            (outside, here, 5000, self.port, OUTSIDE)
        };
        let payload = &self.payload;
        let (protocol, segment) = if self.is_tcp {
            let segment = tcp::Repr {
                source_port,
                destination_port,
                sequence: 1,
                acknowledgement: 2,
                control: tcp::control::ACK,
                window: 3,
                urgent: 0,
                options: &[],
                payload,
            };
            (ipv4::PROTOCOL_TCP, segment.to_vec(from, to))
        } else {
            let datagram = udp::Repr {
                source_port,
                destination_port,
                payload,
            };
            (ipv4::PROTOCOL_UDP, datagram.to_vec(from, to))
        };
        let segment = segment.expect("a short payload");
        (port, in_ipv4(from, to, protocol, &segment))
    }
}

/// Answer of the store.
#[derive(Clone, Debug)]
struct Answer {
    /// `None` is the answer that fits.
    kind: Option<MessageType>,
    code: RefusalCode,
    epoch_step: u32,
    age: u64,
    state: u64,
}

/// Changes to a frame's bytes: place and new value, and length.
#[derive(Clone, Debug)]
struct Damage {
    changes: Vec<(Index, u8)>,
    cut: Option<Index>,
    /// True if the outer checksum and lengths are made right again.
    mended: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Data(Data, Option<Damage>),
    /// An answer to one of the requests seen, damaged perhaps.
    Answer(Index, Answer, Option<Damage>),
    /// A message of random fields, to this switch or not.
    Message(Box<[u8; HEADER_LENGTH]>, bool, Vec<u8>),
    Garbage(Port, Vec<u8>),
    /// The host writes one term for all shards: for how long it has lasted, and lasts yet, in µs.
    Term(u64, u64),
}

fn damage() -> impl Strategy<Value = Damage> {
    let changes = vec((any::<Index>(), any::<u8>()), 0..4);
    let cut = proptest::option::weighted(0.4, any::<Index>());
    (changes, cut, any::<bool>()).prop_map(|(changes, cut, mended)| Damage {
        changes,
        cut,
        mended,
    })
}

fn data() -> impl Strategy<Value = Data> {
    let parts = (
        any::<bool>(),
        any::<bool>(),
        1..3u8,
        vec(any::<u8>(), 0..300),
    );
    let port = select(vec![4793u16, 5000, 17_000]);
    (parts, port).prop_map(|((outward, is_tcp, host, payload), port)| Data {
        outward,
        is_tcp,
        host,
        port,
        payload,
    })
}

fn answer() -> impl Strategy<Value = Answer> {
    let kind = proptest::option::weighted(0.3, select(MessageType::ALL.to_vec()));
    let age = select(vec![0, 50_000, 1_000_000, 1_000_000, u64::MAX]);
    let code = select(RefusalCode::ALL.to_vec());
    let step = select(vec![0, 0, 0, 1, 1, u32::MAX]);
    // Also an endpoint inside, as the NAT's state.
    let state = prop_oneof![Just(0x0a00_0001_4268_0000), any::<u64>()];
    (kind, code, step, age, state).prop_map(|(kind, code, epoch_step, age, state)| Answer {
        kind,
        code,
        epoch_step,
        age,
        state,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let message = (
        vec(any::<u8>(), HEADER_LENGTH),
        any::<bool>(),
        vec(any::<u8>(), 0..80),
    );
    prop_oneof![
        3 => (0..40_000u64).prop_map(Step::Pass),
        1 => (0..1_500_000u64).prop_map(Step::Pass),
        8 => data().prop_map(|data| Step::Data(data, None)),
        2 => (data(), damage()).prop_map(|(data, damage)| Step::Data(data, Some(damage))),
        8 => (any::<Index>(), answer()).prop_map(|(which, answer)| Step::Answer(which, answer, None)),
        4 => (any::<Index>(), answer(), damage())
            .prop_map(|(which, answer, damage)| Step::Answer(which, answer, Some(damage))),
        2 => message.prop_map(|(header, ours, rest)| {
            let header = header.try_into().expect("as long as asked for");
            Step::Message(Box::new(header), ours, rest)
        }),
        1 => (0..4u16, vec(any::<u8>(), 0..200)).prop_map(|(port, frame)| Step::Garbage(port, frame)),
        2 => (0..4_000_000u64, 0..400_000u64).prop_map(|(lasted, lasts)| Step::Term(lasted, lasts)),
    ]
}

/// Makes the lengths and the checksum of a frame with IPv4, and UDP perhaps, right.
fn mend(frame: &mut [u8]) {
    let at = ethernet::HEADER_LENGTH;
    let Some(length) = frame.len().checked_sub(at).filter(|it| *it >= 28) else {
        return;
    };
    frame[at + 2..at + 4].copy_from_slice(&(length as u16).to_be_bytes());
    let udp_length = (length - ipv4::HEADER_LENGTH) as u16;
    frame[at + 24..at + 26].copy_from_slice(&udp_length.to_be_bytes());
    frame[at + 10..at + 12].fill(0);
    let sum = checksum::of(&frame[at..at + ipv4::HEADER_LENGTH]);
    frame[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
}

impl Damage {
    fn apply(&self, frame: &mut Vec<u8>) {
        for (place, value) in &self.changes {
            let place = place.index(frame.len());
            frame[place] = *value;
        }
        if let Some(cut) = &self.cut {
            frame.truncate(cut.index(frame.len()));
        }
        if self.mended {
            mend(frame);
        }
    }
}

/// When the switch begins to live, in µs.
const BEGIN: u64 = 1_000_000;

/// The switch as the one node of a net without links: what it gets is a test's steps.
struct Core(Switch<Interp>);

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

/// The switch and what it asked for.
struct Trial<'a> {
    app: &'a App,
    switch: Core,
    net: Net<Vec<u8>, ()>,
    epoch: u32,
    /// Bytes of the last requests.
    asked: Vec<Vec<u8>>,
    released: u64,
}

impl<'a> Trial<'a> {
    fn new(app: &'a App) -> Self {
        let topology = Topology::chain(1, NodeSpec::default(), LinkQuality::whole(0));
        let mut net = Net::new(&topology, Random::new(1));
        let begun = Clock {
            offset: BEGIN,
            ..Clock::TRUE
        };
        net.set_clock(0, begun);
        Self {
            app,
            switch: Core(switch(app)),
            net,
            epoch: 1,
            asked: Vec::new(),
            released: 0,
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Pass(time) => {
                let end = self.net.now() + time;
                self.look();
                while let Some(step) = self.net.next_before(end + 1) {
                    assert_eq!(step, stateplane_world::Step::Timeout { node: 0 });
                    self.switch.handle_timeout(self.net.local(0));
                    self.look();
                }
                self.net.rest_until(end);
            }
            Step::Data(data, damage) => {
                let (port, mut frame) = data.frame(self.app.is_nat);
                if let Some(damage) = damage {
                    damage.apply(&mut frame);
                }
                self.give(port, &frame);
            }
            Step::Answer(which, answer, damage) => {
                if self.asked.is_empty() {
                    return;
                }
                let request = self.asked[which.index(self.asked.len())].clone();
                let mut frame = message_frame(&self.answer(&request, answer));
                if let Some(damage) = damage {
                    damage.apply(&mut frame);
                }
                self.give(STORE, &frame);
            }
            Step::Message(header, ours, rest) => {
                let mut message = [&header[..], rest].concat();
                if *ours {
                    let own = Repr {
                        chain_epoch: CHAIN_EPOCH,
                        switch_id: SWITCH_ID,
                        incarnation: INCARNATION,
                        ..Repr::new(MessageType::LeaseReply, Key::default())
                    };
                    let own = own.to_vec().expect("a message");
                    // Version and type, chain epoch, switch and incarnation.
                    for part in [0..2, 4..8, 12..20] {
                        message[part.clone()].copy_from_slice(&own[part]);
                    }
                }
                self.give(STORE, &message_frame(&message));
            }
            Step::Garbage(port, frame) => self.give(*port, frame),
            Step::Term(lasted, lasts) => self.set_term(*lasted, *lasts),
        }
    }

    fn set_term(&mut self, lasted: u64, lasts: u64) {
        let now = self.net.local(0);
        let term = element(Term {
            since: now.saturating_sub(lasted),
            deadline: now + lasts,
        });
        let state = self.switch.0.engine_mut().state_mut();
        let register = state.register_mut(TERM).expect("a replicated program");
        register.fill(&Value::from(term)).expect("64 bits");
    }

    fn answer(&mut self, request: &[u8], answer: &Answer) -> Vec<u8> {
        let request = Packet::new_checked(request).expect("looked at when it was sent");
        let request = Repr::parse(&request);
        let fitting = match request.message_type {
            MessageType::LeaseRequest => MessageType::LeaseReply,
            MessageType::WriteRequest => MessageType::WriteReply,
            MessageType::RenewRequest => MessageType::RenewReply,
            _ => MessageType::ProbeReply,
        };
        let message_type = answer.kind.unwrap_or(fitting);
        let state = answer.state.to_be_bytes();
        let mut reply = Repr {
            message_type,
            age: answer.age,
            ..request
        };
        reply.state = &[];
        match message_type {
            MessageType::LeaseReply => {
                self.epoch = self.epoch.wrapping_add(answer.epoch_step);
                reply.lease_epoch = self.epoch;
                reply.sequence = 1;
                reply.state = &state[..self.app.state_bytes];
            }
            MessageType::Refusal => {
                reply.code = answer.code as u8;
                reply.sequence = request.lease_epoch;
                reply.packet = None;
            }
            _ => {}
        }
        reply.to_vec().expect("a message")
    }

    fn give(&mut self, port: Port, frame: &[u8]) {
        self.switch.0.handle_frame(self.net.local(0), port, frame);
        self.look();
    }

    /// Fetches and judges what was sent, and balances the counters.
    fn look(&mut self) {
        for sent in self.net.poll(0, &mut self.switch) {
            self.judge(sent.port, &sent.frame);
            self.switch.0.recycle(sent.frame);
        }
        let (counters, occupancy) = (self.switch.0.counters(), self.switch.0.occupancy());
        assert_eq!(
            counters.born(),
            counters.ended() + occupancy.total(),
            "{counters:?} {occupancy:?}"
        );
    }

    fn judge(&mut self, port: Port, frame: &[u8]) {
        let outer = ethernet::Packet::new_checked(frame).expect("an Ethernet frame");
        assert_eq!(outer.ethertype(), ethernet::TYPE_IPV4);
        let header = &outer.payload()[..ipv4::HEADER_LENGTH];
        assert_eq!(header[0], 0x45, "{frame:02x?}");
        assert_eq!(checksum::of(header), 0, "{frame:02x?}");
        if port != STORE {
            assert_ne!(header[ipv4::field::TTL], 0);
            self.released += 1;
            return;
        }
        let datagram = ipv4::Packet::new_checked(outer.payload()).expect("an IPv4 datagram");
        assert_eq!((datagram.source(), datagram.destination()), (SWITCH, HEAD));
        let segment = udp::Packet::new_checked(datagram.payload()).expect("a UDP datagram");
        assert_eq!(
            (segment.source_port(), segment.destination_port()),
            (PORT, PORT)
        );
        let bytes = segment.payload();
        let length = datagram.payload().len();
        assert_eq!(outer.payload().len(), ipv4::HEADER_LENGTH + length);
        assert_eq!(bytes.len() + udp::HEADER_LENGTH, length);
        let message = Repr::parse(&Packet::new_checked(bytes).expect("a message"));
        assert!(message.message_type.is_request());
        assert_eq!(message.switch_id, SWITCH_ID);
        assert_eq!(message.incarnation, INCARNATION);
        assert_eq!(message.chain_epoch, CHAIN_EPOCH);
        assert_eq!(message.send_time, self.net.local(0));
        let is_write = message.message_type == MessageType::WriteRequest;
        let state_bytes = if is_write { self.app.state_bytes } else { 0 };
        assert_eq!(message.state.len(), state_bytes);
        self.asked.push(bytes.to_vec());
        if self.asked.len() > ASKED {
            self.asked.remove(0);
        }
    }
}

fn run(app: &App, steps: &[Step]) -> u64 {
    let mut trial = Trial::new(app);
    for step in steps {
        trial.take(step);
    }
    trial.released
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_nat_takes_anything(steps in vec(step(), 1..120)) {
        run(&NAT, &steps);
    }

    #[test]
    fn the_counter_takes_anything(steps in vec(step(), 1..120)) {
        run(&COUNTER, &steps);
    }
}

/// The steps are not so wild that no packet ever gets through.
#[test]
fn packets_get_through() {
    let steps = || {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let tree = vec(step(), 4000).new_tree(&mut runner).expect("steps");
        tree.current()
    };
    for app in [&*NAT, &*COUNTER] {
        assert!(run(app, &steps()) > 50);
    }
}

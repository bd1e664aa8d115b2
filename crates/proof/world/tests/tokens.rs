//! Tokens through a chain of five nodes and through a network of two spines and two leaves,
//! under loss, cuts, standstills and restarts: all arrive in order, and equal seeds give
//! equal traces.

use stateplane_world::{
    Clock, Effect, LinkQuality, MAX_DRIFT_PPM, Node, NodePort, NodeSpec, Nodes, Random, Sent,
    Topology,
};

const TOKENS: u64 = 200;
/// µs by the source's clock after which it sends a token again.
const RESEND: u64 = 2_000;
/// Port by which tokens leave the network.
const OUT: u16 = 9;
/// Time of the last fault.
const HEAL: u64 = 400_000;
const END: u64 = 2_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Message {
    Token(u64),
    Acknowledgement(u64),
}

enum Role {
    /// Sends each token by its ports in turn until it is acknowledged.
    Source {
        ports: Vec<u16>,
        due: u64,
        attempts: usize,
    },
    /// Passes everything on to its other port.
    Relay,
    /// Acknowledges tokens, and lets each out once, in order.
    Sink,
}

struct Core {
    role: Role,
    /// The newest token acknowledged to the source, or let out by the sink.
    newest: u64,
    outbox: Vec<Sent<Message>>,
}

impl Core {
    fn new(role: Role) -> Self {
        Self {
            role,
            newest: 0,
            outbox: Vec::new(),
        }
    }

    fn source(ports: &[u16]) -> Self {
        Self::new(Role::Source {
            ports: ports.to_vec(),
            due: 0,
            attempts: 0,
        })
    }

    fn send(&mut self, port: u16, message: Message) {
        self.outbox.insert(0, Sent { port, message });
    }
}

impl Node for Core {
    type Message = Message;
    type Transmit = Sent<Message>;

    fn handle_message(&mut self, now: u64, port: u16, _: NodePort, message: Message) {
        match (&mut self.role, message) {
            (Role::Source { due, .. }, Message::Acknowledgement(token)) => {
                if token == self.newest + 1 {
                    self.newest = token;
                    *due = now;
                }
            }
            (Role::Relay, message) => self.send(1 - port, message),
            (Role::Sink, Message::Token(token)) => {
                if token == self.newest + 1 {
                    self.newest = token;
                    self.send(OUT, message);
                }
                if token <= self.newest {
                    self.send(port, Message::Acknowledgement(token));
                }
            }
            _ => panic!("{message:?} came by port {port}"),
        }
    }

    fn handle_timeout(&mut self, now: u64) {
        let token = self.newest + 1;
        if let Role::Source {
            ports,
            due,
            attempts,
        } = &mut self.role
            && *due <= now
            && token <= TOKENS
        {
            *attempts += 1;
            *due = now + RESEND;
            let port = ports[*attempts % ports.len()];
            self.send(port, Message::Token(token));
        }
    }

    fn poll_transmit(&mut self, _: u64) -> Option<Sent<Message>> {
        self.outbox.pop()
    }

    fn poll_timeout(&self) -> Option<u64> {
        match self.role {
            Role::Source { due, .. } if self.newest < TOKENS => Some(due),
            _ => None,
        }
    }
}

#[derive(Clone, Copy)]
enum Fault {
    Die(usize),
    Return(usize),
    Stall(usize),
    Cut(NodePort, NodePort),
    Down(NodePort),
    Heal,
}

const LINK: LinkQuality = LinkQuality {
    loss: 100,
    duplicate: 50,
    delay: 50,
    jitter: 100,
    straggle: 20,
    straggle_delay: 3_000,
};

const SPEC: NodeSpec = NodeSpec {
    ring: Some(8),
    service: 5,
};

struct Outcome {
    tokens: Vec<u64>,
    trace: u64,
    lost: u64,
    refused: u64,
    duplicated: u64,
}

/// Sends the tokens through `topology`, whose relays are `relays`.
fn run(topology: &Topology, cores: Vec<Core>, relays: &[usize], seed: u64) -> Outcome {
    let mut plan = Random::new(seed);
    let mut nodes = Nodes::new(topology, cores, plan.split());
    for node in 0..topology.nodes.len() {
        let clock = Clock::draw(&mut plan, 0, MAX_DRIFT_PPM);
        nodes.net.set_clock(node, clock);
        // Its timer is to be by this clock.
        nodes.with(node, |core, now| match &mut core.role {
            Role::Source { due, .. } => *due = now,
            Role::Relay | Role::Sink => {}
        });
    }
    for _ in 0..12 {
        let at = plan.between(0, HEAL);
        let relay = relays[plan.place(relays.len())];
        let [one, other] = topology.links[plan.place(topology.links.len())].ends;
        match plan.place(4) {
            0 => {
                nodes.net.plan(at, Fault::Die(relay));
                nodes.net.plan(at + 20_000, Fault::Return(relay));
            }
            1 => nodes.net.plan(at, Fault::Stall(relay)),
            2 => nodes.net.plan(at, Fault::Cut(one, other)),
            _ => nodes.net.plan(at, Fault::Down(other)),
        }
    }
    nodes.net.plan(HEAL + 20_000, Fault::Heal);
    let mut tokens = Vec::new();
    while let Some(effect) = nodes.next_before(END) {
        let until = nodes.net.now() + 10_000;
        match effect {
            Effect::Left { from, message } => match message {
                Message::Token(token) if from.port == OUT => tokens.push(token),
                _ => panic!("{message:?} left by {from:?}"),
            },
            Effect::Lost { .. } => {}
            Effect::Event(Fault::Die(node)) => nodes.net.die(node),
            Effect::Event(Fault::Return(node)) => {
                let clock = Clock::draw(&mut plan, nodes.net.now(), MAX_DRIFT_PPM);
                nodes.restart(node, Core::new(Role::Relay), clock);
            }
            Effect::Event(Fault::Stall(node)) => nodes.net.stall(node, until),
            Effect::Event(Fault::Cut(from, to)) => nodes.net.cut(from, to, until),
            Effect::Event(Fault::Down(port)) => nodes.net.take_down(port, until),
            Effect::Event(Fault::Heal) => nodes.net.heal(),
        }
    }
    let counters = nodes.net.counters();
    Outcome {
        tokens,
        trace: nodes.net.trace(),
        lost: counters.lost,
        refused: counters.refused,
        duplicated: counters.duplicated,
    }
}

fn chain(seed: u64) -> Outcome {
    let mut cores = vec![Core::source(&[1])];
    cores.extend((0..3).map(|_| Core::new(Role::Relay)));
    cores.push(Core::new(Role::Sink));
    run(&Topology::chain(5, SPEC, LINK), cores, &[1, 2, 3], seed)
}

fn leaf_spine(seed: u64) -> Outcome {
    let cores = vec![
        Core::new(Role::Relay),
        Core::new(Role::Relay),
        Core::source(&[0, 1]),
        Core::new(Role::Sink),
    ];
    run(
        &Topology::leaf_spine(2, 2, SPEC, LINK),
        cores,
        &[0, 1],
        seed,
    )
}

fn all_arrive(run: fn(u64) -> Outcome) {
    let all: Vec<u64> = (1..=TOKENS).collect();
    let (mut traces, mut refused) = (Vec::new(), 0);
    for seed in 0..20 {
        let outcome = run(seed);
        assert_eq!(outcome.tokens, all, "seed {seed}");
        assert_eq!(outcome.trace, run(seed).trace, "seed {seed}");
        assert!(outcome.lost > 50 && outcome.duplicated > 20, "seed {seed}");
        traces.push(outcome.trace);
        refused += outcome.refused;
    }
    assert!(
        refused > 20,
        "{refused} messages came to a node or port that was not there"
    );
    traces.sort_unstable();
    traces.dedup();
    assert_eq!(traces.len(), 20);
}

#[test]
fn a_chain_of_five() {
    all_arrive(chain);
}

#[test]
fn two_spines_and_two_leaves() {
    all_arrive(leaf_spine);
}

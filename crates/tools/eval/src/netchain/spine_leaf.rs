//! Switches in two layers: the paper's model of their load (§8.3), and the same network in virtual
//! time with the program and the clients that ship.

use crate::error::EvalError;
use num_bigint::BigUint;
use stateplane_apps::table::{address, exact, insert, number};
use stateplane_coordination::{Agent, Chain, Event, Lanes, Operation, Place, Settings};
use stateplane_coordination_setup::{Coordination, SetupError};
use stateplane_native::{Compiled, Native, Options};
use stateplane_runtime::{Engine as _, KeyMatch};
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_wire::coordination::{Key, MessageType, Operand, PORT, Repr, flag};
use stateplane_wire::{ethernet, ipv4, udp};
use stateplane_world::{LinkQuality, Net, Node, NodePort, NodeSpec, Random, Step, Topology};
use std::net::{Ipv4Addr, SocketAddrV4};

/// The program of the switches.
const PROGRAM: &str = "apps/coordination/coordination_switch.p4";
/// Members of a chain.
const REPLICAS: usize = 3;

/// A network of spines and leaves: half as many spines as leaves. Spines come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers {
    pub spines: usize,
    pub leaves: usize,
}

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Reads,
    Writes,
}

impl Layers {
    /// A network of `switches` switches, a multiple of 3.
    pub const fn of(switches: usize) -> Layers {
        Layers {
            spines: switches / 3,
            leaves: switches - switches / 3,
        }
    }

    pub const fn switches(self) -> usize {
        self.spines + self.leaves
    }

    const fn is_spine(self, switch: usize) -> bool {
        switch < self.spines
    }

    /// Packets that the spines together and the leaves together take for one way from switch to
    /// switch, the first switch not counted: the shortest way.
    fn way(self, from: usize, to: usize) -> [f64; 2] {
        let at = |switch| {
            if self.is_spine(switch) {
                [1.0, 0.0]
            } else {
                [0.0, 1.0]
            }
        };
        if from == to {
            return [0.0; 2];
        }
        let [spines, leaves] = at(to);
        match (self.is_spine(from), self.is_spine(to)) {
            (true, true) => [spines, leaves + 1.0],
            (false, false) => [spines + 1.0, leaves],
            _ => [spines, leaves],
        }
    }

    /// Packets that spines and leaves take for a query of a client at each leaf with equal chance,
    /// to a chain of any switches in any order. A query goes from the client's leaf through the
    /// chain, a read to its last switch alone, and back to the client's leaf.
    pub fn load(self, asked: Asked) -> [f64; 2] {
        let all = self.switches();
        let mut sum = [0.0; 2];
        let mut count = 0.0;
        for leaf in self.spines..all {
            let mut add = |stops: &[usize]| {
                let mut at = leaf;
                let mut total = [0.0, 1.0];
                for stop in stops.iter().chain([&leaf]) {
                    let way = self.way(at, *stop);
                    total = [total[0] + way[0], total[1] + way[1]];
                    at = *stop;
                }
                sum = [sum[0] + total[0], sum[1] + total[1]];
                count += 1.0;
            };
            match asked {
                Asked::Reads => (0..all).for_each(|tail| add(&[tail])),
                Asked::Writes => {
                    for head in 0..all {
                        for middle in (0..all).filter(|at| *at != head) {
                            for tail in (0..all).filter(|at| *at != head && *at != middle) {
                                add(&[head, middle, tail]);
                            }
                        }
                    }
                }
            }
        }
        sum.map(|of| of / count)
    }

    /// Most queries per second where each switch takes `rate` packets per second: the layer that
    /// has most to do stops it.
    pub fn throughput(self, asked: Asked, rate: f64) -> f64 {
        let [spines, leaves] = self.load(asked);
        let of_spines = self.spines as f64 * rate / spines;
        let of_leaves = self.leaves as f64 * rate / leaves;
        of_spines.min(of_leaves)
    }
}

/// A run in virtual time.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub layers: Layers,
    pub asked: Asked,
    /// µs that a switch needs for a packet.
    pub service_us: u64,
    /// Requests in flight at each leaf.
    pub in_flight: u16,
    /// Virtual time that is measured, in µs, behind as much that is not.
    pub measured_us: u64,
}

/// A switch that runs the program.
struct SwitchNode(Switch<Native>);

/// An agent at a leaf that always has as many requests in flight.
struct ClientNode {
    agent: Agent,
    own: SocketAddrV4,
    /// A key of each group, in turn.
    groups: u16,
    turn: u64,
    asked: Asked,
    wanted: usize,
    answered: u64,
    failed: u64,
}

impl Node for SwitchNode {
    type Message = Vec<u8>;
    type Transmit = (u16, Vec<u8>);

    fn handle_message(&mut self, now: u64, port: u16, _: NodePort, frame: Vec<u8>) {
        self.0.handle_frame(now, port, &frame);
    }

    fn handle_timeout(&mut self, now: u64) {
        self.0.handle_timeout(now);
    }

    fn poll_transmit(&mut self, _: u64) -> Option<(u16, Vec<u8>)> {
        let transmit = self.0.poll_transmit()?;
        Some((transmit.port, transmit.frame))
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.0.poll_timeout()
    }
}

impl ClientNode {
    fn key(number: u64) -> Key {
        let mut key = [0; 16];
        key[8..].copy_from_slice(&(number + 1).to_be_bytes());
        Key(key)
    }

    /// Asks until enough is under way.
    fn ask(&mut self, now: u64) {
        while let Some(event) = self.agent.poll_event() {
            match event {
                Event::Answered { .. } => self.answered += 1,
                Event::Expired { .. } | Event::Unknown { .. } | Event::Failed { .. } => {
                    self.failed += 1;
                }
                Event::Resolved { .. }
                | Event::Entry { .. }
                | Event::ChainWanted { .. }
                | Event::LanesEnded => {}
            }
        }
        while self.agent.pending() < self.wanted {
            let number = self.turn;
            self.turn += 1;
            let group = (number % u64::from(self.groups)) as u16;
            // Some keys of each group: reads of what there is not are answered, too.
            let place = Place::within(group, Self::key(number / u64::from(self.groups) % 4));
            let operation = match self.asked {
                Asked::Reads => Operation::read(place),
                Asked::Writes => Operation::put(place, &[7; 64]),
            };
            if self.agent.submit(now, operation).is_err() {
                return;
            }
        }
    }
}

impl Node for ClientNode {
    type Message = Vec<u8>;
    type Transmit = Vec<u8>;

    fn handle_message(&mut self, now: u64, _: u16, _: NodePort, message: Vec<u8>) {
        if let Some((from, bytes)) = datagram(&message) {
            self.agent.handle_datagram(now, from, bytes);
        }
        self.ask(now);
    }

    fn handle_timeout(&mut self, now: u64) {
        self.agent.handle_timeout(now);
        self.ask(now);
    }

    fn poll_transmit(&mut self, _: u64) -> Option<Vec<u8>> {
        let (to, bytes) = self.agent.poll_transmit()?;
        Some(frame(self.own, to, &bytes))
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.agent.poll_timeout()
    }
}

fn switch_address(switch: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, switch as u8 + 1)
}

fn client_address(leaf: usize) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 1, leaf as u8 + 1), 5000)
}

fn frame(from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
    let datagram = udp::Repr {
        source_port: from.port(),
        destination_port: to.port(),
        payload,
    };
    let segment = datagram.to_vec(*from.ip(), *to.ip()).unwrap_or_default();
    let packet = ipv4::Repr::new(*from.ip(), *to.ip(), ipv4::PROTOCOL_UDP, &segment);
    let mut frame = vec![2; 12];
    frame.extend_from_slice(&ethernet::TYPE_IPV4.to_be_bytes());
    frame.extend(packet.to_vec().unwrap_or_default());
    frame
}

/// Sender and bytes of the datagram in a frame.
fn datagram(frame: &[u8]) -> Option<(SocketAddrV4, &[u8])> {
    let ethernet = ethernet::Packet::new_checked(frame).ok()?;
    let packet = ipv4::Packet::new_checked(ethernet.payload()).ok()?;
    let segment = udp::Packet::new_checked(packet.payload()).ok()?;
    let from = SocketAddrV4::new(packet.source(), segment.source_port());
    Some((from, segment.payload()))
}

impl Run {
    /// Port of a switch by which it sends to an address at `switch`, a switch or a leaf with a
    /// client: over any spine, or any leaf, that is between, by the number of the destination.
    fn port(&self, from: usize, to: usize, client: bool) -> u16 {
        let Layers { spines, leaves } = self.layers;
        let (count, first) = if self.layers.is_spine(from) {
            (spines, 0)
        } else {
            (leaves, spines)
        };
        // The number of the pair among all of its layer, so that each way has as many.
        let behind = to.saturating_sub(first + usize::from(to > from));
        let pair = (from - first) * (count - 1) + behind;
        let spread = pair + usize::from(client);
        let port = match (self.layers.is_spine(from), self.layers.is_spine(to)) {
            _ if from == to => spines.max(leaves),
            (true, true) => spread % leaves,
            (true, false) => to - spines,
            (false, true) => to,
            (false, false) => spread % spines,
        };
        port as u16
    }

    /// The port of a leaf that its client is at.
    fn client_port(&self) -> u16 {
        self.layers.spines.max(self.layers.leaves) as u16
    }

    fn switch(&self, compiled: &Compiled, place: usize) -> Result<SwitchNode, EvalError> {
        let refused = |reason: String| EvalError::Refused {
            what: PROGRAM.to_owned(),
            reason,
        };
        let engine = compiled.engine(Options::default());
        let engine = engine.map_err(|error| refused(error.to_string()))?;
        let mut config = SwitchConfig::default();
        config.ports.extend(0..=self.client_port());
        let switch = Switch::new(engine, config);
        let mut switch = switch.map_err(|error| refused(error.to_string()))?;
        let coordination = Coordination {
            switch: place as u32 + 1,
            address: switch_address(place),
            port: 0,
        };
        let mut set = || -> Result<(), SetupError> {
            coordination.apply(&mut switch, place as u32 + 1, true)?;
            let state = switch.engine_mut().state_mut();
            let all = self.layers.switches();
            let switches = (0..all).map(|at| (switch_address(at), at, false));
            let clients = self.layers.spines..all;
            let clients = clients.map(|at| (*client_address(at).ip(), at, true));
            for (to, at, client) in switches.chain(clients) {
                if at == place && !client {
                    continue;
                }
                let whole = KeyMatch::Prefix {
                    value: address(to),
                    length: 32,
                };
                insert(state, "routes", vec![whole], "connected", Vec::new())?;
                let mac = BigUint::from(0x0200_0000_0001_u64);
                let port = number(self.port(place, at, client));
                let data = vec![port, mac.clone(), mac];
                insert(state, "neighbours", exact(address(to)), "forward", data)?;
            }
            Ok(())
        };
        set().map_err(|error| refused(error.to_string()))?;
        Ok(SwitchNode(switch))
    }

    /// Chains of all switches in all orders, a group each.
    fn chains(&self) -> Vec<[usize; REPLICAS]> {
        let all = self.layers.switches();
        let mut chains = Vec::new();
        for head in 0..all {
            for middle in (0..all).filter(|at| *at != head) {
                for tail in (0..all).filter(|at| *at != head && *at != middle) {
                    chains.push([head, middle, tail]);
                }
            }
        }
        chains
    }

    fn found(&self, switches: &mut [SwitchNode], chains: &[[usize; REPLICAS]]) {
        let controller = SocketAddrV4::new(Ipv4Addr::new(10, 0, 2, 1), PORT);
        for (group, chain) in chains.iter().enumerate() {
            for member in chain {
                let mut configure = Repr {
                    group: group as u16,
                    generation: 1,
                    epoch: 1,
                    hops: REPLICAS as u8,
                    flags: flag::FOUNDS,
                    handle: *member as u32 + 1,
                    operand: Operand([0x3c; 16]),
                    ..Repr::new(MessageType::Configure)
                };
                configure.set_chain(chain.iter().map(|at| switch_address(*at)));
                configure.set_client(controller);
                let to = SocketAddrV4::new(switch_address(*member), PORT);
                let bytes = configure.to_vec().unwrap_or_default();
                let node = &mut switches[*member].0;
                node.handle_frame(0, 0, &frame(controller, to, &bytes));
                // Its answer has no way to a controller.
                while node.poll_transmit().is_some() {}
            }
        }
    }

    fn client(&self, leaf: usize, chains: &[[usize; REPLICAS]]) -> ClientNode {
        let own = client_address(leaf);
        let groups = chains.len() as u16;
        let settings = Settings {
            first_timeout_us: 200_000,
            least_timeout_us: 200_000,
            most_timeout_us: 400_000,
            ..Settings::new(own, groups)
        };
        let mut agent = Agent::new(settings, leaf as u64 + 1);
        agent.set_lanes(Lanes {
            session: leaf as u32 + 1,
            first: leaf as u16 * self.in_flight,
            count: self.in_flight,
            incarnation: 0,
        });
        for (group, chain) in chains.iter().enumerate() {
            let chain = Chain {
                group: group as u16,
                generation: 1,
                epoch: 1,
                members: chain.iter().map(|at| switch_address(*at)).collect(),
                joining: None,
            };
            agent.learn(0, chain);
        }
        ClientNode {
            agent,
            own,
            groups,
            turn: leaf as u64 * 31,
            asked: self.asked,
            wanted: self.in_flight.into(),
            answered: 0,
            failed: 0,
        }
    }

    /// Runs it; gives the answers per second, all of them good.
    ///
    /// # Errors
    ///
    /// `EV003` if the program is refused, `EV005` if a request fails.
    pub fn throughput(&self) -> Result<f64, EvalError> {
        let chains = self.chains();
        let lanes = self.in_flight * self.layers.switches() as u16;
        let source = stateplane_compile::shipped(PROGRAM)
            .define("COORDINATION_GROUPS", &chains.len().to_string())
            .define("COORDINATION_SLOTS", "16")
            .define("COORDINATION_LANES", &lanes.to_string());
        let refused = |reason: String| EvalError::Refused {
            what: PROGRAM.to_owned(),
            reason,
        };
        let program = source
            .program()
            .map_err(|error| refused(error.to_string()))?;
        let compiled = Compiled::verified(program).map_err(|error| refused(error.to_string()))?;
        let Layers { spines, leaves } = self.layers;
        let all = self.layers.switches();
        let spec = NodeSpec {
            ring: Some(1 << 20),
            service: self.service_us,
        };
        let link = LinkQuality::whole(1);
        let mut topology = Topology::leaf_spine(spines, leaves, spec, link);
        for leaf in spines..all {
            let node = topology.add_node(NodeSpec::default());
            let at = NodePort::new(leaf, self.client_port());
            topology.join(at, NodePort::new(node, 0), link);
        }
        let mut net: Net<Vec<u8>, ()> = Net::new(&topology, Random::new(1));
        let mut switches = Vec::new();
        for place in 0..all {
            switches.push(self.switch(&compiled, place)?);
        }
        self.found(&mut switches, &chains);
        let mut clients: Vec<_> = (spines..all)
            .map(|leaf| self.client(leaf, &chains))
            .collect();
        for (at, node) in switches.iter_mut().enumerate() {
            settle(&mut net, at, node);
        }
        for (at, client) in clients.iter_mut().enumerate() {
            client.ask(0);
            settle_client(&mut net, all + at, client);
        }
        let mut answered = [0, 0];
        for (part, until) in [self.measured_us, 2 * self.measured_us]
            .into_iter()
            .enumerate()
        {
            while let Some(step) = net.next_before(until) {
                match step {
                    Step::Message { from, to, message } if to.node < all => {
                        let now = net.now();
                        switches[to.node].handle_message(now, to.port, from, message);
                        settle(&mut net, to.node, &mut switches[to.node]);
                    }
                    Step::Message { from, to, message } => {
                        let client = &mut clients[to.node - all];
                        client.handle_message(net.now(), to.port, from, message);
                        settle_client(&mut net, to.node, client);
                    }
                    Step::Timeout { node } if node < all => {
                        switches[node].handle_timeout(net.now());
                        settle(&mut net, node, &mut switches[node]);
                    }
                    Step::Timeout { node } => {
                        let client = &mut clients[node - all];
                        client.handle_timeout(net.now());
                        settle_client(&mut net, node, client);
                    }
                    Step::Lost { .. } | Step::Event(()) => {}
                }
            }
            answered[part] = clients.iter().map(|client| client.answered).sum();
        }
        let failed: u64 = clients.iter().map(|client| client.failed).sum();
        if failed > 0 {
            return Err(refused(format!("{failed} requests failed")));
        }
        Ok((answered[1] - answered[0]) as f64 * 1e6 / self.measured_us as f64)
    }
}

/// Sends what a switch has for others.
fn settle(net: &mut Net<Vec<u8>, ()>, at: usize, node: &mut SwitchNode) {
    for (port, frame) in net.poll(at, node) {
        let from = NodePort::new(at, port);
        if let Some(to) = net.peer(from) {
            net.send(from, to, &frame);
        }
    }
}

fn settle_client(net: &mut Net<Vec<u8>, ()>, at: usize, client: &mut ClientNode) {
    let from = NodePort::new(at, 0);
    for frame in net.poll(at, client) {
        if let Some(to) = net.peer(from) {
            net.send(from, to, &frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_counts_the_switches_behind_the_first() {
        let layers = Layers::of(6);
        assert_eq!(
            layers,
            Layers {
                spines: 2,
                leaves: 4
            }
        );
        assert_eq!(layers.way(2, 2), [0.0, 0.0]);
        assert_eq!(layers.way(2, 3), [1.0, 1.0]);
        assert_eq!(layers.way(2, 0), [1.0, 0.0]);
        assert_eq!(layers.way(0, 2), [0.0, 1.0]);
        assert_eq!(layers.way(0, 1), [1.0, 1.0]);
    }

    #[test]
    fn a_read_passes_its_tail_and_what_is_between() {
        // Of six switches the client's leaf is the tail once, three times another leaf is, and
        // twice a spine.
        let [spines, leaves] = Layers::of(6).load(Asked::Reads);
        assert!((spines - (3.0 * 2.0 + 2.0) / 6.0).abs() < 1e-9);
        assert!((leaves - (1.0 + 3.0 * 3.0 + 2.0 * 2.0) / 6.0).abs() < 1e-9);
        let writes = Layers::of(6).load(Asked::Writes);
        assert!(writes[0] > spines && writes[1] > leaves);
    }

    #[test]
    fn the_model_says_what_a_network_of_six_does_in_virtual_time() {
        for asked in [Asked::Reads, Asked::Writes] {
            let run = Run {
                layers: Layers::of(6),
                asked,
                service_us: 2,
                in_flight: 150,
                measured_us: 15_000,
            };
            let model = run.layers.throughput(asked, 1e6 / run.service_us as f64);
            let found = run.throughput().unwrap();
            assert!(
                (found / model - 1.0).abs() < 0.1,
                "{asked:?}: {found} of {model}"
            );
        }
    }
}

//! Cores as nodes, and the driver of nodes that only send each other messages.

use crate::clock::Clock;
use crate::net::{Loss, Net, Step};
use crate::topology::{NodePort, Topology};
use core::hash::Hash;
use stateplane_random::Random;
use std::collections::VecDeque;

/// A core without IO. Times are of the node's own clock, in µs.
pub trait Node {
    /// A message as the node takes it.
    type Message;
    /// A message as the node sends it, with its destination.
    type Transmit;

    /// Takes a message that came from `from` to the node's port `port`.
    fn handle_message(&mut self, now: u64, port: u16, from: NodePort, message: Self::Message);

    /// Does what is due at `now`.
    fn handle_timeout(&mut self, now: u64);

    /// The next message to send.
    fn poll_transmit(&mut self, now: u64) -> Option<Self::Transmit>;

    /// Time of the next timeout.
    fn poll_timeout(&self) -> Option<u64>;
}

/// A message that leaves a node of [`Nodes`] by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent<M> {
    /// The port.
    pub port: u16,
    /// The message.
    pub message: M,
}

/// Effect of the nodes' work that their driver leaves to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<M, E> {
    /// A message left by a port without a link.
    Left {
        /// The port.
        from: NodePort,
        /// The message.
        message: M,
    },
    /// A message was lost on its arrival.
    Lost {
        /// Destination of the message.
        to: NodePort,
        /// Reason of the loss.
        cause: Loss,
    },
    /// A planned event is due.
    Event(E),
}

/// Nodes of one type, and the net between them.
pub struct Nodes<N: Node, E> {
    /// The net.
    pub net: Net<N::Message, E>,
    cores: Vec<N>,
    effects: VecDeque<Effect<N::Message, E>>,
}

impl<M: Clone + Hash, N: Node<Message = M, Transmit = Sent<M>>, E> Nodes<N, E> {
    /// Nodes with true clocks, which begin at once.
    ///
    /// # Panics
    ///
    /// If there is not one core for each node of the topology.
    pub fn new(topology: &Topology, cores: Vec<N>, random: Random) -> Self {
        assert_eq!(topology.nodes.len(), cores.len(), "one core for each node");
        let mut nodes = Self {
            net: Net::new(topology, random),
            cores,
            effects: VecDeque::new(),
        };
        for node in 0..nodes.cores.len() {
            nodes.after(node);
        }
        nodes
    }

    /// A node's core.
    pub fn core(&self, node: usize) -> &N {
        &self.cores[node]
    }

    /// Lets the caller work with a node's core, which may then send.
    pub fn with<T>(&mut self, node: usize, work: impl FnOnce(&mut N, u64) -> T) -> T {
        let local = self.net.local(node);
        let result = work(&mut self.cores[node], local);
        self.after(node);
        result
    }

    /// Starts a dead node with a new core and clock.
    pub fn restart(&mut self, node: usize, core: N, clock: Clock) {
        self.cores[node] = core;
        self.net.restart(node, clock);
        self.after(node);
    }

    /// Gives a node a message from outside, at once.
    pub fn give(&mut self, to: NodePort, message: M) {
        self.net.inject(to, message);
    }

    /// Lets everything happen that is due before `end`, up to the next effect; `None` if there
    /// is none.
    pub fn next_before(&mut self, end: u64) -> Option<Effect<M, E>> {
        loop {
            if let Some(effect) = self.effects.pop_front() {
                return Some(effect);
            }
            match self.net.next_before(end)? {
                Step::Message { from, to, message } => {
                    let local = self.net.local(to.node);
                    self.cores[to.node].handle_message(local, to.port, from, message);
                    self.after(to.node);
                }
                Step::Timeout { node } => {
                    let local = self.net.local(node);
                    self.cores[node].handle_timeout(local);
                    self.after(node);
                }
                Step::Lost { to, cause, .. } => return Some(Effect::Lost { to, cause }),
                Step::Event(event) => return Some(Effect::Event(event)),
            }
        }
    }

    fn after(&mut self, node: usize) {
        for Sent { port, message } in self.net.poll(node, &mut self.cores[node]) {
            let from = NodePort::new(node, port);
            match self.net.peer(from) {
                Some(to) => {
                    self.net.send(from, to, &message);
                }
                None => self.effects.push_back(Effect::Left { from, message }),
            }
        }
    }
}

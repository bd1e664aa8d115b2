//! Messages under way, and the seats of nodes.

use crate::clock::Clock;
use crate::link::LinkQuality;
use crate::node::Node;
use crate::schedule::Schedule;
use crate::topology::{NodePort, Topology};
use core::hash::{Hash, Hasher};
use rustc_hash::FxHasher;
use stateplane_random::Random;
use std::collections::{BTreeMap, VecDeque};

enum Happening<M, E> {
    Arrive {
        from: NodePort,
        to: NodePort,
        message: M,
    },
    /// A node takes the next message from its ring.
    Serve {
        node: usize,
        life: u32,
    },
    Timer {
        node: usize,
    },
    Event(E),
}

/// Reason why a message was lost on its arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The node is dead.
    Dead,
    /// The ring before the node is full.
    Full,
    /// The port is down.
    Down,
}

/// Step of a net, for its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<M, E> {
    /// A node takes a message.
    Message {
        /// Port of the sender; the port itself for a message from outside.
        from: NodePort,
        /// Port of the node.
        to: NodePort,
        /// The message.
        message: M,
    },
    /// A node's timer is due.
    Timeout {
        /// Number of the node.
        node: usize,
    },
    /// A message was lost on its arrival.
    Lost {
        /// Port of the sender.
        from: NodePort,
        /// Destination of the message.
        to: NodePort,
        /// Reason of the loss.
        cause: Loss,
    },
    /// An event that the driver planned is due.
    Event(E),
}

/// Event counters of a net.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages sent over links.
    pub sent: u64,
    /// Messages of which no copy left the link.
    pub lost: u64,
    /// Messages of which two copies left the link.
    pub duplicated: u64,
    /// Messages lost on arrival: their node was dead, its ring full, or the port down.
    pub refused: u64,
    /// Messages that nodes took.
    pub taken: u64,
}

/// A node as the net knows it.
struct Seat<M> {
    alive: bool,
    /// Number of deaths.
    life: u32,
    clock: Clock,
    timer: Option<u64>,
    /// End of its standstill, or of its work on the last message.
    busy_until: u64,
    service: u64,
    capacity: Option<usize>,
    ring: VecDeque<(NodePort, NodePort, M)>,
    /// True if a `Serve` is scheduled.
    serving: bool,
}

/// Nodes and links in virtual time, with messages of type `M`, and the driver's own events `E`.
pub struct Net<M, E> {
    /// Source of all randomness.
    pub random: Random,
    now: u64,
    schedule: Schedule<Happening<M, E>>,
    seats: Vec<Seat<M>>,
    /// Quality of the way from one port to another.
    links: BTreeMap<(NodePort, NodePort), LinkQuality>,
    /// End times of one-way cuts.
    cuts: BTreeMap<(NodePort, NodePort), u64>,
    /// Times until which ports are down.
    down: BTreeMap<NodePort, u64>,
    /// Links lose nothing any more.
    whole: bool,
    counters: Counters,
    trace: FxHasher,
}

impl<M: Clone + Hash, E> Net<M, E> {
    /// Nodes with true clocks, all alive, at time 0.
    ///
    /// # Panics
    ///
    /// If a link has an end at no node.
    pub fn new(topology: &Topology, random: Random) -> Self {
        let seats = topology.nodes.iter().map(|spec| Seat {
            alive: true,
            life: 0,
            clock: Clock::TRUE,
            timer: None,
            busy_until: 0,
            service: spec.service,
            capacity: spec.ring,
            ring: VecDeque::new(),
            serving: false,
        });
        let mut links = BTreeMap::new();
        for link in &topology.links {
            let [one, other] = link.ends;
            for end in link.ends {
                let nodes = topology.nodes.len();
                assert!(end.node < nodes, "{link:?} ends at none of {nodes} nodes");
            }
            links.insert((one, other), link.quality);
            links.insert((other, one), link.quality);
        }
        Self {
            random,
            now: 0,
            schedule: Schedule::new(),
            seats: seats.collect(),
            links,
            cuts: BTreeMap::new(),
            down: BTreeMap::new(),
            whole: false,
            counters: Counters::default(),
            trace: FxHasher::default(),
        }
    }

    /// True time.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Event counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// A number over everything that nodes took and when: equal for equal runs.
    pub fn trace(&self) -> u64 {
        self.trace.finish()
    }

    /// A node's clock.
    pub fn clock(&self, node: usize) -> &Clock {
        &self.seats[node].clock
    }

    /// Reading of a node's clock.
    pub fn local(&self, node: usize) -> u64 {
        self.seats[node].clock.local(self.now)
    }

    /// Gives a node a clock.
    pub fn set_clock(&mut self, node: usize, clock: Clock) {
        self.seats[node].clock = clock;
    }

    /// Sets the time in µs that a node with a ring needs for one message.
    pub fn set_service(&mut self, node: usize, service: u64) {
        self.seats[node].service = service;
    }

    /// Plans an event of the driver's.
    pub fn plan(&mut self, at: u64, event: E) {
        self.schedule.add(at, Happening::Event(event));
    }

    /// The port at the other end of a port's link, of the first by number if it has several.
    pub fn peer(&self, from: NodePort) -> Option<NodePort> {
        let first = (from, NodePort::new(0, 0));
        let (&(found, to), _) = self.links.range(first..).next()?;
        (found == from).then_some(to)
    }

    /// Sends a message over the link between two ports; returns the number of copies that
    /// arrive.
    ///
    /// # Panics
    ///
    /// If no link joins the ports.
    pub fn send(&mut self, from: NodePort, to: NodePort, message: &M) -> u32 {
        self.send_each(from, to, |_| message.clone())
    }

    /// Sends a message over the link between two ports, of which `make` makes each copy that
    /// arrives; returns their number.
    ///
    /// # Panics
    ///
    /// If no link joins the ports.
    pub fn send_each(
        &mut self,
        from: NodePort,
        to: NodePort,
        mut make: impl FnMut(&mut Random) -> M,
    ) -> u32 {
        let quality = self.links.get(&(from, to));
        let quality = quality.unwrap_or_else(|| panic!("no link from {from:?} to {to:?}"));
        let link = if self.whole {
            LinkQuality::whole(quality.delay)
        } else {
            *quality
        };
        let cut = self.is_cut(from, to) || self.is_down(from);
        let mut copies = 0;
        for delay in link.carry(&mut self.random).filter(|_| !cut) {
            copies += 1;
            let message = make(&mut self.random);
            let arrival = Happening::Arrive { from, to, message };
            self.schedule.add(self.now + delay, arrival);
        }
        self.counters.sent += 1;
        match copies {
            0 => self.counters.lost += 1,
            1 => {}
            _ => self.counters.duplicated += 1,
        }
        copies
    }

    /// Gives a node a message from outside, at once.
    pub fn inject(&mut self, to: NodePort, message: M) {
        let from = to;
        self.schedule
            .add(self.now, Happening::Arrive { from, to, message });
    }

    /// Takes what a node sends, and arms its timer.
    pub fn poll<N: Node + ?Sized>(&mut self, node: usize, core: &mut N) -> Vec<N::Transmit> {
        let local = self.local(node);
        let sent = core::iter::from_fn(|| core.poll_transmit(local)).collect();
        let seat = &mut self.seats[node];
        let due = core.poll_timeout();
        // A timeout that a core leaves due would otherwise stop time.
        let due = due.map(|due| seat.clock.time_of(due).max(self.now + 1));
        if let Some(due) = due
            && seat.timer != Some(due)
        {
            seat.timer = Some(due);
            self.schedule.add(due, Happening::Timer { node });
        }
        sent
    }

    /// Lets time pass to the next step before `end`; `None` if there is none.
    pub fn next_before(&mut self, end: u64) -> Option<Step<M, E>> {
        while let Some((at, happening)) = self.schedule.pop_before(end) {
            self.now = at;
            let step = match happening {
                Happening::Arrive { from, to, message } => self.arrive(from, to, message),
                Happening::Serve { node, life } => self.serve(node, life),
                Happening::Timer { node } => self.timer(node),
                Happening::Event(event) => Some(Step::Event(event)),
            };
            if step.is_some() {
                return step;
            }
        }
        None
    }

    /// Lets time pass to `until`, before which nothing is due.
    ///
    /// # Panics
    ///
    /// If something is due before.
    pub fn rest_until(&mut self, until: u64) {
        let due = self.schedule.next_at();
        assert!(
            due.is_none_or(|at| at >= until),
            "{due:?} is before {until}"
        );
        self.now = self.now.max(until);
    }

    fn arrive(&mut self, from: NodePort, to: NodePort, message: M) -> Option<Step<M, E>> {
        let now = self.now;
        let down = self.is_down(to);
        let seat = &mut self.seats[to.node];
        if seat.capacity.is_none() && now < seat.busy_until {
            let later = Happening::Arrive { from, to, message };
            self.schedule.add(seat.busy_until, later);
            return None;
        }
        let full = seat.capacity.is_some_and(|most| seat.ring.len() >= most);
        let cause = match (seat.alive, full, down) {
            (false, ..) => Some(Loss::Dead),
            (_, true, _) => Some(Loss::Full),
            (.., true) => Some(Loss::Down),
            _ => None,
        };
        if let Some(cause) = cause {
            self.counters.refused += 1;
            return Some(Step::Lost { from, to, cause });
        }
        if seat.capacity.is_none() {
            return Some(self.take(from, to, message));
        }
        seat.ring.push_back((from, to, message));
        if !seat.serving {
            seat.serving = true;
            let (node, life) = (to.node, seat.life);
            let at = now.max(seat.busy_until);
            self.schedule.add(at, Happening::Serve { node, life });
        }
        None
    }

    fn serve(&mut self, node: usize, life: u32) -> Option<Step<M, E>> {
        let now = self.now;
        let seat = &mut self.seats[node];
        if seat.life != life {
            return None;
        }
        let again = Happening::Serve { node, life };
        if now < seat.busy_until {
            self.schedule.add(seat.busy_until, again);
            return None;
        }
        let Some((from, to, message)) = seat.ring.pop_front() else {
            seat.serving = false;
            return None;
        };
        seat.busy_until = now + seat.service;
        self.schedule.add(seat.busy_until, again);
        Some(self.take(from, to, message))
    }

    fn timer(&mut self, node: usize) -> Option<Step<M, E>> {
        let now = self.now;
        let seat = &mut self.seats[node];
        if seat.timer != Some(now) {
            return None;
        }
        if now < seat.busy_until {
            seat.timer = Some(seat.busy_until);
            self.schedule
                .add(seat.busy_until, Happening::Timer { node });
            return None;
        }
        seat.timer = None;
        Some(Step::Timeout { node })
    }

    fn take(&mut self, from: NodePort, to: NodePort, message: M) -> Step<M, E> {
        self.counters.taken += 1;
        self.trace.write_u64(self.now);
        to.hash(&mut self.trace);
        message.hash(&mut self.trace);
        Step::Message { from, to, message }
    }
}

/// Faults, and their ends.
impl<M, E> Net<M, E> {
    /// A node dies: what waits before it is lost, and its timer.
    pub fn die(&mut self, node: usize) {
        let seat = &mut self.seats[node];
        seat.alive = false;
        seat.life += 1;
        seat.ring.clear();
        seat.serving = false;
        seat.timer = None;
    }

    /// A dead node returns.
    pub fn restart(&mut self, node: usize, clock: Clock) {
        let seat = &mut self.seats[node];
        seat.alive = true;
        seat.clock = clock;
        seat.busy_until = self.now;
    }

    /// True unless the node is dead.
    pub fn is_alive(&self, node: usize) -> bool {
        self.seats[node].alive
    }

    /// A node stands still until then, if not longer.
    pub fn stall(&mut self, node: usize, until: u64) {
        let seat = &mut self.seats[node];
        seat.busy_until = seat.busy_until.max(until);
    }

    /// End of a node's standstill, or of its work on the last message; `None` if it waits.
    pub fn stands_until(&self, node: usize) -> Option<u64> {
        Some(self.seats[node].busy_until).filter(|until| self.now < *until)
    }

    /// Ends a node's standstill.
    pub fn rouse(&mut self, node: usize) {
        let seat = &mut self.seats[node];
        seat.busy_until = seat.busy_until.min(self.now);
    }

    /// Nothing that is sent from one port to another arrives until then, if not longer.
    pub fn cut(&mut self, from: NodePort, to: NodePort, until: u64) {
        let present = self.cuts.entry((from, to)).or_default();
        *present = (*present).max(until);
    }

    /// A port is down until then, if not longer: nothing leaves it, and what arrives is lost.
    pub fn take_down(&mut self, port: NodePort, until: u64) {
        let present = self.down.entry(port).or_default();
        *present = (*present).max(until);
    }

    /// True if what is sent from one port to another does not arrive.
    pub fn is_cut(&self, from: NodePort, to: NodePort) -> bool {
        let until = self.cuts.get(&(from, to));
        until.is_some_and(|until| self.now < *until)
    }

    /// True if any link is cut in one direction at least.
    pub fn has_cuts(&self) -> bool {
        self.cuts.values().any(|until| self.now < *until)
    }

    fn is_down(&self, port: NodePort) -> bool {
        let until = self.down.get(&port);
        until.is_some_and(|until| self.now < *until)
    }

    /// Links only delay from here on, cuts end, and ports are up.
    pub fn heal(&mut self) {
        self.whole = true;
        self.cuts.clear();
        self.down.clear();
    }
}

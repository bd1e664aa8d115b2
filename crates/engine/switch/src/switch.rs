//! The switch.

mod configure;
mod fellow;
mod made;
mod pipeline;
mod replace;

use crate::config::{Generator, Limits, MAX_FRAME, MirrorSession, Replica, SwitchConfig, Watch};
use crate::counters::{Counters, DropReason, Occupancy, PortCounters};
use crate::error::SwitchError;
use crate::hold::{HoldQueue, Overfull};
use crate::ports::Ports;
use crate::queue::EgressQueues;
use crate::watch::Watches;
use stateplane_invariant::{Broken, Invariants};
use stateplane_runtime::{Engine, InstanceType, Port, Preserved, SWEEP_US};
use std::collections::{BTreeMap, VecDeque};

/// Timestamps of v1model have 48 bits.
pub(crate) const TIMESTAMP_MASK: u64 = (1 << 48) - 1;

/// Buffers kept for reuse.
const SPARE_BUFFERS: usize = 1024;

/// Buffers above this capacity are not kept: a rare long frame should not cost
/// memory for ever.
const SPARE_BUFFER_CAPACITY: usize = 16 << 10;

/// Held copies behind the one that is due, by number, of which the engine is told.
const EXPECTED: [usize; 2] = [8, 4];

/// A frame to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The port by which it leaves.
    pub port: Port,
    /// The whole frame, [`Limits::shortest_frame`] to [`MAX_FRAME`] bytes.
    pub frame: Vec<u8>,
}

/// A frame that goes back to ingress.
struct Returning {
    frame: Vec<u8>,
    port: Port,
    preserved: Preserved,
    /// Number of resubmissions since the packet last came to ingress by another path.
    resubmits: u32,
}

struct ActiveGenerator {
    generator: Generator,
    /// `None` until the switch first sees the time.
    due: Option<u64>,
    /// Frames of the present batch that were injected.
    sent: u32,
}

/// Sources of packets that are served in turn, besides egress.
#[derive(Clone, Copy)]
enum Source {
    Recirculation,
    Resubmission,
    Held,
    Generator,
}

const SOURCES: [Source; 4] = [
    Source::Recirculation,
    Source::Resubmission,
    Source::Held,
    Source::Generator,
];

/// A sans-IO switch around an engine.
///
/// Call [`handle_frame`](Self::handle_frame) for each frame that arrives and
/// [`handle_timeout`](Self::handle_timeout) when the time of
/// [`poll_timeout`](Self::poll_timeout) has come; after either, fetch everything
/// from [`poll_transmit`](Self::poll_transmit) and
/// [`poll_port_state`](Self::poll_port_state).
///
/// Times are microseconds of one clock that does not step back; a time before that
/// of an earlier call is taken to be the earlier call's. The engine sees their low
/// 48 bits.
pub struct Switch<E: Engine> {
    engine: E,
    limits: Limits,
    ports: Ports,
    sessions: BTreeMap<u32, MirrorSession>,
    groups: BTreeMap<u16, Vec<Replica>>,
    generators: Vec<ActiveGenerator>,
    watches: Watches,
    egress: EgressQueues<E::InFlight>,
    held: HoldQueue<E::InFlight>,
    recirculation: VecDeque<Returning>,
    resubmission: VecDeque<Returning>,
    transmit: VecDeque<Transmit>,
    spare: Vec<Vec<u8>>,
    counters: Counters,
    now: u64,
    /// When entries that age are looked at next; `None` if another one does that.
    next_sweep: Option<u64>,
    /// Packets of the egress queues to serve before the next other source.
    egress_share: usize,
    invariants: Invariants,
    /// Position in [`SOURCES`] of the source to serve next.
    next_source: usize,
    /// Of the pseudo-random numbers of a fellow's engines.
    seed: u64,
    /// Programs before the present one.
    program: u64,
    /// Changes of mirror sessions and multicast groups.
    setting: u64,
    /// Locks for which engines before the present one waited.
    lock_waits: u64,
}

impl<E: Engine> Switch<E> {
    /// A switch with all ports up and empty queues.
    ///
    /// # Errors
    ///
    /// The first part of `config` that is out of range, given twice, beyond the
    /// limits, or names a port or register that does not exist.
    pub fn new(engine: E, config: SwitchConfig) -> Result<Self, SwitchError> {
        let ports = Ports::new(&config.ports)?;
        let mut switch = Self::idle(engine, config.limits, ports);
        for (number, session) in config.mirror_sessions {
            switch.set_mirror_session(number, session)?;
        }
        for (number, replicas) in config.multicast_groups {
            switch.set_multicast_group(number, replicas)?;
        }
        for generator in config.generators {
            switch.add_generator(generator)?;
        }
        for watch in config.watches {
            switch.add_watch(watch)?;
        }
        Ok(switch)
    }

    /// A switch with empty queues, and nothing set.
    fn idle(engine: E, limits: Limits, ports: Ports) -> Self {
        Self {
            engine,
            limits,
            ports,
            sessions: BTreeMap::new(),
            groups: BTreeMap::new(),
            generators: Vec::new(),
            watches: Watches::default(),
            egress: EgressQueues::new(limits.queue),
            held: HoldQueue::new(limits.held, limits.held_bytes),
            recirculation: VecDeque::new(),
            resubmission: VecDeque::new(),
            transmit: VecDeque::new(),
            spare: Vec::new(),
            counters: Counters::default(),
            invariants: Invariants::new(false),
            now: 0,
            next_sweep: Some(0),
            egress_share: 0,
            next_source: 0,
            seed: 0,
            program: 0,
            setting: 0,
            lock_waits: 0,
        }
    }

    /// The engine, for the control plane to read.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// The engine, for the control plane to write.
    pub fn engine_mut(&mut self) -> &mut E {
        &mut self.engine
    }

    /// Begins a burst of packets, unless one has begun ([`Engine::begin_burst`]).
    pub fn begin_burst(&mut self) {
        self.engine.begin_burst();
    }

    /// Ends a burst of packets, if one has begun: the caller may wait for something.
    pub fn end_burst(&mut self) {
        self.engine.end_burst();
    }

    /// Counts of packets.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Breaks the count of bytes held.
    #[cfg(test)]
    pub(crate) fn forget_held_bytes(&mut self) {
        self.held.forget_bytes();
    }

    /// The next broken invariant to report; each is given once.
    pub fn poll_broken(&mut self) -> Option<Broken> {
        self.invariants.poll()
    }

    /// Packets that are in the switch.
    pub fn occupancy(&self) -> Occupancy {
        Occupancy {
            queued: self.egress.len() as u64,
            held: self.held.len() as u64,
            recirculating: self.recirculation.len() as u64,
            resubmitting: self.resubmission.len() as u64,
            transmit: self.transmit.len() as u64,
        }
    }

    /// Numbers of the ports, ascending.
    pub fn ports(&self) -> &[Port] {
        self.ports.numbers()
    }

    /// Checks that `port` is one of the switch's.
    ///
    /// # Errors
    ///
    /// [`SwitchError::PortOutOfRange`] or [`SwitchError::UnknownPort`].
    pub fn require_port(&self, port: Port) -> Result<(), SwitchError> {
        self.ports.require(port)
    }

    /// Counts of one port; `None` if the switch has no such port.
    pub fn port_counters(&self, port: Port) -> Option<PortCounters> {
        self.ports.get(port).map(|entry| entry.counters)
    }

    /// True if frames pass `port`: its link is up and no watch on it is stale.
    pub fn port_is_up(&self, port: Port) -> bool {
        self.ports.get(port).is_some_and(|entry| entry.is_up())
    }

    /// Tells the switch that the link of `port` came up or went down.
    ///
    /// # Errors
    ///
    /// Returns an error if the switch has no such port.
    pub fn set_link_up(&mut self, port: Port, up: bool) -> Result<(), SwitchError> {
        self.ports.set_link(port, up)
    }

    /// Tells the switch how many bytes the longest frame has that `port` sends; a longer one
    /// is still given to [`poll_transmit`](Self::poll_transmit).
    ///
    /// # Errors
    ///
    /// Returns an error if the switch has no such port.
    pub fn set_longest_frame(&mut self, port: Port, bytes: usize) -> Result<(), SwitchError> {
        self.ports.require(port)?;
        if let Some(entry) = self.ports.get_mut(port) {
            entry.longest = bytes;
        }
        Ok(())
    }

    /// Port and length of the first frame, of those that wait to be sent behind the first
    /// `before`, that is longer than its port sends, with the longest that it does.
    pub fn too_long_for_port(&self, before: usize) -> Option<(Port, usize, usize)> {
        self.transmit.iter().skip(before).find_map(|transmit| {
            let longest = self.ports.get(transmit.port)?.longest;
            let length = transmit.frame.len();
            (length > longest).then_some((transmit.port, length, longest))
        })
    }

    /// Takes a frame that arrived by `port` at `now_us` through the pipeline.
    ///
    /// A frame that is too short, too long, or from a port that is unknown or down
    /// is counted and dropped before the engine sees it.
    pub fn handle_frame(&mut self, now_us: u64, port: Port, frame: &[u8]) {
        self.advance(now_us);
        self.counters.received += 1;
        let mut left = self.limits.work.max(1);
        match self.admit(port, frame) {
            Ok(()) => {
                let mut work = self.limits.work;
                let preserved = Preserved::default();
                if self.is_idle() {
                    // Egress counts as work of the call whether it runs at once or later,
                    // so that all engines make the switch do the same.
                    let forwarded = self.forward(frame, port, &preserved, &mut work);
                    left -= u32::from(forwarded);
                } else {
                    self.run_ingress(frame, port, InstanceType::Normal, &preserved, 0, &mut work);
                }
            }
            Err(reason) => self.drop(reason),
        }
        self.run(left);
    }

    /// Tells the engine of a frame that [`handle_frame`](Self::handle_frame) will soon be
    /// called for. Called for all frames of a burst before the first is handled, it lets
    /// their table lookups wait for memory together.
    pub fn announce(&mut self, port: Port, frame: &[u8]) {
        self.engine.announce(port, frame);
    }

    /// Key of the state that a frame from the outside will lock ([`Engine::state_key`]).
    pub fn state_key(&mut self, port: Port, frame: &[u8]) -> Option<u16> {
        self.engine.state_key(port, frame)
    }

    /// Does what is due at `now_us`: held copies, generators, watches, entries that were
    /// idle for too long ([`TargetState::idle`]), and work that an earlier call left.
    ///
    /// [`TargetState::idle`]: stateplane_runtime::TargetState::idle
    pub fn handle_timeout(&mut self, now_us: u64) {
        self.advance(now_us);
        self.run(self.limits.work.max(1));
    }

    /// The next frame to send. Give its buffer back by [`recycle`](Self::recycle).
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        let transmit = self.transmit.pop_front()?;
        self.counters.transmitted += 1;
        if let Some(entry) = self.ports.get_mut(transmit.port) {
            entry.transmit_depth -= 1;
            entry.counters.tx_packets += 1;
            entry.counters.tx_bytes += transmit.frame.len() as u64;
        }
        Some(transmit)
    }

    /// Takes back the buffer of a frame that was sent.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS && buffer.capacity() <= SPARE_BUFFER_CAPACITY {
            self.spare.push(buffer);
        }
    }

    /// The time in µs at which [`handle_timeout`](Self::handle_timeout) should be
    /// called; `None` if nothing waits for time. A time that has passed means at
    /// once.
    pub fn poll_timeout(&self) -> Option<u64> {
        let occupancy = self.occupancy();
        if occupancy.queued + occupancy.recirculating + occupancy.resubmitting > 0 {
            return Some(self.now);
        }
        let generators = self
            .generators
            .iter()
            .map(|active| active.due.unwrap_or(self.now))
            .min();
        [
            self.held.first_due(),
            generators,
            self.watches.next_check(self.now),
            self.next_sweep.filter(|_| self.engine.state().is_aging()),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// The next port that its watches want up (`true`) or down, where that changed.
    /// The switch itself passes no frames on a port that should be down.
    pub fn poll_port_state(&mut self) -> Option<(Port, bool)> {
        self.ports.poll_state()
    }

    /// A watch that keeps its ports down.
    pub fn stale_watch(&self) -> Option<&Watch> {
        self.watches.stale()
    }

    fn advance(&mut self, now_us: u64) {
        self.now = self.now.max(now_us);
        self.watches
            .check(self.now, self.engine.state(), &mut self.ports);
        if self.next_sweep.is_some_and(|time| self.now >= time) {
            self.next_sweep = Some(self.now.saturating_add(SWEEP_US));
            if self.engine.state().is_aging() {
                self.engine.state_mut().sweep_idle(self.now);
            }
        }
    }

    fn admit(&mut self, port: Port, frame: &[u8]) -> Result<(), DropReason> {
        let shortest = self.limits.shortest_frame as usize;
        let entry = self.ports.get_mut(port).ok_or(DropReason::UnknownPort)?;
        if !entry.is_up() {
            return Err(DropReason::PortDown);
        }
        if frame.len() < shortest {
            return Err(DropReason::Runt);
        }
        if frame.len() > MAX_FRAME {
            return Err(DropReason::Oversize);
        }
        entry.counters.rx_packets += 1;
        entry.counters.rx_bytes += frame.len() as u64;
        Ok(())
    }

    /// True if nothing waits, or is due, that would be served before the egress of a packet that
    /// arrives.
    fn is_idle(&self) -> bool {
        self.egress.len() == 0
            && self.recirculation.is_empty()
            && self.resubmission.is_empty()
            && self.held.first_due().is_none_or(|due| due > self.now)
            && self
                .generators
                .iter()
                .all(|active| active.due.is_some_and(|due| due > self.now))
    }

    /// Works until nothing is due or `work` is done.
    fn run(&mut self, mut work: u32) {
        while work > 0 {
            if self.egress_share > 0 {
                self.egress_share -= 1;
                self.run_egress(&mut work);
                continue;
            }
            let served = self.serve_next_source(&mut work);
            // Packets that one source adds to the queues are served before the next source; packets
            // that those add in turn are not: a packet that clones itself for ever must not starve
            // the others.
            self.egress_share = self.egress.len();
            if !served && self.egress_share == 0 {
                break;
            }
        }
        self.watches
            .check(self.now, self.engine.state(), &mut self.ports);
    }

    fn serve_next_source(&mut self, work: &mut u32) -> bool {
        for _ in 0..SOURCES.len() {
            let source = SOURCES[self.next_source];
            self.next_source = (self.next_source + 1) % SOURCES.len();
            if self.serve(source, work) {
                return true;
            }
        }
        false
    }

    fn serve(&mut self, source: Source, work: &mut u32) -> bool {
        match source {
            Source::Recirculation => {
                let Some(returning) = self.recirculation.pop_front() else {
                    return false;
                };
                self.counters.recirculated += 1;
                self.serve_returning(returning, InstanceType::Recirculated, work);
                true
            }
            Source::Resubmission => {
                let Some(returning) = self.resubmission.pop_front() else {
                    return false;
                };
                self.counters.resubmitted += 1;
                self.serve_returning(returning, InstanceType::Resubmitted, work);
                true
            }
            Source::Held => {
                // A copy stays held while its queue has no room: it was promised a
                // later time, not a drop.
                let room = self
                    .held
                    .due_port(self.now)
                    .is_some_and(|port| self.egress.has_room(port));
                if !room {
                    return false;
                }
                for others in EXPECTED {
                    if let Some(later) = self.held.behind(others) {
                        self.engine.expect(&later.packet, others);
                    }
                }
                match self.held.pop(&mut self.invariants) {
                    Some(Ok(copy)) => self.enqueue(copy),
                    Some(Err(Overfull)) => self.counters.drop(DropReason::BrokenInvariant),
                    None => {}
                }
                true
            }
            Source::Generator => self.serve_generator(work),
        }
    }

    fn serve_returning(&mut self, returning: Returning, instance: InstanceType, work: &mut u32) {
        let Returning {
            frame,
            port,
            preserved,
            resubmits,
        } = returning;
        self.run_ingress(&frame, port, instance, &preserved, resubmits, work);
        self.recycle(frame);
    }

    fn serve_generator(&mut self, work: &mut u32) -> bool {
        let now = self.now;
        let Some(active) = self
            .generators
            .iter_mut()
            .find(|active| active.due.is_none_or(|due| due <= now))
        else {
            return false;
        };
        let Generator {
            port,
            period_us,
            batch,
            index_at,
            spread,
            frame: ref template,
        } = active.generator;
        let mut frame = self.spare.pop().unwrap_or_default();
        frame.clear();
        frame.extend_from_slice(template);
        let place = index_at.and_then(|at| frame.get_mut(at..)?.first_chunk_mut());
        if let Some(place) = place {
            *place = active.sent.to_be_bytes();
        }
        active.sent += 1;
        let due = active.due.unwrap_or(now);
        active.due = Some(due);
        let is_whole = active.sent >= batch;
        if is_whole || spread {
            let parts = if spread { u64::from(batch) } else { 1 };
            let step_us = (period_us / parts).max(1);
            let missed = (now - due) / step_us;
            active.due = Some(due.saturating_add((missed + 1).saturating_mul(step_us)));
            self.counters.generator_skipped += missed;
        }
        if is_whole {
            active.sent = 0;
        }
        self.counters.generated += 1;
        self.run_ingress(
            &frame,
            port,
            InstanceType::Normal,
            &Preserved::default(),
            0,
            work,
        );
        self.recycle(frame);
        true
    }
}

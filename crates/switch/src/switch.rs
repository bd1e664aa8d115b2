//! The switch.

use crate::config::{
    Generator, Limits, MAX_FRAME, MAX_HOLD_US, MIN_FRAME, MirrorSession, Replica, SwitchConfig,
    Watch,
};
use crate::counters::{Counters, DropReason, Occupancy, PortCounters};
use crate::error::SwitchError;
use crate::hold::HoldQueue;
use crate::ports::{Ports, check_range};
use crate::queue::{EgressQueues, Queued};
use crate::watch::Watches;
use stateplane_target::{
    CloneRequest, DROP_PORT, EgressInput, Engine, IngressInput, InstanceType, Port, Preserved,
};
use std::collections::{BTreeMap, VecDeque};

/// Timestamps of v1model have 48 bits.
pub(crate) const TIMESTAMP_MASK: u64 = (1 << 48) - 1;

/// Buffers kept for reuse.
const SPARE_BUFFERS: usize = 1024;

/// Buffers above this capacity are not kept: a rare long frame should not cost
/// memory for ever.
const SPARE_BUFFER_CAPACITY: usize = 16 << 10;

/// A frame to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The port by which it leaves.
    pub port: Port,
    /// The whole frame, [`MIN_FRAME`] to [`MAX_FRAME`] bytes.
    pub frame: Vec<u8>,
}

/// A frame that goes back to ingress.
struct Returning {
    frame: Vec<u8>,
    port: Port,
    preserved: Preserved,
    /// How often it was resubmitted since it last came to ingress by other ways.
    resubmits: u32,
}

struct ActiveGenerator {
    generator: Generator,
    /// `None` until the switch first sees the time.
    due: Option<u64>,
}

/// What is served, besides egress, in turn.
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
    /// Packets of the egress queues to serve before the next other source.
    egress_share: usize,
    /// Position in [`SOURCES`] of the source to serve next.
    next_source: usize,
}

impl<E: Engine> Switch<E> {
    /// A switch with all ports up and empty queues.
    ///
    /// # Errors
    ///
    /// The first part of `config` that is out of range, given twice, beyond the
    /// limits, or names a port or register that does not exist.
    pub fn new(engine: E, config: SwitchConfig) -> Result<Self, SwitchError> {
        let limits = config.limits;
        let mut switch = Self {
            engine,
            limits,
            ports: Ports::new(&config.ports)?,
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
            now: 0,
            egress_share: 0,
            next_source: 0,
        };
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

    /// The engine, for the control plane to read.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// The engine, for the control plane to write.
    pub fn engine_mut(&mut self) -> &mut E {
        &mut self.engine
    }

    /// Counts of packets.
    pub fn counters(&self) -> &Counters {
        &self.counters
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

    /// Whether frames pass `port`: its link is up and no watch on it is stale.
    pub fn port_is_up(&self, port: Port) -> bool {
        self.ports.get(port).is_some_and(|entry| entry.is_up())
    }

    /// Tells the switch that the link of `port` came up or went down.
    ///
    /// # Errors
    ///
    /// If the switch has no such port.
    pub fn set_link_up(&mut self, port: Port, up: bool) -> Result<(), SwitchError> {
        self.ports.set_link(port, up)
    }

    /// Makes or replaces mirror session `number`. Copies that are held keep the
    /// session's earlier port and time.
    ///
    /// # Errors
    ///
    /// If a value is out of range or there are too many sessions.
    pub fn set_mirror_session(
        &mut self,
        number: u32,
        session: MirrorSession,
    ) -> Result<(), SwitchError> {
        check_range(session.egress_port)?;
        if let Some(bytes) = session
            .truncate
            .filter(|&bytes| (bytes as usize) < MIN_FRAME)
        {
            return Err(SwitchError::TruncateTooShort {
                session: number,
                bytes,
            });
        }
        check_time("a mirror session's hold", session.hold_us, 0)?;
        if !self.sessions.contains_key(&number) {
            check_room(
                "mirror session",
                self.sessions.len(),
                self.limits.mirror_sessions,
            )?;
        }
        self.sessions.insert(number, session);
        Ok(())
    }

    /// Removes mirror session `number`.
    ///
    /// # Errors
    ///
    /// If it does not exist.
    pub fn remove_mirror_session(&mut self, number: u32) -> Result<MirrorSession, SwitchError> {
        self.sessions
            .remove(&number)
            .ok_or(SwitchError::UnknownMirrorSession(number))
    }

    /// Mirror session `number`.
    pub fn mirror_session(&self, number: u32) -> Option<MirrorSession> {
        self.sessions.get(&number).copied()
    }

    /// Makes or replaces multicast group `number`. A group without replicas drops
    /// what is sent to it.
    ///
    /// # Errors
    ///
    /// If `number` is 0, a port is out of range, or a limit is passed.
    pub fn set_multicast_group(
        &mut self,
        number: u16,
        replicas: Vec<Replica>,
    ) -> Result<(), SwitchError> {
        if number == 0 {
            return Err(SwitchError::GroupZero);
        }
        if replicas.len() > self.limits.replicas as usize {
            return Err(SwitchError::TooMany {
                what: "replica",
                limit: self.limits.replicas,
            });
        }
        for replica in &replicas {
            check_range(replica.port)?;
        }
        if !self.groups.contains_key(&number) {
            check_room(
                "multicast group",
                self.groups.len(),
                self.limits.multicast_groups,
            )?;
        }
        self.groups.insert(number, replicas);
        Ok(())
    }

    /// Removes multicast group `number`.
    ///
    /// # Errors
    ///
    /// If it does not exist.
    pub fn remove_multicast_group(&mut self, number: u16) -> Result<Vec<Replica>, SwitchError> {
        self.groups
            .remove(&number)
            .ok_or(SwitchError::UnknownMulticastGroup(number))
    }

    /// Replicas of multicast group `number`.
    pub fn multicast_group(&self, number: u16) -> Option<&[Replica]> {
        self.groups.get(&number).map(Vec::as_slice)
    }

    /// Starts a packet generator.
    ///
    /// # Errors
    ///
    /// If its port, period or frame is out of range.
    pub fn add_generator(&mut self, generator: Generator) -> Result<(), SwitchError> {
        check_range(generator.port)?;
        check_time("a generator's period", generator.period_us, 1)?;
        if !(MIN_FRAME..=MAX_FRAME).contains(&generator.frame.len()) {
            return Err(SwitchError::GeneratorFrame(generator.frame.len()));
        }
        check_room("generator", self.generators.len(), self.limits.generators)?;
        self.generators.push(ActiveGenerator {
            generator,
            due: None,
        });
        Ok(())
    }

    /// Starts a watch.
    ///
    /// # Errors
    ///
    /// If its register does not exist or cannot hold a time, the element or the age
    /// is out of range, or a port is not one of the switch.
    pub fn add_watch(&mut self, watch: Watch) -> Result<(), SwitchError> {
        check_time("a watch's greatest age", watch.max_age_us, 1)?;
        for &port in &watch.ports {
            self.ports.require(port)?;
        }
        check_room("watch", self.watches.len(), self.limits.watches)?;
        self.watches.add(watch, self.engine.state())
    }

    /// Takes a frame that arrived by `port` at `now_us` through the pipeline.
    ///
    /// A frame that is too short, too long, or from a port that is unknown or down
    /// is counted and dropped before the engine sees it.
    pub fn handle_frame(&mut self, now_us: u64, port: Port, frame: &[u8]) {
        self.advance(now_us);
        self.counters.received += 1;
        match self.admit(port, frame) {
            Ok(()) => {
                let mut work = self.limits.work;
                let preserved = Preserved::default();
                self.run_ingress(frame, port, InstanceType::Normal, &preserved, 0, &mut work);
            }
            Err(reason) => self.counters.drop(reason),
        }
        self.run();
    }

    /// Does what is due at `now_us`: held copies, generators, watches, and work that
    /// an earlier call left.
    pub fn handle_timeout(&mut self, now_us: u64) {
        self.advance(now_us);
        self.run();
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

    fn advance(&mut self, now_us: u64) {
        self.now = self.now.max(now_us);
        self.watches
            .check(self.now, self.engine.state(), &mut self.ports);
    }

    fn admit(&mut self, port: Port, frame: &[u8]) -> Result<(), DropReason> {
        let entry = self.ports.get_mut(port).ok_or(DropReason::UnknownPort)?;
        if !entry.is_up() {
            return Err(DropReason::PortDown);
        }
        if frame.len() < MIN_FRAME {
            return Err(DropReason::Runt);
        }
        if frame.len() > MAX_FRAME {
            return Err(DropReason::Oversize);
        }
        entry.counters.rx_packets += 1;
        entry.counters.rx_bytes += frame.len() as u64;
        Ok(())
    }

    /// Works until nothing is due or the work of one call is done.
    fn run(&mut self) {
        let mut work = self.limits.work.max(1);
        while work > 0 {
            if self.egress_share > 0 {
                self.egress_share -= 1;
                self.run_egress(&mut work);
                continue;
            }
            let served = self.serve_next_source(&mut work);
            // What one source adds to the queues is served before the next source is,
            // but not what that adds in turn: a packet that clones itself for ever
            // must not keep the others waiting.
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
                if let Some(packet) = self.held.pop() {
                    self.enqueue(packet);
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
        let period = active.generator.period_us;
        let due = active.due.unwrap_or(now);
        let missed = (now - due) / period;
        active.due = Some(due + (missed + 1) * period);
        let port = active.generator.port;
        let mut frame = self.spare.pop().unwrap_or_default();
        frame.clear();
        frame.extend_from_slice(&active.generator.frame);
        self.counters.generator_skipped += missed;
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

    fn run_ingress(
        &mut self,
        frame: &[u8],
        port: Port,
        instance_type: InstanceType,
        preserved: &Preserved,
        resubmits: u32,
        work: &mut u32,
    ) {
        *work = work.saturating_sub(1);
        let now = self.now & TIMESTAMP_MASK;
        let outcome = self.engine.ingress(&IngressInput {
            frame,
            port,
            instance_type,
            preserved,
            now,
        });

        if let Some(CloneRequest { session, preserved }) = &outcome.clone {
            *work = work.saturating_sub(1);
            self.counters.ingress_clones += 1;
            if let Some(&session) = self.sessions.get(session) {
                let instance_type = InstanceType::IngressClone;
                let packet = self.engine.parse(&IngressInput {
                    frame,
                    port,
                    instance_type,
                    preserved,
                    now,
                });
                self.mirror(session, packet, instance_type);
            } else {
                self.counters.drop(DropReason::UnknownMirrorSession);
            }
        }

        if let Some(preserved) = outcome.resubmit {
            self.resubmit(frame, port, preserved, resubmits);
        } else if outcome.mcast_grp != 0 {
            self.replicate(outcome.packet, outcome.mcast_grp);
        } else if outcome.egress_spec == DROP_PORT {
            self.counters.drop(DropReason::Ingress);
        } else if outcome.egress_spec > DROP_PORT {
            self.counters.drop(DropReason::UnknownPort);
        } else {
            self.enqueue(Queued::new(
                outcome.packet,
                outcome.egress_spec,
                instance_type,
            ));
        }
    }

    fn resubmit(&mut self, frame: &[u8], port: Port, preserved: Preserved, resubmits: u32) {
        if resubmits >= self.limits.resubmits_per_frame {
            self.counters.drop(DropReason::ResubmitLimit);
        } else if self.resubmission.len() >= self.limits.resubmission as usize {
            self.counters.drop(DropReason::ResubmissionFull);
        } else {
            let mut copy = self.spare.pop().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(frame);
            let resubmits = resubmits + 1;
            self.resubmission.push_back(Returning {
                frame: copy,
                port,
                preserved,
                resubmits,
            });
        }
    }

    fn replicate(&mut self, packet: E::InFlight, group: u16) {
        let Some(replicas) = self.groups.get(&group) else {
            self.counters.drop(DropReason::UnknownMulticastGroup);
            return;
        };
        self.counters.replicated += 1;
        for &Replica { port, rid } in replicas {
            self.counters.replicas += 1;
            let mut copy = Queued::new(packet.clone(), port, InstanceType::Replication);
            copy.rid = rid;
            if !self.egress.push(self.now, copy) {
                self.counters.drop(DropReason::QueueFull);
            }
        }
    }

    fn mirror(&mut self, session: MirrorSession, mut packet: E::InFlight, instance: InstanceType) {
        if let Some(bytes) = session.truncate {
            self.engine.truncate(&mut packet, bytes);
        }
        let bytes = self.engine.length(&packet) as u64;
        let copy = Queued::new(packet, session.egress_port, instance);
        if session.hold_us == 0 {
            self.enqueue(copy);
        } else if !self.held.push(self.now + session.hold_us, bytes, copy) {
            self.counters.drop(DropReason::HeldFull);
        }
    }

    fn enqueue(&mut self, packet: Queued<E::InFlight>) {
        if !self.egress.push(self.now, packet) {
            self.counters.drop(DropReason::QueueFull);
        }
    }

    fn run_egress(&mut self, work: &mut u32) {
        let Some((queued, dequeue_depth)) = self.egress.pop() else {
            return;
        };
        *work = work.saturating_sub(1);
        let port = queued.port;
        let input = EgressInput {
            port,
            rid: queued.rid,
            instance_type: queued.instance_type,
            enqueued_at: queued.enqueued_at & TIMESTAMP_MASK,
            enqueue_depth: queued.enqueue_depth,
            dequeue_depth,
            now: self.now & TIMESTAMP_MASK,
        };
        let mut frame = self.spare.pop().unwrap_or_default();
        let outcome = self.engine.egress(queued.packet, &input, &mut frame);

        if let Some((CloneRequest { session, preserved }, mut packet)) = outcome.clone {
            self.counters.egress_clones += 1;
            if let Some(&session) = self.sessions.get(&session) {
                self.engine.restore(&mut packet, &preserved);
                self.mirror(session, packet, InstanceType::EgressClone);
            } else {
                self.counters.drop(DropReason::UnknownMirrorSession);
            }
        }

        let verdict = if outcome.dropped {
            Err(DropReason::Egress)
        } else if outcome.recirculate.is_some() {
            self.admit_recirculation(frame.len())
        } else {
            self.admit_transmission(port, frame.len())
        };
        match (verdict, outcome.recirculate) {
            (Err(reason), _) => {
                self.counters.drop(reason);
                self.recycle(frame);
            }
            (Ok(()), Some(preserved)) => {
                self.recirculation.push_back(Returning {
                    frame,
                    port,
                    preserved,
                    resubmits: 0,
                });
            }
            (Ok(()), None) => self.transmit.push_back(Transmit { port, frame }),
        }
    }

    fn admit_recirculation(&self, length: usize) -> Result<(), DropReason> {
        check_length(length)?;
        if self.recirculation.len() >= self.limits.recirculation as usize {
            return Err(DropReason::RecirculationFull);
        }
        Ok(())
    }

    fn admit_transmission(&mut self, port: Port, length: usize) -> Result<(), DropReason> {
        let entry = self.ports.get_mut(port).ok_or(DropReason::UnknownPort)?;
        if !entry.is_up() {
            return Err(DropReason::PortDown);
        }
        check_length(length)?;
        if entry.transmit_depth >= self.limits.transmit {
            return Err(DropReason::TransmitFull);
        }
        entry.transmit_depth += 1;
        Ok(())
    }
}

/// Whether a frame of `length` bytes can leave egress.
fn check_length(length: usize) -> Result<(), DropReason> {
    if length < MIN_FRAME {
        Err(DropReason::EgressRunt)
    } else if length > MAX_FRAME {
        Err(DropReason::EgressOversize)
    } else {
        Ok(())
    }
}

fn check_time(what: &'static str, value: u64, least: u64) -> Result<(), SwitchError> {
    if (least..=MAX_HOLD_US).contains(&value) {
        Ok(())
    } else {
        Err(SwitchError::TimeOutOfRange { what, value, least })
    }
}

fn check_room(what: &'static str, count: usize, limit: u32) -> Result<(), SwitchError> {
    if count < limit as usize {
        Ok(())
    } else {
        Err(SwitchError::TooMany { what, limit })
    }
}

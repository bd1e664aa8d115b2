//! A model of a switch with `apps/counter`, in Rust: the protocol as a client of the store
//! sees it, without a P4 program between. It tests the store alone, and says what a
//! program should do where one does something else.

use crate::device::{Device, Identity, Slot};
use crate::frame::{
    HEAD_ADDRESS, HostPacket, INSIDE_PORT, OUTSIDE_PORT, STORE_PORT, checked_message_in,
    message_in, message_to_store,
};
use crate::options::{ModelFaults, Rule};
use core::net::Ipv4Addr;
use stateplane_apps::{app, connection_key};
use stateplane_setup::Hold;
use stateplane_store::newer;
use stateplane_term::{Term, Terms};
use stateplane_wire::replication::{Key, MessageType, Packet, RefusalCode, Repr};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The application whose program is modelled.
pub(crate) const MODELLED: &str = "counter";

const LEASE_ATTEMPTS: u16 = 16;
/// µs for which a slot must have been unused that is given to another flow.
const UNUSED: u64 = 200_000;
/// µs from the write of a deadline to that of the beginning of its term, with a fault.
const TORN: u64 = 3_000;
/// Requests behind the newest whose packets may still come back.
const WINDOW: u32 = 128;

struct Flow {
    slot: Slot,
    claim: u32,
    /// The lease was given up.
    recalled: bool,
    /// When the request was sent that the grant answers.
    asked_at: u64,
    /// When the lease was used last.
    used_at: u64,
    value: u64,
    request: u32,
    /// The lease request whose copy is held.
    asked: Option<u32>,
    returned: BTreeSet<u32>,
}

/// A request that waits for its answer, without its packet.
struct Held {
    message_type: MessageType,
    key: Key,
    claim: u32,
    request: u32,
    epoch: u32,
    sequence: u32,
    /// µs since the lease was used, in releases and answers to questions.
    age: u64,
    attempt: u16,
    value: u64,
}

/// See the module.
pub(crate) struct Model {
    identity: Identity,
    /// Class of the flows.
    class: u8,
    /// Address of each shard's head, and number of its chain's configuration.
    chains: Vec<(Ipv4Addr, u32)>,
    terms: Terms,
    /// The term for each shard as the program reads it.
    read: Vec<Term>,
    /// With a fault: beginnings of terms that are written after their deadlines, and when.
    unwritten: VecDeque<(u64, u16, u64)>,
    /// Changes of chains that it has not told the terms.
    moved: Vec<u16>,
    faults: ModelFaults,
    /// It answers neither recalls nor questions.
    deaf: bool,
    capacity: usize,
    flows: BTreeMap<Key, Flow>,
    claims: u32,
    held: BTreeMap<(u64, u64), Held>,
    next_held: u64,
    outbox: VecDeque<(u16, Vec<u8>)>,
    table_full: u64,
    hold: Hold,
}

impl Model {
    /// A model with room for `capacity` flows in a world of `shards` shards.
    pub(crate) fn new(
        identity: Identity,
        shards: u16,
        capacity: usize,
        hold: Hold,
        without: Option<Rule>,
        deaf: bool,
    ) -> Self {
        let terms = Terms::new(identity.switch, identity.incarnation, shards);
        let term_faults = without.map(Rule::term_faults).unwrap_or_default();
        Self {
            terms: terms.with_faults(term_faults),
            read: vec![Term::default(); shards.into()],
            unwritten: VecDeque::new(),
            moved: (0..shards).collect(),
            faults: without.map(Rule::model_faults).unwrap_or_default(),
            deaf,
            identity,
            class: app(MODELLED).map_or(0, |app| app.room().class().id),
            chains: vec![(HEAD_ADDRESS, 1); shards.into()],
            capacity,
            flows: BTreeMap::new(),
            claims: identity.first_number(),
            held: BTreeMap::new(),
            next_held: 0,
            outbox: VecDeque::new(),
            table_full: 0,
            hold,
        }
    }

    fn shard(&self, key: &Key) -> u16 {
        let sum: u16 = key.0.iter().map(|&byte| u16::from(byte)).sum();
        sum % self.chains.len() as u16
    }

    fn handle_packet(&mut self, now: u64, packet: &HostPacket) {
        let (source, destination) = (packet.source, packet.destination);
        let key = connection_key(self.class, packet.protocol, source, destination);
        if self.may_use(now, &key) {
            self.process(now, key, packet);
        } else if self.flows.contains_key(&key) || self.claim(now, key) {
            self.ask(now, key, packet);
        } else {
            self.table_full += 1;
        }
    }

    /// Rule 1d: true if the lease of `key` counts at `now`.
    fn may_use(&self, now: u64, key: &Key) -> bool {
        let term = self.read[usize::from(self.shard(key))];
        self.flows.get(key).is_some_and(|flow| {
            let permits =
                now < term.deadline && (flow.asked_at > term.since || self.faults.ignore_since);
            flow.slot.granted && !flow.recalled && permits
        })
    }

    /// Writes terms for the program, and sends the heartbeats that are due.
    fn beat(&mut self, now: u64) {
        for shard in core::mem::take(&mut self.moved) {
            let (head, epoch) = self.chains[usize::from(shard)];
            self.terms.set_head(now, shard, head, epoch);
        }
        while self.unwritten.front().is_some_and(|(due, ..)| *due <= now) {
            if let Some((_, shard, since)) = self.unwritten.pop_front() {
                self.read[usize::from(shard)].since = since;
            }
        }
        while let Some((shard, term)) = self.terms.poll_change() {
            let read = &mut self.read[usize::from(shard)];
            if self.faults.tear_terms && read.deadline > 0 && term.since != read.since {
                let due = now + TORN;
                self.unwritten.push_back((due, shard, term.since));
                read.deadline = term.deadline;
            } else {
                *read = term;
            }
        }
        while let Some((head, heartbeat)) = self.terms.poll_heartbeat(now) {
            let frame = message_to_store(self.identity.switch, head, &heartbeat);
            self.outbox.push_back((STORE_PORT, frame));
        }
    }

    /// A slot as others see it: one that was given up holds no lease, and one of before the term
    /// is not used.
    fn seen(&self, key: &Key, flow: &Flow) -> Slot {
        let term = self.read[usize::from(self.shard(key))];
        let counts = flow.asked_at > term.since || self.faults.ignore_since;
        Slot {
            granted: flow.slot.granted && !flow.recalled,
            deadline: if counts { term.deadline } else { 0 },
            ..flow.slot
        }
    }

    /// Makes room for `key`, at the cost of the flow without unacknowledged writes that was used
    /// least of late.
    fn claim(&mut self, now: u64, key: Key) -> bool {
        if self.flows.len() >= self.capacity {
            let idle = self.flows.iter().filter(|(_, flow)| {
                let slot = &flow.slot;
                slot.granted && slot.sequence == slot.acknowledged && flow.used_at + UNUSED <= now
            });
            let idle = idle.min_by_key(|(_, flow)| flow.used_at);
            let Some(idle) = idle.map(|(idle, _)| *idle) else {
                return false;
            };
            self.flows.remove(&idle);
        }
        self.claims = self.claims.wrapping_add(1);
        let flow = Flow {
            slot: Slot {
                granted: false,
                shared: false,
                epoch: 0,
                deadline: 0,
                sequence: 0,
                acknowledged: 0,
            },
            claim: self.claims,
            recalled: false,
            asked_at: 0,
            used_at: now,
            value: 0,
            request: self.identity.first_number(),
            asked: None,
            returned: BTreeSet::new(),
        };
        self.flows.insert(key, flow);
        true
    }

    fn ask(&mut self, now: u64, key: Key, packet: &HostPacket) {
        let Some(flow) = self.flows.get_mut(&key) else {
            return;
        };
        flow.request = flow.request.wrapping_add(1).max(1);
        let hold = flow.asked.is_none();
        if hold {
            flow.asked = Some(flow.request);
        }
        let request = Held {
            message_type: MessageType::LeaseRequest,
            key,
            claim: flow.claim,
            request: flow.request,
            epoch: if flow.recalled { flow.slot.epoch } else { 0 },
            sequence: if flow.recalled { flow.slot.sequence } else { 0 },
            age: 0,
            attempt: 0,
            value: 0,
        };
        let frame = packet.to_frame(self.identity.switch);
        self.send(now, &request, Some(&frame));
        if hold {
            self.hold(now, request);
        }
    }

    fn process(&mut self, now: u64, key: Key, packet: &HostPacket) {
        let Some(flow) = self.flows.get_mut(&key) else {
            return;
        };
        flow.value += 1;
        flow.used_at = now;
        flow.slot.sequence = flow.slot.sequence.wrapping_add(1);
        flow.request = flow.request.wrapping_add(1).max(1);
        let request = Held {
            message_type: MessageType::WriteRequest,
            key,
            claim: flow.claim,
            request: flow.request,
            epoch: flow.slot.epoch,
            sequence: flow.slot.sequence,
            age: 0,
            attempt: 0,
            value: flow.value,
        };
        let output = HostPacket {
            value: flow.value,
            ..*packet
        };
        let frame = output.to_frame(self.identity.switch);
        self.send(now, &request, Some(&frame));
        self.hold(now, request);
    }

    fn send(&mut self, now: u64, request: &Held, packet: Option<&[u8]>) {
        let state = request.value.to_be_bytes();
        let write = request.message_type == MessageType::WriteRequest;
        let shard = self.shard(&request.key);
        let (head, chain_epoch) = self.chains[usize::from(shard)];
        let message = Repr {
            chain_epoch,
            shard,
            switch_id: self.identity.switch,
            incarnation: self.identity.incarnation,
            claim: request.claim,
            request: request.request,
            send_time: now,
            ingress_port: INSIDE_PORT,
            lease_epoch: request.epoch,
            sequence: request.sequence,
            age: request.age,
            attempt: request.attempt,
            state: if write { &state } else { &[] },
            packet,
            ..Repr::new(request.message_type, request.key)
        };
        if let Ok(message) = message.to_vec() {
            let frame = message_to_store(self.identity.switch, head, &message);
            self.outbox.push_back((STORE_PORT, frame));
        }
    }

    /// Answers a recall or a question: the lease of its epoch is not used any more, or was used
    /// `age` µs ago; `sequence` is the last write under it.
    fn answer(
        &mut self,
        now: u64,
        recall: &Packet<'_>,
        message_type: MessageType,
        sequence: u32,
        age: u64,
    ) {
        let release = Held {
            message_type,
            key: recall.key(),
            claim: recall.claim(),
            request: 0,
            epoch: recall.lease_epoch(),
            sequence,
            age,
            attempt: 0,
            value: 0,
        };
        self.send(now, &release, None);
    }

    fn hold(&mut self, now: u64, request: Held) {
        let due = now + self.hold.us(request.attempt.into());
        self.held.insert((due, self.next_held), request);
        self.next_held += 1;
    }

    fn handle_held(&mut self, now: u64, mut request: Held) {
        let Some(flow) = self.flows.get_mut(&request.key) else {
            return;
        };
        let slot = &flow.slot;
        let wanted = flow.claim == request.claim
            && match request.message_type {
                MessageType::WriteRequest => {
                    slot.granted
                        && request.epoch == slot.epoch
                        && request.sequence == slot.sequence
                        && newer(request.sequence, slot.acknowledged)
                }
                _ if flow.asked != Some(request.request) => false,
                _ if request.attempt < LEASE_ATTEMPTS => true,
                _ => {
                    flow.asked = None;
                    false
                }
            };
        if wanted {
            request.attempt += 1;
            self.send(now, &request, None);
            self.hold(now, request);
        }
    }

    fn handle_message(&mut self, now: u64, message: &Packet<'_>) {
        let ours = message.switch_id() == self.identity.switch
            && message.incarnation() == self.identity.incarnation;
        let key = message.key();
        if !ours {
            return;
        }
        let flow = self.flows.get_mut(&key);
        let flow = flow.filter(|flow| flow.claim == message.claim());
        if [MessageType::Recall, MessageType::Idle].contains(&message.message_type()) {
            if self.deaf {
                return;
            }
            let asks = message.message_type() == MessageType::Idle;
            let age = flow.as_ref().map_or(0, |flow| now - flow.used_at);
            let release = match flow {
                Some(flow) if asks && age < message.age() => {
                    let present = flow.slot.granted && flow.slot.epoch == message.lease_epoch();
                    if present && !flow.recalled {
                        self.answer(now, message, MessageType::Used, 0, age);
                    }
                    None
                }
                Some(flow) => flow.give_up(message.lease_epoch()),
                None => Some(message.sequence()),
            };
            if let Some(sequence) = release {
                self.answer(now, message, MessageType::ReleaseRequest, sequence, age);
            }
            return;
        }
        let Some(flow) = flow else {
            return;
        };
        let slot = &mut flow.slot;
        let present = slot.granted && message.lease_epoch() == slot.epoch;
        match message.message_type() {
            MessageType::LeaseReply => {
                let fresh = !slot.granted || newer(message.lease_epoch(), slot.epoch);
                let Ok(state) = <[u8; 8]>::try_from(message.state()) else {
                    return;
                };
                if !fresh && (!present || flow.recalled) {
                    return;
                }
                flow.asked = None;
                if fresh {
                    slot.granted = true;
                    slot.epoch = message.lease_epoch();
                    slot.sequence = message.sequence();
                    slot.acknowledged = message.sequence();
                    flow.recalled = false;
                    flow.asked_at = 0;
                    flow.value = u64::from_be_bytes(state);
                }
                let asked = if self.faults.count_from_arrival {
                    now
                } else {
                    message.send_time()
                };
                flow.asked_at = flow.asked_at.max(asked);
                let packet = message.packet().and_then(HostPacket::read);
                if self.may_use(now, &key)
                    && let Some(packet) = packet
                    && let Some(flow) = self.flows.get_mut(&key)
                    && flow.returns(message.request())
                {
                    self.process(now, key, &packet);
                }
            }
            MessageType::WriteReply | MessageType::RenewReply if present => {
                // What the claim did not write cannot be acknowledged to it.
                let held = if newer(message.sequence(), slot.sequence) {
                    slot.sequence
                } else {
                    message.sequence()
                };
                if newer(held, slot.acknowledged) {
                    slot.acknowledged = held;
                }
                if let Some(frame) = message.packet()
                    && flow.returns(message.request())
                {
                    self.outbox.push_back((OUTSIDE_PORT, frame.to_vec()));
                }
            }
            MessageType::Refusal => {
                let code = RefusalCode::from_u8(message.code());
                let done = flow.recalled && slot.sequence == slot.acknowledged;
                let ends = match code {
                    Some(RefusalCode::Fenced) => {
                        slot.granted && message.sequence() == slot.epoch && !done
                    }
                    Some(
                        RefusalCode::StoreFull | RefusalCode::QuotaExceeded | RefusalCode::BadState,
                    ) => true,
                    _ => false,
                };
                if ends {
                    self.flows.remove(&key);
                }
            }
            _ => {}
        }
    }
}

impl Flow {
    /// Rule 19: releases the lease of this epoch, and names the last write under it; does nothing
    /// if the grant is still in flight or over.
    fn give_up(&mut self, epoch: u32) -> Option<u32> {
        if !self.slot.granted || self.slot.epoch != epoch {
            return None;
        }
        self.recalled = true;
        Some(self.slot.sequence)
    }

    /// Rule 4: whether the packet of this request comes back for the first time.
    fn returns(&mut self, request: u32) -> bool {
        let newest = self.request;
        let remembered = |request: u32| newest.wrapping_sub(request) < WINDOW;
        self.returned.retain(|&request| remembered(request));
        remembered(request) && self.returned.insert(request)
    }
}

impl Device for Model {
    fn handle_frame(&mut self, now: u64, port: u16, frame: &[u8]) {
        self.handle_timeout(now);
        if port == STORE_PORT {
            if let Some((_, message)) = checked_message_in(frame) {
                self.handle_message(now, &message);
            } else if let Some((from, _, bytes)) = message_in(frame)
                && self.terms.handle_reply(now, *from.ip(), bytes)
            {
                self.beat(now);
            }
        } else if let Some(packet) = HostPacket::read(frame) {
            self.handle_packet(now, &packet);
        }
    }

    fn handle_timeout(&mut self, now: u64) {
        while let Some(entry) = self.held.first_entry().filter(|e| e.key().0 <= now) {
            let request = entry.remove();
            self.handle_held(now, request);
        }
        self.beat(now);
    }

    fn poll_transmit(&mut self) -> Option<(u16, Vec<u8>)> {
        self.outbox.pop_front()
    }

    fn poll_timeout(&self) -> Option<u64> {
        if !self.moved.is_empty() {
            return Some(0);
        }
        let held = self.held.first_key_value().map(|((due, _), _)| *due);
        let unwritten = self.unwritten.front().map(|(due, ..)| *due);
        [held, unwritten, self.terms.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    fn is_aloof(&self) -> bool {
        false
    }

    fn set_chain(&mut self, shard: u16, head: Ipv4Addr, epoch: u32) {
        if let Some(chain) = self.chains.get_mut(usize::from(shard)) {
            *chain = (head, epoch);
            self.moved.push(shard);
        }
    }

    fn slot(&self, key: &Key) -> Option<Slot> {
        self.flows.get(key).map(|flow| self.seen(key, flow))
    }

    fn slots(&self) -> Vec<(Key, Slot)> {
        let slots = self.flows.iter();
        slots
            .map(|(key, flow)| (*key, self.seen(key, flow)))
            .collect()
    }

    fn table_full(&self) -> u64 {
        self.table_full
    }

    fn alarms(&self) -> u64 {
        0
    }

    fn words(&self, _: &str) -> Vec<u128> {
        Vec::new()
    }
}

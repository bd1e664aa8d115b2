//! Machine code as an engine of the switch.

#![allow(unsafe_code, reason = "runs generated code")]

use crate::codegen::Function;
use crate::context::{ended, request};
use crate::in_flight::{InFlight, Packet};
use crate::run;
use crate::table::memory::{prefetch, prefetch_all};
use crate::{Native, Shared};
use stateplane_runtime::{
    CloneRequest, DROP_PORT, EgressInput, EgressOutcome, Engine, Forwarded, IngressInput,
    IngressOutcome, InstanceType, Port, Preserved, TargetState,
};

/// A packet that comes after no more others than these is read, of others the pointer is followed first.
const NEAR: usize = 4;

/// In place of an egress port before egress begins.
const NO_PORT: u64 = u64::MAX;

impl Native {
    /// Takes over what the control plane changed.
    #[inline]
    fn refresh(&mut self) {
        if self.stale {
            self.renew();
        }
    }

    #[cold]
    fn renew(&mut self) {
        self.stale = false;
        for (lookup, table) in self.lookups.iter_mut().zip(self.machine.state.tables()) {
            lookup.update(table);
        }
        self.views.clear();
        self.views
            .extend(self.lookups.iter().map(|lookup| lookup.view()));
        self.announces = self.views.iter().any(|view| view.large != 0);
        let state = &mut self.machine.state;
        self.context.registers = state.memory().map_or(std::ptr::null_mut(), |it| it.0);
        self.counters.clear();
        for id in 0..state.counters().len() {
            let counter = state.counter_at(stateplane_ir::CounterId(id as u32));
            self.counters.push(counter.counts_mut().as_mut_ptr());
        }
        let context = &mut *self.context;
        context.held_locks = self.machine.held_locks.as_mut_ptr();
        context.counters = self.counters.as_ptr();
        context.tables = self.views.as_ptr();
        context.locals = self.locals.as_mut_ptr();
        context.zeros = self.zeros.as_ptr();
        if let (Some(engine), Some(slice)) = (&mut self.slice, &self.shared.slice) {
            let state = engine.state_mut();
            state.follow_for_slice(&self.machine.state, &slice.of);
        }
    }

    /// The key that the slice, which this engine runs, computes.
    fn key(&mut self, port: Port, frame: &[u8]) -> Option<u32> {
        self.clear();
        let context = &mut *self.context;
        context.limit = u64::from(u32::MAX);
        context.ingress_port = u64::from(port);
        self.run(self.shared.code.ingress, frame);
        let asked = !self.gave_up && self.requested(request::INGRESS_CLONE);
        asked.then_some(self.context.ingress_session as u32)
    }

    /// Runs a function on a frame.
    #[inline]
    fn run(&mut self, function: Function, frame: &[u8]) -> u64 {
        let context = &mut *self.context;
        context.frame = frame.as_ptr();
        context.frame_length = frame.len() as u64;
        context.packet = self.packet.as_mut_ptr();
        context.machine = &mut *self.machine;
        // Between two packets no lock is held.
        self.machine.state.answer_fellows();
        // SAFETY: the context's pointers are those of buffers of this engine, made for
        // this program, and of the frame; none of them moves while the function runs,
        // except the output, which it asks for anew when it may have moved.
        let how = unsafe { function(context) };
        self.gave_up = how == ended::GIVEN_UP;
        how
    }

    /// Clears the packet for a frame that arrives.
    #[inline]
    fn clear(&mut self) {
        self.refresh();
        if self.packet[self.dirty] != 0 {
            self.clear_memory();
        }
    }

    #[cold]
    fn clear_memory(&mut self) {
        for range in &self.cleared {
            self.packet[range.clone()].fill(0);
        }
        self.packet[self.dirty] = 0;
    }

    /// Prepares the packet of a frame that arrives and need not go on at once.
    fn take(&mut self, input: &IngressInput<'_>) {
        self.clear();
        self.is_fresh = false;
        let preserved = input.preserved.field_list.is_some();
        if preserved {
            let storage = &self.shared.plan.storage;
            storage.clear_field_lists(input.preserved.field_list, &mut self.packet);
            storage.restore(input.preserved, &mut self.packet);
            self.packet[self.dirty] = 1;
        }
        let context = &mut *self.context;
        context.preserved = u64::from(preserved);
        context.limit = u64::from(u32::MAX);
        context.now = input.now;
        context.ingress_port = u64::from(input.port);
        context.instance_type = u64::from(input.instance_type as u32);
        context.direct = 0;
        context.fresh = 0;
    }

    /// Prepares the packet of a frame that arrives and goes on at once.
    #[inline]
    fn take_through(&mut self, input: &IngressInput<'_>) {
        let normal = input.instance_type == InstanceType::Normal;
        if normal && input.preserved.field_list.is_none() {
            self.clear();
            let context = &mut *self.context;
            context.limit = u64::from(u32::MAX);
            context.now = input.now;
            context.ingress_port = u64::from(input.port);
            if !self.is_fresh {
                self.is_fresh = true;
                context.preserved = 0;
                context.instance_type = InstanceType::Normal as u64;
                context.fresh = 1;
                self.start_egress();
            }
        } else {
            self.take(input);
            self.start_egress();
        }
        let context = &mut *self.context;
        context.egress_port = NO_PORT;
        context.enqueued_at = input.now;
    }

    /// Lets egress follow ingress at once, with nothing before the packet in the queue.
    #[cold]
    fn start_egress(&mut self) {
        let context = &mut *self.context;
        context.direct = 1;
        context.egress_rid = 0;
        context.enqueue_depth = 0;
        context.dequeue_depth = 0;
    }

    /// The packet that generated code left.
    #[inline]
    fn store(&mut self, frame: &[u8]) -> InFlight {
        let (rest, limit) = (self.context.rest, self.context.limit);
        let mut packet = self.pool.take(frame, rest, limit);
        std::mem::swap(&mut packet.words, &mut self.packet);
        packet
    }

    fn clone_request(&self, with_list: u64, list: u64, session: u64) -> CloneRequest {
        let list = (self.context.requests & with_list != 0).then_some(list as u32);
        CloneRequest {
            session: session as u32,
            preserved: self.preserve(list),
        }
    }

    fn preserve(&self, list: Option<u32>) -> Preserved {
        self.shared.plan.storage.preserve(list, &self.packet)
    }

    fn requested(&self, bit: u64) -> bool {
        self.context.requests & bit != 0
    }

    #[inline]
    fn ingress_outcome(&mut self, frame: &[u8]) -> IngressOutcome<InFlight> {
        let gave_up = self.gave_up;
        let asks = !gave_up && self.context.requests != 0;
        // Values that are preserved are of the packet that is stored behind.
        let clone = asks && self.requested(request::INGRESS_CLONE);
        let clone = clone.then(|| {
            let (session, list) = (self.context.ingress_session, self.context.ingress_list);
            self.clone_request(request::INGRESS_LIST, list, session)
        });
        let resubmit = asks && self.requested(request::RESUBMIT);
        let resubmit = resubmit.then(|| self.preserve(Some(self.context.resubmit_list as u32)));
        let packet = self.store(frame);
        let context = &self.context;
        IngressOutcome {
            egress_spec: if gave_up {
                DROP_PORT
            } else {
                context.egress_spec as Port
            },
            mcast_grp: if gave_up { 0 } else { context.mcast_grp as u16 },
            clone,
            resubmit,
            packet,
        }
    }

    /// Gives the deparser room.
    #[inline]
    fn open(&mut self, out: &mut Vec<u8>) {
        if self.shared.plan.emits_plainly {
            self.context.output = out;
            return;
        }
        out.clear();
        std::mem::swap(out, &mut self.machine.out);
        self.machine.out_free = 0;
        if !self.shared.plan.emits_bits {
            self.machine.out.resize(self.machine.room, 0);
        }
        self.context.out = self.machine.out.as_mut_ptr();
    }

    /// Ends what the deparser wrote with the rest of the frame.
    #[inline]
    fn close(&mut self, how: u64, frame: &[u8], out: &mut Vec<u8>) {
        let (emitted, rest) = (self.context.out_length as usize, self.context.rest as usize);
        if self.shared.plan.emits_plainly {
            if how != ended::EGRESS {
                return out.clear();
            }
            let copied = frame.len().min(run::COPIED);
            if emitted == rest && rest <= copied {
                // The rest is where it was.
                if copied < frame.len() {
                    out.extend_from_slice(&frame[copied..]);
                }
            } else {
                // SAFETY: the deparser wrote so many bytes, for which there was room.
                unsafe { out.set_len(emitted) };
                out.extend_from_slice(frame.get(rest..).unwrap_or(&[]));
            }
        } else {
            std::mem::swap(out, &mut self.machine.out);
            if how != ended::EGRESS {
                return out.clear();
            }
            if !self.shared.plan.emits_bits {
                out.truncate(emitted);
            }
            out.extend_from_slice(frame.get(rest..).unwrap_or(&[]));
        }
        out.truncate(self.context.limit as usize);
    }

    #[inline]
    fn egress_outcome(&mut self, how: u64) -> EgressOutcome<InFlight> {
        let mut outcome = EgressOutcome {
            dropped: how == ended::DROPPED || how == ended::GIVEN_UP,
            clone: None,
            recirculate: None,
        };
        if self.context.requests == 0 {
            return outcome;
        }
        let captured = self.machine.captured.take();
        if how == ended::GIVEN_UP {
            return outcome;
        }
        if let Some(packet) = captured
            && self.requested(request::EGRESS_CLONE)
        {
            let (session, list) = (self.context.egress_session, self.context.egress_list);
            let request = self.clone_request(request::EGRESS_LIST, list, session);
            outcome.clone = Some((request, packet));
        }
        if !outcome.dropped && self.requested(request::RECIRCULATE) {
            let list = self.context.recirculate_list as u32;
            outcome.recirculate = Some(self.preserve(Some(list)));
        }
        outcome
    }
}

impl Engine for Native {
    type InFlight = InFlight;

    #[inline]
    fn ingress(&mut self, input: &IngressInput<'_>) -> IngressOutcome<InFlight> {
        self.take(input);
        self.run(self.shared.code.ingress, input.frame);
        self.ingress_outcome(input.frame)
    }

    #[inline]
    fn forward(&mut self, input: &IngressInput<'_>, out: &mut Vec<u8>) -> Forwarded<InFlight> {
        self.take_through(input);
        self.open(out);
        let how = self.run(self.shared.code.ingress, input.frame);
        if how & ended::SENT != 0 {
            return Forwarded::Sent((how >> ended::PORT_SHIFT) as Port);
        }
        self.close(how, input.frame, out);
        if how == ended::INGRESS {
            let context = &self.context;
            let alone = context.requests | context.mcast_grp == 0;
            if alone && context.egress_spec as Port == DROP_PORT {
                return Forwarded::Dropped;
            }
            return Forwarded::Waits(self.ingress_outcome(input.frame));
        }
        if how == ended::GIVEN_UP && self.context.egress_port == NO_PORT {
            return Forwarded::Dropped;
        }
        let port = self.context.egress_port as Port;
        if how == ended::EGRESS && self.context.requests == 0 {
            return Forwarded::Sent(port);
        }
        let outcome = self.egress_outcome(how);
        Forwarded::Done { port, outcome }
    }

    #[inline]
    fn announce(&mut self, port: Port, frame: &[u8]) {
        if !self.announces && !self.stale {
            return;
        }
        self.refresh();
        if let (true, Some(announce)) = (self.announces, self.shared.code.announce) {
            self.context.ingress_port = u64::from(port);
            self.run(announce, frame);
        }
    }

    fn state_key(&mut self, port: Port, frame: &[u8]) -> Option<u16> {
        self.slice.as_ref()?;
        // The slice follows the entries of tables.
        self.refresh();
        let key = self.slice.as_mut()?.key(port, frame)?;
        Some((key ^ (key >> 16)) as u16)
    }

    #[inline]
    fn parse(&mut self, input: &IngressInput<'_>) -> InFlight {
        self.take(input);
        self.context.requests = 0;
        if let Some(parse) = self.shared.code.parse {
            self.run(parse, input.frame);
        } else {
            // No program that lacks this function asks for it.
            self.run(self.shared.code.ingress, input.frame);
        }
        self.store(input.frame)
    }

    #[inline]
    fn duplicate(&mut self, packet: &InFlight) -> InFlight {
        let mut copy = self.pool.take(&packet.frame, packet.rest, packet.limit);
        // Egress reads no others.
        for kept in &self.shared.code.kept.ranges {
            copy.words[kept.clone()].copy_from_slice(&packet.words[kept.clone()]);
        }
        copy
    }

    fn set_aside(&mut self, packet: &mut InFlight) {
        self.pool.pack(packet, &self.shared.code.kept);
    }

    fn expect(&self, packet: &InFlight, others: usize) {
        if others > NEAR {
            prefetch::<Packet>(packet);
        } else {
            prefetch_all(packet.read_of_packed(&self.shared.code.kept));
        }
    }

    fn release(&mut self, packet: InFlight) {
        self.pool.give(packet);
    }

    fn restore(&mut self, packet: &mut InFlight, preserved: &Preserved) {
        let Shared { plan, code, .. } = &*self.shared;
        self.pool.unpack(packet, &code.kept);
        let storage = &plan.storage;
        packet.words[storage.metadata.clone()].fill(0);
        packet.words[storage.standard.clone()].fill(0);
        // Values of words in memory were written by the packet that is cloned, so that it is dirty.
        storage.restore(preserved, &mut packet.words);
        if let Some(field) = storage.meta.packet_length {
            packet.words[field.at] = packet.frame.len() as u128 & field.mask;
        }
    }

    fn truncate(&mut self, packet: &mut InFlight, bytes: u32) {
        self.pool.unpack(packet, &self.shared.code.kept);
        packet.limit = packet.limit.min(u64::from(bytes));
    }

    #[inline]
    fn egress(
        &mut self,
        mut packet: InFlight,
        input: &EgressInput,
        out: &mut Vec<u8>,
    ) -> EgressOutcome<InFlight> {
        self.refresh();
        let handed = packet.hand(&self.shared.code.kept, &mut self.packet);
        let frame = handed.frame;
        self.is_fresh = false;
        let context = &mut *self.context;
        context.rest = handed.rest;
        context.limit = handed.limit;
        context.now = input.now;
        context.instance_type = u64::from(input.instance_type as u32);
        context.egress_port = u64::from(input.port);
        context.egress_rid = u64::from(input.rid);
        context.enqueued_at = input.enqueued_at;
        context.enqueue_depth = u64::from(input.enqueue_depth);
        context.dequeue_depth = u64::from(input.dequeue_depth);
        self.open(out);
        let how = self.run(self.shared.code.egress, frame);
        self.close(how, frame, out);
        self.pool.give(packet);
        self.egress_outcome(how)
    }

    fn gave_up(&self) -> bool {
        self.gave_up
    }

    #[inline]
    fn begin_burst(&mut self) {
        if !self.in_burst {
            self.in_burst = true;
            let bytes = self.machine.state.begin_burst();
            self.context.set_lock_bytes(bytes);
        }
    }

    #[inline]
    fn end_burst(&mut self) {
        if self.in_burst {
            self.in_burst = false;
            let bytes = self.machine.state.end_burst();
            self.context.set_lock_bytes(bytes);
        }
    }

    fn length(&self, packet: &InFlight) -> usize {
        packet.length(&self.shared.code.kept)
    }

    fn state(&self) -> &TargetState {
        &self.machine.state
    }

    fn state_mut(&mut self) -> &mut TargetState {
        self.stale = true;
        &mut self.machine.state
    }
}

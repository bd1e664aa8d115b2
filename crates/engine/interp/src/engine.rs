//! The interpreter as an engine of the switch.

use crate::Interp;
use crate::machine::{Flow, InFlight, Run};
use crate::observe::{Block, Event, Observer};
use stateplane_runtime::storage::MetaField;
use stateplane_runtime::{
    CloneRequest, DROP_PORT, EgressInput, EgressOutcome, Engine, IngressInput, IngressOutcome,
    Preserved, SwitchEvent, TargetState,
};

impl<O: Observer> Interp<O> {
    fn set(&mut self, field: Option<MetaField>, value: u64) {
        if let Some(field) = field {
            self.machine.words[field.at] = u128::from(value) & field.mask;
        }
    }

    fn get(&self, field: Option<MetaField>) -> u16 {
        field.map_or(0, |field| self.machine.words[field.at] as u16)
    }

    fn run(&mut self) -> Run<'_, O> {
        Run {
            code: &self.code,
            m: &mut self.machine,
            o: &mut self.observer,
        }
    }

    /// Takes a frame on and parses it.
    fn take(&mut self, input: &IngressInput<'_>) {
        let m = &mut self.machine;
        m.start_block(input.now);
        m.words[self.code.packet.clone()].fill(0);
        self.code.restore(input.preserved, &mut m.words);
        m.frame.clear();
        m.frame.extend_from_slice(input.frame);
        m.cursor = 0;
        m.limit = u32::MAX;
        m.transitions = 0;
        let meta = self.code.meta;
        self.set(meta.ingress_port, u64::from(input.port));
        self.set(meta.instance_type, u64::from(input.instance_type as u32));
        self.set(meta.packet_length, input.frame.len() as u64);
        self.set(meta.ingress_global_timestamp, input.now);

        self.machine.in_parser = true;
        let parser = self.code.parser();
        self.run().tell(|_| Event::Block(Block::Parser(parser)));
        let flow = self.run().enter_parser();
        self.machine.in_parser = false;
        self.machine.rest = self.machine.cursor.div_ceil(8);
        if let Flow::Reject(error) = flow {
            self.run().tell(|_| Event::ParserError(error));
            self.set(meta.parser_error, u64::from(error));
            let errors = &mut self.machine.state.events.parser_errors;
            if let Some(count) = errors.get_mut(error as usize) {
                *count += 1;
            }
        }
        self.run().tell(|_| Event::End);
    }

    fn clone_request(&self, request: (u32, Option<u32>)) -> CloneRequest {
        let (session, list) = request;
        CloneRequest {
            session,
            preserved: self.code.preserve(list, &self.machine.words),
        }
    }

    /// Deparses the packet into `frame`.
    fn deparse(&mut self, frame: &mut Vec<u8>) {
        let deparser = self.code.program.pipeline.deparser;
        std::mem::swap(frame, &mut self.machine.emitted);
        self.machine.emitted_free = 0;
        self.run().block(deparser, Block::Deparser);
        std::mem::swap(frame, &mut self.machine.emitted);
        let m = &self.machine;
        let room = (m.limit as usize).saturating_sub(frame.len());
        let rest = m.frame.get(m.rest..).unwrap_or(&[]);
        frame.extend_from_slice(&rest[..rest.len().min(room)]);
        frame.truncate(m.limit as usize);
    }
}

/// Egress outcome of a packet that exceeded the loop limit.
fn given_up<P>() -> EgressOutcome<P> {
    EgressOutcome {
        dropped: true,
        clone: None,
        recirculate: None,
    }
}

impl<O: Observer> Engine for Interp<O> {
    type InFlight = InFlight;

    fn ingress(&mut self, input: &IngressInput<'_>) -> IngressOutcome<InFlight> {
        self.run().tell(|_| Event::Ingress(input));
        self.take(input);
        let pipeline = &self.code.program.pipeline;
        let (verify, ingress) = (pipeline.verify_checksum, pipeline.ingress);
        let meta = self.code.meta;
        if !self.machine.gave_up {
            self.run().block(verify, Block::VerifyChecksum);
        }
        if !self.machine.gave_up && self.get(meta.checksum_error) != 0 {
            self.machine.state.events.checksum_errors += 1;
        }
        if !self.machine.gave_up {
            self.run().block(ingress, Block::Ingress);
        }
        if self.machine.gave_up {
            return IngressOutcome {
                egress_spec: DROP_PORT,
                mcast_grp: 0,
                clone: None,
                resubmit: None,
                packet: self.machine.store(&self.code),
            };
        }
        let requests = self.machine.requests;
        IngressOutcome {
            egress_spec: self.get(meta.egress_spec),
            mcast_grp: self.get(meta.mcast_grp),
            clone: requests
                .ingress_clone
                .map(|request| self.clone_request(request)),
            resubmit: requests
                .resubmit
                .map(|list| self.code.preserve(Some(list), &self.machine.words)),
            packet: self.machine.store(&self.code),
        }
    }

    fn parse(&mut self, input: &IngressInput<'_>) -> InFlight {
        self.run().tell(|_| Event::Reparse(input));
        self.take(input);
        self.machine.store(&self.code)
    }

    fn restore(&mut self, packet: &mut InFlight, preserved: &Preserved) {
        packet.words[self.code.metadata.clone()].fill(0);
        packet.words[self.code.standard.clone()].fill(0);
        self.code.restore(preserved, &mut packet.words);
        if let Some(field) = self.code.meta.packet_length {
            packet.words[field.at] = packet.frame.len() as u128 & field.mask;
        }
    }

    fn truncate(&mut self, packet: &mut InFlight, bytes: u32) {
        packet.limit = packet.limit.min(bytes);
    }

    fn egress(
        &mut self,
        packet: InFlight,
        input: &EgressInput,
        frame: &mut Vec<u8>,
    ) -> EgressOutcome<InFlight> {
        frame.clear();
        self.run().tell(|_| Event::Egress(input));
        self.machine.start_block(input.now);
        self.machine.load(&self.code, packet);
        let meta = self.code.meta;
        self.set(meta.egress_port, u64::from(input.port));
        self.set(meta.egress_rid, u64::from(input.rid));
        self.set(meta.instance_type, u64::from(input.instance_type as u32));
        self.set(meta.enq_timestamp, input.enqueued_at);
        self.set(meta.enq_qdepth, u64::from(input.enqueue_depth));
        self.set(meta.deq_qdepth, u64::from(input.dequeue_depth));
        let waited = input.now.saturating_sub(input.enqueued_at);
        self.set(meta.deq_timedelta, waited);
        self.set(meta.egress_global_timestamp, input.now);
        // As BMv2 does, so that only egress itself can drop here.
        self.set(meta.egress_spec, 0);

        let pipeline = &self.code.program.pipeline;
        let (egress, compute) = (pipeline.egress, pipeline.compute_checksum);
        self.run().block(egress, Block::Egress);
        if self.machine.gave_up {
            return given_up();
        }
        let requests = self.machine.requests;
        let clone = requests.egress_clone.map(|request| {
            let request = self.clone_request(request);
            (request, self.machine.copy(&self.code))
        });
        if self.get(meta.egress_spec) == DROP_PORT {
            return EgressOutcome {
                dropped: true,
                clone,
                recirculate: None,
            };
        }
        let recirculate = requests
            .recirculate
            .map(|list| self.code.preserve(Some(list), &self.machine.words));
        self.run().block(compute, Block::ComputeChecksum);
        if !self.machine.gave_up {
            self.deparse(frame);
        }
        if self.machine.gave_up {
            frame.clear();
            return given_up();
        }
        EgressOutcome {
            dropped: false,
            clone,
            recirculate,
        }
    }

    fn gave_up(&self) -> bool {
        self.machine.gave_up
    }

    fn note(&mut self, event: SwitchEvent<'_>) {
        self.run().tell(|_| Event::Switched(event));
    }

    fn length(&self, packet: &InFlight) -> usize {
        packet.frame.len()
    }

    fn state(&self) -> &TargetState {
        &self.machine.state
    }

    fn state_mut(&mut self) -> &mut TargetState {
        &mut self.machine.state
    }
}

//! One pass of ingress or egress, and where the packet goes from there.

use super::{Returning, Switch, TIMESTAMP_MASK, Transmit};
use crate::config::{MAX_FRAME, MirrorSession, Replica};
use crate::counters::DropReason;
use crate::queue::Queued;
use stateplane_runtime::{
    CloneRequest, DROP_PORT, EgressInput, EgressOutcome, Engine, Forwarded, IngressInput,
    IngressOutcome, InstanceType, Port, Preserved, SwitchEvent,
};

impl<E: Engine> Switch<E> {
    pub(super) fn run_ingress(
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
        self.after_ingress(outcome, frame, port, resubmits, work);
    }

    /// Takes a frame that arrived through ingress, and through egress at once where the
    /// engine can and nothing comes between; whether it went through egress.
    pub(super) fn forward(
        &mut self,
        frame: &[u8],
        port: Port,
        preserved: &Preserved,
        work: &mut u32,
    ) -> bool {
        *work = work.saturating_sub(1);
        let instance_type = InstanceType::Normal;
        let input = IngressInput {
            frame,
            port,
            instance_type,
            preserved,
            now: self.now & TIMESTAMP_MASK,
        };
        let mut sent = self.spare.pop().unwrap_or_default();
        match self.engine.forward(&input, &mut sent) {
            Forwarded::Sent(port) => {
                *work = work.saturating_sub(1);
                match self.admit_transmission(port, sent.len()) {
                    Ok(()) => self.transmit.push_back(Transmit { port, frame: sent }),
                    Err(reason) => {
                        self.counters.drop(reason);
                        self.recycle(sent);
                    }
                }
                true
            }
            Forwarded::Done { port, outcome } => {
                *work = work.saturating_sub(1);
                self.after_egress(outcome, port, sent);
                true
            }
            Forwarded::Dropped => {
                self.recycle(sent);
                self.drop(self.why(DropReason::Ingress));
                false
            }
            Forwarded::Waits(outcome) => {
                self.recycle(sent);
                self.after_ingress(outcome, frame, port, 0, work);
                false
            }
        }
    }

    fn after_ingress(
        &mut self,
        outcome: IngressOutcome<E::InFlight>,
        frame: &[u8],
        port: Port,
        resubmits: u32,
        work: &mut u32,
    ) {
        let now = self.now & TIMESTAMP_MASK;
        let by_program = self.why(DropReason::Ingress);
        if let Some(CloneRequest {
            session: number,
            preserved,
        }) = &outcome.clone
        {
            *work = work.saturating_sub(1);
            self.counters.ingress_clones += 1;
            if let Some(&session) = self.sessions.get(number) {
                let instance_type = InstanceType::IngressClone;
                self.note_mirror(*number, session);
                let packet = self.engine.parse(&IngressInput {
                    frame,
                    port,
                    instance_type,
                    preserved,
                    now,
                });
                if self.engine.gave_up() {
                    self.drop(DropReason::LoopLimit);
                } else {
                    self.mirror(session, packet, instance_type);
                }
            } else {
                self.drop(DropReason::UnknownMirrorSession);
            }
        }

        if let Some(preserved) = outcome.resubmit {
            self.engine.release(outcome.packet);
            self.resubmit(frame, port, preserved, resubmits);
        } else if outcome.mcast_grp != 0 {
            self.replicate(outcome.packet, outcome.mcast_grp);
        } else if outcome.egress_spec >= DROP_PORT {
            self.engine.release(outcome.packet);
            self.drop(match outcome.egress_spec {
                DROP_PORT => by_program,
                _ => DropReason::UnknownPort,
            });
        } else {
            self.enqueue(Queued::new(
                outcome.packet,
                outcome.egress_spec,
                // As BMv2 has it, also after a resubmission or recirculation.
                InstanceType::Normal,
            ));
        }
    }

    /// Why a packet ends that the program's last run dropped: as said, unless it was given
    /// up.
    fn why(&self, by_program: DropReason) -> DropReason {
        if self.engine.gave_up() {
            DropReason::LoopLimit
        } else {
            by_program
        }
    }

    /// Counts a packet that ends here.
    pub(super) fn drop(&mut self, reason: DropReason) {
        self.counters.drop(reason);
        let reason = reason.name();
        self.engine.note(SwitchEvent::Dropped { reason });
    }

    fn resubmit(&mut self, frame: &[u8], port: Port, preserved: Preserved, resubmits: u32) {
        if resubmits >= self.limits.resubmits_per_frame {
            self.drop(DropReason::ResubmitLimit);
        } else if self.resubmission.len() >= self.limits.resubmission as usize {
            self.drop(DropReason::ResubmissionFull);
        } else {
            let mut copy = self.spare.pop().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(frame);
            let resubmits = resubmits + 1;
            self.engine.note(SwitchEvent::Resubmitted);
            self.resubmission.push_back(Returning {
                frame: copy,
                port,
                preserved,
                resubmits,
            });
        }
    }

    fn replicate(&mut self, packet: E::InFlight, group: u16) {
        let Some(replicas) = self.groups.get_mut(&group).map(std::mem::take) else {
            self.engine.release(packet);
            self.drop(DropReason::UnknownMulticastGroup);
            return;
        };
        self.counters.replicated += 1;
        self.counters.replicas += replicas.len() as u64;
        let event = SwitchEvent::Multicast {
            group,
            replicas: replicas.len(),
        };
        self.engine.note(event);
        if let Some((last, others)) = replicas.split_last() {
            for replica in others {
                let copy = self.engine.duplicate(&packet);
                self.enqueue(Self::replica(copy, *replica));
            }
            self.enqueue(Self::replica(packet, *last));
        }
        if let Some(of) = self.groups.get_mut(&group) {
            *of = replicas;
        }
    }

    fn replica(packet: E::InFlight, replica: Replica) -> Queued<E::InFlight> {
        Queued {
            rid: replica.rid,
            ..Queued::new(packet, replica.port, InstanceType::Replication)
        }
    }

    fn note_mirror(&mut self, number: u32, session: MirrorSession) {
        self.engine.note(SwitchEvent::Mirrored {
            session: number,
            group: session.multicast_group,
            port: session.egress_port,
            hold_us: session.hold_us,
        });
    }

    fn mirror(&mut self, session: MirrorSession, mut packet: E::InFlight, instance: InstanceType) {
        if let Some(bytes) = session.truncate {
            self.engine.truncate(&mut packet, bytes);
        }
        if let Some(group) = session.multicast_group {
            match self.groups.get(&group).cloned() {
                Some(replicas) => {
                    for Replica { port, rid } in replicas {
                        let copy = self.engine.duplicate(&packet);
                        let mut copy = Queued::new(copy, port, instance);
                        copy.rid = rid;
                        self.hold(session.hold_us, copy);
                    }
                }
                None => self.drop(DropReason::UnknownMulticastGroup),
            }
        }
        if let Some(port) = session.egress_port {
            self.hold(session.hold_us, Queued::new(packet, port, instance));
        }
    }

    fn hold(&mut self, hold_us: u64, mut copy: Queued<E::InFlight>) {
        let bytes = self.engine.length(&copy.packet) as u64;
        if hold_us == 0 {
            return self.enqueue(copy);
        }
        self.engine.set_aside(&mut copy.packet);
        if !self.held.push(self.now, hold_us, bytes, copy) {
            self.drop(DropReason::HeldFull);
        }
    }

    #[inline]
    pub(super) fn enqueue(&mut self, packet: Queued<E::InFlight>) {
        let (port, rid) = (packet.port, packet.rid);
        if self.egress.push(self.now, packet) {
            self.engine.note(SwitchEvent::Queued { port, rid });
        } else {
            self.drop(DropReason::QueueFull);
        }
    }

    pub(super) fn run_egress(&mut self, work: &mut u32) {
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
        self.after_egress(outcome, port, frame);
    }

    fn after_egress(&mut self, outcome: EgressOutcome<E::InFlight>, port: Port, frame: Vec<u8>) {
        if let Some((request, mut packet)) = outcome.clone {
            let CloneRequest {
                session: number,
                preserved,
            } = request;
            self.counters.egress_clones += 1;
            if let Some(&session) = self.sessions.get(&number) {
                self.note_mirror(number, session);
                self.engine.restore(&mut packet, &preserved);
                self.mirror(session, packet, InstanceType::EgressClone);
            } else {
                self.drop(DropReason::UnknownMirrorSession);
            }
        }

        if outcome.dropped {
            self.drop(self.why(DropReason::Egress));
            self.recycle(frame);
        } else if let Some(preserved) = outcome.recirculate {
            self.recirculate(frame, port, preserved);
        } else {
            self.transmit(frame, port);
        }
    }

    fn recirculate(&mut self, frame: Vec<u8>, port: Port, preserved: Preserved) {
        if let Err(reason) = self.admit_recirculation(frame.len()) {
            self.drop(reason);
            return self.recycle(frame);
        }
        self.engine
            .note(SwitchEvent::Recirculated { frame: &frame });
        self.recirculation.push_back(Returning {
            frame,
            port,
            preserved,
            resubmits: 0,
        });
    }

    #[inline]
    fn transmit(&mut self, frame: Vec<u8>, port: Port) {
        if let Err(reason) = self.admit_transmission(port, frame.len()) {
            self.drop(reason);
            return self.recycle(frame);
        }
        let event = SwitchEvent::Transmitted {
            port,
            frame: &frame,
        };
        self.engine.note(event);
        self.transmit.push_back(Transmit { port, frame });
    }

    fn admit_recirculation(&self, length: usize) -> Result<(), DropReason> {
        self.check_length(length)?;
        if self.recirculation.len() >= self.limits.recirculation as usize {
            return Err(DropReason::RecirculationFull);
        }
        Ok(())
    }

    fn admit_transmission(&mut self, port: Port, length: usize) -> Result<(), DropReason> {
        let fits = self.check_length(length);
        let entry = self.ports.get_mut(port).ok_or(DropReason::UnknownPort)?;
        if !entry.is_up() {
            return Err(DropReason::PortDown);
        }
        fits?;
        if entry.transmit_depth >= self.limits.transmit {
            return Err(DropReason::TransmitFull);
        }
        entry.transmit_depth += 1;
        Ok(())
    }

    /// Checks that a frame of `length` bytes can leave egress.
    fn check_length(&self, length: usize) -> Result<(), DropReason> {
        if length < self.limits.shortest_frame as usize {
            Err(DropReason::EgressRunt)
        } else if length > MAX_FRAME {
            Err(DropReason::EgressOversize)
        } else {
            Ok(())
        }
    }
}

//! A server's frames: from the ports to the program, and back.

use super::super::greeter::{FrameKind, Greeter, GreetingFilter, datagram};
use super::super::heartbeats::Beats;
use super::{SEND_AFTER, SwitchServer};

use crate::clock::boot_time_us;
use stateplane_runtime::Engine;

/// Lets greeter and heartbeats hear a frame of the port towards the store; true if the program must
/// not see it.
pub(super) fn hear(
    filter: Option<GreetingFilter>,
    greeter: &mut Option<Greeter>,
    beats: &mut Beats,
    now: u64,
    frame: &[u8],
) -> bool {
    if filter.is_some_and(|it| it.kind_of(frame) == FrameKind::Beat) {
        if let Some((from, datagram)) = datagram(frame) {
            beats.hear(now, from, datagram);
        }
        return true;
    }
    greeter.as_mut().is_some_and(|it| it.handle(now, frame))
}

impl<E: Engine> SwitchServer<E> {
    pub(super) fn forward_captures(&mut self) {
        let now = boot_time_us();
        for at in 0..self.ports.len() {
            if self.ports[at].port.due(now).is_some_and(|due| due <= now) {
                self.forward_burst(at, 0);
            }
        }
    }

    pub(super) fn forward_burst(&mut self, at: usize, descriptor: usize) {
        let number = self.ports[at].number;
        let hardware = self.ports[at].hardware;
        let mut answers = Vec::new();
        let count = self.ports[at].port.receive(descriptor, boot_time_us());
        if count > 0 && self.busy_poll > 0 {
            self.received_at = boot_time_us();
        }
        for next in 0..count {
            self.switch
                .announce(number, self.ports[at].port.as_received(next));
        }
        for next in 0..count {
            let Some(mut frame) = self.ports[at].port.frame(next) else {
                continue;
            };
            // The clock is read when the frame has left the ring, and for each frame
            // anew: a time that lies behind makes a lease look longer than it is.
            let now = boot_time_us();
            if let Some(sealing) = &mut self.sealing {
                match sealing.open(now, number, frame) {
                    Some(length) => frame = &mut frame[..length],
                    None => {
                        if sealing.has_answers() {
                            self.outgoing_since.get_or_insert(now);
                        }
                        continue;
                    }
                }
            }
            if (self.filter.is_some_and(|it| it.port == number))
                && hear(self.filter, &mut self.greeter, &mut self.beats, now, frame)
            {
                continue;
            }
            if self.neighbours.may_ask(frame)
                && let Some(answer) = self.neighbours.answer(number, hardware, frame)
            {
                answers.push(answer);
                continue;
            }
            self.switch.handle_frame(now, number, frame);
            self.collect();
            if self
                .outgoing_since
                .is_some_and(|since| now.saturating_sub(since) >= SEND_AFTER)
            {
                self.send();
            }
        }
        self.ports[at].port.release();
        if !answers.is_empty() {
            self.ports[at].outgoing.append(&mut answers);
            self.outgoing_since.get_or_insert_with(boot_time_us);
        }
        self.send();
    }

    pub(super) fn collect(&mut self) {
        while let Some(transmit) = self.switch.poll_transmit() {
            if self.cpu_port == Some(transmit.port) {
                if let Some(control) = &mut self.control {
                    control.packet_in(&transmit.frame);
                }
                self.switch.recycle(transmit.frame);
                continue;
            }
            if let Ok(at) = self
                .ports
                .binary_search_by_key(&transmit.port, |served| served.number)
            {
                self.ports[at].outgoing.push(transmit.frame);
                self.outgoing_since.get_or_insert_with(boot_time_us);
            }
        }
    }

    pub(super) fn send(&mut self) {
        if self.outgoing_since.take().is_none() {
            return;
        }
        for served in &mut self.ports {
            if let Some(sealing) = self.sealing.as_mut().filter(|it| it.covers(served.number)) {
                sealing.seal(served.number, &mut served.outgoing);
            }
            if !served.outgoing.is_empty() {
                served.port.send(&served.outgoing, boot_time_us());
                for frame in served.outgoing.drain(..) {
                    self.switch.recycle(frame);
                }
            }
        }
    }
}

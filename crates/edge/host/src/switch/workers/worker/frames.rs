//! A worker's frames: from its queues and from other workers to the program, and back.

use super::super::duties::Admitted;
use super::super::lane::Output;
use super::super::signals::{Handed, Peer};
use super::Worker;
use crate::broken::say_broken;
use crate::clock::boot_time_us;
use stateplane_runtime::Engine;
use std::collections::VecDeque;
use std::sync::mpsc::TrySendError;

/// Time in µs after which frames are sent although more of the same burst wait.
const SEND_AFTER: u64 = 100;

/// Frames taken from other workers at a time.
const BATCH: usize = 64;

/// Frames to send that wait for room at another worker, at most.
const BACKLOG: usize = 2048;

/// Buffers kept by a worker that hands frames over.
pub(super) const SPARE: usize = 1024;

impl<E: Engine> Worker<E> {
    /// Forwards what has come and does what is due; how many frames came.
    pub(super) fn forward(&mut self) -> u64 {
        if self.held {
            return 0;
        }
        let mut received = 0;
        for next in 0..self.readers.len() {
            if self.readable.is_ready(next) {
                let (at, descriptor) = self.readers[next];
                received += self.forward_burst(at, descriptor);
            }
        }
        let now = boot_time_us();
        for at in 0..self.ports.len() {
            let due = self.ports[at].queue.as_mut().and_then(|it| it.due(now));
            // Nobody sends a capture's frames again: none is read for which there may be no room.
            if due.is_some_and(|due| due <= now) && self.backlog.is_empty() {
                received += self.forward_burst(at, 0);
            }
        }
        self.switch.handle_timeout(boot_time_us());
        while let Some(broken) = self.switch.poll_broken() {
            say_broken(&broken);
        }
        self.collect();
        self.tell_digests();
        self.send();
        received
    }

    /// Tells a control plane of digests; those for which it has no room wait with the program's
    /// others.
    fn tell_digests(&mut self) {
        if !self.controlled.is || self.switch.engine().state().digests.is_empty() {
            return;
        }
        let digests = &mut self.switch.engine_mut().state_mut().digests;
        while let Some(digest) = digests.poll() {
            if let Err(Output::Digest(digest)) = self.control.try_offer(Output::Digest(digest)) {
                digests.put_back(digest);
                return;
            }
        }
    }

    fn forward_burst(&mut self, at: usize, descriptor: usize) -> u64 {
        let port = &mut self.ports[at];
        let (number, hardware, divided) = (port.number, port.hardware, port.divided);
        let Some(queue) = &mut port.queue else {
            return 0;
        };
        let is_capture = queue.is_capture();
        let count = queue.receive(descriptor, boot_time_us());
        self.falls.clear();
        let keeps_all = self.steering.keeps_all(divided);
        for next in 0..count {
            let frame = queue.as_received(next);
            let to = if keeps_all {
                self.number
            } else {
                let key_of = |frame: &[u8]| self.switch.state_key(number, frame);
                self.steering.worker(divided, frame, key_of)
            };
            if to == self.number {
                self.switch.announce(number, frame);
            }
            self.falls.push(to);
        }
        for next in 0..count {
            let port = &mut self.ports[at];
            let frame = port.queue.as_mut().and_then(|queue| queue.frame(next));
            let Some(frame) = frame else {
                continue;
            };
            // The clock is read when the frame has left the ring, and for each frame
            // anew: a time that lies behind makes a lease look longer than it is.
            let now = boot_time_us();
            let lost = &mut port.counters.rx_handover_full;
            let arrived = (number, hardware);
            match self.duties.admit(now, arrived, frame, &self.control, lost) {
                Admitted::Pass(length) => {
                    let (frame, to) = (&frame[..length], self.falls[next]);
                    if to == self.number {
                        self.switch.begin_burst();
                        self.switch.handle_frame(now, number, frame);
                        self.collect();
                    } else {
                        let mut copy = self.spare.take();
                        copy.clear();
                        copy.extend_from_slice(frame);
                        self.hand_over(to, (at, copy), is_capture);
                    }
                }
                Admitted::Taken => {}
                Admitted::SealAnswered => {
                    port.answered = true;
                    self.outgoing_since.get_or_insert(now);
                }
                Admitted::Answered(answer) => {
                    port.outgoing.push(answer);
                    self.outgoing_since.get_or_insert(now);
                }
            }
            self.send_if_late(now);
        }
        if let Some(queue) = &mut self.ports[at].queue {
            queue.release();
        }
        self.wake();
        self.send();
        count as u64
    }

    /// Gives a frame that arrived to the worker that it falls to. It `waits` for room there, or is
    /// counted as lost.
    fn hand_over(&mut self, to: usize, handed: Handed, waits: bool) {
        // Those that wait are not overtaken.
        let refused = if waits && !self.backlog.arrivals.is_empty() {
            Err(TrySendError::Full(handed))
        } else {
            self.peers[to].arrive(handed)
        };
        match refused {
            Ok(()) => {
                self.handed_over += 1;
                self.to_wake |= 1 << to;
            }
            Err(TrySendError::Full(handed)) if waits => {
                self.handed_over += 1;
                self.backlog.arrivals.push_back((to, handed));
            }
            Err(TrySendError::Full((at, frame)) | TrySendError::Disconnected((at, frame))) => {
                self.ports[at].counters.rx_handover_full += 1;
                self.spare.put(&mut self.switch, frame);
            }
        }
    }

    /// Gives the frames that leave by the port at `at`, of which this worker has no queue, to the
    /// worker that has one.
    fn send_by_owner(&mut self, at: usize) {
        let owner = self.ports[at].owner;
        let mut frames = std::mem::take(&mut self.ports[at].outgoing);
        for frame in frames.drain(..) {
            let waiting = self.backlog.departures.len();
            let refused = if owner == self.number {
                Err(TrySendError::Disconnected((at, frame)))
            } else if waiting > 0 {
                Err(TrySendError::Full((at, frame)))
            } else {
                self.peers[owner].depart((at, frame))
            };
            match refused {
                Ok(()) => self.to_wake |= 1 << owner,
                Err(TrySendError::Full(handed)) if waiting < BACKLOG => {
                    self.backlog.departures.push_back((owner, handed));
                }
                Err(TrySendError::Full((_, frame)) | TrySendError::Disconnected((_, frame))) => {
                    self.ports[at].counters.tx_handover_full += 1;
                    self.spare.put(&mut self.switch, frame);
                }
            }
        }
        self.ports[at].outgoing = frames;
    }

    /// Hands over what had to wait, and sends for others; returns how many frames they gave.
    pub(super) fn hand_over_again(&mut self) -> u64 {
        let Worker {
            backlog,
            peers,
            to_wake,
            ports,
            ..
        } = self;
        let lost = |at: usize| ports[at].counters.tx_handover_full += 1;
        *to_wake |= hand_over_waiting(&mut backlog.departures, peers, Peer::depart, lost);
        let lost = |at: usize| ports[at].counters.rx_handover_full += 1;
        *to_wake |= hand_over_waiting(&mut backlog.arrivals, peers, Peer::arrive, lost);
        self.wake();
        let mut count = 0;
        while count < BATCH as u64
            && let Ok((at, frame)) = self.inbox.departures.try_recv()
        {
            self.ports[at].outgoing.push(frame);
            self.outgoing_since.get_or_insert_with(boot_time_us);
            count += 1;
        }
        self.send();
        count
    }

    /// Handles frames that others gave: how many. It takes none while it is behind with what comes
    /// of them, so that nothing is lost on the way from a capture.
    pub(super) fn take_handed(&mut self) -> u64 {
        if self.held {
            return 0;
        }
        while self.batch.len() < BATCH
            && let Ok((at, frame)) = self.inbox.arrivals.try_recv()
        {
            self.switch.announce(self.ports[at].number, &frame);
            self.batch.push_back((at, frame));
        }
        let mut count = 0;
        while self.backlog.is_empty()
            && let Some((at, frame)) = self.batch.pop_front()
        {
            let now = boot_time_us();
            let number = self.ports[at].number;
            self.switch.begin_burst();
            self.switch.handle_frame(now, number, &frame);
            self.spare.put(&mut self.switch, frame);
            self.collect();
            self.send_if_late(now);
            count += 1;
        }
        self.send();
        count
    }

    /// Puts what leaves the switch to the ports.
    pub(in super::super) fn collect(&mut self) {
        while let Some(transmit) = self.switch.poll_transmit() {
            let port = transmit.port;
            if self.controlled.cpu_port == Some(port) {
                let told = self.control.offer(Output::PacketIn(transmit.frame));
                self.packets_in_lost += u64::from(!told);
                continue;
            }
            if let Ok(at) = self.ports.binary_search_by_key(&port, |it| it.number) {
                self.ports[at].outgoing.push(transmit.frame);
                self.outgoing_since.get_or_insert_with(boot_time_us);
            }
        }
        while let Some((port, up)) = self.switch.poll_port_state() {
            // The first worker's watches decide about ports.
            if self.number == 0 {
                self.switch.end_burst();
                self.control.tell(Output::PortState(port, up), &self.signs);
            }
        }
    }

    fn send_if_late(&mut self, now: u64) {
        let since = self.outgoing_since;
        if since.is_some_and(|since| now.saturating_sub(since) >= SEND_AFTER) {
            self.send();
        }
    }

    /// Sends what the ports have, or hands it over.
    pub(in super::super) fn send(&mut self) {
        // The kernel may let it wait, and who asks for its locks with it.
        self.switch.end_burst();
        if self.held || self.outgoing_since.take().is_none() {
            return;
        }
        for at in 0..self.ports.len() {
            let port = &mut self.ports[at];
            if port.outgoing.is_empty() && !port.answered {
                continue;
            }
            let Some(queue) = &mut port.queue else {
                self.send_by_owner(at);
                continue;
            };
            let mut send = |frames: &[Vec<u8>]| {
                if !frames.is_empty() {
                    queue.send(frames, boot_time_us());
                }
            };
            match &self.duties.sealing {
                Some(sealing) => {
                    sealing.send(port.number, port.answered, &mut port.outgoing, send);
                }
                None => send(&port.outgoing),
            }
            port.answered = false;
            for frame in port.outgoing.drain(..) {
                self.spare.put(&mut self.switch, frame);
            }
        }
        self.wake();
    }

    /// Ends the sleep of workers that were given something.
    fn wake(&mut self) {
        let mut left = std::mem::take(&mut self.to_wake);
        while left != 0 {
            self.peers[left.trailing_zeros() as usize].signs.wake();
            left &= left - 1;
        }
    }
}

/// Gives workers, by `give`, the frames that wait for them, until one has no room; a bit for each that
/// was given some. A frame for a worker that has ended is `lost`, by the place of its port.
fn hand_over_waiting(
    waiting: &mut VecDeque<(usize, Handed)>,
    peers: &[Peer],
    give: fn(&Peer, Handed) -> Result<(), TrySendError<Handed>>,
    mut lost: impl FnMut(usize),
) -> u64 {
    let mut given = 0;
    while let Some((to, handed)) = waiting.pop_front() {
        match give(&peers[to], handed) {
            Ok(()) => given |= 1 << to,
            Err(TrySendError::Full(handed)) => {
                waiting.push_front((to, handed));
                break;
            }
            Err(TrySendError::Disconnected((at, _))) => lost(at),
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_wait_in_order_for_room_and_are_lost_with_the_worker_alone() {
        let (peer, inbox) = Peer::new().unwrap();
        let peers = [peer];
        while peers[0].depart((7, Vec::new())).is_ok() {}
        let mut waiting: VecDeque<(usize, Handed)> =
            (1..=3).map(|mark| (0, (7, vec![mark]))).collect();
        let mut lost = Vec::new();
        let mut again =
            |waiting: &mut _| hand_over_waiting(waiting, &peers, Peer::depart, |at| lost.push(at));
        assert_eq!(again(&mut waiting), 0, "there is no room");
        assert_eq!(waiting.len(), 3);
        for _ in 0..2 {
            inbox.departures.recv().unwrap();
        }
        assert_eq!(again(&mut waiting), 1);
        assert_eq!(waiting, [(0, (7, vec![3]))]);
        let came: Vec<Handed> = inbox.departures.try_iter().collect();
        assert_eq!(came[came.len() - 2..], [(7, vec![1]), (7, vec![2])]);
        drop(inbox);
        assert_eq!(again(&mut waiting), 0);
        assert!(waiting.is_empty());
        assert_eq!(lost, [7]);
    }
}

//! Seals of a switch that several threads share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stateplane_switch::Port;

use super::Sealing;
use crate::sealing::{Own, arrives_sealed, is_impostor, leaves_sealed};

/// Keys and replay windows are one for all threads; which frames they are about, each thread sees
/// for itself.
#[derive(Clone, Debug)]
pub(in crate::switch) struct SharedSealing {
    sealing: Arc<Mutex<Sealing>>,
    ports: Arc<[Port]>,
    own: Own,
}

/// The part of a frame that arrived and that a switch gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::switch) enum Opening {
    /// This many first bytes.
    Pass(usize),
    /// Nothing.
    Dropped,
    /// Nothing, and there is something to send back.
    Answered,
}

impl SharedSealing {
    pub(in crate::switch) fn new(sealing: Sealing) -> SharedSealing {
        SharedSealing {
            ports: sealing.ports.as_slice().into(),
            own: sealing.own,
            sealing: Arc::new(Mutex::new(sealing)),
        }
    }

    /// The seals, which no other thread has meanwhile. A thread that ended amid its work leaves a
    /// message uncounted and nothing else.
    pub(in crate::switch) fn lock(&self) -> MutexGuard<'_, Sealing> {
        self.sealing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn covers(&self, port: Port) -> bool {
        self.ports.contains(&port)
    }

    /// Opens the message in `frame`, which arrived by `port`, as [`Sealing::open`].
    pub(in crate::switch) fn open(&self, now: u64, port: Port, frame: &mut [u8]) -> Opening {
        let of_it =
            is_impostor(self.own, frame) || self.covers(port) && arrives_sealed(self.own, frame);
        if !of_it {
            return Opening::Pass(frame.len());
        }
        let mut sealing = self.lock();
        match sealing.open(now, port, frame) {
            Some(length) => Opening::Pass(length),
            None if sealing.has_answers() => Opening::Answered,
            None => Opening::Dropped,
        }
    }

    /// Lets `frames` leave by `port` through `send`, sealed where that is due, with the answers of the
    /// port if it has `answered`. The order of seals is that of sending, or a peer would take those
    /// that were overtaken for old ones.
    pub(in crate::switch) fn send(
        &self,
        port: Port,
        answered: bool,
        frames: &mut Vec<Vec<u8>>,
        send: impl FnOnce(&[Vec<u8>]),
    ) {
        let of_it = |frame: &Vec<u8>| leaves_sealed(self.own, frame);
        if !self.covers(port) || !answered && !frames.iter().any(of_it) {
            send(frames);
            return;
        }
        let mut sealing = self.lock();
        sealing.seal(port, frames);
        send(frames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sealing::frames::{A, B, guard, message};
    use stateplane_wire::{multicast, replication};

    const SEALED: Port = 2;
    const OPEN: Port = 1;

    fn shared() -> SharedSealing {
        let sealing = Sealing::new(guard(1, 2, B), vec![SEALED]);
        SharedSealing::new(sealing.with_multicast(Some(A)))
    }

    #[test]
    fn frames_are_treated_as_on_one_thread() {
        for from in [5000, multicast::PORT, replication::PORT] {
            for to in [53, multicast::PORT, replication::PORT] {
                for port in [OPEN, SEALED] {
                    let shared = shared();
                    let mut alone = Sealing::new(guard(1, 2, B), vec![SEALED]);
                    alone = alone.with_multicast(Some(A));
                    let frame = message(from, to);
                    let expected = alone.open(0, port, &mut frame.clone());
                    let seen = shared.open(0, port, &mut frame.clone());
                    assert_eq!(
                        matches!(seen, Opening::Pass(length) if Some(length) == expected),
                        expected.is_some(),
                        "{from} to {to} by {port}"
                    );
                    assert_eq!(shared.lock().report(), alone.report());
                }
            }
        }
    }

    #[test]
    fn messages_leave_sealed_and_others_as_they_are() {
        let shared = shared();
        let (sealed, other) = (
            message(replication::PORT, replication::PORT),
            message(5000, 53),
        );
        for (port, grows) in [(OPEN, false), (SEALED, true)] {
            let mut frames = vec![sealed.clone(), other.clone()];
            let mut lengths = Vec::new();
            shared.send(port, false, &mut frames, |sent| {
                lengths = sent.iter().map(Vec::len).collect();
            });
            assert_eq!(lengths.len(), 2);
            assert_eq!(lengths[0] > sealed.len(), grows);
            assert_eq!(lengths[1], other.len());
        }
    }
}

//! The ports of a switch that pass messages of its protocols only sealed.

mod shared;

pub(super) use shared::{Opening, SharedSealing};

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use stateplane_seal::TRAILER_LENGTH;
use stateplane_switch::Port;
use stateplane_wire::{ipv4, multicast, udp};

use super::SealReport;
use crate::sealing::{
    Arrived, FrameCounters, Guard, KeysError, Own, is_impostor, open_datagram, open_frame,
    seal_frame, send_datagram,
};

/// Ports at which messages of the replication protocol, of the coordination service, of multicast
/// and of sync must be sealed, and the keys.
#[derive(Debug)]
pub struct Sealing {
    guard: Guard,
    ports: Vec<Port>,
    own: Own,
    counters: FrameCounters,
    /// Frames to send back, as they are.
    answers: Vec<(Port, Vec<u8>)>,
}

/// Bytes of the longest payload of multicast that fits, sealed, into IP packets of `mtu` bytes.
pub(super) fn sealed_payload(mtu: usize) -> usize {
    let headers = ipv4::HEADER_LENGTH + udp::HEADER_LENGTH + multicast::HEADER_LENGTH;
    mtu.saturating_sub(headers + TRAILER_LENGTH)
}

impl Sealing {
    /// Seals what leaves by `ports` with the keys of `guard`, and opens what arrives.
    pub fn new(guard: Guard, ports: Vec<Port>) -> Sealing {
        Sealing {
            guard,
            ports,
            own: Own::default(),
            counters: FrameCounters::default(),
            answers: Vec::new(),
        }
    }

    /// Messages of the coordination service that go to `own`, or come from it, are sealed too.
    pub fn with_coordination(self, own: Option<Ipv4Addr>) -> Sealing {
        let own = Own {
            coordination: own,
            ..self.own
        };
        Sealing { own, ..self }
    }

    /// Messages of multicast that go to `own`, or come from it, are sealed too.
    pub fn with_multicast(self, own: Option<Ipv4Addr>) -> Sealing {
        let own = Own {
            multicast: own,
            ..self.own
        };
        Sealing { own, ..self }
    }

    /// Messages of sync that go to `own`, or come from it, are sealed too.
    pub fn with_sync(self, own: Option<Ipv4Addr>) -> Sealing {
        let own = Own {
            sync: own,
            ..self.own
        };
        Sealing { own, ..self }
    }

    pub(super) fn ports(&self) -> &[Port] {
        &self.ports
    }

    pub(super) fn covers(&self, port: Port) -> bool {
        self.ports.contains(&port)
    }

    /// Length of `frame`, which arrived by `port`, for the switch, its message opened if the port
    /// passes sealed ones only; `None` if the switch gets none.
    pub(super) fn open(&mut self, now: u64, port: Port, frame: &mut [u8]) -> Option<usize> {
        if is_impostor(self.own, frame) {
            self.counters.own_source += 1;
            return None;
        }
        if !self.covers(port) {
            return Some(frame.len());
        }
        match open_frame(&mut self.guard, &mut self.counters, self.own, now, frame) {
            Arrived::Pass(length) => return Some(length),
            Arrived::Answered(answer) => self.answers.push((port, answer)),
            Arrived::Dropped => {}
        }
        None
    }

    /// Length of the message in `bytes`, which came from `from` at `now` to a socket of the switch's
    /// process; `None` if there is none. That socket and the ports are one end: a peer hears both
    /// under one number.
    pub(super) fn open_datagram(
        &mut self,
        now: u64,
        socket: &UdpSocket,
        from: SocketAddrV4,
        bytes: &[u8],
    ) -> Option<usize> {
        let received = open_datagram(Some(&mut self.guard), now, socket, from, bytes)?;
        Some(received.message.len())
    }

    /// Sends `message` sealed by a socket of the switch's process. A message to an unknown peer is
    /// counted and not sent.
    ///
    /// # Errors
    ///
    /// The system does not take it.
    pub(super) fn send_datagram(
        &mut self,
        socket: &UdpSocket,
        to: SocketAddrV4,
        message: &[u8],
    ) -> io::Result<()> {
        send_datagram(Some(&mut self.guard), socket, to, message)
    }

    pub(super) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Prepares `frames` to leave by `port`: seals messages, removes those to unknown peers,
    /// appends answers.
    pub(super) fn seal(&mut self, port: Port, frames: &mut Vec<Vec<u8>>) {
        let (guard, counters, own) = (&mut self.guard, &mut self.counters, self.own);
        frames.retain_mut(|frame| seal_frame(guard, counters, own, frame));
        let answers = self.answers.extract_if(.., |(to, _)| *to == port);
        frames.extend(answers.map(|(_, frame)| frame));
    }

    /// Reads the file of keys again if it changed; the error with a port to tell it at.
    pub(super) fn look(&mut self, now: u64) -> Option<(Port, KeysError)> {
        let error = self.guard.look(now).err()?;
        Some((*self.ports.first()?, error))
    }

    /// The likely reason for which a peer is not heard, if the seals tell one.
    pub(super) fn complaint(&self) -> Option<&'static str> {
        let counters = self.guard.counters();
        if counters.forged + counters.unknown_key > 0 {
            Some("its seals do not fit: both sides need the same keys")
        } else if counters.unknown_receiver > 0 {
            Some("the file of keys has no peer with its address")
        } else if counters.not_sealed + counters.truncated > 0 {
            Some("its messages are not sealed: give it --keys too, or neither side")
        } else if counters.opened == 0 {
            Some(
                "nothing sealed comes from it: give it --keys too, with the key of this switch, or neither side",
            )
        } else {
            None
        }
    }

    pub(super) fn report(&self) -> SealReport {
        SealReport {
            messages: *self.guard.counters(),
            wrong_address: self.guard.wrong_address(),
            frames: self.counters,
        }
    }
}

#[cfg(test)]
mod tests;

//! The links to the neighbours (rules 20 and 21).

use std::sync::Arc;

use stateplane_wire::Error;
use stateplane_wire::chain::{Decision, Entry, HEADER_LENGTH, Kind, Packet, Repr};
use stateplane_wire::replication;

use super::{Destination, Replica, Transmit};
use crate::link::Arrival;

impl Replica {
    /// Takes a datagram that came to the chain port at `now` from the replica at
    /// position `from`.
    pub fn handle_chain(&mut self, now: u64, from: u8, bytes: &[u8]) {
        self.run_due(now);
        let Ok(packet) = Packet::new_checked(bytes) else {
            self.counters.chain_malformed += 1;
            return;
        };
        if packet.chain_epoch() != self.config.chain_epoch {
            self.counters.chain_wrong_epoch += 1;
            return;
        }
        let own = self.config.position;
        let neighbour = match packet.kind() {
            Kind::Update => own.checked_sub(1),
            Kind::Ack => (!self.is_tail()).then(|| own + 1),
        };
        if neighbour != Some(from) || packet.replica() != from {
            self.counters.chain_wrong_sender += 1;
            return;
        }
        match packet.kind() {
            Kind::Update => self.update(now, &packet),
            Kind::Ack => self.acknowledged(now, &packet),
        }
    }

    fn acknowledged(&mut self, now: u64, packet: &Packet<'_>) {
        if packet.incarnation() != self.incarnation {
            self.counters.chain_wrong_incarnation += 1;
            return;
        }
        if !self.successor.acknowledged(now, packet.number()) {
            self.counters.chain_bad_ack += 1;
            return;
        }
        self.apply_early(now);
        self.run_due(now);
    }

    fn update(&mut self, now: u64, packet: &Packet<'_>) {
        let (incarnation, number) = (packet.incarnation(), packet.number());
        match self.predecessor.judge(incarnation, number) {
            Arrival::Next if self.window_is_full() => self.counters.chain_window_full += 1,
            Arrival::Next => {
                if self.apply_update(now, packet.body()) {
                    self.predecessor.has_applied(incarnation);
                    self.apply_early(now);
                }
            }
            Arrival::Early => {
                self.counters.chain_early += 1;
                self.predecessor.keep(number, packet.body());
            }
            Arrival::Duplicate => self.counters.chain_duplicate += 1,
            Arrival::TooFar => self.counters.chain_window_full += 1,
            Arrival::NotBegun => self.counters.chain_not_begun += 1,
            Arrival::WrongIncarnation => self.counters.chain_wrong_incarnation += 1,
        }
    }

    /// Applies the updates that came before their turn and whose turn it is.
    fn apply_early(&mut self, now: u64) {
        while !self.window_is_full()
            && let Some((incarnation, body)) = self.predecessor.take_next()
            && self.apply_update(now, &body)
        {
            self.predecessor.has_applied(incarnation);
        }
    }

    /// Applies one update and sends it on, or answers; `false` if it is not an
    /// entry, which counts as if it had not arrived.
    fn apply_update(&mut self, now: u64, body: &[u8]) -> bool {
        let Ok(entry) = Entry::parse(body) else {
            self.counters.chain_malformed += 1;
            return false;
        };
        let request = replication::Packet::new_checked(entry.request);
        let packet = match (entry.decision, request) {
            (Decision::Expire { .. }, _) => None,
            (_, Ok(request)) => Some(request),
            (_, Err(_)) => {
                self.counters.chain_malformed += 1;
                return false;
            }
        };
        self.apply(now, &entry, packet.as_ref());
        self.send_on(now, |buffer| {
            buffer.extend_from_slice(body);
            Ok(())
        });
        if self.is_tail() && !self.config.faults.answer_at_head {
            self.answer(&entry, packet.as_ref());
        }
        true
    }

    /// Sends the entry that `body` appends to the successor, if there is one.
    pub(super) fn send_on(
        &mut self,
        now: u64,
        body: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) {
        if self.is_tail() {
            return;
        }
        let header = Repr {
            kind: Kind::Update,
            replica: self.config.position,
            chain_epoch: self.config.chain_epoch,
            incarnation: self.incarnation,
            number: self.successor.next_number(),
            body: &[],
        };
        let mut bytes = vec![0; HEADER_LENGTH];
        let written = header
            .emit_header(&mut bytes)
            .and_then(|()| body(&mut bytes));
        if written.is_err() {
            self.counters.chain_inconsistent += 1;
            return;
        }
        let bytes = Arc::new(bytes);
        self.successor.sent(now, Arc::clone(&bytes));
        self.transmit(Destination::Replica(self.config.position + 1), bytes);
    }

    pub(super) fn resend(&mut self, now: u64) {
        let to = Destination::Replica(self.config.position.saturating_add(1));
        for bytes in self.successor.resend(now) {
            self.counters.chain_resent += 1;
            self.outbox.push_back(Transmit { to, bytes });
        }
    }

    /// The acknowledgement to the predecessor, if one is due. Asked for when
    /// nothing else is to be sent, so that one covers a whole burst.
    pub(super) fn acknowledgement(&mut self) -> Option<Transmit> {
        let (incarnation, number) = self.predecessor.take_acknowledgement()?;
        let position = self.config.position;
        let ack = Repr {
            kind: Kind::Ack,
            replica: position,
            chain_epoch: self.config.chain_epoch,
            incarnation,
            number,
            body: &[],
        };
        Some(Transmit {
            to: Destination::Replica(position.checked_sub(1)?),
            bytes: Arc::new(ack.to_vec().ok()?),
        })
    }
}

//! The links to the neighbours (rules 20 and 21).

use std::sync::Arc;

use stateplane_invariant::invariant;
use stateplane_wire::chain::{Decision, Entry, Kind, Packet, Repr};
use stateplane_wire::replication;

use super::{Destination, Replica, Transmit};
use crate::link::Arrival;
use crate::log::Batch;

impl Replica {
    /// Takes a datagram that came to the chain port at `now` from the replica at
    /// position `from`.
    pub fn handle_chain(&mut self, now: u64, from: u8, bytes: &[u8]) {
        if self.is_silenced() {
            return;
        }
        self.run_due(now);
        let Ok(packet) = Packet::new_checked(bytes) else {
            self.counters.chain_malformed += 1;
            return;
        };
        let faults = self.config.faults;
        if packet.chain_epoch() != self.place.epoch && !faults.ignore_chain_epoch {
            self.counters.chain_wrong_epoch += 1;
            return;
        }
        let own = self.place.position;
        let neighbour = match packet.kind() {
            Kind::Update | Kind::Snapshot => own.checked_sub(1),
            Kind::Ack => (!self.is_tail() || self.feed.is_some()).then_some(own + 1),
            // A replica that joins asks nobody.
            Kind::Compare | Kind::Compared => {
                (from.abs_diff(own) == 1 && from < self.place.length).then_some(from)
            }
            Kind::SnapshotAck => self.feed.is_some().then_some(own + 1),
        };
        let other_chain = packet.chain() != self.config.chain;
        let stranger = neighbour != Some(from) || packet.replica() != from;
        if other_chain || stranger && !faults.ignore_neighbour {
            self.counters.chain_wrong_sender += 1;
            return;
        }
        match packet.kind() {
            Kind::Update => self.update(now, &packet),
            Kind::Ack => self.acknowledged(now, &packet),
            Kind::Snapshot => self.snapshot_part(now, &packet),
            Kind::SnapshotAck => self.part_acknowledged(now, &packet),
            Kind::Compare => self.asked_to_compare(&packet),
            Kind::Compared => self.compared(now, &packet),
        }
    }

    fn acknowledged(&mut self, now: u64, packet: &Packet<'_>) {
        // A neighbour that has heard nothing in this epoch does not know who sends.
        if ![0, self.incarnation].contains(&packet.incarnation()) {
            self.counters.chain_wrong_incarnation += 1;
            return;
        }
        if !self.log.acknowledge(now, packet.number()) {
            self.counters.chain_bad_ack += 1;
            self.has_lost(packet.number());
            // A disk that lost entries mends itself by a copy.
            invariant!(
                self.invariants,
                ChainAcknowledgement,
                self.config.durable,
                "entry {} of chain {} is acknowledged, {} is the last",
                packet.number(),
                self.config.chain,
                self.applied
            );
            return;
        }
        if self.is_tail() {
            self.joiner_acknowledged();
        } else {
            let base = if self.config.faults.forget_entries {
                packet.number()
            } else {
                packet.base()
            };
            self.raise_base(base.min(self.applied));
        }
        self.run_due(now);
    }

    /// Every replica behind this one has all up to `base`.
    pub(super) fn raise_base(&mut self, base: u64) {
        if base > self.base {
            self.base = base;
            self.log.trim(base);
            self.predecessor.owe_acknowledgement();
        }
    }

    fn update(&mut self, now: u64, packet: &Packet<'_>) {
        if self.install.as_ref().is_some_and(|i| !i.is_done()) {
            self.counters.chain_not_begun += 1;
            return;
        }
        let incarnation = packet.incarnation();
        let known = self.predecessor.incarnation();
        if self.install.is_none() && known.is_none_or(|known| known == incarnation) {
            // This one said once that it has all of these.
            self.has_lost(packet.base());
        }
        for (number, entry) in (packet.number()..).zip(packet.entries()) {
            let Ok(entry) = entry else {
                self.counters.chain_malformed += 1;
                break;
            };
            match self.predecessor.judge(incarnation, number) {
                Arrival::Next => {
                    if !self.apply_update(now, incarnation, entry) {
                        break;
                    }
                    self.apply_early(now);
                }
                Arrival::Early => {
                    self.counters.chain_early += 1;
                    self.predecessor.keep(number, entry);
                    let (kept, most) = (self.predecessor.early(), self.config.limits.link_window);
                    if !invariant!(
                        self.invariants,
                        EarlyUpdates,
                        kept <= most,
                        "{kept} early updates, at most {most}"
                    ) {
                        self.predecessor.forget_early();
                    }
                }
                Arrival::Duplicate => self.counters.chain_duplicate += 1,
                Arrival::TooFar => self.counters.chain_window_full += 1,
                Arrival::NotBegun => self.counters.chain_not_begun += 1,
                Arrival::WrongIncarnation => self.counters.chain_wrong_incarnation += 1,
            }
        }
        if self.install.is_some() {
            self.is_answered(packet.base());
        }
    }

    /// While it joins: the tail has answered all up to number `base`.
    fn is_answered(&mut self, base: u64) {
        if base > self.base && base <= self.applied {
            (self.base, self.answered) = (base, base);
            self.log.trim(base);
        }
    }

    /// Applies the updates that came before their turn and whose turn it is.
    fn apply_early(&mut self, now: u64) {
        while let Some((incarnation, body)) = self.predecessor.take_next()
            && self.apply_update(now, incarnation, &body)
        {}
    }

    /// Applies one update and sends it on, or answers; `false` if it is not an
    /// entry, which counts as if it had not arrived.
    fn apply_update(&mut self, now: u64, incarnation: u32, body: &[u8]) -> bool {
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
        let outcome = self.apply(now, &entry, packet.as_ref());
        if !self.judge(outcome) {
            return false;
        }
        self.predecessor.has_applied(incarnation);
        self.has_applied(&entry, packet.as_ref(), body);
        true
    }

    /// True if others may still need the entries that this replica applies.
    pub(super) fn keeps_entries(&self) -> bool {
        self.install.is_none() && (!self.is_tail() || self.feed.is_some())
    }

    /// True if the entries that this replica decides must be encoded: for others, or for the disk.
    pub(super) fn emits_entries(&self) -> bool {
        self.keeps_entries() || self.config.durable
    }

    /// Counts an entry that was just applied, and keeps `body`, which says it, for
    /// those behind this replica, or answers it.
    pub(super) fn has_applied(
        &mut self,
        entry: &Entry<'_>,
        packet: Option<&replication::Packet<'_>>,
        body: &[u8],
    ) {
        let next = self.applied.checked_add(1);
        invariant!(
            self.invariants,
            ChainNumber,
            next.is_some() && self.base <= self.applied,
            "entry {} of chain {} follows, {} is complete",
            self.applied,
            self.config.chain,
            self.base
        );
        let Some(next) = next.filter(|_| !self.is_silenced()) else {
            return;
        };
        self.applied = next;
        if self.mark == Some(self.applied) {
            self.note_digest();
        }
        self.save_entry(body);
        if self.install.is_some() {
            // It joins: the tail waits for its acknowledgement, and may be cut out before
            // it answers.
            self.log.push(body.into());
            self.judge_log();
            self.predecessor.owe_acknowledgement();
            return;
        }
        if self.keeps_entries() {
            self.log.push(body.into());
        } else {
            self.log.clear(self.applied);
        }
        if !self.judge_log() {
            return;
        }
        if !self.is_tail() {
            return;
        }
        if self.feed.as_ref().is_none_or(|feed| !feed.gates()) {
            if !self.config.faults.answer_at_head {
                self.answer(entry, packet);
            }
            self.answered = self.applied;
            self.base = self.applied;
            self.predecessor.owe_acknowledgement();
        }
        if self.log.len() > self.config.limits.join_backlog {
            self.feed_anew();
        }
    }

    /// Checks the entries kept for the successor; `false` if the replica must not go on.
    fn judge_log(&mut self) -> bool {
        let (last, kept, most) = (self.log.last(), self.log.len(), self.most_kept());
        invariant!(
            self.invariants,
            ChainNumber,
            last == self.applied,
            "entry {last} of chain {} is the last kept, {} the last applied",
            self.config.chain,
            self.applied
        );
        invariant!(
            self.invariants,
            ChainBacklog,
            kept <= most,
            "{kept} entries of chain {} are kept, at most {most}",
            self.config.chain
        );
        !self.is_silenced()
    }

    /// Answers the entries kept up to number `to` that were not answered, from what
    /// this replica holds (rule 11).
    pub(super) fn answer_kept(&mut self, to: u64) {
        let from = self.answered.max(self.base.min(to)) + 1;
        let entries: Vec<Arc<[u8]>> = self.log.range(from, to).cloned().collect();
        for body in entries {
            if let Ok(entry) = Entry::parse(&body)
                && !self.config.faults.answer_at_head
            {
                let packet = replication::Packet::new_checked(entry.request);
                self.answer(&entry, packet.ok().as_ref());
            }
        }
        self.answered = self.answered.max(to);
    }

    /// The header of a message to a neighbour.
    pub(super) fn header<'a>(&self, kind: Kind) -> Repr<'a> {
        Repr {
            kind,
            replica: self.place.position,
            chain: self.config.chain,
            chain_epoch: self.place.epoch,
            incarnation: self.incarnation,
            number: 0,
            base: self.base,
            body: &[],
        }
    }

    fn send_batch(&self, batch: &Batch) -> Option<Transmit> {
        let update = Repr {
            number: batch.number,
            body: &batch.body,
            ..self.header(Kind::Update)
        };
        Some(Transmit {
            to: Destination::Replica(self.place.position + 1),
            bytes: Arc::new(update.to_vec().ok()?),
        })
    }

    /// True if entries are sent to the next position.
    fn sends_updates(&self) -> bool {
        match &self.feed {
            Some(feed) => feed.follows(),
            None => !self.is_tail() && self.install.is_none(),
        }
    }

    /// The next entries for the successor, or for the replica that joins.
    pub(super) fn next_update(&mut self, now: u64) -> Option<Transmit> {
        if !self.sends_updates() {
            return None;
        }
        let limits = &self.config.limits;
        let (most, window) = (limits.batch, limits.link_window as u64);
        let batch = self.log.next_batch(now, most, window)?;
        self.counters.chain_sent += 1;
        self.send_batch(&batch)
    }

    pub(super) fn resend(&mut self, now: u64) {
        if self.sends_updates() {
            for batch in self.log.resend(now, self.config.limits.batch) {
                self.counters.chain_resent += batch.count;
                let transmit = self.send_batch(&batch);
                self.outbox.extend(transmit);
            }
        }
        self.resend_parts(now);
    }

    /// The acknowledgement to the predecessor, if one is due. Asked for when
    /// nothing else is to be sent, so that one covers a whole burst.
    pub(super) fn acknowledgement(&mut self) -> Option<Transmit> {
        let (incarnation, number) = self.predecessor.take_acknowledgement()?;
        let ack = Repr {
            incarnation,
            number,
            ..self.header(Kind::Ack)
        };
        Some(Transmit {
            to: Destination::Replica(self.place.position.checked_sub(1)?),
            bytes: Arc::new(ack.to_vec().ok()?),
        })
    }
}

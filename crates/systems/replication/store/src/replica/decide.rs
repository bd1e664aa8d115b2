//! The head's part: to judge requests, and let them wait.

use core::net::SocketAddrV4;

use stateplane_invariant::invariant;
use stateplane_wire::Error;
use stateplane_wire::chain::{
    Creation, Decision, ENTRY_HEADER_LENGTH, ENTRY_PREFIX, Entry, HEADER_LENGTH, HolderPlace,
};
use stateplane_wire::replication::{Key, MessageType, Packet, RefusalCode, Repr};

use super::apply::Inconsistent;
use super::reclaim::Reclaims;
use super::{Replica, echo};
use crate::config::NAT_STATE_LENGTH;
use crate::creator::{Setting, creator_for, creator_of};
use crate::parking::{Flow, Parked, ParkedRequest, Parking};
use crate::record::{GaveUp, Holder, Lease, Owner, Record};
use crate::serial::newer;
use crate::shard::Shard;

/// Decision of the head about a lease request.
enum Verdict {
    Decide(Decision),
    /// Another's lease conflicts until this time, or others wait ahead.
    Wait(u64),
}

/// The grant under which a write or renewal was sent, and its record.
struct Present {
    exclusive: bool,
    /// Number of the state.
    sequence: u32,
    /// The state of the packet has another endpoint than the mapping whose record it is of, which the
    /// store gave (rule 28).
    moves_mapping: bool,
}

/// A lease request, as far as the verdict depends on it.
pub(super) struct Asked {
    pub(super) shard: u16,
    pub(super) key: Key,
    pub(super) owner: Owner,
    pub(super) shared: bool,
    pub(super) gave_up: GaveUp,
    /// True if earlier requests for the same flow still wait.
    behind: bool,
}

impl Replica {
    /// Takes a datagram that came from `from` to the request port at `now`.
    pub fn handle_request(&mut self, now: u64, from: SocketAddrV4, bytes: &[u8]) {
        if self.is_silenced() {
            return;
        }
        self.run_due(now);
        self.counters.requests += 1;
        let packet = match Packet::new_checked(bytes) {
            Ok(packet) => packet,
            Err(error) => {
                *match error {
                    Error::Version { .. } => &mut self.counters.wrong_version,
                    Error::Unknown { .. } => &mut self.counters.foreign_type,
                    _ => &mut self.counters.malformed,
                } += 1;
                return;
            }
        };
        if !packet.message_type().is_request() {
            self.counters.foreign_type += 1;
            return;
        }
        if packet.incarnation() == 0 {
            self.counters.zero_incarnation += 1;
            return;
        }
        if let Err(code) = self.admit(&packet) {
            self.refuse_here(from, &packet, code);
            return;
        }
        let class = self.classes.get(&packet.key().class());
        let state_length = class.map_or(0, |class| usize::from(class.state_length));
        let around = HEADER_LENGTH + ENTRY_PREFIX + ENTRY_HEADER_LENGTH;
        if around + bytes.len() + state_length > self.config.limits.datagram {
            self.counters.too_long += 1;
            return;
        }
        if self.window_is_full() {
            *if self.awaits_successor() {
                &mut self.counters.not_compared
            } else {
                &mut self.counters.window_full
            } += 1;
            return;
        }
        let decision = match packet.message_type() {
            MessageType::LeaseRequest => match self.judge_lease_request(now, from, &packet) {
                Some(decision) => decision,
                None => return,
            },
            MessageType::WriteRequest => self.judge_write(&packet),
            MessageType::RenewRequest => self.judge_renewal(&packet),
            MessageType::Used => {
                self.used(now, &packet);
                return;
            }
            MessageType::ReleaseRequest => match self.judge_release(&packet) {
                Some(decision) => decision,
                None => return,
            },
            _ => Decision::Probe,
        };
        self.decided(now, decision, from, Some(&packet));
        if decision == Decision::Release {
            let flow = (packet.shard(), packet.key());
            self.parking.hasten(&flow, now);
            self.hasten_expiry(now, &flow);
            if let Some(waiting) = self.reclaims.waits_for(&flow) {
                self.parking.hasten(&waiting, now);
            }
            self.run_due(now);
        }
    }

    /// Refusals that the addressed server itself answers.
    fn admit(&self, packet: &Packet<'_>) -> Result<(), RefusalCode> {
        if !self.is_head() || !self.shards.contains_key(&packet.shard()) {
            return Err(RefusalCode::WrongServer);
        }
        if packet.chain_epoch() != self.place.epoch {
            return Err(RefusalCode::WrongChainEpoch);
        }
        let expected = match packet.message_type() {
            MessageType::ProbeRequest => 0,
            message_type => {
                let class = self.classes.get(&packet.key().class());
                let class = class.ok_or(RefusalCode::BadState)?;
                match message_type {
                    MessageType::WriteRequest => class.state_length.into(),
                    _ => 0,
                }
            }
        };
        if packet.state().len() != expected {
            return Err(RefusalCode::BadState);
        }
        Ok(())
    }

    fn refuse_here(&mut self, from: SocketAddrV4, packet: &Packet<'_>, code: RefusalCode) {
        self.count_refusal(code);
        let reply = Repr {
            message_type: MessageType::Refusal,
            code: code as u8,
            ..echo(packet, self.place.epoch)
        };
        self.reply(from, &reply);
    }

    fn count_refusal(&mut self, code: RefusalCode) {
        let counters = &mut self.counters;
        *match code {
            RefusalCode::Fenced => &mut counters.fenced,
            RefusalCode::NoRecord => &mut counters.no_record,
            RefusalCode::ParkingFull => &mut counters.parking_full,
            RefusalCode::PoolExhausted => &mut counters.pool_exhausted,
            RefusalCode::WrongServer => &mut counters.wrong_server,
            RefusalCode::WrongChainEpoch => &mut counters.wrong_chain_epoch,
            RefusalCode::BadState => &mut counters.bad_state,
            RefusalCode::StoreFull => &mut counters.store_full,
            RefusalCode::NotWritable => &mut counters.not_writable,
            RefusalCode::QuotaExceeded => &mut counters.quota_exceeded,
        } += 1;
    }

    fn refusal(&self, shard: u16, key: &Key, code: RefusalCode) -> Decision {
        let shard = self.shards.get(&shard);
        Decision::Refuse {
            code: code as u8,
            lease_epoch: shard.map_or(0, |shard| shard.present_epoch(key)),
        }
    }

    /// Judges a lease request; `None` if it waits.
    fn judge_lease_request(
        &mut self,
        now: u64,
        from: SocketAddrV4,
        packet: &Packet<'_>,
    ) -> Option<Decision> {
        let flow = (packet.shard(), packet.key());
        let owner = Owner::of(packet);
        if self.is_earlier_claim(&flow, &owner) {
            self.counters.earlier_claim += 1;
            return None;
        }
        self.make_room(now, &flow);
        let asked = Asked {
            shard: flow.0,
            key: flow.1,
            owner,
            shared: packet.shared(),
            gave_up: GaveUp::of(packet),
            behind: self.parking.requests(&flow).next().is_some(),
        };
        let due = match self.judge_with_port(now, &asked) {
            Verdict::Decide(decision) => return Some(decision),
            Verdict::Wait(until) => until,
        };
        let parked = ParkedRequest {
            owner,
            request: packet.request(),
            shared: asked.shared,
            gave_up: asked.gave_up,
            has_packet: packet.packet().is_some(),
            from,
            bytes: packet.as_bytes().to_vec(),
        };
        let interval = self.config.limits.recall_first;
        let due = if asked.behind {
            due
        } else {
            self.recall(now, &asked, due, interval)
        };
        match self.parking.park(now, flow, parked, due, interval) {
            Parked::Waiting => {
                self.counters.parked += 1;
                self.judge_parking();
            }
            Parked::Duplicate => self.counters.parked_duplicate += 1,
            Parked::Full => {
                return Some(self.refusal(flow.0, &flow.1, RefusalCode::ParkingFull));
            }
        }
        None
    }

    /// True if a later claim of the same start of the switch has a lease of the flow: the slot of
    /// `owner` is gone (rule 18).
    fn is_earlier_claim(&self, flow: &Flow, owner: &Owner) -> bool {
        let shard = self.shards.get(&flow.0);
        let record = shard.and_then(|shard| shard.records.get(&flow.1));
        record.is_some_and(|record| record.has_later_claim(owner))
    }

    /// Judges a lease request, for which a port is made free if none is (rule 29).
    fn judge_with_port(&mut self, now: u64, asked: &Asked) -> Verdict {
        match self.make_port(now, asked) {
            Some(until) => Verdict::Wait(until),
            None => self.judge_lease(now, asked),
        }
    }

    fn judge_lease(&self, now: u64, asked: &Asked) -> Verdict {
        let refuse = |code| Verdict::Decide(self.refusal(asked.shard, &asked.key, code));
        let (Some(shard), Some(class)) = (
            self.shards.get(&asked.shard),
            self.classes.get(&asked.key.class()),
        ) else {
            return refuse(RefusalCode::WrongServer);
        };
        if class.shared_only && !asked.shared {
            return refuse(RefusalCode::NotWritable);
        }
        if now < self.grants_from {
            return Verdict::Wait(self.grants_from);
        }
        let grant = |holder: Option<u16>, creation| {
            Verdict::Decide(Decision::Grant {
                lease_epoch: shard.next_epoch(),
                holder: holder.map(|at| HolderPlace { at, drops: true }),
                creation,
            })
        };
        let Some(record) = shard.records.get(&asked.key) else {
            let Some(creator) = creator_of(class) else {
                return refuse(RefusalCode::NoRecord);
            };
            let setting = self.setting(asked.shard, shard);
            let Some(creation) = creator.choose(&setting, class, &asked.key) else {
                return refuse(RefusalCode::PoolExhausted);
            };
            let records = creator.records();
            if self.record_count + records > self.config.limits.records {
                return refuse(RefusalCode::StoreFull);
            }
            if class
                .quota
                .is_some_and(|quota| self.tenants.is_full(&quota, &asked.key))
            {
                return refuse(RefusalCode::QuotaExceeded);
            }
            return grant(asked.shared.then_some(0), Some(creation));
        };
        let own = record.place_of(&asked.owner);
        let given_up = own
            .map(|place| &record.lease.holders()[place])
            .filter(|holder| holder.epoch == asked.gave_up.epoch);
        let gave_up = given_up.is_some();
        // A write that does not come while the lease lasts was lost with its switch.
        if let Some(holder) = given_up
            && newer(asked.gave_up.sequence, record.sequence)
            && let until = self.until(asked.shard, holder)
            && until > now
            && !self.config.faults.release_early
        {
            let again = now.saturating_add(self.config.limits.recall_first);
            return Verdict::Wait(again.min(until));
        }
        if let Some((holder, place)) = repeatable(record, asked).filter(|_| !gave_up) {
            return Verdict::Decide(Decision::Grant {
                lease_epoch: holder.epoch,
                holder: place,
                creation: None,
            });
        }
        let until = if self.config.faults.ignore_lease_expiry && !asked.shared {
            0
        } else {
            let others = record.in_the_way(asked.owner, asked.shared);
            let over = others.map(|holder| self.until(asked.shard, holder));
            over.max().unwrap_or(0)
        };
        if asked.behind || until > now {
            return Verdict::Wait(until);
        }
        if !asked.shared {
            return grant(None, None);
        }
        let over = |holder: &Holder| self.until(asked.shard, holder) <= now;
        match record.place_for(&asked.owner, self.config.limits.holders, over) {
            Some(place) => grant(Some(place), None),
            None => refuse(RefusalCode::StoreFull),
        }
    }

    /// Facts on which a creator's choice for a flow of `shard`, which has `number`, depends.
    pub(super) fn setting<'a>(&'a self, number: u16, shard: &'a Shard) -> Setting<'a> {
        Setting {
            config: &self.config,
            number,
            shard,
            unhealthy: &self.unhealthy,
        }
    }

    /// True if little is left of what `creation` for `key` took from.
    fn is_low(&self, number: u16, key: &Key, creation: &Creation) -> bool {
        self.shards.get(&number).is_some_and(|shard| {
            let class = self.classes.get(&key.class());
            let creator = class.and_then(|class| creator_for(class, creation));
            creator
                .is_some_and(|creator| creator.is_low(&self.setting(number, shard), key, creation))
        })
    }

    /// The grant under which `packet` was sent.
    fn present_grant(&self, packet: &Packet<'_>) -> Option<Present> {
        let owner = Owner::of(packet);
        let record = self
            .shards
            .get(&packet.shard())?
            .records
            .get(&packet.key())?;
        let exclusive = !matches!(record.lease, Lease::Shared(_));
        let endpoint = ..usize::from(NAT_STATE_LENGTH);
        let moves_mapping = record.mapped_to.is_some()
            && record.state.get(endpoint) != packet.state().get(endpoint);
        if self.config.faults.ignore_epoch {
            return Some(Present {
                exclusive,
                sequence: record.sequence,
                moves_mapping,
            });
        }
        let holder = &record.lease.holders()[record.place_of(&owner)?];
        if holder.epoch != packet.lease_epoch() {
            return None;
        }
        Some(Present {
            exclusive,
            sequence: record.sequence,
            moves_mapping,
        })
    }

    fn judge_write(&self, packet: &Packet<'_>) -> Decision {
        let (shard, key) = (packet.shard(), packet.key());
        if self
            .classes
            .get(&key.class())
            .is_some_and(|c| c.shared_only)
        {
            return self.refusal(shard, &key, RefusalCode::NotWritable);
        }
        match self.present_grant(packet) {
            None => self.refusal(shard, &key, RefusalCode::Fenced),
            Some(present) if !present.exclusive => {
                self.refusal(shard, &key, RefusalCode::NotWritable)
            }
            // Under an earlier grant the mapping may have been another one: that is fenced.
            Some(present) if present.moves_mapping => {
                self.refusal(shard, &key, RefusalCode::BadState)
            }
            Some(Present { sequence, .. }) => {
                let is_newer = newer(packet.sequence(), sequence);
                let install = is_newer || self.config.faults.ignore_sequence;
                Decision::Write { install }
            }
        }
    }

    fn judge_renewal(&self, packet: &Packet<'_>) -> Decision {
        match self.present_grant(packet) {
            Some(_) => Decision::Renew,
            None => self.refusal(packet.shard(), &packet.key(), RefusalCode::Fenced),
        }
    }

    /// Grants to requests that waited long enough, then forgets idle records.
    /// Stops while the successor's window is full; its next acknowledgement
    /// calls again.
    pub(super) fn run_due(&mut self, now: u64) {
        if !self.is_head() {
            self.look_at_idle(now);
            return;
        }
        while !self.window_is_full() && self.grant_parked(now) {}
        while !self.window_is_full()
            && let Some(&(due, flow)) = self.expiry_due.first()
            && due <= now
        {
            self.expiry_due.pop_first();
            self.consider_expiry(now, flow.0, flow.1);
        }
    }

    /// Goes through the queue that is due first: the request at its front, and all further ones of
    /// the owner that holds the lease then.
    fn grant_parked(&mut self, now: u64) -> bool {
        let Some((flow, mut queue)) = self.parking.take_due(now) else {
            return false;
        };
        let mut due = now.saturating_add(1);
        let mut at = 0;
        let mut granted = false;
        let limits = self.config.limits;
        while let Some(request) = queue.requests.get(at) {
            if self.window_is_full() {
                due = now;
                break;
            }
            if self.is_earlier_claim(&flow, &request.owner) {
                self.counters.earlier_claim += 1;
                queue.requests.remove(at);
                continue;
            }
            let asked = Asked {
                shard: flow.0,
                key: flow.1,
                owner: request.owner,
                shared: request.shared,
                gave_up: request.gave_up,
                behind: at > 0,
            };
            let awaited = self.reclaims.chosen_for(&flow);
            let verdict = self.judge_with_port(now, &asked);
            if self.reclaims.chosen_for(&flow) != awaited {
                // Others are waited for, and were not recalled yet.
                queue.recall_after = limits.recall_first;
                queue.recalled = None;
                self.promises.let_go(&flow);
            }
            match verdict {
                Verdict::Wait(until) => {
                    // The new owner hears of its grant before anything else.
                    if at == 0 && granted {
                        queue.recall_after = limits.recall_first;
                        queue.recalled = None;
                        due = due.max(self.after_grant(now, until));
                    } else if at == 0 {
                        let recalled = *queue.recalled.get_or_insert(now);
                        self.withhold(now, recalled, &asked);
                        let interval = queue.recall_after;
                        queue.recall_after = (2 * interval).min(limits.recall_bound);
                        let again = self.recall(now, &asked, until, interval);
                        let withheld = recalled.saturating_add(limits.withhold_after);
                        let again = if withheld > now {
                            again.min(withheld)
                        } else {
                            again
                        };
                        due = due.max(again);
                    }
                    at += 1;
                }
                Verdict::Decide(decision) => {
                    let Some(request) = queue.requests.remove(at) else {
                        break;
                    };
                    granted = true;
                    if let Ok(packet) = Packet::new_checked(&request.bytes) {
                        self.decided(now, decision, request.from, Some(&packet));
                    }
                }
            }
        }
        if granted || queue.requests.is_empty() {
            self.promises.let_go(&flow);
        }
        self.parking.put_back(flow, queue, due);
        self.judge_parking();
        true
    }

    /// Checks that the requests that wait have room; otherwise drops them all, for their switches
    /// to send again.
    fn judge_parking(&mut self) {
        let (count, bytes) = self.parking.load();
        let most = self.config.limits.parked_bytes;
        if !invariant!(
            self.invariants,
            ParkedRequests,
            bytes <= most,
            "{count} requests wait in {bytes} bytes, at most {most}"
        ) {
            self.parking = Parking::new(&self.config.limits);
            self.reclaims = Reclaims::default();
            for shard in self.shards.keys() {
                self.promises.let_go_all(*shard);
            }
        }
    }

    /// Applies a decision, sends it down the chain, and counts it.
    pub(super) fn decided(
        &mut self,
        now: u64,
        decision: Decision,
        switch: SocketAddrV4,
        packet: Option<&Packet<'_>>,
    ) {
        self.count(&decision, packet);
        if let Decision::Grant {
            creation: Some(creation),
            ..
        } = decision
            && let Some(packet) = packet
            && self.is_low(packet.shard(), &packet.key(), &creation)
        {
            self.counters.pool_low += 1;
        }
        let entry = Entry {
            decision,
            switch,
            request: packet.map_or(&[], |p| p.as_bytes()),
        };
        let outcome = self.apply(now, &entry, packet);
        if !self.judge(outcome) {
            return;
        }
        let mut body = Vec::new();
        if self.emits_entries() {
            body.resize(entry.buffer_len(), 0);
            if entry.emit(&mut body).is_err() {
                self.judge(Err(Inconsistent));
                return;
            }
        }
        if self.config.faults.answer_at_head {
            self.answer(&entry, packet);
        }
        self.has_applied(&entry, packet, &body);
    }

    fn count(&mut self, decision: &Decision, packet: Option<&Packet<'_>>) {
        let shard = packet.and_then(|packet| self.shards.get(&packet.shard()));
        let counters = &mut self.counters;
        match *decision {
            Decision::Grant {
                lease_epoch,
                creation,
                ..
            } => {
                let epoch = shard.map_or(0, |shard| shard.epoch);
                if creation.is_some() || newer(lease_epoch, epoch) {
                    counters.granted += 1;
                } else {
                    counters.grant_repeated += 1;
                }
            }
            Decision::Write { install: true, .. } => counters.written += 1,
            Decision::Write { .. } => {
                let held = packet.and_then(|packet| {
                    let record = shard?.records.get(&packet.key())?;
                    Some(packet.sequence() == record.sequence)
                });
                *match held {
                    Some(true) => &mut counters.duplicate,
                    _ => &mut counters.stale_sequence,
                } += 1;
            }
            Decision::Renew => counters.renewed += 1,
            Decision::Probe => counters.probed += 1,
            Decision::Refuse { code, .. } => {
                if let Some(code) = RefusalCode::from_u8(code) {
                    self.count_refusal(code);
                }
            }
            Decision::Release => counters.released += 1,
            Decision::Expire { .. } => {}
        }
    }
}

/// The grant that `asked` has already (rule 2), and its position if it is shared. A shared grant
/// does not satisfy a request for an exclusive one.
fn repeatable<'a>(record: &'a Record, asked: &Asked) -> Option<(&'a Holder, Option<HolderPlace>)> {
    let place = record.place_of(&asked.owner)?;
    let shared = matches!(record.lease, Lease::Shared(_));
    if shared && !asked.shared {
        return None;
    }
    let holder = &record.lease.holders()[place];
    let place = HolderPlace {
        at: place as u16,
        drops: false,
    };
    Some((holder, shared.then_some(place)))
}

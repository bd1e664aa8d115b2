//! Every replica's part: to carry out what the head decided; and the tail's: to
//! answer.

use stateplane_invariant::invariant;
use stateplane_wire::chain::{Creation, Decision, Entry, HolderPlace};
use stateplane_wire::replication::{Key, MessageType, Packet, RefusalCode, Repr};

use super::{Replica, echo};
use crate::creator::{Made, creator_for, creator_of};
use crate::record::{Holder, Lease, Owner, Record, State};
use crate::serial::newer;

/// The entry contradicts the state, which means that a replica is faulty.
#[derive(Debug)]
pub(super) struct Inconsistent;

impl Replica {
    /// Carries out `entry`, whose request is `packet`; an error if it contradicts the state.
    pub(super) fn apply(
        &mut self,
        now: u64,
        entry: &Entry<'_>,
        packet: Option<&Packet<'_>>,
    ) -> Result<(), Inconsistent> {
        self.counters.applied += 1;
        match (entry.decision, packet) {
            (Decision::Expire { shard, key }, _) => self.apply_expiry(shard, &key),
            (Decision::Probe | Decision::Refuse { .. }, _) => Ok(()),
            (_, None) => Err(Inconsistent),
            (Decision::Grant { .. }, Some(packet)) => self.apply_grant(now, entry, packet),
            (Decision::Write { install }, Some(packet)) => self.apply_use(now, packet, install),
            (Decision::Renew, Some(packet)) => self.apply_use(now, packet, false),
            (Decision::Release, Some(packet)) => self.apply_release(now, packet),
        }
    }

    /// Takes note if an entry contradicts the state; `false` if the replica must not go on.
    pub(super) fn judge(&mut self, outcome: Result<(), Inconsistent>) -> bool {
        if outcome.is_err() {
            self.counters.chain_inconsistent += 1;
        }
        let number = self.applied.saturating_add(1);
        invariant!(
            self.invariants,
            ChainEntry,
            outcome.is_ok(),
            "entry {number} of chain {} contradicts the state",
            self.config.chain
        );
        !self.is_silenced()
    }

    fn apply_grant(
        &mut self,
        now: u64,
        entry: &Entry<'_>,
        packet: &Packet<'_>,
    ) -> Result<(), Inconsistent> {
        let Decision::Grant {
            lease_epoch,
            holder: place,
            creation,
        } = entry.decision
        else {
            return Err(Inconsistent);
        };
        let (number, key) = (packet.shard(), packet.key());
        self.note_change(number, &key);
        if let Some(creation) = creation {
            self.create(now, number, key, &creation, lease_epoch)?;
        }
        let shard = self.shards.get_mut(&number).ok_or(Inconsistent)?;
        if newer(lease_epoch, shard.epoch) {
            shard.epoch = lease_epoch;
        }
        let record = shard.records.get_mut(&key).ok_or(Inconsistent)?;
        let owner = Owner::of(packet);
        let holder = Holder {
            owner,
            epoch: lease_epoch,
            address: entry.switch,
            over: false,
        };
        if newer(lease_epoch, record.epoch) {
            record.epoch = lease_epoch;
        }
        record.last_active = now;
        // An entry of a head that did not know this rule counts places without it.
        if let Some(HolderPlace { drops: true, .. }) = place {
            record.drop_earlier_claims(&owner);
        }
        match (&mut record.lease, place.map(|place| usize::from(place.at))) {
            (lease, None) => *lease = Lease::Exclusive(holder),
            (Lease::Shared(holders), Some(place)) if place < holders.len() => {
                holders[place] = holder;
            }
            (Lease::Shared(holders), Some(place)) if place == holders.len() => {
                holders.push(holder);
            }
            (lease @ (Lease::None | Lease::Exclusive(_)), Some(0)) => {
                *lease = Lease::Shared(vec![holder]);
            }
            (_, Some(_)) => return Err(Inconsistent),
        }
        Ok(())
    }

    /// Makes the records that the head chose.
    fn create(
        &mut self,
        now: u64,
        number: u16,
        key: Key,
        creation: &Creation,
        epoch: u32,
    ) -> Result<(), Inconsistent> {
        let class = self.classes.get(&key.class()).ok_or(Inconsistent)?;
        let creator = creator_for(class, creation).ok_or(Inconsistent)?;
        let shard = self.shards.get_mut(&number).ok_or(Inconsistent)?;
        let made = creator.create(shard, class, &key, creation.payload);
        let Made { state, other } = made.ok_or(Inconsistent)?;
        let other_key = other.as_ref().map(|(other, _)| *other);
        self.make_record(now, number, key, state, epoch, other_key)?;
        match other {
            Some((other, state)) => self.make_record(now, number, other, state, epoch, Some(key)),
            None => Ok(()),
        }
    }

    fn make_record(
        &mut self,
        now: u64,
        number: u16,
        key: Key,
        state: State,
        epoch: u32,
        mapped_to: Option<Key>,
    ) -> Result<(), Inconsistent> {
        self.note_change(number, &key);
        self.count_created(number, &key, &state, true);
        let shard = self.shards.get_mut(&number).ok_or(Inconsistent)?;
        let record = Record {
            state,
            sequence: self.config.first_sequence,
            epoch,
            lease: Lease::None,
            mapped_to,
            last_active: now,
            looked_at: None,
        };
        match shard.records.insert(key, record) {
            Some(_) => Err(Inconsistent),
            None => {
                self.record_count += 1;
                self.count_tenant(&key, true);
                self.counters.records_made += 1;
                self.watch_idle(now, number, key);
                Ok(())
            }
        }
    }

    /// Counts a record that was made or is gone to the tenant whose it is.
    pub(super) fn count_tenant(&mut self, key: &Key, made: bool) {
        let class = self.classes.get(&key.class());
        if let Some(quota) = class.and_then(|class| class.quota) {
            self.tenants.count(&quota, key, made);
        }
    }

    /// Lets the creator of the record of `key` note that it was made with `state`, or that
    /// it is gone.
    pub(super) fn count_created(&mut self, number: u16, key: &Key, state: &[u8], made: bool) {
        if let Some(class) = self.classes.get(&key.class())
            && let Some(creator) = creator_of(class)
            && let Some(shard) = self.shards.get_mut(&number)
        {
            creator.count(shard, class, key, state, made);
        }
    }

    /// A write or renewal: the state if it is to be installed, and that the record is used.
    fn apply_use(
        &mut self,
        now: u64,
        packet: &Packet<'_>,
        install: bool,
    ) -> Result<(), Inconsistent> {
        let (number, key) = (packet.shard(), packet.key());
        if install {
            self.note_change(number, &key);
        }
        let class = self.classes.get(&key.class()).ok_or(Inconsistent)?;
        let shard = self.shards.get_mut(&number).ok_or(Inconsistent)?;
        let record = shard.records.get_mut(&key).ok_or(Inconsistent)?;
        let mut before = None;
        let mut speaks_for_both = false;
        if install {
            if record.state.len() != packet.state().len() {
                return Err(Inconsistent);
            }
            speaks_for_both = record.mapped_to.is_some() && *record.state != *packet.state();
            if class.follows_state() && *record.state != *packet.state() {
                before = Some(record.state.clone());
            }
            record.state.copy_from_slice(packet.state());
            record.sequence = packet.sequence();
        }
        record.last_active = now;
        let has_grant = record.has_grant(&Owner::of(packet), packet.lease_epoch());
        if !has_grant && !self.config.faults.ignore_epoch {
            return Err(Inconsistent);
        }
        if let Some(before) = before {
            self.count_created(number, &key, &before, false);
            self.count_created(number, &key, packet.state(), true);
            // It may be idle sooner than it would have been in the state before.
            self.watch_idle(now, number, key);
        }
        if speaks_for_both {
            self.note_pair(number, &key);
            if let Some(outbound) = self.outbound_of(number, &key) {
                self.watch_idle(now, number, outbound);
            }
        }
        Ok(())
    }

    /// Takes back the lease of a holder that released it, and notes when that used it last.
    fn apply_release(&mut self, now: u64, packet: &Packet<'_>) -> Result<(), Inconsistent> {
        self.note_change(packet.shard(), &packet.key());
        let shard = self.shards.get_mut(&packet.shard()).ok_or(Inconsistent)?;
        let record = shard.records.get_mut(&packet.key()).ok_or(Inconsistent)?;
        let used = now.saturating_sub(packet.age());
        record.last_active = record.last_active.max(used);
        if record.release(&Owner::of(packet), packet.lease_epoch()) {
            Ok(())
        } else {
            Err(Inconsistent)
        }
    }

    /// Forgets a record and the one mapped to it, and returns the port. The epoch increases, so
    /// that late requests of former owners are fenced.
    fn apply_expiry(&mut self, number: u16, key: &Key) -> Result<(), Inconsistent> {
        self.end_question(&(number, *key));
        let shard = self.shards.get_mut(&number).ok_or(Inconsistent)?;
        let record = shard.records.swap_remove(key).ok_or(Inconsistent)?;
        self.note_change(number, key);
        if let Some(other) = &record.mapped_to {
            self.note_change(number, other);
        }
        let mut gone = 1;
        if let Some(due) = record.looked_at {
            self.expiry_due.remove(&(due, (number, *key)));
        }
        let shard = self.shards.get_mut(&number).ok_or(Inconsistent)?;
        shard.epoch = shard.next_epoch();
        let class = self.classes.get(&key.class());
        if let Some(creator) = class.and_then(creator_of) {
            creator.forget(shard, &record.state, record.mapped_to.as_ref());
        }
        if let Some(other) = record.mapped_to
            && shard.records.swap_remove(&other).is_some()
        {
            gone += 1;
            self.count_tenant(&other, false);
        }
        self.note_pair(number, key);
        self.count_tenant(key, false);
        self.count_created(number, key, &record.state, false);
        let left = self.record_count.checked_sub(gone);
        invariant!(
            self.invariants,
            RecordCount,
            left.is_some(),
            "{gone} of {} records are forgotten",
            self.record_count
        );
        self.record_count = left.unwrap_or(0);
        self.counters.records_expired += gone as u64;
        Ok(())
    }

    /// Answers the switch from what this replica holds (rule 11).
    pub(super) fn answer(&mut self, entry: &Entry<'_>, packet: Option<&Packet<'_>>) {
        let Some(packet) = packet else {
            return;
        };
        let record = || {
            let shard = self.shards.get(&packet.shard())?;
            shard.records.get(&packet.key())
        };
        let reply = echo(packet, self.place.epoch);
        let reply = match entry.decision {
            Decision::Grant {
                lease_epoch,
                holder,
                ..
            } => record().map(|record| Repr {
                message_type: MessageType::LeaseReply,
                shared: holder.is_some(),
                lease_epoch,
                sequence: record.sequence,
                state: &record.state,
                packet: packet.packet(),
                ..reply
            }),
            Decision::Write { .. } => record().map(|record| Repr {
                message_type: MessageType::WriteReply,
                lease_epoch: packet.lease_epoch(),
                sequence: record.sequence,
                packet: packet.packet(),
                ..reply
            }),
            Decision::Renew => record().map(|record| Repr {
                message_type: MessageType::RenewReply,
                lease_epoch: packet.lease_epoch(),
                sequence: record.sequence,
                packet: packet.packet(),
                ..reply
            }),
            Decision::Probe => Some(Repr {
                message_type: MessageType::ProbeReply,
                packet: packet.packet(),
                ..reply
            }),
            Decision::Refuse { code, lease_epoch } => Some(Repr {
                message_type: MessageType::Refusal,
                code,
                lease_epoch,
                sequence: if code == RefusalCode::Fenced as u8 {
                    packet.lease_epoch()
                } else {
                    0
                },
                ..reply
            }),
            Decision::Expire { .. } | Decision::Release => None,
        };
        let bytes = reply.map(|reply| reply.to_vec());
        if let Some(Ok(bytes)) = bytes {
            self.counters.replies += 1;
            self.transmit(super::Destination::Switch(entry.switch), bytes.into());
        }
    }
}

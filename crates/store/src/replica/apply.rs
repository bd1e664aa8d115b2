//! Every replica's part: to carry out what the head decided; and the tail's: to
//! answer.

use core::net::Ipv4Addr;

use stateplane_wire::chain::{Creation, Decision, Entry};
use stateplane_wire::replication::{Key, MessageType, Packet, RefusalCode, Repr};

use super::{Replica, echo};
use crate::config::{FirstLease, NAT_STATE_LENGTH};
use crate::record::{Holder, Lease, Owner, Record, State};
use crate::serial::newer;
use crate::service::{server_in, server_state};
use crate::shard::NatKey;

/// The entry contradicts the state, which means that a replica is faulty.
struct Inconsistent;

impl Replica {
    /// Carries out `entry`, whose request is `packet`.
    pub(super) fn apply(&mut self, now: u64, entry: &Entry<'_>, packet: Option<&Packet<'_>>) {
        self.counters.applied += 1;
        let outcome = match (entry.decision, packet) {
            (Decision::Expire { shard, key }, _) => self.apply_expiry(shard, &key),
            (Decision::Probe | Decision::Refuse { .. }, _) => Ok(()),
            (_, None) => Err(Inconsistent),
            (Decision::Grant { .. }, Some(packet)) => self.apply_grant(now, entry, packet),
            (Decision::Write { install, period }, Some(packet)) => {
                self.apply_use(now, packet, period, install)
            }
            (Decision::Renew { period }, Some(packet)) => {
                self.apply_use(now, packet, period, false)
            }
            (Decision::Release, Some(packet)) => self.apply_release(packet),
        };
        if outcome.is_err() {
            self.counters.chain_inconsistent += 1;
        }
    }

    fn apply_grant(
        &mut self,
        now: u64,
        entry: &Entry<'_>,
        packet: &Packet<'_>,
    ) -> Result<(), Inconsistent> {
        let Decision::Grant {
            lease_epoch,
            parked,
            period,
            holder: place,
            creation,
        } = entry.decision
        else {
            return Err(Inconsistent);
        };
        let (number, key) = (packet.shard(), packet.key());
        match creation {
            None => {}
            Some(Creation::Zero) => {
                let class = self.classes.get(&key.class()).ok_or(Inconsistent)?;
                let state = State::from_elem(0, class.state_length.into());
                self.make_record(now, number, key, state, lease_epoch, None)?;
            }
            Some(Creation::Mapping { address, port }) => {
                self.make_mapping(now, number, key, address, port, lease_epoch)?;
            }
            Some(Creation::Server { server }) => {
                let class = self.classes.get(&key.class()).ok_or(Inconsistent)?;
                let state = server_state(server, class.state_length.into());
                self.make_record(now, number, key, state, lease_epoch, None)?;
            }
        }
        // A grant whose request had waited for long may last longer than its renewal.
        let lasts = now.saturating_add(self.config.lease_time(period, parked));
        let shard = self.shards.get_mut(&number).ok_or(Inconsistent)?;
        if newer(lease_epoch, shard.epoch) {
            shard.epoch = lease_epoch;
        }
        let record = shard.records.get_mut(&key).ok_or(Inconsistent)?;
        let owner = Owner::of(packet);
        let before = record.grant_mut(&owner, lease_epoch).map(|h| h.until);
        let holder = Holder {
            owner,
            epoch: lease_epoch,
            address: entry.switch,
            until: match before {
                Some(until) if period == 0 => until,
                _ => lasts.max(before.unwrap_or(0)),
            },
        };
        if newer(lease_epoch, record.epoch) {
            record.epoch = lease_epoch;
        }
        record.last_active = now;
        match (&mut record.lease, place.map(usize::from)) {
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

    /// Makes both records of a mapping (rule 22).
    fn make_mapping(
        &mut self,
        now: u64,
        number: u16,
        key: Key,
        address: Ipv4Addr,
        port: u16,
        epoch: u32,
    ) -> Result<(), Inconsistent> {
        let class = self.classes.get(&key.class()).ok_or(Inconsistent)?;
        let FirstLease::NatOutbound { inbound_class } = class.first_lease else {
            return Err(Inconsistent);
        };
        let inside = NatKey::of(&key);
        let public = NatKey {
            class: inbound_class,
            address,
            port,
            ..inside
        };
        let shard = self.shards.get_mut(&number).ok_or(Inconsistent)?;
        let pools = shard.pools.as_mut().ok_or(Inconsistent)?;
        if !pools.take(inside.protocol, address, port) {
            return Err(Inconsistent);
        }
        let inbound = public.key();
        let state = State::from_slice(&public.state());
        self.make_record(now, number, key, state, epoch, Some(inbound))?;
        let state = State::from_slice(&inside.state());
        self.make_record(now, number, inbound, state, epoch, Some(key))
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
        self.count_server(number, &key, &state, true);
        let shard = self.shards.get_mut(&number).ok_or(Inconsistent)?;
        let record = Record {
            state,
            sequence: self.config.first_sequence,
            epoch,
            lease: Lease::None,
            mapped_to,
            last_active: now,
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

    /// Counts a record whose state is `state`, and that was made or is gone, to the server
    /// that has the flow, if it is of a class of such flows.
    pub(super) fn count_server(&mut self, number: u16, key: &Key, state: &[u8], made: bool) {
        if let Some(class) = self.classes.get(&key.class())
            && let FirstLease::Server { service_at } = class.first_lease
            && let Some(shard) = self.shards.get_mut(&number)
            && let (Some(service), Some(server)) = (service_at.service(key), server_in(state))
        {
            if made {
                shard.loads.add(service, server)
            } else {
                shard.loads.remove(service, server)
            }
        }
    }

    /// Remembers to look whether the record is idle; the outbound one speaks for
    /// both of a mapping.
    pub(super) fn watch_idle(&mut self, now: u64, number: u16, key: Key) {
        let class = self.classes.get(&key.class());
        if class.is_some_and(|class| class.first_lease != FirstLease::None)
            && let Some(due) = self.idle_at(now, number, &key)
        {
            self.expiry_due.insert((due, (number, key)));
        }
    }

    /// A write or renewal: the state if it is to be installed, and the lease.
    fn apply_use(
        &mut self,
        now: u64,
        packet: &Packet<'_>,
        period: u32,
        install: bool,
    ) -> Result<(), Inconsistent> {
        let until = now.saturating_add(self.config.lease_time(period, 0));
        let (number, key) = (packet.shard(), packet.key());
        let class = self.classes.get(&key.class()).ok_or(Inconsistent)?;
        let shard = self.shards.get_mut(&number).ok_or(Inconsistent)?;
        let record = shard.records.get_mut(&key).ok_or(Inconsistent)?;
        let mut before = None;
        if install {
            if record.state.len() != packet.state().len() {
                return Err(Inconsistent);
            }
            if class.follows_state() && *record.state != *packet.state() {
                before = Some(record.state.clone());
            }
            record.state.copy_from_slice(packet.state());
            record.sequence = packet.sequence();
        }
        record.last_active = now;
        match record.grant_mut(&Owner::of(packet), packet.lease_epoch()) {
            Some(holder) if period > 0 => holder.until = holder.until.max(until),
            Some(_) => {}
            None if self.config.faults.ignore_epoch => {}
            None => return Err(Inconsistent),
        }
        if let Some(before) = before {
            self.count_server(number, &key, &before, false);
            self.count_server(number, &key, packet.state(), true);
            // It may be idle sooner than it would have been in the state before.
            self.watch_idle(now, number, key);
        }
        Ok(())
    }

    /// Takes back the lease of a holder that released it.
    fn apply_release(&mut self, packet: &Packet<'_>) -> Result<(), Inconsistent> {
        let shard = self.shards.get_mut(&packet.shard()).ok_or(Inconsistent)?;
        let record = shard.records.get_mut(&packet.key()).ok_or(Inconsistent)?;
        if record.release(&Owner::of(packet), packet.lease_epoch()) {
            Ok(())
        } else {
            Err(Inconsistent)
        }
    }

    /// Forgets a record and the one mapped to it, and returns the port. The epoch increases, so
    /// that late requests of former owners are fenced.
    fn apply_expiry(&mut self, number: u16, key: &Key) -> Result<(), Inconsistent> {
        let shard = self.shards.get_mut(&number).ok_or(Inconsistent)?;
        let record = shard.records.swap_remove(key).ok_or(Inconsistent)?;
        let mut gone = 1;
        shard.epoch = shard.next_epoch();
        if let Some(inbound) = record.mapped_to {
            if record.state.len() == usize::from(NAT_STATE_LENGTH) {
                let public = NatKey::of(&inbound);
                if let Some(pools) = &mut shard.pools {
                    pools.give(public.protocol, public.address, public.port);
                }
            }
            if shard.records.swap_remove(&inbound).is_some() {
                gone += 1;
                self.count_tenant(&inbound, false);
            }
        }
        self.count_tenant(key, false);
        self.count_server(number, key, &record.state, false);
        self.record_count -= gone;
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
                parked,
                period,
                holder,
                ..
            } => record().map(|record| Repr {
                message_type: MessageType::LeaseReply,
                shared: holder.is_some(),
                lease_epoch,
                sequence: record.sequence,
                parked,
                period,
                state: &record.state,
                packet: packet.packet(),
                ..reply
            }),
            Decision::Write { period, .. } => record().map(|record| Repr {
                message_type: MessageType::WriteReply,
                lease_epoch: packet.lease_epoch(),
                sequence: record.sequence,
                period,
                packet: packet.packet(),
                ..reply
            }),
            Decision::Renew { period } => record().map(|record| Repr {
                message_type: MessageType::RenewReply,
                lease_epoch: packet.lease_epoch(),
                sequence: record.sequence,
                period,
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

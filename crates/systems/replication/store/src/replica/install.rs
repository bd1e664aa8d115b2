//! The joining replica's part: to take a snapshot, and to check it.

use std::sync::Arc;

use stateplane_invariant::invariant;
use stateplane_wire::chain::{Item, Kind, LeaseKind, Packet, Repr};

use super::{Destination, Replica, Transmit};
use crate::link::{Arrival, Receiver};
use crate::record::{Holder, Lease, Owner, Record};

/// Received parts of the snapshot at a joining replica.
#[derive(Debug, Clone)]
pub(super) struct Install {
    /// Number of the last entry in the snapshot, once a part has come.
    upto: Option<u64>,
    parts: Receiver,
    done: bool,
}

/// An item contradicts those before it.
pub(super) struct Inconsistent;

impl Install {
    pub(super) fn new(window: usize) -> Install {
        Install {
            upto: None,
            parts: Receiver::new(window, 0),
            done: false,
        }
    }

    /// Number of the last entry in the state, if one was begun.
    pub(super) fn upto(&self) -> Option<u64> {
        self.upto
    }

    /// True if the state is complete and its digest is right.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }
}

impl Replica {
    /// Takes a part of a snapshot.
    pub(super) fn snapshot_part(&mut self, now: u64, packet: &Packet<'_>) {
        let upto = packet.base();
        let Some(install) = &self.install else {
            self.counters.chain_wrong_sender += 1;
            return;
        };
        let newer = install.upto.is_none_or(|present| present < upto);
        if newer && packet.number() == 1 {
            self.begin_install();
            self.install_begins(upto);
            self.save_begin(upto);
        }
        let Some(install) = &mut self.install else {
            return;
        };
        if install.upto != Some(upto) {
            self.counters.chain_not_begun += 1;
            return;
        }
        let incarnation = packet.incarnation();
        if install.done {
            // After a restart the disk has the whole state, and not the number of its parts.
            install.parts.has_all(incarnation, packet.number());
        }
        match install.parts.judge(incarnation, packet.number()) {
            Arrival::Next => {
                if self.install_part(now, incarnation, packet.body()) {
                    while let Some((incarnation, body)) =
                        self.install.as_mut().and_then(|i| i.parts.take_next())
                        && self.install_part(now, incarnation, &body)
                    {}
                }
            }
            Arrival::Early => {
                self.counters.chain_early += 1;
                install.parts.keep(packet.number(), packet.body());
            }
            Arrival::Duplicate => self.counters.chain_duplicate += 1,
            Arrival::TooFar => self.counters.chain_window_full += 1,
            Arrival::NotBegun => self.counters.chain_not_begun += 1,
            Arrival::WrongIncarnation => self.counters.chain_wrong_incarnation += 1,
        }
        if let Some(ack) = self.part_acknowledgement(upto) {
            self.outbox.push_back(ack);
        }
    }

    fn part_acknowledgement(&mut self, upto: u64) -> Option<Transmit> {
        let install = self.install.as_mut()?;
        let (incarnation, number) = install.parts.take_acknowledgement()?;
        let ack = Repr {
            incarnation,
            number,
            base: upto,
            ..self.header(Kind::SnapshotAck)
        };
        Some(Transmit {
            to: Destination::Replica(self.place.position.checked_sub(1)?),
            bytes: Arc::new(ack.to_vec().ok()?),
        })
    }

    /// Takes over the items of one part; `false` if they cannot be, and then the
    /// part counts as if it had not come.
    fn install_part(&mut self, now: u64, incarnation: u32, body: &[u8]) -> bool {
        let items: Result<Vec<Item<'_>>, _> = Item::all(body).collect();
        let Ok(items) = items else {
            self.counters.chain_malformed += 1;
            return false;
        };
        let mut ended = false;
        for item in items {
            if let Item::End { digest } = item {
                let own = self.digest();
                if digest != own {
                    self.counters.snapshot_mismatch += 1;
                }
                if !invariant!(
                    self.invariants,
                    ChainCopy,
                    digest == own,
                    "the copy of chain {} has digest {own:016x}, not {digest:016x}",
                    self.config.chain
                ) {
                    return false;
                }
                ended = true;
            } else if self.install_item(now, &item).is_err() {
                self.counters.chain_inconsistent += 1;
                invariant!(
                    self.invariants,
                    ChainCopy,
                    false,
                    "an item in the copy of chain {} contradicts another",
                    self.config.chain
                );
                return false;
            }
        }
        let Some(install) = &mut self.install else {
            return false;
        };
        install.parts.has_applied(incarnation);
        install.parts.owe_acknowledgement();
        let is_last = ended && !install.done;
        self.save_items(body);
        if is_last {
            self.install_ends();
            self.predecessor.owe_acknowledgement();
            self.counters.snapshots_installed += 1;
        }
        true
    }

    /// The state that follows has the entries up to number `upto` in it.
    pub(super) fn install_begins(&mut self, upto: u64) {
        if let Some(install) = &mut self.install {
            install.upto = Some(upto);
        }
    }

    /// The whole state is there.
    pub(super) fn install_ends(&mut self) {
        let Some(install) = &mut self.install else {
            return;
        };
        install.done = true;
        let upto = install.upto.unwrap_or_default();
        (self.applied, self.base, self.answered) = (upto, upto, upto);
        self.log.clear(upto);
        self.predecessor = Receiver::new(self.config.limits.link_window, upto);
    }

    pub(super) fn install_item(&mut self, now: u64, item: &Item<'_>) -> Result<(), Inconsistent> {
        match *item {
            Item::Shard { shard, epoch } => {
                self.shards.get_mut(&shard).ok_or(Inconsistent)?.epoch = epoch;
            }
            Item::Record {
                shard,
                key,
                sequence,
                epoch,
                lease,
                holders,
                mapped_to,
                state,
            } => {
                let mut holders = holders.iter().map(|holder| Holder {
                    owner: Owner {
                        switch: holder.switch,
                        incarnation: holder.incarnation,
                        claim: holder.claim,
                    },
                    epoch: holder.epoch,
                    address: holder.address,
                    over: false,
                });
                let lease = match lease {
                    LeaseKind::None => Lease::None,
                    LeaseKind::Exclusive => Lease::Exclusive(holders.next().ok_or(Inconsistent)?),
                    LeaseKind::Shared => Lease::Shared(holders.collect()),
                };
                let record = Record {
                    state: state.into(),
                    sequence,
                    epoch,
                    lease,
                    mapped_to,
                    last_active: now,
                    looked_at: None,
                };
                self.count_created(shard, &key, state, true);
                let records = &mut self.shards.get_mut(&shard).ok_or(Inconsistent)?.records;
                if records.insert(key, record).is_some() {
                    return Err(Inconsistent);
                }
                self.record_count += 1;
                self.count_tenant(&key, true);
                self.watch_idle(now, shard, key);
                self.note_pair(shard, &key);
            }
            Item::Pool {
                shard,
                protocol,
                address,
                fresh,
                ports,
            } => {
                let shard = self.shards.get_mut(&shard).ok_or(Inconsistent)?;
                let pools = shard.pools.as_mut().ok_or(Inconsistent)?;
                if !pools.restore(protocol, address, fresh, ports.iter()) {
                    return Err(Inconsistent);
                }
            }
            Item::End { .. } => {}
        }
        Ok(())
    }
}

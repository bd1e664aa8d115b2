//! State of a flow and holders of its lease.

use core::net::SocketAddrV4;

use smallvec::SmallVec;
use stateplane_wire::replication::{Key, Packet};

/// The requester of a lease: one slot claim of one start of one switch (rules 2 and 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The switch.
    pub switch: u32,
    /// Number of the switch's start.
    pub incarnation: u32,
    /// Number of the slot's claim, counted by the switch.
    pub claim: u32,
}

impl Owner {
    /// The owner on whose behalf `packet` was sent.
    pub fn of(packet: &Packet<'_>) -> Owner {
        Owner {
            switch: packet.switch_id(),
            incarnation: packet.incarnation(),
            claim: packet.claim(),
        }
    }
}

/// Release information in a lease request: the lease that its slot gave up last and whose release
/// may have been lost (rule 19); all 0 if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct GaveUp {
    /// Epoch of the grant.
    pub(crate) epoch: u32,
    /// Number of the last state written under it.
    pub(crate) sequence: u32,
}

impl GaveUp {
    /// Reads the release information from the lease request `packet`.
    pub(crate) fn of(packet: &Packet<'_>) -> GaveUp {
        GaveUp {
            epoch: packet.lease_epoch(),
            sequence: packet.sequence(),
        }
    }
}

/// One grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Owner of the lease.
    pub owner: Owner,
    /// Epoch of the grant.
    pub epoch: u32,
    /// Address from which the owner sent its request, and to which a recall of the lease is sent
    /// (rule 19).
    pub address: SocketAddrV4,
    /// The replica's own time in µs from which the lease is certainly over.
    pub until: u64,
}

/// The grants that count. An expired one counts, for its writes and renewals,
/// until another is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lease {
    /// No lease is held or requested.
    None,
    /// One owner, who may write.
    Exclusive(Holder),
    /// Any number of readers (rule 18).
    Shared(Vec<Holder>),
}

impl Lease {
    /// The grants, in the order of their places.
    pub fn holders(&self) -> &[Holder] {
        match self {
            Lease::None => &[],
            Lease::Exclusive(holder) => core::slice::from_ref(holder),
            Lease::Shared(holders) => holders,
        }
    }

    fn holders_mut(&mut self) -> &mut [Holder] {
        match self {
            Lease::None => &mut [],
            Lease::Exclusive(holder) => core::slice::from_mut(holder),
            Lease::Shared(holders) => holders,
        }
    }

    /// The time from which every grant is over; 0 if there is none.
    pub fn until(&self) -> u64 {
        self.holders().iter().map(|h| h.until).max().unwrap_or(0)
    }
}

/// A flow's state: short ones, as most programs have, lie in the record itself.
pub(crate) type State = SmallVec<[u8; 16]>;

/// A flow's state and its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub(crate) state: State,
    pub(crate) sequence: u32,
    pub(crate) epoch: u32,
    pub(crate) lease: Lease,
    pub(crate) mapped_to: Option<Key>,
    pub(crate) last_active: u64,
    /// When the replica looks whether the record is idle; `None` while it is not to.
    pub(crate) looked_at: Option<u64>,
}

impl Record {
    /// The whole state.
    pub fn state(&self) -> &[u8] {
        &self.state
    }

    /// Number of the state.
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Epoch of the newest grant, or of the grant that made the record.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The grants that count.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// The other record of a NAT mapping.
    pub fn mapped_to(&self) -> Option<&Key> {
        self.mapped_to.as_ref()
    }

    /// The place of `owner` among the holders.
    pub(crate) fn place_of(&self, owner: &Owner) -> Option<usize> {
        self.lease.holders().iter().position(|h| h.owner == *owner)
    }

    /// The grant that `owner` holds under `epoch`.
    pub(crate) fn grant_mut(&mut self, owner: &Owner, epoch: u32) -> Option<&mut Holder> {
        self.lease
            .holders_mut()
            .iter_mut()
            .find(|h| h.owner == *owner && h.epoch == epoch)
    }

    /// Takes `owner` from the holders if it holds the lease under `epoch`; whether
    /// it did.
    pub(crate) fn release(&mut self, owner: &Owner, epoch: u32) -> bool {
        let held = |h: &Holder| h.owner == *owner && h.epoch == epoch;
        let Some(place) = self.lease.holders().iter().position(held) else {
            return false;
        };
        match &mut self.lease {
            Lease::Shared(holders) if holders.len() > 1 => {
                holders.remove(place);
            }
            lease => *lease = Lease::None,
        }
        true
    }

    /// The holders whose leases conflict with a grant to `owner` at `now`.
    pub(crate) fn in_the_way(
        &self,
        now: u64,
        owner: Owner,
        shared: bool,
    ) -> impl Iterator<Item = &Holder> {
        let together = shared && matches!(self.lease, Lease::Shared(_));
        let holders = self.lease.holders().iter();
        holders.filter(move |h| !together && h.owner != owner && h.until > now)
    }

    /// The time until which a new grant to `owner` would meet another's lease; 0
    /// if it meets none.
    pub(crate) fn blocked_until(&self, owner: &Owner, shared: bool) -> u64 {
        if shared && matches!(self.lease, Lease::Shared(_)) {
            return 0;
        }
        let others = self.lease.holders().iter().filter(|h| h.owner != *owner);
        others.map(|h| h.until).max().unwrap_or(0)
    }

    /// The place that another shared grant takes at `now`: behind the last, or
    /// that of an expired one. `None` if `limit` valid ones are there.
    pub(crate) fn free_place(&self, now: u64, limit: u16) -> Option<u16> {
        let Lease::Shared(holders) = &self.lease else {
            return Some(0);
        };
        if holders.len() < usize::from(limit) {
            return Some(holders.len() as u16);
        }
        let expired = holders.iter().position(|h| h.until <= now)?;
        Some(expired as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(switch: u32) -> Owner {
        Owner {
            switch,
            incarnation: 1,
            claim: 1,
        }
    }

    fn holder(switch: u32, until: u64) -> Holder {
        Holder {
            owner: owner(switch),
            epoch: switch,
            address: SocketAddrV4::new(switch.into(), 1),
            until,
        }
    }

    fn record(lease: Lease) -> Record {
        Record {
            state: State::default(),
            sequence: 1,
            epoch: 1,
            lease,
            mapped_to: None,
            last_active: 0,
            looked_at: None,
        }
    }

    #[test]
    fn exclusive_leases_block_others_but_not_their_owner() {
        let record = record(Lease::Exclusive(holder(1, 50)));
        assert_eq!(record.blocked_until(&owner(1), false), 0);
        assert_eq!(record.blocked_until(&owner(2), false), 50);
        assert_eq!(record.blocked_until(&owner(2), true), 50);
    }

    #[test]
    fn shared_leases_block_exclusive_ones_until_the_last_is_over() {
        let record = record(Lease::Shared(vec![holder(1, 50), holder(2, 70)]));
        assert_eq!(record.blocked_until(&owner(3), true), 0);
        assert_eq!(record.blocked_until(&owner(3), false), 70);
        assert_eq!(record.blocked_until(&owner(2), false), 50);
    }

    #[test]
    fn a_lease_is_over_when_its_last_holder_gives_it_up() {
        let mut shared = record(Lease::Shared(vec![holder(1, 50), holder(2, 70)]));
        assert!(!shared.release(&owner(1), 2));
        assert!(shared.release(&owner(1), 1));
        assert_eq!(shared.lease, Lease::Shared(vec![holder(2, 70)]));
        assert!(shared.release(&owner(2), 2));
        assert_eq!(shared.lease, Lease::None);
        let mut exclusive = record(Lease::Exclusive(holder(1, 50)));
        assert!(!exclusive.release(&owner(2), 1));
        assert!(exclusive.release(&owner(1), 1));
        assert_eq!(exclusive.lease, Lease::None);
    }

    #[test]
    fn whoever_is_in_the_way_is_another_with_a_valid_lease() {
        let record = record(Lease::Shared(vec![holder(1, 50), holder(2, 70)]));
        let who = |now, of, shared| {
            let found = record.in_the_way(now, owner(of), shared);
            found.map(|h| h.owner.switch).collect::<Vec<_>>()
        };
        assert_eq!(who(49, 3, false), [1, 2]);
        assert_eq!(who(50, 3, false), [2]);
        assert_eq!(who(49, 1, false), [2]);
        assert_eq!(who(49, 3, true), [0; 0]);
    }

    #[test]
    fn places_are_reused_only_after_their_lease() {
        let record = record(Lease::Shared(vec![holder(1, 50), holder(2, 40)]));
        assert_eq!(record.free_place(0, 3), Some(2));
        assert_eq!(record.free_place(39, 2), None);
        assert_eq!(record.free_place(40, 2), Some(1));
        assert_eq!(record.free_place(50, 2), Some(0));
    }

    #[test]
    fn a_grant_needs_owner_and_epoch() {
        let mut record = record(Lease::Shared(vec![holder(1, 50), holder(2, 40)]));
        assert!(record.grant_mut(&owner(2), 2).is_some());
        assert!(record.grant_mut(&owner(2), 1).is_none());
        assert!(record.grant_mut(&owner(3), 2).is_none());
    }
}

//! State of a flow and holders of its lease.

use core::net::SocketAddrV4;

use smallvec::SmallVec;
use stateplane_wire::chain::LAST_PLACE;
use stateplane_wire::replication::{Key, Packet};

use crate::serial::newer;

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
    /// True if this is a later claim of the same start of the switch than `other`.
    pub(crate) fn supersedes(&self, other: &Owner) -> bool {
        let same = self.switch == other.switch && self.incarnation == other.incarnation;
        same && newer(self.claim, other.claim)
    }

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
    /// As the head knows: the switch's term has ended since, and the lease is not used before it
    /// is asked for again. It is each replica's own.
    pub over: bool,
}

/// The grants that count. One whose switch has no term any more counts, for its writes and
/// renewals, until another is made.
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

    /// The grants, to note which are over.
    pub(crate) fn holders_mut(&mut self) -> &mut [Holder] {
        match &mut self.lease {
            Lease::None => &mut [],
            Lease::Exclusive(holder) => core::slice::from_mut(holder),
            Lease::Shared(holders) => holders,
        }
    }

    /// True if `owner` holds a grant under `epoch`.
    pub(crate) fn has_grant(&self, owner: &Owner, epoch: u32) -> bool {
        let mut holders = self.lease.holders().iter();
        holders.any(|h| h.owner == *owner && h.epoch == epoch)
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

    /// The holders whose leases conflict with a grant to `owner`, over or not.
    pub(crate) fn in_the_way(&self, owner: Owner, shared: bool) -> impl Iterator<Item = &Holder> {
        let together = shared && matches!(self.lease, Lease::Shared(_));
        let holders = self.lease.holders().iter();
        holders.filter(move |h| !together && h.owner != owner)
    }

    /// True if a later claim of the same start of the switch than `owner`'s has a grant.
    pub(crate) fn has_later_claim(&self, owner: &Owner) -> bool {
        let mut holders = self.lease.holders().iter();
        holders.any(|h| h.owner.supersedes(owner))
    }

    /// The holders that a shared grant to `owner` leaves: those but for earlier claims of the
    /// same start of the switch (rule 18).
    fn beside(&self, owner: &Owner) -> impl Iterator<Item = &Holder> {
        let holders = match &self.lease {
            Lease::Shared(holders) => holders.as_slice(),
            _ => &[],
        };
        holders.iter().filter(|h| !owner.supersedes(&h.owner))
    }

    /// Takes earlier claims of the same start of the switch from the holders of a shared lease.
    pub(crate) fn drop_earlier_claims(&mut self, owner: &Owner) {
        if let Lease::Shared(holders) = &mut self.lease {
            holders.retain(|h| !owner.supersedes(&h.owner));
        }
    }

    /// The place that a shared grant to `owner` takes, once earlier claims are dropped: its own,
    /// or behind the last, or that of one that is `over`. `None` if `limit` others are there.
    pub(crate) fn place_for(
        &self,
        owner: &Owner,
        limit: u16,
        over: impl Fn(&Holder) -> bool,
    ) -> Option<u16> {
        let own = self.beside(owner).position(|h| h.owner == *owner);
        let count = self.beside(owner).count();
        let behind = (count < usize::from(limit.min(LAST_PLACE))).then_some(count);
        let place = own.or(behind);
        let place = place.or_else(|| self.beside(owner).position(over))?;
        u16::try_from(place).ok()
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

    fn holder(switch: u32) -> Holder {
        Holder {
            owner: owner(switch),
            epoch: switch,
            address: SocketAddrV4::new(switch.into(), 1),
            over: false,
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

    fn in_the_way(record: &Record, of: u32, shared: bool) -> Vec<u32> {
        let found = record.in_the_way(owner(of), shared);
        found.map(|h| h.owner.switch).collect()
    }

    #[test]
    fn exclusive_leases_are_in_the_way_of_others_but_not_of_their_owner() {
        let record = record(Lease::Exclusive(holder(1)));
        assert_eq!(in_the_way(&record, 1, false), [0; 0]);
        assert_eq!(in_the_way(&record, 2, false), [1]);
        assert_eq!(in_the_way(&record, 2, true), [1]);
    }

    #[test]
    fn shared_leases_are_in_the_way_of_exclusive_ones() {
        let record = record(Lease::Shared(vec![holder(1), holder(2)]));
        assert_eq!(in_the_way(&record, 3, true), [0; 0]);
        assert_eq!(in_the_way(&record, 3, false), [1, 2]);
        assert_eq!(in_the_way(&record, 2, false), [1]);
    }

    #[test]
    fn a_lease_is_over_when_its_last_holder_gives_it_up() {
        let mut shared = record(Lease::Shared(vec![holder(1), holder(2)]));
        assert!(!shared.release(&owner(1), 2));
        assert!(shared.release(&owner(1), 1));
        assert_eq!(shared.lease, Lease::Shared(vec![holder(2)]));
        assert!(shared.release(&owner(2), 2));
        assert_eq!(shared.lease, Lease::None);
        let mut exclusive = record(Lease::Exclusive(holder(1)));
        assert!(!exclusive.release(&owner(2), 1));
        assert!(exclusive.release(&owner(1), 1));
        assert_eq!(exclusive.lease, Lease::None);
    }

    #[test]
    fn places_are_reused_only_of_one_that_is_over() {
        let record = record(Lease::Shared(vec![holder(1), holder(2)]));
        let place =
            |limit, over: u32| record.place_for(&owner(3), limit, |h| h.owner.switch == over);
        assert_eq!(place(3, 0), Some(2));
        assert_eq!(place(2, 0), None);
        assert_eq!(place(2, 2), Some(1));
        assert_eq!(record.place_for(&owner(2), 2, |_| false), Some(1));
    }

    #[test]
    fn a_grant_takes_the_place_of_earlier_claims_of_its_switch() {
        let later = Owner {
            claim: 2,
            ..owner(1)
        };
        let mut record = record(Lease::Shared(vec![holder(1), holder(2)]));
        assert_eq!(record.place_for(&later, 2, |_| false), Some(1));
        assert!(!record.has_later_claim(&later));
        record.drop_earlier_claims(&later);
        assert_eq!(record.lease, Lease::Shared(vec![holder(2)]));
        record.lease = Lease::Shared(vec![Holder {
            owner: later,
            ..holder(1)
        }]);
        assert!(record.has_later_claim(&owner(1)));
        assert!(!record.has_later_claim(&owner(2)));
    }

    #[test]
    fn a_grant_needs_owner_and_epoch() {
        let record = record(Lease::Shared(vec![holder(1), holder(2)]));
        assert!(record.has_grant(&owner(2), 2));
        assert!(!record.has_grant(&owner(2), 1));
        assert!(!record.has_grant(&owner(3), 2));
    }
}

//! Mappings whose two records say together how far a connection is (rules 28 and 29).

use stateplane_wire::ipv4::PROTOCOL_TCP;
use stateplane_wire::replication::Key;

use super::Replica;
use crate::config::FirstLease;
use crate::pair::Standing;
use crate::record::Record;
use crate::shard::ConnectionKey;

impl Replica {
    /// True if `class` is that of the outbound keys of mappings that name the remote endpoint too.
    pub(crate) fn is_dependent(&self, class: u8) -> bool {
        let class = self.classes.get(&class);
        class.is_some_and(|class| matches!(class.first_lease, FirstLease::NatDependent { .. }))
    }

    /// µs without activity after which the mapping of the outbound key `key` is forgotten, by the
    /// states of both its records; `None` if it is no such mapping, or lives for ever.
    pub(super) fn pair_timeout(
        &self,
        key: &Key,
        record: &Record,
        mapped: Option<&Record>,
    ) -> Option<u64> {
        let class = self.classes.get(&key.class())?;
        let FirstLease::NatDependent { tcp_transitory, .. } = class.first_lease else {
            return None;
        };
        let protocol = key.0[1];
        match standing(record, mapped) {
            Standing::Transitory | Standing::Ended if protocol == PROTOCOL_TCP => {
                Some(tcp_transitory)
            }
            _ => class.idle.of(protocol, &record.state),
        }
    }

    /// The outbound key of the mapping that `key`, of either record, belongs to, if mappings of its
    /// kind name the remote endpoint too.
    pub(super) fn outbound_of(&self, number: u16, key: &Key) -> Option<Key> {
        if self.is_dependent(key.class()) {
            return Some(*key);
        }
        let other = self.shards.get(&number)?.records.get(key)?.mapped_to?;
        self.is_dependent(other.class()).then_some(other)
    }

    /// Notes whether the connection that the record of `key` belongs to has ended, since that
    /// record was made, has another state, or is gone.
    pub(super) fn note_pair(&mut self, number: u16, key: &Key) {
        let Some(outbound) = self.outbound_of(number, key) else {
            return;
        };
        let all = self.config.faults.reclaim_live;
        let Some(shard) = self.shards.get_mut(&number) else {
            return;
        };
        let record = shard.records.get(&outbound);
        let mapped = record.and_then(|record| shard.records.get(record.mapped_to.as_ref()?));
        let has_ended = match (record, mapped) {
            (Some(record), Some(mapped)) if outbound.0[1] == PROTOCOL_TCP => {
                all || standing(record, Some(mapped)) == Standing::Ended
            }
            _ => false,
        };
        let remote = ConnectionKey::of(&outbound).remote;
        shard.ended.note(&outbound, remote, has_ended);
    }
}

/// Standing of the connection whose outbound record is `record` and whose inbound one `mapped`.
pub(crate) fn standing(record: &Record, mapped: Option<&Record>) -> Standing {
    let flags = |record: &Record| record.state.last().copied().unwrap_or(0);
    Standing::of(flags(record), mapped.map_or(0, flags))
}

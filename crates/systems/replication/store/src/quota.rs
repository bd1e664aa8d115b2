//! Limits on the number of records of each tenant.

use std::collections::BTreeMap;

use stateplane_wire::replication::{KEY_LENGTH, Key};

/// The bound of one class's records, for each tenant.
///
/// A tenant is named by some bytes of the key, as the program makes it: those of an
/// address make each subscriber a tenant, none make the whole class, which is a
/// program, one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Most records of a tenant, from 1. A mapping counts once if the class of its
    /// inbound record has no quota.
    pub records: usize,
    /// First byte of the key that names the tenant, from 1.
    pub first: u8,
    /// Number of key bytes that name the tenant; they end where the key ends; 0: the whole class is
    /// one tenant.
    pub length: u8,
}

impl Quota {
    /// True if the quota is consistent.
    pub(crate) fn is_valid(&self) -> bool {
        let end = usize::from(self.first) + usize::from(self.length);
        self.records > 0 && self.first > 0 && end <= KEY_LENGTH
    }

    /// The key of a tenant: that of the flow without the bytes that do not name it.
    fn tenant(&self, key: &Key) -> Key {
        let mut tenant = [0; KEY_LENGTH];
        tenant[0] = key.class();
        let named = usize::from(self.first)..usize::from(self.first) + usize::from(self.length);
        if let (Some(to), Some(from)) = (tenant.get_mut(named.clone()), key.0.get(named)) {
            to.copy_from_slice(from);
        }
        Key(tenant)
    }
}

/// Number of records of each tenant.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tenants(BTreeMap<Key, usize>);

impl Tenants {
    /// True if the tenant of `key` has reached its quota.
    pub(crate) fn is_full(&self, quota: &Quota, key: &Key) -> bool {
        let records = self.0.get(&quota.tenant(key));
        records.is_some_and(|records| *records >= quota.records)
    }

    /// Counts a record of `key` that was made, or is gone.
    pub(crate) fn count(&mut self, quota: &Quota, key: &Key, made: bool) {
        let tenant = quota.tenant(key);
        let records = self.0.entry(tenant).or_default();
        *records = if made {
            *records + 1
        } else {
            records.saturating_sub(1)
        };
        if *records == 0 {
            self.0.remove(&tenant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_are_named_by_bytes_of_the_key() {
        let mut tenants = Tenants::default();
        let quota = Quota {
            records: 2,
            first: 2,
            length: 4,
        };
        let key = |address: u8, port: u8| {
            let mut key = [0; KEY_LENGTH];
            (key[0], key[5], key[7]) = (1, address, port);
            Key(key)
        };
        tenants.count(&quota, &key(1, 1), true);
        assert!(!tenants.is_full(&quota, &key(1, 9)));
        tenants.count(&quota, &key(1, 2), true);
        assert!(tenants.is_full(&quota, &key(1, 9)));
        assert!(!tenants.is_full(&quota, &key(2, 9)));
        tenants.count(&quota, &key(1, 1), false);
        assert!(!tenants.is_full(&quota, &key(1, 9)));
        tenants.count(&quota, &key(1, 2), false);
        assert!(tenants.0.is_empty());
        assert!(quota.is_valid());
        assert!(
            !Quota {
                length: 15,
                ..quota
            }
            .is_valid()
        );
        assert!(!Quota { first: 0, ..quota }.is_valid());
    }
}

//! Items of a snapshot: the state of a chain in pieces.

use core::net::{Ipv4Addr, SocketAddrV4};

use crate::big_endian::{get_array, get_u16, get_u32, get_u64};
use crate::error::at_least;
use crate::replication::{KEY_LENGTH, Key};
use crate::{Error, Header};

/// Bytes of one holder in a record.
pub const ITEM_HOLDER_LENGTH: usize = 22;

/// Bytes of a record before its holders and its state.
const RECORD_LENGTH: usize = 1 + 2 + 1 + KEY_LENGTH + 4 + 4 + KEY_LENGTH + 2 + 2;

/// What kind of lease a record has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum LeaseKind {
    /// Nobody asked.
    None = 0,
    /// One owner.
    Exclusive = 1,
    /// Readers.
    Shared = 2,
}

/// One holder of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemHolder {
    /// The switch.
    pub switch: u32,
    /// Which start of it.
    pub incarnation: u32,
    /// Which claim of a slot.
    pub claim: u32,
    /// Epoch of the grant.
    pub epoch: u32,
    /// Where it is asked to give the lease up.
    pub address: SocketAddrV4,
}

/// The holders of a record, as they lie in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemHolders<'a>(&'a [u8]);

impl<'a> ItemHolders<'a> {
    /// Holders in `bytes`, of [`ITEM_HOLDER_LENGTH`] each.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] if the last one is cut.
    pub fn new(bytes: &'a [u8]) -> Result<ItemHolders<'a>, Error> {
        let whole = bytes.len().next_multiple_of(ITEM_HOLDER_LENGTH);
        at_least(Header::SnapshotItem, bytes, whole)?;
        Ok(ItemHolders(bytes))
    }

    /// Each of them, in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = ItemHolder> + 'a {
        self.0
            .chunks_exact(ITEM_HOLDER_LENGTH)
            .map(|bytes| ItemHolder {
                switch: get_u32(bytes, 0),
                incarnation: get_u32(bytes, 4),
                claim: get_u32(bytes, 8),
                epoch: get_u32(bytes, 12),
                address: SocketAddrV4::new(get_array::<4>(bytes, 16).into(), get_u16(bytes, 20)),
            })
    }
}

impl ItemHolder {
    /// Appends the holder to `bytes`.
    pub fn append(&self, bytes: &mut Vec<u8>) {
        for field in [self.switch, self.incarnation, self.claim, self.epoch] {
            bytes.extend_from_slice(&field.to_be_bytes());
        }
        bytes.extend_from_slice(&self.address.ip().octets());
        bytes.extend_from_slice(&self.address.port().to_be_bytes());
    }
}

/// Ports of a pool, as they lie in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemPorts<'a>(&'a [u8]);

impl<'a> ItemPorts<'a> {
    /// Ports in `bytes`, of two bytes each.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] if the last one is cut.
    pub fn new(bytes: &'a [u8]) -> Result<ItemPorts<'a>, Error> {
        at_least(Header::SnapshotItem, bytes, bytes.len().next_multiple_of(2))?;
        Ok(ItemPorts(bytes))
    }

    /// Each of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + 'a {
        self.0.chunks_exact(2).map(|bytes| get_u16(bytes, 0))
    }
}

/// A piece of the state of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item<'a> {
    /// A shard, before its records.
    Shard {
        /// Its number.
        shard: u16,
        /// Epoch of its newest grant.
        epoch: u32,
    },
    /// A flow's record.
    Record {
        /// Its shard.
        shard: u16,
        /// Its key.
        key: Key,
        /// Number of the state.
        sequence: u32,
        /// Epoch of the newest grant.
        epoch: u32,
        /// What kind of lease it has.
        lease: LeaseKind,
        /// Who holds it; their deadlines are counted anew (rule 20).
        holders: ItemHolders<'a>,
        /// The other record of a mapping.
        mapped_to: Option<Key>,
        /// The state.
        state: &'a [u8],
    },
    /// Ports of one public address and protocol that were used and are free, the
    /// longest free first. Several of one pool continue each other.
    Pool {
        /// Its shard.
        shard: u16,
        /// IP protocol.
        protocol: u8,
        /// Public address.
        address: Ipv4Addr,
        /// The first port that was never used; one beyond the last if all were.
        fresh: u32,
        /// The free ports.
        ports: ItemPorts<'a>,
    },
    /// Nothing follows.
    End {
        /// Digest of the whole state.
        digest: u64,
    },
}

impl<'a> Item<'a> {
    /// Reads the first item of `bytes`, and gives what follows it.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`]; [`Error::Unknown`] for a type or a kind of lease without
    /// meaning.
    pub fn parse(bytes: &'a [u8]) -> Result<(Item<'a>, &'a [u8]), Error> {
        let header = Header::SnapshotItem;
        let unknown = |field, found: u8| Error::Unknown {
            header,
            field,
            found: found.into(),
        };
        at_least(header, bytes, 1)?;
        match bytes[0] {
            1 => {
                at_least(header, bytes, 7)?;
                let item = Item::Shard {
                    shard: get_u16(bytes, 1),
                    epoch: get_u32(bytes, 3),
                };
                Ok((item, &bytes[7..]))
            }
            2 => {
                at_least(header, bytes, RECORD_LENGTH)?;
                let lease = match bytes[3] & 3 {
                    0 => LeaseKind::None,
                    1 => LeaseKind::Exclusive,
                    2 => LeaseKind::Shared,
                    found => return Err(unknown("lease", found)),
                };
                let holders = usize::from(get_u16(bytes, 44)) * ITEM_HOLDER_LENGTH;
                let state = RECORD_LENGTH + holders;
                let end = state + usize::from(get_u16(bytes, 46));
                at_least(header, bytes, end)?;
                let mapped_to = Key(get_array(bytes, 28));
                let item = Item::Record {
                    shard: get_u16(bytes, 1),
                    key: Key(get_array(bytes, 4)),
                    sequence: get_u32(bytes, 20),
                    epoch: get_u32(bytes, 24),
                    lease,
                    holders: ItemHolders(&bytes[RECORD_LENGTH..state]),
                    mapped_to: (bytes[3] & 4 != 0).then_some(mapped_to),
                    state: &bytes[state..end],
                };
                Ok((item, &bytes[end..]))
            }
            3 => {
                at_least(header, bytes, 14)?;
                let end = 14 + 2 * usize::from(get_u16(bytes, 12));
                at_least(header, bytes, end)?;
                let item = Item::Pool {
                    shard: get_u16(bytes, 1),
                    protocol: bytes[3],
                    address: get_array::<4>(bytes, 4).into(),
                    fresh: get_u32(bytes, 8),
                    ports: ItemPorts(&bytes[14..end]),
                };
                Ok((item, &bytes[end..]))
            }
            4 => {
                at_least(header, bytes, 9)?;
                let item = Item::End {
                    digest: get_u64(bytes, 1),
                };
                Ok((item, &bytes[9..]))
            }
            found => Err(unknown("type", found)),
        }
    }

    /// All items of `bytes`; what cannot be read ends the list with an error.
    pub fn all(bytes: &'a [u8]) -> impl Iterator<Item = Result<Item<'a>, Error>> {
        let mut rest = bytes;
        core::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            Some(match Item::parse(core::mem::take(&mut rest)) {
                Ok((item, after)) => {
                    rest = after;
                    Ok(item)
                }
                Err(error) => Err(error),
            })
        })
    }

    /// Appends the item to `bytes`.
    ///
    /// # Errors
    ///
    /// [`Error::Unrepresentable`] for more than 65535 holders, ports or bytes of
    /// state; nothing is appended then.
    pub fn emit(&self, bytes: &mut Vec<u8>) -> Result<(), Error> {
        let length = |field, length: usize| {
            u16::try_from(length).map_err(|_| Error::Unrepresentable {
                header: Header::SnapshotItem,
                field,
            })
        };
        match *self {
            Item::Shard { shard, epoch } => {
                bytes.push(1);
                bytes.extend_from_slice(&shard.to_be_bytes());
                bytes.extend_from_slice(&epoch.to_be_bytes());
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
                let count = length("holders", holders.0.len() / ITEM_HOLDER_LENGTH)?;
                let state_length = length("state", state.len())?;
                bytes.push(2);
                bytes.extend_from_slice(&shard.to_be_bytes());
                bytes.push(lease as u8 | u8::from(mapped_to.is_some()) << 2);
                bytes.extend_from_slice(&key.0);
                bytes.extend_from_slice(&sequence.to_be_bytes());
                bytes.extend_from_slice(&epoch.to_be_bytes());
                bytes.extend_from_slice(&mapped_to.unwrap_or_default().0);
                bytes.extend_from_slice(&count.to_be_bytes());
                bytes.extend_from_slice(&state_length.to_be_bytes());
                bytes.extend_from_slice(holders.0);
                bytes.extend_from_slice(state);
            }
            Item::Pool {
                shard,
                protocol,
                address,
                fresh,
                ports,
            } => {
                let count = length("ports", ports.0.len() / 2)?;
                bytes.push(3);
                bytes.extend_from_slice(&shard.to_be_bytes());
                bytes.push(protocol);
                bytes.extend_from_slice(&address.octets());
                bytes.extend_from_slice(&fresh.to_be_bytes());
                bytes.extend_from_slice(&count.to_be_bytes());
                bytes.extend_from_slice(ports.0);
            }
            Item::End { digest } => {
                bytes.push(4);
                bytes.extend_from_slice(&digest.to_be_bytes());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_survive_emit_and_parse(
            shard: u16, key: [u8; 16], sequence: u32, epoch: u32, lease in 0u8..3,
            who in proptest::collection::vec(any::<([u32; 5], u16)>(), 0..4), mapped: Option<[u8; 16]>,
            state in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut holders = Vec::new();
            for ([switch, incarnation, claim, epoch, address], port) in who {
                let address = SocketAddrV4::new(address.into(), port);
                ItemHolder { switch, incarnation, claim, epoch, address }.append(&mut holders);
            }
            let item = Item::Record {
                shard, key: Key(key), sequence, epoch,
                lease: [LeaseKind::None, LeaseKind::Exclusive, LeaseKind::Shared][usize::from(lease)],
                holders: ItemHolders::new(&holders).unwrap(),
                mapped_to: mapped.map(Key),
                state: &state,
            };
            let mut bytes = Vec::new();
            item.emit(&mut bytes).unwrap();
            prop_assert_eq!(Item::parse(&bytes), Ok((item, &[][..])));
            for cut in 0..bytes.len() {
                prop_assert_eq!(Item::parse(&bytes[..cut]).unwrap_err().code(), "WIRE001");
            }
        }

        #[test]
        fn other_items_survive_emit_and_parse(
            shard: u16, protocol: u8, address: u32, fresh: u32, epoch: u32, digest: u64,
            ports in proptest::collection::vec(any::<[u8; 2]>(), 0..9),
        ) {
            let ports = ports.concat();
            let pool = Item::Pool {
                shard, protocol, address: address.into(), fresh,
                ports: ItemPorts::new(&ports).unwrap(),
            };
            let items = [Item::Shard { shard, epoch }, pool, Item::End { digest }];
            let mut bytes = Vec::new();
            for item in items {
                item.emit(&mut bytes).unwrap();
            }
            let read: Result<Vec<_>, _> = Item::all(&bytes).collect();
            prop_assert_eq!(read.unwrap(), items);
            prop_assert!(Item::all(&bytes[..bytes.len() - 1]).any(|item| item.is_err()));
        }
    }
}

//! Items of a snapshot: the state of a chain in pieces.

use core::net::{Ipv4Addr, SocketAddrV4};

use crate::big_endian::get_u16;
use crate::error::{at_least, split};
use crate::replication::Key;
use crate::table::header;
use crate::{Error, Header};

header! {
    layout pub HOLDER_LAYOUT = "holder in a record of a snapshot";
    length pub ITEM_HOLDER_LENGTH = 22;
    /// One holder of a lease.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct ItemHolder {}
    fields {
        SWITCH_ID   32 switch: u32           => "the switch that holds the lease";
        INCARNATION 32 incarnation: u32      => "which start of it";
        CLAIM       32 claim: u32            => "which claim of a slot";
        EPOCH       32 epoch: u32            => "epoch of the grant";
        ADDRESS     48 address: SocketAddrV4 =>
            "address and port at which it is asked to give the lease up";
    }
}

header! {
    layout pub SHARD_LAYOUT = "shard in a snapshot, before its records";
    length SHARD_LENGTH = 7;
    #[derive(Debug, Clone, Copy)]
    struct Shard {}
    fields {
        TYPE   8 (item_type: u8) => "1";
        SHARD 16  shard: u16     => "number of the shard";
        EPOCH 32  epoch: u32     => "epoch of its newest grant";
    }
}

header! {
    layout pub RECORD_LAYOUT = "record in a snapshot",
        then "the holders, then state_length bytes of state";
    length RECORD_LENGTH = 48;
    #[derive(Debug, Clone, Copy)]
    struct Record {}
    may_not_fit SnapshotItem;
    fields {
        TYPE           8 (item_type: u8) => "2";
        SHARD         16  shard: u16     => "shard of the key";
        LEASE          8  lease: u8      =>
            "0 nobody asked, 1 one owner, 2 readers; 4 more if another record is mapped to it";
        KEY          128  key: Key       => "the flow's key";
        SEQUENCE      32  sequence: u32  => "number of the state";
        EPOCH         32  epoch: u32     => "epoch of the newest grant";
        MAPPED_TO    128  mapped_to: Key => "key of the other record of a mapping, or 0";
        HOLDERS       16  holders: usize => "number of holders that follow";
        STATE_LENGTH  16  state: usize   => "bytes of state that follow the holders";
    }
}

header! {
    layout pub POOL_LAYOUT = "ports of a pool in a snapshot",
        then "the ports, 2 bytes each, the longest free first";
    length POOL_LENGTH = 14;
    #[derive(Debug, Clone, Copy)]
    struct Pool {}
    may_not_fit SnapshotItem;
    fields {
        TYPE      8 (item_type: u8)   => "3";
        SHARD    16  shard: u16       => "shard that the pool belongs to";
        PROTOCOL  8  protocol: u8     => "IP protocol";
        ADDRESS  32  address: Ipv4Addr => "public address";
        FRESH    32  fresh: u32       =>
            "the first port that was never used; one beyond the last if all were";
        PORTS    16  ports: usize     => "number of free ports that follow";
    }
}

header! {
    layout pub END_LAYOUT = "end of a snapshot";
    length END_LENGTH = 9;
    #[derive(Debug, Clone, Copy)]
    struct End {}
    fields {
        TYPE    8 (item_type: u8) => "4";
        DIGEST 64  digest: u64    => "digest of the whole state";
    }
}

/// Bit of the field `LEASE`: another record is mapped to this one.
const MAPPED: u8 = 4;

/// Kind of a record's lease.
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
        let (holders, _) = self.0.as_chunks();
        holders.iter().map(ItemHolder::from_header)
    }
}

impl ItemHolder {
    /// Appends the holder to `bytes`.
    pub fn append(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.header_bytes());
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
        /// Kind of its lease.
        lease: LeaseKind,
        /// Its holders; their deadlines are counted anew (rule 20).
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
                let (fixed, rest) = split(header, bytes)?;
                let Shard { shard, epoch } = Shard::from_header(fixed);
                Ok((Item::Shard { shard, epoch }, rest))
            }
            2 => {
                let (fixed, rest) = split(header, bytes)?;
                let record = Record::from_header(fixed);
                let lease = match record.lease & 3 {
                    0 => LeaseKind::None,
                    1 => LeaseKind::Exclusive,
                    2 => LeaseKind::Shared,
                    found => return Err(unknown("lease", found)),
                };
                let holders = record.holders * ITEM_HOLDER_LENGTH;
                at_least(header, rest, holders + record.state)?;
                let (holders, rest) = rest.split_at(holders);
                let (state, rest) = rest.split_at(record.state);
                let item = Item::Record {
                    shard: record.shard,
                    key: record.key,
                    sequence: record.sequence,
                    epoch: record.epoch,
                    lease,
                    holders: ItemHolders(holders),
                    mapped_to: (record.lease & MAPPED != 0).then_some(record.mapped_to),
                    state,
                };
                Ok((item, rest))
            }
            3 => {
                let (fixed, rest) = split(header, bytes)?;
                let pool = Pool::from_header(fixed);
                let ports = 2 * pool.ports;
                at_least(header, rest, ports)?;
                let (ports, rest) = rest.split_at(ports);
                let item = Item::Pool {
                    shard: pool.shard,
                    protocol: pool.protocol,
                    address: pool.address,
                    fresh: pool.fresh,
                    ports: ItemPorts(ports),
                };
                Ok((item, rest))
            }
            4 => {
                let (fixed, rest) = split(header, bytes)?;
                let End { digest } = End::from_header(fixed);
                Ok((Item::End { digest }, rest))
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
        match *self {
            Item::Shard { shard, epoch } => {
                bytes.extend_from_slice(&Shard { shard, epoch }.header_bytes(1));
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
                let record = Record {
                    shard,
                    lease: lease as u8 | (u8::from(mapped_to.is_some()) * MAPPED),
                    key,
                    sequence,
                    epoch,
                    mapped_to: mapped_to.unwrap_or_default(),
                    holders: holders.0.len() / ITEM_HOLDER_LENGTH,
                    state: state.len(),
                };
                bytes.extend_from_slice(&record.header_bytes(2)?);
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
                let pool = Pool {
                    shard,
                    protocol,
                    address,
                    fresh,
                    ports: ports.0.len() / 2,
                };
                bytes.extend_from_slice(&pool.header_bytes(3)?);
                bytes.extend_from_slice(ports.0);
            }
            Item::End { digest } => bytes.extend_from_slice(&End { digest }.header_bytes(4)),
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

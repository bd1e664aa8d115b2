//! One part of the key space: its records, ports and epochs.

use core::net::{Ipv4Addr, SocketAddrV4};

use foldhash::fast::FixedState;
use indexmap::IndexMap;
use stateplane_wire::replication::{KEY_LENGTH, Key};

use crate::pair::Ended;
use crate::pool::Pools;
use crate::record::Record;
use crate::remote_ports::RemotePorts;
use crate::service::ServerLoads;

/// Records by key. The hash is seeded, so that a sender who chooses flows cannot make their keys
/// collide.
pub(crate) type Records = IndexMap<Key, Record, FixedState>;

#[derive(Debug, Clone)]
pub(crate) struct Shard {
    /// Epoch of the newest grant; it outlives records (rule 2).
    pub(crate) epoch: u32,
    pub(crate) records: Records,
    pub(crate) pools: Option<Pools>,
    /// Ports of mappings that name the remote endpoint too (rule 27).
    pub(crate) remote_ports: Option<RemotePorts>,
    /// Which of these mappings may be given up early (rule 29).
    pub(crate) ended: Ended,
    /// Number of records that each server has.
    pub(crate) loads: ServerLoads,
}

impl Shard {
    /// The epoch of the next grant, never 0, which means "none" in requests.
    pub(crate) fn next_epoch(&self) -> u32 {
        self.epoch.wrapping_add(1).max(1)
    }

    /// Epoch that a refusal of a request about `key` carries.
    pub(crate) fn present_epoch(&self, key: &Key) -> u32 {
        self.records.get(key).map_or(self.epoch, |r| r.epoch)
    }
}

/// The parts of a NAT key, which names an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NatKey {
    pub(crate) class: u8,
    pub(crate) protocol: u8,
    pub(crate) address: Ipv4Addr,
    pub(crate) port: u16,
}

impl NatKey {
    pub(crate) fn of(key: &Key) -> NatKey {
        let [class, protocol, a, b, c, d, high, low, ..] = key.0;
        NatKey {
            class,
            protocol,
            address: Ipv4Addr::new(a, b, c, d),
            port: u16::from_be_bytes([high, low]),
        }
    }

    pub(crate) fn key(&self) -> Key {
        let mut key = [0; KEY_LENGTH];
        key[0] = self.class;
        key[1] = self.protocol;
        key[2..8].copy_from_slice(&self.state());
        Key(key)
    }

    /// The endpoint as the state of the other record.
    pub(crate) fn state(&self) -> [u8; 6] {
        let [a, b, c, d] = self.address.octets();
        let [high, low] = self.port.to_be_bytes();
        [a, b, c, d, high, low]
    }
}

/// The parts of the key of a mapping that names the remote endpoint too: behind those of a NAT key,
/// in bytes 8 to 13, address and port of the remote endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionKey {
    pub(crate) own: NatKey,
    pub(crate) remote: SocketAddrV4,
}

impl ConnectionKey {
    pub(crate) fn of(key: &Key) -> ConnectionKey {
        let [.., a, b, c, d, high, low, _, _] = key.0;
        let address = Ipv4Addr::new(a, b, c, d);
        ConnectionKey {
            own: NatKey::of(key),
            remote: SocketAddrV4::new(address, u16::from_be_bytes([high, low])),
        }
    }

    pub(crate) fn key(&self) -> Key {
        let mut key = self.own.key();
        key.0[8..12].copy_from_slice(&self.remote.ip().octets());
        key.0[12..14].copy_from_slice(&self.remote.port().to_be_bytes());
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nat_keys_are_laid_out_as_the_protocol_page_says() {
        let nat = NatKey {
            class: 1,
            protocol: 6,
            address: Ipv4Addr::new(10, 0, 0, 7),
            port: 0x1234,
        };
        let key = nat.key();
        assert_eq!(
            key.0,
            [1, 6, 10, 0, 0, 7, 0x12, 0x34, 0, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(NatKey::of(&key), nat);
        assert_eq!(nat.state(), [10, 0, 0, 7, 0x12, 0x34]);
    }

    #[test]
    fn keys_of_connections_name_the_remote_endpoint_behind_the_own_one() {
        let connection = ConnectionKey {
            own: NatKey {
                class: 1,
                protocol: 6,
                address: Ipv4Addr::new(10, 0, 0, 7),
                port: 0x1234,
            },
            remote: SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 2), 0x01bb),
        };
        let key = connection.key();
        assert_eq!(
            key.0,
            [
                1, 6, 10, 0, 0, 7, 0x12, 0x34, 198, 51, 100, 2, 0x01, 0xbb, 0, 0
            ]
        );
        assert_eq!(ConnectionKey::of(&key), connection);
    }

    #[test]
    fn epochs_skip_zero_when_they_wrap() {
        let shard = Shard {
            epoch: u32::MAX,
            records: Records::default(),
            pools: None,
            remote_ports: None,
            ended: Ended::default(),
            loads: ServerLoads::default(),
        };
        assert_eq!(shard.next_epoch(), 1);
    }
}

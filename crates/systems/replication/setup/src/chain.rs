//! Heads of the shards' chains, as the library's table has it.

use crate::CHAIN_ACTION;
use core::net::Ipv4Addr;
use num_bigint::BigUint;
use stateplane_runtime::{Entry, KeyMatch};
use stateplane_switch::Port;

/// A store server, as a switch reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its IPv4 address.
    pub address: Ipv4Addr,
    /// Its MAC address, or that of the next hop towards it.
    pub mac: [u8; 6],
}

/// The chain of a shard, as a switch knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Head of the chain.
    pub head: Server,
    /// Number of the chain's configuration.
    pub epoch: u32,
    /// Bytes of the longest IPv4 datagram on the path to the head (rule 15 of
    /// `docs/replication-protocol.md`).
    pub mtu: u16,
}

impl Chain {
    /// The entry of [`CHAINS_TABLE`](crate::CHAINS_TABLE) that leads `shard` to the chain by
    /// `port`.
    pub fn entry(&self, shard: u16, port: Port) -> Entry {
        Entry {
            keys: vec![KeyMatch::Exact(shard.into())],
            priority: 0,
            action: CHAIN_ACTION.into(),
            data: vec![
                BigUint::from(self.head.address.to_bits()),
                BigUint::from_bytes_be(&self.head.mac),
                port.into(),
                self.epoch.into(),
                self.mtu.into(),
            ],
        }
    }
}

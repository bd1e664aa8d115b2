//! View of a store server for operators.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use serde::{Deserialize, Serialize};
use stateplane_store::{Lease, Replica, Server};
use stateplane_wire::replication::Key;

/// A server and its replicas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreView {
    /// Its address, by which the deployment knows it.
    pub address: Ipv4Addr,
    /// Incarnation of the server's present start.
    pub incarnation: u32,
    /// Its replicas, by the number of their chain.
    pub replicas: Vec<ReplicaView>,
}

/// A place in one chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaView {
    /// The chain, which has the number of its shard; 0 of a chain that never changes.
    pub chain: u16,
    /// The configuration that it follows.
    pub epoch: u32,
    /// Its position, 0 is the head; `length` while it joins.
    pub position: u8,
    /// Members of the chain.
    pub length: u8,
    /// Number of the last entry decided or applied.
    pub applied: u64,
    /// Number of the entry up to which every member has all, as it knows.
    pub base: u64,
    /// Flows that it keeps.
    pub records: usize,
    /// Requests that wait.
    pub parked: usize,
    /// Ports of public addresses.
    pub pools: Vec<PoolView>,
    /// Servers of services.
    pub servers: Vec<ServiceServerView>,
    /// Code of the broken invariant that silences it.
    #[serde(default)]
    pub silenced: Option<String>,
}

/// A server of a service, as one replica has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceServerView {
    /// Address and port of the service.
    pub service: SocketAddrV4,
    /// The IP protocol.
    pub protocol: u8,
    /// Address and port of the server.
    pub server: SocketAddrV4,
    /// Its share of new flows, beside the others of the service.
    pub weight: u16,
    /// Flows that it has.
    pub flows: u64,
    /// True if the server gets new flows from this replica as the head.
    pub healthy: bool,
}

/// The ports of one address and protocol that a shard owns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolView {
    /// The public address.
    pub address: Ipv4Addr,
    /// The IP protocol.
    pub protocol: u8,
    /// All ports.
    pub size: usize,
    /// Number of ports that no mapping uses.
    pub free: usize,
}

/// A flow, as one replica has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowView {
    /// Its shard.
    pub shard: u16,
    /// Sequence of its newest write.
    pub sequence: u32,
    /// Epoch of its newest grant.
    pub epoch: u32,
    /// Its state, hexadecimal.
    pub state: String,
    /// `none`, `exclusive` or `shared`.
    pub lease: String,
    /// Holders of the lease.
    pub holders: Vec<HolderView>,
    /// The key of the other half of a mapping, hexadecimal.
    pub mapped_to: Option<String>,
}

/// Holder of a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderView {
    /// The switch.
    pub switch: u32,
    /// Number of the switch's start.
    pub incarnation: u32,
    /// Number of the slot's claim.
    pub claim: u32,
    /// Epoch of the grant.
    pub epoch: u32,
    /// ms until it could be outwaited if no heartbeat of the switch came any more, by the server's
    /// clock.
    pub left_ms: u64,
}

/// A number that replicas of one state have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestView {
    /// The last entry in the state.
    pub applied: u64,
    /// The number, hexadecimal.
    pub digest: String,
}

/// Maximum number of records that are shown at once.
pub const MOST_RECORDS: usize = 1 << 16;

/// The state of a flow, as the tail of its chain has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordView {
    /// The flow's key, hexadecimal.
    pub key: String,
    /// Its state, hexadecimal.
    pub state: String,
}

/// `bytes` as hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes that `digits`, an even number of hexadecimal ones, say.
pub fn parse_bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        let digits = pair.len() == 2 && pair.bytes().all(|digit| digit.is_ascii_hexdigit());
        digits.then(|| u8::from_str_radix(pair, 16).ok())?
    });
    pairs.collect()
}

/// The key that `digits`, 32 hexadecimal ones, say.
pub fn parse_key(digits: &str) -> Option<Key> {
    Some(Key(parse_bytes(digits)?.try_into().ok()?))
}

impl ReplicaView {
    fn of(chain: u16, replica: &Replica) -> ReplicaView {
        let place = replica.place();
        let shards = replica.config().served.iter();
        let pools = shards.filter_map(|shard| replica.pools(*shard));
        let pools = pools.flat_map(|pools| {
            pools.used().map(|(protocol, address)| PoolView {
                address,
                protocol,
                size: pools.size(),
                free: pools.free(protocol, address),
            })
        });
        ReplicaView {
            chain,
            epoch: place.epoch,
            position: place.position,
            length: place.length,
            applied: replica.applied(),
            base: replica.base(),
            records: replica.record_count(),
            parked: replica.parked().0,
            pools: pools.collect(),
            servers: servers(replica),
            silenced: (replica.silenced()).map(|broken| broken.invariant.code().to_owned()),
        }
    }
}

/// Servers of all services that `replica` knows.
fn servers(replica: &Replica) -> Vec<ServiceServerView> {
    let config = replica.config();
    let mut flows: BTreeMap<_, u64> = BTreeMap::new();
    for shard in &config.served {
        for (service, server, load) in replica.server_loads(*shard) {
            *flows.entry((service, server)).or_default() += u64::from(load);
        }
    }
    let views = config.services.iter().flat_map(|service| {
        let flows = &flows;
        service.servers.iter().map(move |server| ServiceServerView {
            service: service.id.endpoint,
            protocol: service.id.protocol,
            server: server.endpoint,
            weight: server.weight,
            flows: flows
                .get(&(service.id, server.endpoint))
                .copied()
                .unwrap_or(0),
            healthy: replica.is_healthy(server.endpoint),
        })
    });
    views.collect()
}

/// All replicas of `server`.
pub(crate) fn replicas(server: &Server) -> Vec<ReplicaView> {
    let replicas = server.replicas();
    replicas
        .map(|(chain, replica)| ReplicaView::of(chain, replica))
        .collect()
}

/// The records of `class` in those of `replicas` that are tails of their chains; `None` if
/// there are more than [`MOST_RECORDS`].
pub(crate) fn records<'a>(
    replicas: impl Iterator<Item = &'a Replica>,
    class: u8,
) -> Option<Vec<RecordView>> {
    let tails = replicas.filter(|replica| {
        let place = replica.place();
        place.position + 1 == place.length
    });
    let found: Vec<RecordView> = tails
        .flat_map(Replica::records)
        .filter(|(_, key, _)| key.class() == class)
        .take(MOST_RECORDS + 1)
        .map(|(_, key, record)| RecordView {
            key: hexadecimal(&key.0),
            state: hexadecimal(record.state()),
        })
        .collect();
    (found.len() <= MOST_RECORDS).then_some(found)
}

/// Views of the flow with `key` in all shards of `server`.
pub(crate) fn flows(server: &Server, key: &Key, now: u64) -> Vec<FlowView> {
    let kept = server.replicas().flat_map(|(_, replica)| {
        let shards = replica.config().served.iter();
        shards.map(move |shard| (*shard, replica))
    });
    let found = kept.filter_map(|(shard, replica)| {
        let record = replica.record(shard, key)?;
        let lease = match record.lease() {
            Lease::None => "none",
            Lease::Exclusive(_) => "exclusive",
            Lease::Shared(_) => "shared",
        };
        let holders = record.lease().holders().iter().map(|holder| HolderView {
            switch: holder.owner.switch,
            incarnation: holder.owner.incarnation,
            claim: holder.owner.claim,
            epoch: holder.epoch,
            left_ms: server.promised(shard, &holder.owner).saturating_sub(now) / 1000,
        });
        Some(FlowView {
            shard,
            sequence: record.sequence(),
            epoch: record.epoch(),
            state: hexadecimal(record.state()),
            lease: lease.to_owned(),
            holders: holders.collect(),
            mapped_to: record.mapped_to().map(|key| hexadecimal(&key.0)),
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_32_digits() {
        let key = parse_key("01060a000001004f0000000000000000").unwrap();
        assert_eq!(key.0[..8], [1, 6, 10, 0, 0, 1, 0, 0x4f]);
        assert_eq!(hexadecimal(&key.0), "01060a000001004f0000000000000000");
        assert_eq!(parse_bytes("00ff"), Some(vec![0, 255]));
        assert_eq!(parse_bytes("+1"), None);
        assert_eq!(parse_bytes("001"), None);
        for wrong in ["", "01", &"g".repeat(32), &"0".repeat(33), &"é".repeat(16)] {
            assert_eq!(parse_key(wrong), None, "{wrong}");
        }
    }
}

//! Services and the servers behind them: the head gives a flow to a server with its
//! first lease.

use std::collections::{BTreeMap, BTreeSet};

use core::fmt;
use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_wire::replication::{KEY_LENGTH, Key};

/// Bytes at the beginning of the state of a flow that was given to a server: the server's
/// address and port.
pub const SERVER_STATE_LENGTH: u16 = 6;

/// A service, as clients name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId {
    /// The IP protocol.
    pub protocol: u8,
    /// Address and port to which clients send.
    pub endpoint: SocketAddrV4,
}

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (protocol {})", self.endpoint, self.protocol)
    }
}

/// A service and its servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Identifier of the service.
    pub id: ServiceId,
    /// Its servers, each endpoint once.
    pub servers: Vec<ServiceServer>,
}

/// One server of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceServer {
    /// Its address and port.
    pub endpoint: SocketAddrV4,
    /// Its share of the flows, beside the weights of the others. A server of weight 0
    /// keeps its flows and gets no more.
    pub weight: u16,
    /// Most flows that it is given, over all shards; each shard may give its part, rounded
    /// up. `None`: any number.
    pub most: Option<u32>,
}

/// Position of the service's endpoint in the keys of a class; the protocol is byte 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceAt {
    /// First of the four bytes of the address.
    pub address: u8,
    /// First of the two bytes of the port.
    pub port: u8,
}

impl ServiceAt {
    /// True if address and port lie in a key, behind class and protocol.
    pub(crate) fn is_valid(self) -> bool {
        let (address, port) = (usize::from(self.address), usize::from(self.port));
        let apart = address + 4 <= port || port + 2 <= address;
        address > 1 && port > 1 && address + 4 <= KEY_LENGTH && port + 2 <= KEY_LENGTH && apart
    }

    /// The service that `key` names.
    pub(crate) fn service(self, key: &Key) -> Option<ServiceId> {
        let address: [u8; 4] = key
            .0
            .get(usize::from(self.address)..)?
            .first_chunk()
            .copied()?;
        let port: [u8; 2] = key
            .0
            .get(usize::from(self.port)..)?
            .first_chunk()
            .copied()?;
        Some(ServiceId {
            protocol: key.0[1],
            endpoint: SocketAddrV4::new(Ipv4Addr::from(address), u16::from_be_bytes(port)),
        })
    }
}

/// The state of a flow that was given to `server`, of `length` bytes.
pub(crate) fn server_state(server: SocketAddrV4, length: usize) -> crate::record::State {
    let mut state = crate::record::State::from_elem(0, length);
    let [a, b, c, d] = server.ip().octets();
    let [high, low] = server.port().to_be_bytes();
    for (to, from) in state.iter_mut().zip([a, b, c, d, high, low]) {
        *to = from;
    }
    state
}

/// The server that `state` names; `None` if it is too short, or zero.
pub(crate) fn server_in(state: &[u8]) -> Option<SocketAddrV4> {
    let [a, b, c, d, high, low]: [u8; 6] = state.first_chunk().copied()?;
    let server = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]));
    (!server.ip().is_unspecified() || server.port() > 0).then_some(server)
}

/// Number of flows of one shard that each server has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerLoads(BTreeMap<(ServiceId, SocketAddrV4), u32>);

impl ServerLoads {
    /// Flows of `service` that `server` has.
    pub(crate) fn of(&self, service: ServiceId, server: SocketAddrV4) -> u32 {
        self.0.get(&(service, server)).copied().unwrap_or(0)
    }

    /// All that have flows.
    pub(crate) fn all(&self) -> impl Iterator<Item = (ServiceId, SocketAddrV4, u32)> {
        self.0
            .iter()
            .map(|(&(service, server), &flows)| (service, server, flows))
    }

    /// Counts a flow that `server` got.
    pub(crate) fn add(&mut self, service: ServiceId, server: SocketAddrV4) {
        *self.0.entry((service, server)).or_default() += 1;
    }

    /// Counts a flow that `server` has no more.
    pub(crate) fn remove(&mut self, service: ServiceId, server: SocketAddrV4) {
        if let Some(flows) = self.0.get_mut(&(service, server)) {
            *flows -= 1;
            if *flows == 0 {
                self.0.remove(&(service, server));
            }
        }
    }

    /// Chooses a server for the next flow of `service`: among the healthy ones with room, the one
    /// with the fewest flows for its weight. `first` says who goes first among equals, so that
    /// shards do not all begin with one server.
    pub(crate) fn choose(
        &self,
        service: &Service,
        unhealthy: &BTreeSet<SocketAddrV4>,
        (shard, shards): (u16, u16),
    ) -> Option<SocketAddrV4> {
        let count = service.servers.len();
        let first = usize::from(shard).checked_rem(count)?;
        let has_room = |server: &&ServiceServer| {
            let most = server.most.map(|most| most.div_ceil(shards.into()));
            most.is_none_or(|most| self.of(service.id, server.endpoint) < most)
        };
        (first..first + count)
            .map(|at| &service.servers[at % count])
            .filter(|server| server.weight > 0 && !unhealthy.contains(&server.endpoint))
            .filter(has_room)
            .min_by(|one, other| {
                let with_next =
                    |server: &ServiceServer| u64::from(self.of(service.id, server.endpoint)) + 1;
                let one_side = with_next(one) * u64::from(other.weight);
                one_side.cmp(&(with_next(other) * u64::from(one.weight)))
            })
            .map(|server| server.endpoint)
    }
}

#[cfg(test)]
mod tests;

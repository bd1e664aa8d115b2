//! Connections of the demonstration.

use super::Options;
use crate::agent::PATIENCE_MS;
use crate::agent::client::{Plan, Planned};
use crate::topology::{End, Topology, Traffic};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

/// TCP ports of the server agents.
pub(super) const PORTS: [u16; 3] = [7000, 7001, 7002];

/// Below the range from which the kernel takes ports by itself.
const FIRST_SOURCE_PORT: u16 = 20_000;
/// Connections that share one inside endpoint; there are as many destinations.
const SHARING: usize = 3;
const RAMP_MS: u64 = 2500;
const NEW_EXCHANGES: u32 = 10;

/// The address of a node.
pub(super) fn address(topology: &Topology, node: &str) -> Ipv4Addr {
    let address = topology.address_of(node);
    address.unwrap_or(Ipv4Addr::UNSPECIFIED)
}

/// The switches' ends to which the chooser's routes lead.
pub(super) fn entrances<'a>(topology: &'a Topology, traffic: &Traffic) -> Vec<&'a End> {
    let hops: Vec<Ipv4Addr> = topology
        .node(&traffic.chooser)
        .into_iter()
        .flat_map(|chooser| &chooser.routes)
        .flat_map(|route| &route.via)
        .copied()
        .collect();
    topology
        .ends()
        .map(|(_, end)| end)
        .filter(|end| traffic.switches.contains(&end.node))
        .filter(|end| {
            end.address
                .is_some_and(|prefix| hops.contains(&prefix.address))
        })
        .collect()
}

/// The plan of each client, by its node. A quarter of the connections share their
/// inside endpoint with two others.
pub(super) fn make(
    topology: &Topology,
    traffic: &Traffic,
    options: &Options,
) -> BTreeMap<String, Plan> {
    let destinations: Vec<SocketAddrV4> = PORTS
        .iter()
        .flat_map(|port| {
            traffic
                .servers
                .iter()
                .map(|server| SocketAddrV4::new(address(topology, server), *port))
        })
        .collect();
    let empty = |number: u64| Plan {
        long_lived: Vec::new(),
        ramp_ms: RAMP_MS,
        interval_ms: options.interval_ms,
        listed_stall_ms: options.interval_ms + options.interval_ms / 4,
        new_to: destinations.clone(),
        new_per_second: options.new_per_second / traffic.clients.len() as f64,
        new_exchanges: NEW_EXCHANGES,
        first_new: 1_000_000 * number,
        patience_ms: PATIENCE_MS,
    };
    let mut plans: Vec<Plan> = (1..).take(traffic.clients.len()).map(empty).collect();
    let count = plans.len();
    let sharing = options.connections / 4 / SHARING * SHARING;
    let mut port = FIRST_SOURCE_PORT;
    for (index, connection) in (0..options.connections).zip(1u64..) {
        let shares = index < sharing;
        let client = if shares { index / SHARING } else { index } % count;
        if !shares || index % SHARING == 0 {
            port += 1;
        }
        plans[client].long_lived.push(Planned {
            connection,
            source: SocketAddrV4::new(address(topology, &traffic.clients[client]), port),
            destination: destinations[index % destinations.len()],
        });
    }
    traffic.clients.iter().cloned().zip(plans).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::Kind;
    use std::collections::{BTreeSet, HashSet};
    use std::path::Path;

    #[test]
    fn connections_differ_and_some_share_their_inside_endpoint() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lab/nat.toml");
        let topology = Topology::load(path).unwrap();
        let traffic = topology.traffic.clone().unwrap();
        let options = Options {
            keys: false,
            topology: topology.path.clone(),
            output: "o".into(),
            logs: "l".into(),
            runs: Kind::ALL.to_vec(),
            seconds: 38,
            kill_at: 12,
            restart_at: 24,
            connections: 120,
            interval_ms: 95,
            new_per_second: 5.0,
            rate_mbps: None,
        };
        let plans = make(&topology, &traffic, &options);
        assert_eq!(plans.len(), 2);
        let all: Vec<Planned> = plans.values().flat_map(|p| p.long_lived.clone()).collect();
        assert_eq!(all.len(), 120);
        let pairs: HashSet<_> = all.iter().map(|p| (p.source, p.destination)).collect();
        assert_eq!(pairs.len(), 120);
        let sources: HashSet<_> = all.iter().map(|p| p.source).collect();
        assert_eq!(sources.len(), 100);
        let numbers: BTreeSet<_> = all.iter().map(|p| p.connection).collect();
        assert_eq!(numbers.len(), 120);
        assert!(plans.values().all(|plan| plan.long_lived.len() > 50));
        assert_eq!(entrances(&topology, &traffic).len(), 2);
    }
}

//! Which connections are opened, and through which switch each goes out.

use super::Options;
use crate::agent::client::{Plan, Planned};
use crate::error::LabError;
use crate::running::Lab;
use crate::topology::{Topology, Traffic};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddrV4};

/// TCP ports of the server agents.
pub(super) const PORTS: [u16; 3] = [7000, 7001, 7002];

/// Below the range from which the kernel takes ports by itself.
const FIRST_SOURCE_PORT: u16 = 20_000;
/// Source ports looked at for each connection that may choose.
const CANDIDATES: usize = 4;
/// Connections that share one inside endpoint.
const SHARING: usize = 3;
const RAMP_MS: u64 = 2500;
const NEW_EXCHANGES: u32 = 10;

/// The plans of all clients.
pub(super) struct Plans {
    /// By the client's node.
    pub clients: BTreeMap<String, Plan>,
    /// Which share of the long-lived connections goes out through each switch.
    pub shares: BTreeMap<String, f64>,
}

/// The address of a node.
pub(super) fn address(topology: &Topology, node: &str) -> Ipv4Addr {
    topology
        .ends_of(node)
        .find_map(|(_, end)| end.address)
        .map_or(Ipv4Addr::UNSPECIFIED, |prefix| prefix.address)
}

/// The switch that each next hop of the chooser leads to, with the switch's interface
/// on that side.
pub(super) fn next_hops(
    topology: &Topology,
    traffic: &Traffic,
) -> BTreeMap<Ipv4Addr, (String, String)> {
    let hops: Vec<Ipv4Addr> = topology
        .node(&traffic.chooser)
        .into_iter()
        .flat_map(|chooser| &chooser.routes)
        .flat_map(|route| &route.via)
        .copied()
        .collect();
    topology
        .ends()
        .filter(|(_, end)| traffic.switches.contains(&end.node))
        .filter_map(|(_, end)| {
            let address = end.address?.address;
            hops.contains(&address)
                .then(|| (address, (end.node.clone(), end.interface.clone())))
        })
        .collect()
}

#[derive(Clone, Copy)]
struct Flow {
    client: usize,
    source: SocketAddrV4,
    destination: SocketAddrV4,
}

/// Plans the connections. A quarter of them share their inside endpoint with two
/// others; the rest choose their source ports so that the switches carry equal shares.
pub(super) fn make(lab: &Lab, traffic: &Traffic, options: &Options) -> Result<Plans, LabError> {
    let topology = lab.topology();
    let destinations: Vec<SocketAddrV4> = PORTS
        .iter()
        .flat_map(|port| {
            traffic
                .servers
                .iter()
                .map(|server| SocketAddrV4::new(address(topology, server), *port))
        })
        .collect();
    let sharing = options.connections / 4 / SHARING * SHARING;
    let mut wanted: Vec<Vec<Flow>> = Vec::new();
    let mut next_port = FIRST_SOURCE_PORT;
    for index in 0..options.connections {
        let (client, candidates) = if index < sharing {
            (index / SHARING % traffic.clients.len(), 1)
        } else {
            (index % traffic.clients.len(), CANDIDATES)
        };
        let source = address(topology, &traffic.clients[client]);
        let destination = destinations[index % destinations.len()];
        let mut flows = Vec::new();
        for _ in 0..candidates {
            if index >= sharing || index % SHARING == 0 {
                next_port += 1;
            }
            flows.push(Flow {
                client,
                source: SocketAddrV4::new(source, next_port),
                destination,
            });
        }
        wanted.push(flows);
    }
    let flat: Vec<Flow> = wanted.iter().flatten().copied().collect();
    let mut carriers = carriers(lab, traffic, &flat)?.into_iter();

    let mut counts: BTreeMap<String, usize> =
        traffic.switches.iter().map(|s| (s.clone(), 0)).collect();
    let mut clients: BTreeMap<String, Plan> = BTreeMap::new();
    for (flows, connection) in wanted.iter().zip(1u64..) {
        let choice = flows
            .iter()
            .zip(carriers.by_ref())
            .min_by_key(|(_, switch)| counts.get(switch).copied());
        let Some((flow, switch)) = choice else {
            continue;
        };
        *counts.entry(switch).or_default() += 1;
        let plan = clients
            .entry(traffic.clients[flow.client].clone())
            .or_insert_with(|| Plan {
                long_lived: Vec::new(),
                ramp_ms: RAMP_MS,
                interval_ms: options.interval_ms,
                new_to: destinations.clone(),
                new_per_second: options.new_per_second / traffic.clients.len() as f64,
                new_exchanges: NEW_EXCHANGES,
                first_new: 1_000_000 * (flow.client as u64 + 1),
            });
        plan.long_lived.push(Planned {
            connection,
            source: flow.source,
            destination: flow.destination,
        });
    }
    let shares = counts
        .into_iter()
        .map(|(switch, count)| (switch, count as f64 / options.connections as f64))
        .collect();
    Ok(Plans { clients, shares })
}

/// Asks the chooser's kernel which switch carries each flow outwards.
fn carriers(lab: &Lab, traffic: &Traffic, flows: &[Flow]) -> Result<Vec<String>, LabError> {
    let topology = lab.topology();
    let hops = next_hops(topology, traffic);
    let mut batch = String::new();
    for flow in flows {
        let source = *flow.source.ip();
        let interface = topology
            .ends_of(&traffic.chooser)
            .find(|(_, end)| end.address.is_some_and(|prefix| prefix.contains(source)))
            .map_or("lo", |(_, end)| end.interface.as_str());
        let _ = writeln!(
            batch,
            "route get {} from {source} iif {interface} ipproto tcp sport {} dport {}",
            flow.destination.ip(),
            flow.source.port(),
            flow.destination.port(),
        );
    }
    let printed = lab.ip(&traffic.chooser, &batch)?;
    let answers = serde_json::Deserializer::from_str(&printed).into_iter::<serde_json::Value>();
    let carriers: Vec<String> = answers
        .filter_map(|answer| {
            let gateway = answer.ok()?[0]["gateway"].as_str()?.parse().ok()?;
            Some(hops.get(&gateway)?.0.clone())
        })
        .collect();
    if carriers.len() == flows.len() {
        return Ok(carriers);
    }
    Err(LabError::Tool {
        command: format!("ip route get (in {})", traffic.chooser),
        status: format!(
            "{} of {} flows go through one of {}",
            carriers.len(),
            flows.len(),
            traffic.switches.join(", ")
        ),
        output: "every outbound route must lead to a switch of [traffic]".to_owned(),
    })
}

//! Metrics of a store server.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use super::{Families, events};
use crate::store::StoreReport;
use crate::store::view::StoreView;

/// The metrics of a store server as OpenMetrics text: what `view` shows, and events, named
/// as in the counters that `report` is made of.
pub fn store_metrics(report: &StoreReport, view: &StoreView) -> String {
    let mut families = Families::default();
    families.counter(
        "stateplane_store_events",
        "Events of the server",
        events(report),
    );
    let mut places = BTreeMap::from([("head", 0), ("middle", 0), ("tail", 0), ("joining", 0)]);
    let mut pools: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    let mut servers: BTreeMap<_, (u64, bool)> = BTreeMap::new();
    let (mut records, mut unacknowledged, mut parked) = (0, 0, 0);
    for replica in &view.replicas {
        let place = match (replica.position, replica.length) {
            (position, length) if position >= length => "joining",
            (0, _) => "head",
            (position, length) if position + 1 == length => "tail",
            _ => "middle",
        };
        *places.entry(place).or_default() += 1;
        records += replica.records as u64;
        unacknowledged += replica.applied - replica.base;
        parked += replica.parked as u64;
        // One replica of each chain speaks for its pools.
        for pool in replica.pools.iter().filter(|_| replica.position == 0) {
            let sums = pools.entry((pool.address, pool.protocol)).or_default();
            *sums = (sums.0 + pool.size as u64, sums.1 + pool.free as u64);
        }
        for server in replica.servers.iter().filter(|_| replica.position == 0) {
            let key = (server.service, server.protocol, server.server);
            let sums = servers.entry(key).or_insert((0, true));
            *sums = (sums.0 + server.flows, sums.1 && server.healthy);
        }
    }
    let places = places.into_iter();
    families.gauge(
        "stateplane_store_replicas",
        "Number of replicas, by position in the chain",
        places
            .map(|(place, count)| (vec![("place", place.to_owned())], count))
            .collect(),
    );
    for (name, help, value) in [
        ("stateplane_store_records", "Flows kept", records),
        (
            "stateplane_store_unacknowledged",
            "Number of entries that are not known to be on every replica",
            unacknowledged,
        ),
        ("stateplane_store_parked", "Requests that wait", parked),
    ] {
        families.gauge(name, help, vec![(Vec::new(), value)]);
    }
    let labels = |(address, protocol): (std::net::Ipv4Addr, u8)| {
        vec![
            ("address", address.to_string()),
            ("protocol", protocol.to_string()),
        ]
    };
    for (name, help, free) in [
        (
            "stateplane_store_pool_ports",
            "Number of public ports of the shards of which the server is the head",
            false,
        ),
        (
            "stateplane_store_pool_free",
            "Number of these ports that no mapping uses",
            true,
        ),
    ] {
        let values = pools
            .iter()
            .map(|(pool, (size, unused))| (labels(*pool), if free { *unused } else { *size }));
        families.gauge(name, help, values.collect());
    }
    let labels = |(service, protocol, server): (SocketAddrV4, u8, SocketAddrV4)| {
        vec![
            ("service", service.to_string()),
            ("protocol", protocol.to_string()),
            ("server", server.to_string()),
        ]
    };
    families.gauge(
        "stateplane_store_server_flows",
        "Number of flows of a service's server, in the shards of which the store server is the head",
        servers
            .iter()
            .map(|(server, (flows, _))| (labels(*server), *flows))
            .collect(),
    );
    families.gauge(
        "stateplane_store_server_healthy",
        "1 if the server of a service gets new flows",
        servers
            .iter()
            .map(|(server, (_, healthy))| (labels(*server), u64::from(*healthy)))
            .collect(),
    );
    families.text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::view::{PoolView, ReplicaView, ServiceServerView};

    #[test]
    fn what_the_server_shows_is_there() {
        let pool = PoolView {
            address: "203.0.113.1".parse().unwrap(),
            protocol: 6,
            size: 100,
            free: 40,
        };
        let server = ServiceServerView {
            service: "198.51.100.1:80".parse().unwrap(),
            protocol: 6,
            server: "10.0.2.1:8080".parse().unwrap(),
            weight: 1,
            flows: 12,
            healthy: false,
        };
        let replica = |position, records| ReplicaView {
            chain: 0,
            epoch: 4,
            position,
            length: 3,
            applied: 9,
            base: 7,
            records,
            parked: 1,
            pools: vec![pool.clone()],
            servers: vec![server.clone()],
            silenced: None,
        };
        let view = StoreView {
            address: "10.0.0.1".parse().unwrap(),
            incarnation: 1,
            replicas: vec![replica(0, 5), replica(2, 6), replica(3, 0)],
        };
        let mut report = StoreReport::default();
        report.server.heartbeats = 3;
        report.server.unknown_neighbour = 2;
        report.replica.granted = 3;
        report.host.send_failed = 4;
        let text = store_metrics(&report, &view);
        for line in [
            "# TYPE stateplane_store_events counter",
            "stateplane_store_events_total{event=\"heartbeats\"} 3",
            "stateplane_store_events_total{event=\"unknown_neighbour\"} 2",
            "stateplane_store_events_total{event=\"granted\"} 3",
            "stateplane_store_events_total{event=\"send_failed\"} 4",
            "stateplane_store_events_total{event=\"written\"} 0",
            "stateplane_store_events_total{event=\"broken_invariants\"} 0",
            "stateplane_store_replicas{place=\"head\"} 1",
            "stateplane_store_replicas{place=\"middle\"} 0",
            "stateplane_store_replicas{place=\"joining\"} 1",
            "stateplane_store_records{} 11",
            "stateplane_store_unacknowledged{} 6",
            "stateplane_store_pool_free{address=\"203.0.113.1\",protocol=\"6\"} 40",
            "stateplane_store_server_flows{service=\"198.51.100.1:80\",protocol=\"6\",server=\"10.0.2.1:8080\"} 12",
            "stateplane_store_server_healthy{service=\"198.51.100.1:80\",protocol=\"6\",server=\"10.0.2.1:8080\"} 0",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}

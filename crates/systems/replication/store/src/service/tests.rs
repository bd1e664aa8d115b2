use super::*;

const SERVICE: ServiceId = ServiceId {
    protocol: 6,
    endpoint: SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 1), 80),
};

fn server(number: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, number), 8080)
}

fn service(weights: &[u16]) -> Service {
    let servers = weights
        .iter()
        .zip(1..)
        .map(|(&weight, number)| ServiceServer {
            endpoint: server(number),
            weight,
            most: None,
        });
    Service {
        id: SERVICE,
        servers: servers.collect(),
    }
}

fn give(loads: &mut ServerLoads, service: &Service, flows: u32) -> Vec<u32> {
    for _ in 0..flows {
        let chosen = loads.choose(service, &BTreeSet::new(), (0, 1)).unwrap();
        loads.add(SERVICE, chosen);
    }
    let servers = service.servers.iter();
    servers.map(|s| loads.of(SERVICE, s.endpoint)).collect()
}

#[test]
fn flows_follow_the_weights_exactly() {
    let mut loads = ServerLoads::default();
    assert_eq!(
        give(&mut loads, &service(&[3, 0, 1, 2]), 60),
        [30, 0, 10, 20]
    );
}

#[test]
fn a_server_that_lost_its_flows_gets_the_next_ones() {
    let service = service(&[1, 1]);
    let mut loads = ServerLoads::default();
    assert_eq!(give(&mut loads, &service, 10), [5, 5]);
    for _ in 0..4 {
        loads.remove(SERVICE, server(2));
    }
    assert_eq!(give(&mut loads, &service, 4), [5, 5]);
}

#[test]
fn the_unhealthy_and_the_full_get_none() {
    let mut service = service(&[1, 1, 1]);
    service.servers[0].most = Some(5);
    let unhealthy = BTreeSet::from([server(2)]);
    let mut loads = ServerLoads::default();
    for _ in 0..20 {
        let chosen = loads.choose(&service, &unhealthy, (0, 4)).unwrap();
        loads.add(SERVICE, chosen);
    }
    // One of four shards gives its quarter of five, rounded up.
    assert_eq!(loads.of(SERVICE, server(1)), 2);
    assert_eq!(loads.of(SERVICE, server(2)), 0);
    assert_eq!(loads.of(SERVICE, server(3)), 18);
    service.servers.truncate(2);
    assert_eq!(loads.choose(&service, &unhealthy, (0, 4)), None);
    service.servers.clear();
    assert_eq!(loads.choose(&service, &unhealthy, (0, 4)), None);
}

#[test]
fn shards_begin_with_different_servers() {
    let service = service(&[1, 1, 1]);
    let loads = ServerLoads::default();
    let first = |shard| loads.choose(&service, &BTreeSet::new(), (shard, 4));
    assert_eq!(
        [first(0), first(1), first(2), first(3)],
        [1, 2, 3, 1].map(|n| Some(server(n)))
    );
}

#[test]
fn keys_and_states_name_endpoints() {
    let mut key = Key([0; KEY_LENGTH]);
    key.0[1] = 6;
    key.0[6..10].copy_from_slice(&[198, 51, 100, 1]);
    key.0[12..14].copy_from_slice(&80_u16.to_be_bytes());
    let at = ServiceAt {
        address: 6,
        port: 12,
    };
    assert_eq!(at.service(&key), Some(SERVICE));
    for (address, port, valid) in [
        (6, 12, true),
        (6, 9, false),
        (12, 10, true),
        (13, 2, false),
        (2, 15, false),
        (0, 8, false),
    ] {
        assert_eq!(
            ServiceAt { address, port }.is_valid(),
            valid,
            "{address} {port}"
        );
    }
    let state = server_state(server(7), 8);
    assert_eq!(state.as_slice(), [10, 0, 0, 7, 0x1f, 0x90, 0, 0]);
    assert_eq!(server_in(&state), Some(server(7)));
    assert_eq!(server_in(&[0; 8]), None);
    assert_eq!(server_in(&[1, 2, 3]), None);
}

use stateplane_store::{FirstLease, IdleTimeouts, Quota, ServiceAt};

use super::*;

const GOOD: &str = r#"
listen = "10.0.0.12"

[replication]
chain = ["10.0.0.11", "10.0.0.12", "10.0.0.13"]
shards = 2
term_ms = 50
backing_ms = 450
recall = false
clock_ppm = 2000

[[replication.class]]
id = 1
state_length = 6
first_lease = "nat-outbound"
inbound_class = 2
shared_only = true
idle_timeout_s = { default = 60, tcp = 120 }
quota = { records = 9, tenant_first = 2, tenant_length = 4 }

[[replication.class]]
id = 2
state_length = 6
first_lease = "none"
shared_only = true

[[replication.class]]
id = 3
state_length = 4
first_lease = "zero"
idle_in_state = [{ protocol = "tcp", byte = 3, values = [1, 3], timeout_s = 9 }]

[[replication.class]]
id = 4
state_length = 8
first_lease = "server"
service_at = { address = 2, port = 8 }

[[replication.service]]
address = "198.51.100.1"
port = 80
servers = [
    { address = "10.0.2.1", port = 8080, weight = 2 },
    { address = "10.0.2.2", most = 7 },
]

[replication.nat]
addresses = ["203.0.113.1"]

[replication.limits]
link_window = 64
evict_after_s = 30
pool_low_percent = 20
resend_first_ms = 5
"#;

fn parse(text: &str) -> Result<Config, StoreError> {
    Deployment::parse("store.toml".as_ref(), text)?.replica_config()
}

fn error(from: &str, to: &str) -> StoreError {
    assert!(GOOD.contains(from), "{from}");
    parse(&GOOD.replace(from, to)).unwrap_err()
}

#[test]
fn a_backing_lasts_as_long_as_it_has_to_unless_it_is_set() {
    let unset = GOOD.replace("backing_ms = 450\n", "");
    assert_eq!(parse(&unset).unwrap().backing, 50_000 + 200_000 + 100_000);
    let managed = "[controller]\naddresses = [\"10.0.0.20\"]\ndetection_ms = 500\n\
                   [replication]\nreplicas = 3\n";
    assert_eq!(parse(managed).unwrap().backing, 700_000);
    let settings = |text: &str| {
        let deployment = Deployment::parse("store.toml".as_ref(), text).unwrap();
        let controller = deployment.controller.clone().unwrap();
        let settings = deployment.replication().unwrap().settings(&controller);
        settings.map(|_| ()).map_err(|error| error.code())
    };
    assert_eq!(settings(managed), Ok(()));
    for (backing_ms, expected) in [(700, Ok(())), (699, Err("H418"))] {
        assert_eq!(
            settings(&format!("{managed}backing_ms = {backing_ms}\n")),
            expected
        );
    }
}

#[test]
fn every_setting_arrives() {
    let config = parse(GOOD).unwrap();
    assert_eq!((config.chain_length, config.position), (3, 1));
    assert_eq!((config.term, config.backing), (50_000, 450_000));
    assert!(!config.recall);
    assert_eq!(config.clock_ppm, 2_000);
    assert_eq!(config.evict_after, Some(30_000_000));
    assert_eq!(config.limits.pool_low, 20);
    let quota = Quota {
        records: 9,
        first: 2,
        length: 4,
    };
    assert_eq!(config.classes[0].quota, Some(quota));
    assert_eq!(config.served.len(), 2);
    assert_eq!(config.limits.link_window, 64);
    assert_eq!(config.limits.resend_first, 5_000);
    assert_eq!(config.limits.records, Limits::default().records);
    let nat = config.nat.unwrap();
    assert_eq!((nat.first_port, nat.last_port), (1024, 65_535));
    let [outbound, inbound, counter, served] = &config.classes[..] else {
        panic!("four classes");
    };
    assert_eq!(
        outbound.first_lease,
        FirstLease::NatOutbound { inbound_class: 2 }
    );
    assert_eq!(outbound.idle.of(6, &[]), Some(120_000_000));
    assert_eq!(outbound.idle.of(17, &[]), Some(60_000_000));
    assert_eq!(inbound.idle, IdleTimeouts::nat());
    assert_eq!(counter.idle.of(6, &[0, 0, 0, 3]), Some(9_000_000));
    assert_eq!(counter.idle.of(6, &[0, 0, 3, 0]), None);
    let service_at = ServiceAt {
        address: 2,
        port: 8,
    };
    assert_eq!(served.first_lease, FirstLease::Server { service_at });
    let [service] = &config.services[..] else {
        panic!("one service");
    };
    assert_eq!(service.id.to_string(), "198.51.100.1:80 (protocol 6)");
    let servers = service.servers.iter();
    let servers: Vec<_> = servers
        .map(|s| (s.endpoint.to_string(), s.weight, s.most))
        .collect();
    assert_eq!(
        servers,
        [
            ("10.0.2.1:8080".to_owned(), 2, None),
            ("10.0.2.2:80".to_owned(), 1, Some(7))
        ]
    );
}

#[test]
fn each_contradiction_has_its_code() {
    let code = |from, to| error(from, to).code();
    assert_eq!(
        code("listen = \"10.0.0.12\"", "listen = \"10.0.0.9\""),
        "H103"
    );
    assert_eq!(code("shards = 2", "position = 2"), "H104");
    assert_eq!(code("shards = 2", "position = 3"), "S002");
    assert_eq!(code("10.0.0.13", "10.0.0.11"), "H106");
    assert_eq!(code("inbound_class = 2", ""), "H107");
    assert_eq!(code("term_ms = 50", "term_ms = 4294968"), "H108");
    assert_eq!(code("tcp = 120", "tcp = 9223372036854775807"), "H108");
    assert_eq!(code("term_ms = 50", "term_ms = 450"), "S031");
    assert_eq!(code("[\"203.0.113.1\"]", "[]"), "S011");
    assert_eq!(
        code(
            "[replication.limits]",
            "first_port = 9\nlast_port = 8\n[replication.limits]"
        ),
        "S011"
    );
    assert_eq!(code("shards = 2", "shards = 3"), "S003");
}

#[test]
fn contradictions_of_services_have_their_codes() {
    let code = |from: &str, to: &str| error(from, to).code();
    assert_eq!(code("byte = 3", "byte = 4"), "S021");
    assert_eq!(code("state_length = 8", "state_length = 5"), "S022");
    assert_eq!(code("port = 8 }", "port = 5 }"), "S023");
    assert_eq!(code("address = 2, port", "address = 13, port"), "S023");
    let services = &GOOD
        [GOOD.find("[[replication.service]]").unwrap()..GOOD.find("[replication.nat]").unwrap()];
    assert_eq!(code(services, ""), "S024");
    assert_eq!(code(services, services.repeat(2).as_str()), "S025");
    assert_eq!(
        code("\"10.0.2.2\", most", "\"10.0.2.1\", port = 8080, most"),
        "S026"
    );
    let given = "first_lease = \"server\"\nservice_at = { address = 2, port = 8 }";
    assert_eq!(code(given, "first_lease = \"zero\""), "S027");
    assert_eq!(
        code("timeout_s = 9 }", "timeout_s = 9223372036854775807 }"),
        "H108"
    );
}

#[test]
fn a_nat_may_depend_on_the_remote_endpoint() {
    let text = |more: &str| {
        format!(
            "listen = \"10.0.0.1\"\n[replication]\nchain = [\"10.0.0.1\"]\n\
             [[replication.class]]\nid = 2\nstate_length = 7\n\
             first_lease = \"nat-dependent\"\n{more}\
             [[replication.class]]\nid = 3\nstate_length = 7\nfirst_lease = \"none\"\n\
             [replication.nat]\naddresses = [\"203.0.113.1\"]\n"
        )
    };
    let first = |more: &str| parse(&text(more)).map(|config| config.classes[0].first_lease);
    let dependent = |tcp_transitory| FirstLease::NatDependent {
        inbound_class: 3,
        tcp_transitory,
    };
    assert_eq!(
        first("inbound_class = 3\n").unwrap(),
        dependent(240_000_000)
    );
    let short = "inbound_class = 3\ntcp_transitory_s = 9\n";
    assert_eq!(first(short).unwrap(), dependent(9_000_000));
    assert_eq!(
        parse(&text(short)).unwrap().classes[0].idle,
        IdleTimeouts::nat()
    );
    let code = |more| first(more).unwrap_err().code();
    assert_eq!(code(""), "H107");
    assert_eq!(code("inbound_class = 4\n"), "S009");
    assert_eq!(code("inbound_class = 3\nshared_only = true\n"), "S029");
}

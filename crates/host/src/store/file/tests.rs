use super::*;

const GOOD: &str = r#"
listen = "10.0.0.12"
chain = ["10.0.0.11", "10.0.0.12", "10.0.0.13"]
shards = 2
lease_period_ms = 500
recall = false
clock_ppm = 2000

[[class]]
id = 1
state_length = 6
first_lease = "nat-outbound"
inbound_class = 2
shared_only = true
idle_timeout_s = { default = 60, tcp = 120 }
quota = { records = 9, tenant_first = 2, tenant_length = 4 }

[[class]]
id = 2
state_length = 6
first_lease = "none"
shared_only = true

[[class]]
id = 3
state_length = 4
first_lease = "zero"

[nat]
addresses = ["203.0.113.1"]

[limits]
link_window = 64
evict_after_s = 30
pool_low_percent = 20
resend_first_ms = 5
"#;

fn parse(text: &str) -> Result<Config, StoreError> {
    StoreFile::parse("store.toml".as_ref(), text)?.config()
}

fn error(from: &str, to: &str) -> StoreError {
    assert!(GOOD.contains(from), "{from}");
    parse(&GOOD.replace(from, to)).unwrap_err()
}

#[test]
fn every_setting_arrives() {
    let config = parse(GOOD).unwrap();
    assert_eq!((config.chain_length, config.position), (3, 1));
    assert_eq!(config.lease_period, 500_000);
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
    let [outbound, inbound, counter] = &config.classes[..] else {
        panic!("three classes");
    };
    assert_eq!(
        outbound.first_lease,
        FirstLease::NatOutbound { inbound_class: 2 }
    );
    assert_eq!(outbound.idle.of(6), Some(120_000_000));
    assert_eq!(outbound.idle.of(17), Some(60_000_000));
    assert_eq!(inbound.idle, IdleTimeouts::nat());
    assert_eq!(counter.idle, IdleTimeouts::never());
}

#[test]
fn a_mistake_is_shown_with_file_and_line() {
    let error = error("shards = 2", "shards = \"two\"");
    assert_eq!(error.code(), "H102");
    let text = error.to_string();
    assert!(
        text.contains("store.toml") && text.contains("line 4"),
        "{text}"
    );
    let unknown = parse(&GOOD.replace("shards", "shads")).unwrap_err();
    assert!(unknown.to_string().contains("shads"), "{unknown}");
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
    assert_eq!(
        code("lease_period_ms = 500", "lease_period_ms = 4294968"),
        "H108"
    );
    assert_eq!(code("tcp = 120", "tcp = 9223372036854775807"), "H108");
    let short = error("lease_period_ms = 500", "lease_period_ms = 15");
    assert_eq!(short.code(), "H119");
    assert!(short.to_string().contains("a lease of 15000 µs"), "{short}");
    assert_eq!(code("[\"203.0.113.1\"]", "[]"), "S011");
    assert_eq!(
        code("[limits]", "first_port = 9\nlast_port = 8\n[limits]"),
        "S011"
    );
    assert_eq!(code("shards = 2", "shards = 3"), "S003");
}

#[test]
fn a_missing_file_is_named() {
    let error = StoreFile::read("/nonexistent/store.toml".as_ref()).unwrap_err();
    assert_eq!(error.code(), "H101");
    assert!(error.to_string().contains("/nonexistent/store.toml"));
}

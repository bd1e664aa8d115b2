use super::PATIENCE_MS;
use super::client::{ClientReport, Plan, Planned, call};
use super::server::{Fault, Server, ServerReport};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const LOCAL: Ipv4Addr = Ipv4Addr::LOCALHOST;

fn run(fault: Fault, first_port: u16, seconds: f32) -> (ClientReport, ServerReport) {
    let server = Server::start(LOCAL, &[0, 0, 0], PATIENCE_MS, fault).unwrap();
    // Three connections share each source port.
    let long_lived = (0..12)
        .map(|index| Planned {
            connection: index + 1,
            source: SocketAddrV4::new(LOCAL, first_port + index as u16 / 3),
            destination: server.addresses[index as usize % 3],
        })
        .collect();
    let plan = Plan {
        long_lived,
        ramp_ms: 100,
        interval_ms: 50,
        listed_stall_ms: 75,
        new_to: server.addresses.clone(),
        new_per_second: 20.0,
        new_exchanges: 3,
        first_new: 1000,
        patience_ms: PATIENCE_MS,
    };
    let stop = AtomicBool::new(false);
    let limit = Duration::from_secs_f32(seconds);
    let mut last = 0;
    let report = call(&plan, limit, &stop, |progress| {
        assert!(progress.exchanges >= last);
        last = progress.exchanges;
    })
    .unwrap();
    assert_eq!(last, report.exchanges);
    std::thread::sleep(Duration::from_millis(100));
    (report, server.report())
}

#[test]
fn an_honest_server_gives_no_complaint() {
    let (client, server) = run(Fault::None, 21_000, 2.0);
    assert_eq!(client.broken, []);
    assert_eq!(client.wrong_bytes, 0);
    assert_eq!(client.long_lived, 12);
    assert!(client.opened > 30, "{}", client.opened);
    assert_eq!(client.ended_in_order, client.opened);
    assert!(client.slowest_rate > 10.0, "{}", client.slowest_rate);
    assert_eq!(server.broken, []);
    assert_eq!(server.wrong_bytes, 0);
    assert_eq!(server.ended_in_order, client.opened);
}

#[test]
fn a_corrupting_server_gives_wrong_bytes_at_both_ends() {
    let (client, server) = run(Fault::Corrupt(1), 21_010, 0.7);
    assert!(client.wrong_bytes > 0);
    // The flipped bit was in a question, so its answer is wrong too.
    assert!(server.wrong_bytes > 0);
    assert_eq!(client.broken, []);
}

#[test]
fn a_resetting_server_gives_broken_connections() {
    let (client, _) = run(Fault::Reset(2), 21_020, 0.7);
    assert!(client.broken.len() >= 12);
    assert!(
        client.broken.iter().all(|broken| broken.reason == "reset"),
        "{:?}",
        client.broken
    );
    assert_eq!(client.wrong_bytes, 0);
}

#[test]
fn a_closing_server_gives_broken_connections() {
    let (client, _) = run(Fault::Close(2), 21_030, 0.7);
    assert!(client.broken.len() >= 12);
    let reasons = ["ended early", "reset"];
    assert!(
        client
            .broken
            .iter()
            .all(|broken| reasons.contains(&broken.reason.as_str()))
    );
}

#[test]
fn nobody_listening_gives_a_refused_connection() {
    let plan = Plan {
        long_lived: vec![Planned {
            connection: 1,
            source: SocketAddrV4::new(LOCAL, 21_040),
            destination: SocketAddrV4::new(LOCAL, 1),
        }],
        ramp_ms: 0,
        interval_ms: 50,
        listed_stall_ms: 75,
        new_to: Vec::new(),
        new_per_second: 0.0,
        new_exchanges: 1,
        first_new: 1000,
        patience_ms: PATIENCE_MS,
    };
    let stop = AtomicBool::new(false);
    let report = call(&plan, Duration::from_millis(200), &stop, |_| ()).unwrap();
    assert_eq!(report.opened, 1);
    assert_eq!(report.broken[0].reason, "refused");
}

//! Frames that go to workers by the key of the state that they lock.

use crate::namespace::{Host, ip, try_in_namespace};
use crate::ports;
use crate::swap_engine::{GTP_U, KEY, STORE, SwapEngine};
use crate::workers::{Setup, assert_whole, datagram, exchange, read, received, two_links};
use stateplane_host::ports::{Access, PortSpec};
use stateplane_host::sealing::Guard;
use stateplane_host::switch::{Sealing, Spread, SwitchReport};
use stateplane_switch::{Port, SwitchConfig};
use std::time::Duration;

/// States of a tunnel's frames: so many that in one of 2³¹ starts all fall to one of two workers.
const STATES: u32 = 32;

/// The frame with the key of state `number` modulo [`STATES`].
fn carrying(mut frame: Vec<u8>, number: u32) -> Vec<u8> {
    frame[KEY..KEY + 4].copy_from_slice(&(number % STATES).to_be_bytes());
    frame
}

/// Data of GTP-U between two ends, and of one state of many.
pub fn tunnelled(back: bool, number: u32) -> Vec<u8> {
    let mut frame = carrying(datagram(0, back, number), number);
    frame[34..38].copy_from_slice(&[GTP_U, GTP_U].concat());
    frame
}

/// Sends frames of one tunnel both ways. Each must arrive, in the order of its state.
fn exchange_tunnelled(left: &Host, right: &Host) {
    for first in (0..FRAMES).step_by(64) {
        for number in first..first + 64 {
            left.send(&tunnelled(false, number));
            right.send(&tunnelled(true, number));
        }
        for host in [right, left] {
            let mut next: Vec<u32> = (first..first + STATES).collect();
            for _ in 0..64 {
                let (_, number) = read(&host.expect());
                let next = &mut next[(number % STATES) as usize];
                assert_eq!(number, *next);
                *next += STATES;
            }
        }
    }
}

/// Frames of the tunnel in each direction.
const FRAMES: u32 = 1280;

fn handed_over(report: &SwitchReport) -> u64 {
    report.workers.iter().map(|it| it.handed_over).sum()
}

fn assert_all_have_some(report: &SwitchReport) {
    assert!(received(report).iter().all(|it| *it > 0), "{report:?}");
}

/// Runs `scenario` on a switch whose program has keys.
fn with_keys(
    spread: Spread,
    access: Access,
    scenario: impl FnOnce(&Host, &Host) + Send,
) -> SwitchReport {
    let ports = ports(access);
    let setup = Setup {
        spread,
        engine: SwapEngine::keyed,
        ..Setup::of(&ports)
    };
    let run = |_: &_| scenario(&Host::open("h0"), &Host::open("h1"));
    let (report, _) = setup.while_running(run);
    assert_whole(&report);
    report
}

#[test]
fn a_tunnel_has_one_worker_by_its_flow_and_all_by_the_keys_of_its_states() {
    try_in_namespace(|| {
        two_links(2);
        let one = with_keys(Spread::Flow, Access::Packet, exchange_tunnelled);
        let mut shares = received(&one);
        shares.sort_unstable();
        assert_eq!(shares, [0, u64::from(2 * FRAMES)]);
        assert_eq!(handed_over(&one), 0);
        for spread in [Spread::Auto, Spread::Key] {
            let all = with_keys(spread, Access::Packet, exchange_tunnelled);
            assert_all_have_some(&all);
            // One worker has the queue that the tunnel's frames come to.
            let [first, second] = &all.workers[..] else {
                panic!("{all:?}");
            };
            let handed = [first.handed_over, second.handed_over];
            assert!(
                handed == [0, first.received] || handed == [second.received, 0],
                "{all:?}"
            );
        }
    });
}

#[test]
fn flows_that_the_kernel_divides_stay_where_they_came() {
    try_in_namespace(|| {
        two_links(2);
        for spread in [Spread::Auto, Spread::Key] {
            let report = with_keys(spread, Access::Packet, exchange);
            assert_all_have_some(&report);
            assert_eq!(handed_over(&report), 0);
        }
    });
}

#[test]
fn a_tunnel_has_all_workers_by_af_xdp_too() {
    try_in_namespace(|| {
        for queues in [2, 1] {
            two_links(queues);
            let refused = crate::open(SwitchConfig::default(), Access::Xdp);
            if let Err(error) = refused.map(drop) {
                eprintln!("skipped with AF_XDP: {error}");
                return;
            }
            let report = with_keys(Spread::Auto, Access::Xdp, exchange_tunnelled);
            assert_all_have_some(&report);
            assert!(handed_over(&report) > 0);
            (0..2).for_each(|number| drop(ip(&format!("link delete sw{number}"))));
        }
    });
}

/// A replication message of the switch at 10.0.0.1 for the one at 10.0.0.2, or back.
fn message(back: bool, number: u32) -> Vec<u8> {
    let mut frame = datagram(0, back, number);
    frame[34..38].copy_from_slice(&[STORE, STORE].concat());
    // Shorter ones than an answer of the seals are not answered.
    frame.resize(100, 0);
    frame[16..18].copy_from_slice(&[0, 86]);
    frame[38..40].copy_from_slice(&[0, 66]);
    frame
}

/// Numbers of the messages that come to `host` until none comes for a while.
fn numbers(host: &Host) -> Vec<u32> {
    let next = || host.receive(Duration::from_millis(200));
    std::iter::from_fn(next).map(|it| read(&it).1).collect()
}

/// Runs `scenario` between two switches that seal what they send each other, each with two workers, and
/// returns their reports.
fn while_sealing(
    spread: Spread,
    engine: fn() -> SwapEngine,
    scenario: impl FnOnce(&Host, &Host) + Send,
) -> [SwitchReport; 2] {
    two_links(2);
    ip("link delete sw1");
    ip("link add sw1 type veth peer name sw2");
    ip("link add sw3 type veth peer name h1");
    ip("link set h1 up");
    let folder = tempfile::tempdir().unwrap();
    let sealing = |id: u8, port: Port| {
        let (path, peer) = (folder.path().join(format!("{id}.toml")), 3 - id);
        let key = "c3".repeat(15) + &"5a".repeat(17);
        let text = format!(
            "id = {id}\n[[peer]]\nid = {peer}\naddress = \"10.0.0.{peer}\"\n\
             keys = [{{ id = 1, hex = \"{key}\" }}]"
        );
        std::fs::write(&path, text).unwrap();
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, closed).unwrap();
        Some(Sealing::new(Guard::read(&path).unwrap(), vec![port]))
    };
    let packet = |name: &str| PortSpec::Interface {
        name: name.to_owned(),
        access: Access::Packet,
    };
    let (near, far) = (
        [(0, packet("sw0")), (1, packet("sw1"))],
        [(0, packet("sw2")), (1, packet("sw3"))],
    );
    let (near_sealing, far_sealing) = (|| sealing(1, 1), || sealing(2, 0));
    let near = Setup {
        spread,
        engine,
        sealing: &near_sealing,
        ..Setup::of(&near)
    };
    let mut far_report = None;
    let (near_report, _) = near.while_running(|_| {
        let far = Setup {
            spread,
            engine,
            sealing: &far_sealing,
            ..Setup::of(&far)
        };
        let (report, _) = far.while_running(|_| scenario(&Host::open("h0"), &Host::open("h1")));
        far_report = Some(report);
    });
    let reports = [near_report, far_report.expect("it ran")];
    for report in &reports {
        let seals = report.seals.as_ref().expect("it seals");
        assert!(seals.messages.opened > 200, "{seals:?}");
        assert_eq!(seals.messages.forged, 0, "{seals:?}");
    }
    reports
}

#[test]
fn messages_between_two_switches_pass_sealed() {
    try_in_namespace(|| {
        while_sealing(Spread::Auto, SwapEngine::default, |left, right| {
            // The first ones prove that both ends live.
            for number in 0..10 {
                left.send(&message(false, number));
                right.send(&message(true, number));
                std::thread::sleep(Duration::from_millis(10));
            }
            assert!(numbers(right).contains(&9) && numbers(left).contains(&9));
            for number in 10..210 {
                left.send(&message(false, number));
                right.send(&message(true, number));
            }
            let all: Vec<u32> = (10..210).collect();
            assert_eq!(numbers(right), all);
            assert_eq!(numbers(left), all);
            exchange(left, right);
        });
    });
}

/// Sealed messages are opened before they are handed over, and fall where the opened ones would.
#[test]
fn sealed_messages_go_to_the_workers_of_their_keys() {
    for spread in [Spread::Auto, Spread::Key] {
        try_in_namespace(|| {
            let reports = while_sealing(spread, SwapEngine::keyed, |left, right| {
                for first in (0..600).step_by(40) {
                    for number in first..first + 40 {
                        left.send(&carrying(message(false, number), number));
                        right.send(&carrying(message(true, number), number));
                    }
                    for host in [right, left] {
                        let mut came = numbers(host);
                        for state in 0..STATES {
                            let of_state = came.iter().filter(|it| *it % STATES == state);
                            assert!(of_state.is_sorted(), "{came:?}");
                        }
                        came.sort_unstable();
                        // The ends prove to each other first that they live.
                        assert!(first == 0 || came.iter().copied().eq(first..first + 40));
                    }
                }
            });
            for report in &reports {
                assert_all_have_some(report);
            }
        });
    }
}

//! The switch on real interfaces, in a network namespace of its own. Where the
//! system gives none, the tests say so and pass.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod namespace;
mod ports;
mod spread;
mod swap_engine;
mod worker_control;
mod workers;

use namespace::{Host, ip, is_up, try_in_namespace, until_up};
use stateplane_host::ports::{Access, PortSpec};
use stateplane_host::switch::{
    RunOptions, Status, SwitchFile, SwitchReport, SwitchServer, SwitchServerError, run_switch,
};
use stateplane_switch::{Generator, MirrorSession, Port, Replica, Switch, SwitchConfig};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use swap_engine::SwapEngine;

/// Interfaces `sw0` and `sw1` of the switch, facing `h0` and `h1`.
fn two_links() {
    for number in 0..2 {
        ip(&format!(
            "link add sw{number} type veth peer name h{number}"
        ));
        ip(&format!("link set h{number} up"));
    }
}

/// A watch of `sw0`, which is up while signs of life come.
const WATCH: &str = r#"
    [[watches]]
    register = "heard"
    max_age_ms = 300
    ports = [0]
"#;

fn ports(access: Access) -> Vec<(Port, PortSpec)> {
    (0..)
        .zip(["sw0", "sw1"])
        .map(|(number, name)| {
            let name = name.to_owned();
            (number, PortSpec::Interface { name, access })
        })
        .collect()
}

/// Runs `test` with AF_PACKET and, where the system has it, with AF_XDP.
fn in_each_way(test: impl Fn(Access) + Send + Sync) {
    try_in_namespace(|| test(Access::Packet));
    try_in_namespace(|| {
        two_links();
        let refused = SwitchServer::open(switch(SwitchConfig::default()), &ports(Access::Xdp));
        if let Err(error) = refused.map(drop) {
            eprintln!("skipped with AF_XDP: {error}");
            return;
        }
        for number in 0..2 {
            ip(&format!("link delete sw{number}"));
        }
        test(Access::Xdp);
    });
}

fn switch(config: SwitchConfig) -> Switch<SwapEngine> {
    let config = SwitchConfig {
        ports: vec![0, 1],
        ..config
    };
    Switch::new(SwapEngine::default(), config).unwrap()
}

fn open(
    config: SwitchConfig,
    access: Access,
) -> Result<SwitchServer<SwapEngine>, SwitchServerError> {
    SwitchServer::open(switch(config), &ports(access))
}

/// Runs `scenario` while the switch runs, and gives the switch's report.
fn while_running(
    server: &mut SwitchServer<SwapEngine>,
    scenario: impl FnOnce() + Send,
) -> SwitchReport {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Threads inherit the namespace of the thread that starts them.
        scope.spawn(|| {
            let _stop = Stop(&stop);
            scenario();
        });
        server
            .run(&stop, None, &mut |_, _, _| {})
            .expect("the switch runs")
    })
}

fn frame(length: usize, mark: u8) -> Vec<u8> {
    let mut frame = vec![mark; length];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

#[test]
fn frames_cross_the_switch_both_ways() {
    in_each_way(|access| {
        two_links();
        let mut server = open(SwitchConfig::default(), access).unwrap();
        let report = while_running(&mut server, || {
            let (left, right) = (Host::open("h0"), Host::open("h1"));
            for mark in 0..200 {
                left.send(&frame(60 + usize::from(mark), mark));
            }
            for mark in 0..200 {
                assert_eq!(right.expect(), frame(60 + usize::from(mark), mark));
            }
            right.send(&frame(1514, 9));
            assert_eq!(left.expect(), frame(1514, 9));
        });
        assert!(
            report.ports[0].rx_packets >= 200,
            "Linux may send frames of its own"
        );
        assert_eq!(report.ports[1].tx_packets, 200);
        assert_eq!(report.ports[0].tx_packets, 1);
        assert_eq!(report.ports[0].host.sent, 1);
        assert_eq!(report.drops.get("runt"), None);
    });
}

#[test]
fn tags_stay_in_their_frames() {
    in_each_way(|access| {
        two_links();
        let mut server = open(SwitchConfig::default(), access).unwrap();
        while_running(&mut server, || {
            let (left, right) = (Host::open("h0"), Host::open("h1"));
            let mut tagged = frame(80, 7);
            tagged[12..18].copy_from_slice(&[0x81, 0, 0x20, 5, 0x88, 0xb5]);
            left.send(&tagged);
            // A plain packet socket sees the frame without its tag, which the kernel
            // takes out on arrival; the program has seen it.
            let seen = right.expect();
            assert_eq!((seen.len(), seen[12..14].to_vec()), (76, vec![0x88, 0xb5]));
            assert_eq!(seen[40], swap_engine::TAGGED);
        });
    });
}

#[test]
fn checksums_that_the_sender_left_to_its_device_are_completed() {
    in_each_way(|access| {
        two_links();
        ip("address add 192.0.2.1/24 dev h0");
        ip("neighbour add 192.0.2.2 lladdr 02:00:00:00:00:02 dev h0");
        let mut server = open(SwitchConfig::default(), access).unwrap();
        while_running(&mut server, || {
            let (_left, right) = (Host::open("h0"), Host::open("h1"));
            let socket = std::net::UdpSocket::bind("192.0.2.1:1000").unwrap();
            socket
                .send_to(b"odd number of bytes", "192.0.2.2:2000")
                .unwrap();
            let datagram = loop {
                let frame = right.expect();
                if frame[12..14] == [8, 0] && frame[23] == 17 && frame[36..38] == [7, 208] {
                    break frame;
                }
            };
            let sum = stateplane_wire::checksum::Sum::new().over_pseudo_header(
                "192.0.2.1".parse().unwrap(),
                "192.0.2.2".parse().unwrap(),
                17,
                datagram.len() as u16 - 34,
            );
            assert_ne!(datagram[40..42], [0, 0], "there is a checksum");
            assert_eq!(sum.over(&datagram[34..]).finish(), 0, "and it is right");
        });
    });
}

#[test]
fn frames_that_no_link_carries_are_counted() {
    in_each_way(|access| {
        two_links();
        ip("link set h0 mtu 3000");
        ip("link set sw0 mtu 3000");
        let mut server = open(SwitchConfig::default(), access).unwrap();
        let report = while_running(&mut server, || {
            let (left, right) = (Host::open("h0"), Host::open("h1"));
            left.send(&frame(2000, 1));
            left.send(&frame(100, 2));
            assert_eq!(
                right.expect(),
                frame(100, 2),
                "the next frame is not kept back"
            );
        });
        assert_eq!(report.ports[1].host.tx_too_long, 1);
        assert_eq!(report.ports[1].host.sent, 1);
    });
}

#[test]
fn an_interface_that_goes_down_and_comes_back_goes_on() {
    in_each_way(|access| {
        two_links();
        let mut server = open(SwitchConfig::default(), access).unwrap();
        let report = while_running(&mut server, || {
            let (left, right) = (Host::open("h0"), Host::open("h1"));
            left.send(&frame(100, 1));
            assert_eq!(right.expect(), frame(100, 1));
            ip("link set sw1 down");
            std::thread::sleep(Duration::from_millis(300));
            left.send(&frame(100, 2));
            std::thread::sleep(Duration::from_millis(100));
            ip("link set sw1 up");
            let deadline = Instant::now() + Duration::from_secs(5);
            loop {
                left.send(&frame(100, 3));
                if right.receive(Duration::from_millis(100)) == Some(frame(100, 3)) {
                    break;
                }
                assert!(
                    Instant::now() < deadline,
                    "no frame after the link came back"
                );
            }
        });
        assert!(
            report
                .drops
                .get("port_down")
                .is_some_and(|count| *count >= 1),
            "{report:?}"
        );
    });
}

#[test]
fn interfaces_found_down_are_set_up_and_left_down() {
    in_each_way(|access| {
        two_links();
        ip("link set sw1 up");
        let is_up = |name: &str| ip(&format!("-o link show {name}")).contains(",UP");
        let mut server = open(SwitchConfig::default(), access).unwrap();
        assert!(is_up("sw0") && is_up("sw1"));
        while_running(&mut server, || {});
        assert!(!is_up("sw0") && is_up("sw1"));
    });
}

#[test]
fn generators_and_reports_run_by_themselves() {
    in_each_way(|access| {
        two_links();
        let generator = Generator {
            port: 0,
            period_us: 20_000,
            batch: 1,
            index_at: None,
            spread: false,
            frame: frame(64, 5),
        };
        let config = SwitchConfig {
            generators: vec![generator],
            ..SwitchConfig::default()
        };
        let mut server = open(config, access).unwrap();
        let stop = AtomicBool::new(false);
        let mut reports = 0;
        let mut show = |report: &SwitchReport| {
            reports += 1;
            if reports >= 2 && report.packets.generated >= 3 {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let status = Status {
            period: Duration::from_millis(20),
            show: &mut show,
        };
        let start = Instant::now();
        let report = server.run(&stop, Some(status), &mut |_, _, _| {}).unwrap();
        assert!(start.elapsed() < Duration::from_secs(10));
        assert_eq!(report.ports[1].tx_packets, report.packets.generated);
    });
}

#[test]
fn wrong_interfaces_are_named() {
    try_in_namespace(|| {
        two_links();
        let code = |interfaces: &[(Port, &str)]| {
            let interfaces: Vec<_> = interfaces
                .iter()
                .map(|(port, name)| (*port, PortSpec::interface(*name)))
                .collect();
            let error = SwitchServer::open(switch(SwitchConfig::default()), &interfaces)
                .err()
                .expect("the interfaces are refused");
            (error.code(), error.to_string())
        };
        let (number, text) = code(&[(0, "sw0"), (1, "sw7")]);
        assert_eq!(number, "H201");
        assert!(
            text.contains("`sw7`") && text.contains("sw0") && text.contains("h1"),
            "{text}"
        );
        assert_eq!(code(&[(0, "sw0"), (1, "sw0")]).0, "H202");
        assert_eq!(code(&[(0, "sw0"), (0, "sw1"), (1, "h0")]).0, "SW002");
        assert_eq!(code(&[(0, "sw0"), (1, "sw1"), (2, "h0")]).0, "SW003");
        assert_eq!(code(&[(1, "sw0")]).0, "H213");
        assert_eq!(code(&[]).0, "H211");
    });
}

#[test]
fn a_watch_lowers_its_interface_and_raises_it_again() {
    try_in_namespace(|| {
        two_links();
        ip("link set sw0 up");
        let file = SwitchFile::parse("switch.toml".as_ref(), WATCH).unwrap();
        let mut switch = switch(SwitchConfig::default());
        file.apply(&mut switch, &mut || 0).unwrap();
        let mut server = SwitchServer::open(switch, &ports(Access::Best)).unwrap();
        assert!(!is_up("sw0"), "nothing was heard yet");
        let report = while_running(&mut server, || {
            let right = Host::open("h1");
            let hears = || right.send(&frame(100, swap_engine::SIGN_OF_LIFE));
            until_up("sw0", true, hears);
            until_up("sw0", false, || {});
            until_up("sw0", true, hears);
        });
        assert_eq!(report.port_state_failed, 0);
    });
}

#[test]
fn one_call_runs_a_switch_from_its_file() {
    try_in_namespace(|| {
        two_links();
        let generator = r#"
            [[generators]]
            port = 0
            period_ms = 10
            frame = "020000000001 020000000002 88b5 0000"
        "#;
        let file = SwitchFile::parse("switch.toml".as_ref(), generator).unwrap();
        let stop = AtomicBool::new(false);
        let mut ready = 0;
        let mut show = |report: &SwitchReport| {
            stop.store(report.ports[1].tx_packets >= 3, Ordering::Relaxed);
        };
        let status = Status {
            period: Duration::from_millis(10),
            show: &mut show,
        };
        let engine = SwapEngine::default();
        let report = run_switch(
            engine,
            &file,
            &ports(Access::Best),
            RunOptions {
                stop: &stop,
                ready: &mut |_| ready += 1,
                status: Some(status),
                notify: &mut |_, _, _| {},
                patience: None,
                sealing: None,
                flows: None,
            },
        );
        let report = report.unwrap();
        assert!(report.packets.generated >= 3);
        assert_eq!(
            report.ports[1].host.tx_down, 0,
            "also the first frame finds the link up"
        );
        assert_eq!(ready, 1);
    });
}

#[test]
fn a_switch_without_a_sign_of_life_gives_up() {
    try_in_namespace(|| {
        two_links();
        let watch = r#"
            [[watches]]
            register = "heard"
            max_age_ms = 50
            ports = [0, 1]
        "#;
        let file = SwitchFile::parse("switch.toml".as_ref(), watch).unwrap();
        let error = run_switch(
            SwapEngine::default(),
            &file,
            &ports(Access::Best),
            RunOptions {
                stop: &AtomicBool::new(false),
                ready: &mut |_| {},
                status: None,
                notify: &mut |_, _, _| {},
                patience: Some(Duration::from_millis(200)),
                sealing: None,
                flows: None,
            },
        );
        let error = error.unwrap_err();
        assert_eq!(error.code(), "H215");
        assert!(error.to_string().contains("`heard`[0]"), "{error}");
    });
}

#[test]
fn a_file_sets_sessions_groups_and_generators() {
    let apply = |text: &str| {
        let file = SwitchFile::parse("switch.toml".as_ref(), text).unwrap();
        let mut switch = switch(SwitchConfig::default());
        file.apply(&mut switch, &mut || 1).map(|()| switch)
    };
    let switch = apply(
        "[[mirror_sessions]]
        session = 16
        port = 500
        truncate = 114
        hold_us = 2000
        [[multicast_groups]]
        group = 3
        replicas = [{ port = 1 }, { port = 0, rid = 7 }]",
    )
    .unwrap();
    let session = MirrorSession {
        egress_port: Some(500),
        multicast_group: None,
        truncate: Some(114),
        hold_us: 2000,
    };
    assert_eq!(switch.mirror_session(16), Some(session));
    let replicas = [Replica { port: 1, rid: 0 }, Replica { port: 0, rid: 7 }];
    assert_eq!(switch.multicast_group(3), Some(&replicas[..]));

    for (text, code) in [
        ("[[mirror_sessions]]\nsession = 1\nport = 511", "SW001"),
        (
            "[[mirror_sessions]]\nsession = 1\nport = 1\ntruncate = 3",
            "SW004",
        ),
        ("[[multicast_groups]]\ngroup = 0\nreplicas = []", "SW007"),
        (
            "[[generators]]\nport = 1\nperiod_ms = 0\nframe = \"00\"",
            "SW005",
        ),
        (
            "[[generators]]\nport = 1\nperiod_ms = 1\nframe = \"00\"",
            "SW010",
        ),
        (
            "[[generators]]\nport = 1\nperiod_ms = 1\nframe = \"0\"",
            "H228",
        ),
        (
            "[[watches]]\nregister = \"haerd\"\nmax_age_ms = 1\nports = [0]",
            "SW011",
        ),
        (
            "[[watches]]\nregister = \"heard\"\nmax_age_ms = 1\nports = [9]",
            "SW003",
        ),
    ] {
        let error = apply(&format!("\n\n{text}")).err().expect(text);
        assert_eq!((error.code(), error.line()), (code, Some(3)), "{error}");
    }
}

#[test]
fn a_signal_to_stop_is_seen_soon() {
    in_each_way(|access| {
        two_links();
        let mut server = open(SwitchConfig::default(), access).unwrap();
        let mut stopped = None;
        while_running(&mut server, || stopped = Some(Instant::now()));
        assert!(stopped.unwrap().elapsed() < Duration::from_millis(500));
    });
}

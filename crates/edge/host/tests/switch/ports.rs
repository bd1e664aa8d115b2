//! Ports that fail, return, and change their mode.

use crate::namespace::{Host, give_up_bpf, ip, slow_down, try_in_namespace};
use crate::{frame, in_each_way, open, ports, switch, two_links, while_running};
use stateplane_host::ports::{Access, PortMode, PortNotice, PortSpec};
use stateplane_host::switch::{SwitchReport, SwitchServer};
use stateplane_switch::SwitchConfig;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::swap_engine::SwapEngine;

/// Runs `scenario` while the switch runs, and returns the report and the notices.
fn told(
    server: &mut SwitchServer<SwapEngine>,
    scenario: impl FnOnce(&Mutex<Vec<String>>) + Send,
) -> (SwitchReport, Vec<String>) {
    let stop = AtomicBool::new(false);
    let notices = Mutex::new(Vec::new());
    let report = std::thread::scope(|scope| {
        let (stop, notices) = (&stop, &notices);
        scope.spawn(move || {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                scenario(notices);
            }));
            stop.store(true, Ordering::Relaxed);
            if let Err(panic) = outcome {
                std::panic::resume_unwind(panic);
            }
        });
        let mut notify = |number: u16, name: &str, notice: &PortNotice| {
            notices
                .lock()
                .unwrap()
                .push(format!("{number}={name}: {notice}"));
        };
        server.run(stop, None, &mut notify).unwrap()
    });
    (report, notices.into_inner().unwrap())
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "not within 10 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_interface_that_is_removed_and_made_anew_is_the_port_again() {
    in_each_way(|access| {
        two_links();
        let mut server = open(SwitchConfig::default(), access).unwrap();
        let (_, notices) = told(&mut server, |notices| {
            let count = |text: &str| {
                let notices = notices.lock().unwrap();
                notices.iter().filter(|told| told.contains(text)).count()
            };
            {
                let (left, right) = (Host::open("h0"), Host::open("h1"));
                left.send(&frame(100, 1));
                assert_eq!(right.expect(), frame(100, 1));
            }
            ip("link delete sw1");
            until("the loss is told", || count("1=sw1: down") == 1);
            ip("link add sw1 type veth peer name h1");
            ip("link set h1 up");
            ip("link set sw1 up");
            until("the return is told", || count("1=sw1: up again") == 1);
            let (left, right) = (Host::open("h0"), Host::open("h1"));
            left.send(&frame(100, 2));
            assert_eq!(right.expect(), frame(100, 2));
        });
        assert_eq!(notices.len(), 2, "each once: {notices:?}");
    });
}

#[test]
fn a_port_says_how_it_works_and_why_not_by_af_xdp() {
    try_in_namespace(|| {
        two_links();
        ip("link set h1 mtu 9000");
        ip("link set sw1 mtu 9000");
        let mut server = SwitchServer::open(switch(SwitchConfig::default()), &ports(Access::Best));
        let server = server.as_mut().unwrap();
        let (report, notices) = told(server, |_| std::thread::sleep(Duration::from_millis(150)));
        assert_eq!(report.ports[1].mode, PortMode::Packet);
        let told = |port: &str| notices.iter().find(|notice| notice.starts_with(port));
        assert!(
            told("1=sw1").unwrap().contains("its MTU is 9000"),
            "{notices:?}"
        );
        assert_eq!(
            told("0=sw0").is_none(),
            report.ports[0].mode == PortMode::XdpCopy,
            "{notices:?}"
        );
        let error = SwitchServer::open(switch(SwitchConfig::default()), &ports(Access::Xdp));
        assert_eq!(error.err().unwrap().code(), "H206");
    });
}

#[test]
fn without_permission_for_af_xdp_ports_work_by_af_packet_and_say_so_once() {
    try_in_namespace(|| {
        two_links();
        give_up_bpf();
        let mut server = open(SwitchConfig::default(), Access::Best).unwrap();
        let (report, notices) = told(&mut server, |_| {
            let (left, right) = (Host::open("h0"), Host::open("h1"));
            left.send(&frame(100, 1));
            assert_eq!(right.expect(), frame(100, 1));
        });
        for (number, port) in report.ports.iter().enumerate() {
            assert_eq!(port.mode, PortMode::Packet);
            let of_port = notices
                .iter()
                .filter(|told| told.starts_with(&number.to_string()));
            let of_port: Vec<_> = of_port.collect();
            assert_eq!(of_port.len(), 1, "{notices:?}");
            assert!(
                of_port[0].contains("AF_PACKET in place of AF_XDP")
                    && of_port[0].contains("Operation not permitted"),
                "{notices:?}"
            );
        }
        drop(server);
        let error = open(SwitchConfig::default(), Access::Xdp).err().unwrap();
        assert_eq!(error.code(), "H206");
    });
}

#[test]
fn jumbo_frames_cross_by_af_packet() {
    try_in_namespace(|| {
        two_links();
        for number in 0..2 {
            ip(&format!("link set h{number} mtu 9000"));
            ip(&format!("link set sw{number} mtu 9000"));
        }
        let mut server = open(SwitchConfig::default(), Access::Best).unwrap();
        told(&mut server, |_| {
            let (left, right) = (Host::open("h0"), Host::open("h1"));
            left.send(&frame(9014, 1));
            assert_eq!(right.expect(), frame(9014, 1));
        });
    });
}

#[test]
fn a_frame_longer_than_the_mtu_is_told_once() {
    in_each_way(|access| {
        two_links();
        ip("link set h0 mtu 3000");
        ip("link set sw0 mtu 3000");
        let mut server = open(SwitchConfig::default(), access).unwrap();
        let (report, notices) = told(&mut server, |_| {
            let (left, right) = (Host::open("h0"), Host::open("h1"));
            for mark in 0..3 {
                left.send(&frame(2000, mark));
            }
            left.send(&frame(100, 9));
            assert_eq!(right.expect(), frame(100, 9));
        });
        assert_eq!(report.ports[1].host.tx_too_long, 3);
        let told: Vec<_> = notices
            .iter()
            .filter(|notice| notice.contains("MTU allows"))
            .collect();
        assert_eq!(told.len(), 1, "{notices:?}");
        assert!(told[0].starts_with("1=sw1"), "{told:?}");
    });
}

#[test]
fn a_full_receive_ring_is_told_once_and_the_port_goes_on() {
    in_each_way(|access| {
        two_links();
        let mut server = open(SwitchConfig::default(), access).unwrap();
        let (left, right) = (Host::open("h0"), Host::open("h1"));
        // No socket receives them yet, and they are more than any ring holds.
        for _ in 0..15_000 {
            left.send(&frame(1000, 1));
        }
        let (report, notices) = told(&mut server, |notices| {
            let count = || {
                let notices = notices.lock().unwrap();
                let full = |told: &&String| told.contains("receive ring is full");
                notices.iter().filter(full).count()
            };
            until("it is told", || count() == 1);
            // The receiver's own buffer may be full of the first frames, so one more is sent
            // until one comes.
            until("a later frame passes", || {
                left.send(&frame(100, 2));
                let within = Duration::from_millis(20);
                core::iter::from_fn(|| right.receive(within)).any(|came| came == frame(100, 2))
            });
            std::thread::sleep(Duration::from_millis(250));
            assert_eq!(count(), 1, "once");
        });
        assert!(report.ports[0].host.rx_overrun > 0, "{notices:?}");
    });
}

#[test]
fn a_full_sending_queue_is_told_once_and_the_port_goes_on() {
    // AF_XDP passes the interface's queue by.
    try_in_namespace(|| {
        two_links();
        if let Err(reason) = slow_down("sw1") {
            eprintln!("skipped: no queue that fills up: {reason}");
            return;
        }
        let mut server = open(SwitchConfig::default(), Access::Packet).unwrap();
        let (report, notices) = told(&mut server, |notices| {
            let count = || {
                let notices = notices.lock().unwrap();
                let full = |told: &&String| told.contains("its ring is full");
                notices.iter().filter(full).count()
            };
            let (left, right) = (Host::open("h0"), Host::open("h1"));
            for _ in 0..64 {
                left.send(&frame(1000, 1));
            }
            until("it is told", || count() == 1);
            // The other direction is as fast as ever.
            right.send(&frame(100, 3));
            assert_eq!(left.expect(), frame(100, 3));
            until("a later frame passes", || {
                left.send(&frame(100, 2));
                let within = Duration::from_millis(20);
                core::iter::from_fn(|| right.receive(within)).any(|came| came == frame(100, 2))
            });
            assert_eq!(count(), 1, "once");
        });
        let full = report.ports[1].host.tx_full;
        assert!(full > 1, "{full} {notices:?}");
        let told = notices.iter().find(|told| told.contains("ring is full"));
        assert!(told.unwrap().starts_with("1=sw1"), "{notices:?}");
    });
}

#[test]
fn a_routed_port_takes_frames_to_itself_and_to_groups() {
    in_each_way(|access| {
        two_links();
        ip("link set sw0 address 02:00:00:00:00:21");
        let mut server = open(SwitchConfig::default(), access).unwrap();
        server.route_ports(&[(0, vec![[2, 0, 0, 0, 0, 0x22]])].into());
        let to = |destination: [u8; 6]| {
            let mut frame = frame(100, 1);
            frame[..6].copy_from_slice(&destination);
            frame
        };
        let report = while_running(&mut server, || {
            let (left, right) = (Host::open("h0"), Host::open("h1"));
            left.send(&to([2, 0, 0, 0, 0, 0x23]));
            for destination in [
                [2, 0, 0, 0, 0, 0x21],
                [2, 0, 0, 0, 0, 0x22],
                [1, 0, 0x5e, 0, 0, 5],
                [0xff; 6],
            ] {
                left.send(&to(destination));
                assert_eq!(right.expect(), to(destination));
            }
            // The other port is promiscuous.
            right.send(&to([2, 0, 0, 0, 0, 0x23]));
            assert_eq!(left.expect(), to([2, 0, 0, 0, 0, 0x23]));
        });
        assert_eq!(report.ports[0].host.rx_other_host, 1);
        assert_eq!(report.ports[1].host.rx_other_host, 0);
    });
}

#[test]
fn a_tap_device_is_a_port() {
    try_in_namespace(|| {
        two_links();
        let ports = [
            (0, PortSpec::Tap("t0".to_owned())),
            (1, PortSpec::interface("sw1")),
        ];
        let mut server = match SwitchServer::open(switch(SwitchConfig::default()), &ports) {
            Ok(server) => server,
            Err(error) => {
                eprintln!("skipped: {error}");
                return;
            }
        };
        let (report, _) = told(&mut server, |_| {
            let (tap, right) = (Host::open_when_up("t0"), Host::open("h1"));
            tap.send(&frame(100, 1));
            assert_eq!(right.expect(), frame(100, 1));
            right.send(&frame(200, 2));
            assert_eq!(tap.expect(), frame(200, 2));
        });
        assert_eq!(report.ports[0].mode, PortMode::Tap);
        drop(server);
        assert!(!ip("-o link").contains("t0"), "it goes with the port");
    });
}

#[test]
fn captures_are_ports_and_their_end_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let capture = |name: &str| Some(folder.path().join(name));
    let pcap = |input, output| PortSpec::Capture {
        input,
        output,
        timed: false,
    };
    // A capture of 500 frames is made by sending them out of a port.
    let frames: Vec<Vec<u8>> = (0..500).map(|at| frame(60 + at, at as u8)).collect();
    let write = |path: &std::path::Path| {
        let file = std::fs::File::create(path).unwrap();
        let mut writer = pcap_file::pcap::PcapWriter::new(file).unwrap();
        for frame in &frames {
            let packet =
                pcap_file::pcap::PcapPacket::new(Duration::ZERO, frame.len() as u32, frame);
            writer.write_packet(&packet).unwrap();
        }
    };
    write(&folder.path().join("in.pcap"));
    let ports = [
        (0, pcap(capture("in.pcap"), None)),
        (1, pcap(None, capture("out.pcap"))),
    ];
    let mut switch = switch(SwitchConfig::default());
    let announced = switch.engine_mut().announced.clone();
    let mut server = SwitchServer::open(switch, &ports).unwrap();
    let report = server
        .run(&AtomicBool::new(false), None, &mut |_, _, _| {})
        .unwrap();
    assert_eq!(report.ports[0].rx_packets, 500);
    assert_eq!(announced.load(Ordering::Relaxed), 500);
    assert_eq!(report.ports[1].host.sent, 500);
    let file = std::fs::File::open(folder.path().join("out.pcap")).unwrap();
    let mut reader = pcap_file::pcap::PcapReader::new(file).unwrap();
    for frame in &frames {
        assert_eq!(reader.next_packet().unwrap().unwrap().data, &frame[..]);
    }
    assert!(reader.next_packet().is_none());
}

#[test]
fn a_capture_is_played_at_its_recorded_times() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pcap");
    let mut writer = pcap_file::pcap::PcapWriter::new(std::fs::File::create(&path).unwrap());
    for at in 0..4 {
        let time = Duration::from_secs(86_400) + Duration::from_millis(40) * at;
        let frame = frame(60, at as u8);
        let packet = pcap_file::pcap::PcapPacket::new(time, frame.len() as u32, &frame);
        writer.as_mut().unwrap().write_packet(&packet).unwrap();
    }
    drop(writer);
    let capture = |input: Option<&std::path::Path>, timed| PortSpec::Capture {
        input: input.map(std::path::Path::to_owned),
        output: None,
        timed,
    };
    let ports = [(0, capture(Some(&path), true)), (1, capture(None, false))];
    let mut server = SwitchServer::open(switch(SwitchConfig::default()), &ports).unwrap();
    let start = Instant::now();
    let report = server
        .run(&AtomicBool::new(false), None, &mut |_, _, _| {})
        .unwrap();
    assert_eq!(report.ports[1].host.sent, 4);
    assert!(start.elapsed() >= Duration::from_millis(120));
}

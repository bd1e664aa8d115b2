//! Several workers on real interfaces, each with queues of its own.

use crate::namespace::{Host, ip, stay, try_in_namespace, until_up};
use crate::swap_engine::{SIGN_OF_LIFE, SwapEngine};
use crate::{WATCH, frame, ports, switch};
use stateplane_host::ports::{Access, HostPortCounters, PortNotice, PortSpec};
use stateplane_host::switch::{
    Beside, Placing, RunOptions, Sealing, Spread, SwitchFile, SwitchReport, SwitchServer,
    SwitchServerError, run_workers,
};
use stateplane_switch::{Port, SwitchConfig};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Flows, and frames of each in each direction.
pub const FLOWS: u16 = 32;
const FRAMES: u32 = 120;
/// Frames of each flow that are on their way at a time.
const AT_A_TIME: u32 = 8;

/// Offset of a frame's number.
const NUMBER: usize = 42;

/// Interfaces `sw0` and `sw1` with `queues` queues, facing `h0` and `h1`; Linux itself sends nothing.
pub fn two_links(queues: u8) {
    for setting in ["all", "default"] {
        let path = format!("/proc/sys/net/ipv6/conf/{setting}/disable_ipv6");
        // A system without IPv6 has no such setting.
        let _ = std::fs::write(path, "1");
    }
    for number in 0..2 {
        let queues = format!("numtxqueues {queues} numrxqueues {queues}");
        ip(&format!(
            "link add sw{number} {queues} type veth peer name h{number} {queues}"
        ));
        ip(&format!("link set h{number} up"));
    }
}

/// A switch with workers.
pub struct Setup<'a> {
    pub workers: usize,
    pub ports: &'a [(Port, PortSpec)],
    pub file: &'a str,
    pub spread: Spread,
    pub engine: fn() -> SwapEngine,
    pub sealing: &'a dyn Fn() -> Option<Sealing>,
}

impl<'a> Setup<'a> {
    /// With two workers and nothing else.
    pub fn of(ports: &'a [(Port, PortSpec)]) -> Setup<'a> {
        Setup {
            workers: 2,
            ports,
            file: "",
            spread: Spread::Auto,
            engine: SwapEngine::default,
            sealing: &|| None,
        }
    }

    /// Runs `scenario` while the switch runs, and returns the report and the notices.
    pub fn while_running(
        &self,
        scenario: impl FnOnce(&Mutex<Vec<String>>) + Send,
    ) -> (SwitchReport, Vec<String>) {
        let file = SwitchFile::parse("switch.toml".as_ref(), self.file).unwrap();
        let (stop, notices) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let (tell, is_ready) = channel();
        let report = std::thread::scope(|scope| {
            let (stop, notices) = (&stop, &notices);
            scope.spawn(move || {
                let _stop = Stop(stop);
                is_ready
                    .recv_timeout(Duration::from_secs(10))
                    .expect("it is ready");
                stay();
                scenario(notices);
            });
            loop {
                let options = RunOptions {
                    stop,
                    ready: &mut |_| tell.send(()).unwrap(),
                    status: None,
                    notify: &mut |number, name: &str, notice: &PortNotice| {
                        let text = format!("{number}={name}: {notice}");
                        notices.lock().unwrap().push(text);
                    },
                    patience: None,
                    sealing: (self.sealing)(),
                    flows: None,
                };
                match self.run(&file, options) {
                    Ok(report) => break report,
                    // A process that another test starts has the program of an earlier switch until
                    // it becomes `ip`.
                    Err(error)
                        if error.to_string().contains("busy") && !stop.load(Ordering::Relaxed) =>
                    {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        });
        (report, notices.into_inner().unwrap())
    }

    fn run(
        &self,
        file: &SwitchFile,
        options: RunOptions<'_>,
    ) -> Result<SwitchReport, SwitchServerError> {
        let placing = Placing {
            pin: true,
            spread: self.spread,
            ..Placing::default()
        };
        let beside = Beside {
            placing,
            ..Beside::default()
        };
        run_workers(
            (self.engine)(),
            self.workers,
            file,
            self.ports,
            options,
            beside,
        )
    }
}

/// Stops a switch when the test ends, however it does.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `scenario` while a switch with `workers` runs, and returns the report and the notices.
fn while_running(
    workers: usize,
    ports: &[(Port, PortSpec)],
    file: &str,
    scenario: impl FnOnce(&Mutex<Vec<String>>) + Send,
) -> (SwitchReport, Vec<String>) {
    let setup = Setup {
        workers,
        file,
        ..Setup::of(ports)
    };
    setup.while_running(scenario)
}

/// A UDP datagram of a flow, or of its other direction.
pub fn datagram(flow: u16, back: bool, number: u32) -> Vec<u8> {
    let mut frame = frame(60, 0);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14..34].copy_from_slice(&[
        0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    frame[34..36].copy_from_slice(&(1000 + flow).to_be_bytes());
    frame[36..42].copy_from_slice(&[0, 53, 0, 26, 0, 0]);
    if back {
        for (from, to, length) in [(26, 30, 4), (34, 36, 2)] {
            let there = frame[from..from + length].to_vec();
            frame.copy_within(to..to + length, from);
            frame[to..to + length].copy_from_slice(&there);
        }
    }
    frame[NUMBER..NUMBER + 4].copy_from_slice(&number.to_be_bytes());
    frame
}

/// Flow and number of a datagram.
pub fn read(frame: &[u8]) -> (u16, u32) {
    let port = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let number = frame[NUMBER..NUMBER + 4].try_into().unwrap();
    (port(34).max(port(36)) - 1000, u32::from_be_bytes(number))
}

/// Sends datagrams of all flows both ways between `left` and `right`. Each must arrive, in its flow's
/// order.
pub fn exchange(left: &Host, right: &Host) {
    let mut expected = [BTreeMap::new(), BTreeMap::new()];
    for first in (0..FRAMES).step_by(AT_A_TIME as usize) {
        for number in first..first + AT_A_TIME {
            for flow in 0..FLOWS {
                left.send(&datagram(flow, false, number));
                right.send(&datagram(flow, true, number));
            }
        }
        for (host, expected) in [right, left].into_iter().zip(&mut expected) {
            for _ in 0..AT_A_TIME * u32::from(FLOWS) {
                let (flow, number) = read(&host.expect());
                let next = expected.entry(flow).or_insert(0);
                assert_eq!(number, *next, "of flow {flow}");
                *next += 1;
            }
        }
    }
}

/// Checks that nothing was lost between wire and switch.
pub fn assert_whole(report: &SwitchReport) {
    for port in &report.ports {
        let whole = HostPortCounters {
            received: port.host.received,
            sent: port.host.sent,
            ..HostPortCounters::default()
        };
        assert_eq!(port.host, whole, "{report:?}");
    }
    assert!(report.drops.is_empty(), "{report:?}");
}

/// Frames that each worker took through the program.
pub fn received(report: &SwitchReport) -> Vec<u64> {
    report
        .workers
        .iter()
        .map(|worker| worker.received)
        .collect()
}

fn flows_stay_in_order(access: Access) {
    // A second switch finds the interfaces as the first one did.
    for _ in 0..2 {
        let (report, notices) = while_running(2, &ports(access), "", |_| {
            let (left, right) = (Host::open("h0"), Host::open("h1"));
            exchange(&left, &right);
        });
        assert_whole(&report);
        let all = u64::from(FRAMES) * u64::from(FLOWS);
        for port in &report.ports {
            assert_eq!((port.rx_packets, port.tx_packets), (all, all));
            assert_eq!((port.host.received, port.host.sent), (all, all));
        }
        let received = received(&report);
        assert_eq!(received.iter().sum::<u64>(), 2 * all);
        assert!(received.iter().all(|count| *count > 0), "{received:?}");
        assert!(notices.is_empty(), "{notices:?}");
    }
}

#[test]
fn flows_stay_in_order_and_all_workers_have_some_by_af_packet() {
    try_in_namespace(|| {
        two_links(2);
        flows_stay_in_order(Access::Packet);
    });
}

#[test]
fn flows_stay_in_order_and_all_workers_have_some_by_af_xdp() {
    try_in_namespace(|| {
        two_links(2);
        let refused = SwitchServer::open(switch(SwitchConfig::default()), &ports(Access::Xdp));
        if let Err(error) = refused.map(drop) {
            eprintln!("skipped with AF_XDP: {error}");
            return;
        }
        flows_stay_in_order(Access::Xdp);
    });
}

#[test]
fn an_interface_with_fewer_queues_than_workers_has_one_worker_that_hands_over() {
    try_in_namespace(|| {
        two_links(1);
        let refused = SwitchServer::open(switch(SwitchConfig::default()), &ports(Access::Xdp));
        if let Err(error) = refused.map(drop) {
            eprintln!("skipped: {error}");
            return;
        }
        let (report, notices) = while_running(2, &ports(Access::Xdp), "", |_| {
            let (left, right) = (Host::open("h0"), Host::open("h1"));
            exchange(&left, &right);
        });
        assert_whole(&report);
        assert!(received(&report).iter().all(|count| *count > 0));
        assert_eq!(notices.len(), 2, "{notices:?}");
        assert!(notices[0].contains("fewer receive queues than the 2 workers"));
    });
}

/// Numbers of frames that each of two workers has of what `send` sends from the left, ascending.
fn shares(send: impl FnOnce(&Host, &Host) + Send) -> Vec<u64> {
    let (report, _) = while_running(2, &ports(Access::Packet), "", |_| {
        send(&Host::open("h0"), &Host::open("h1"));
    });
    assert_whole(&report);
    let mut received = received(&report);
    received.sort_unstable();
    received
}

#[test]
fn both_directions_of_a_flow_and_fragments_of_a_datagram_have_one_worker() {
    try_in_namespace(|| {
        two_links(1);
        for flow in 0..4 {
            let both = shares(|left, right| {
                for number in 0..20 {
                    let (there, back) =
                        (datagram(flow, false, number), datagram(flow, true, number));
                    left.send(&there);
                    assert_eq!(right.expect(), there);
                    right.send(&back);
                    assert_eq!(left.expect(), back);
                    let mut tagged = there[..12].to_vec();
                    tagged.extend([0x81, 0, 0, number as u8]);
                    tagged.extend(&there[12..]);
                    left.send(&tagged);
                    right.expect();
                }
            });
            assert_eq!(both, [0, 60], "flow {flow}");
        }
        let fragments = shares(|left, right| {
            for number in 0..20 {
                let mut first = datagram(number, false, 0);
                first[20..22].copy_from_slice(&[0x20, 0]);
                let mut second = datagram(7 * number, false, 1);
                second[20..22].copy_from_slice(&[0, 3]);
                for fragment in [first, second] {
                    left.send(&fragment);
                    assert_eq!(right.expect(), fragment);
                }
            }
        });
        assert_eq!(fragments, [0, 40]);
    });
}

/// The kernel's hash covers the packet in a tunnel of GRE, and of frames that are not IP their type
/// alone.
#[test]
fn tunnels_of_gre_are_divided_by_their_inner_flows_and_frames_that_are_not_ip_by_nothing() {
    try_in_namespace(|| {
        two_links(1);
        let gre = shares(|left, right| {
            for flow in 0..FLOWS {
                let inner = datagram(flow, false, 0);
                let mut outer = datagram(0, false, 0)[..34].to_vec();
                outer[17] = 20 + 4 + 46;
                outer[23] = 47;
                outer.extend([0, 0, 8, 0]);
                outer.extend(&inner[14..]);
                left.send(&outer);
                assert_eq!(right.expect(), outer);
            }
        });
        assert!(gre[0] > 0, "{gre:?}");
        let other = shares(|left, right| {
            for number in 0..20 {
                let mut other = frame(60, number);
                other[11] = number;
                left.send(&other);
                assert_eq!(right.expect(), other);
            }
        });
        assert_eq!(other, [0, 20]);
    });
}

#[test]
fn a_tap_device_has_one_worker_that_sends_for_all() {
    try_in_namespace(|| {
        two_links(2);
        let ports = [
            (
                0,
                PortSpec::Interface {
                    name: "sw0".to_owned(),
                    access: Access::Packet,
                },
            ),
            (1, PortSpec::Tap("t0".to_owned())),
        ];
        if let Err(error) = SwitchServer::open(switch(SwitchConfig::default()), &ports) {
            eprintln!("skipped: {error}");
            return;
        }
        let (report, _) = while_running(2, &ports, "", |_| {
            let (left, tap) = (Host::open("h0"), Host::open_when_up("t0"));
            exchange(&left, &tap);
        });
        assert_whole(&report);
        assert!(received(&report).iter().all(|count| *count > 0));
    });
}

#[test]
fn a_capture_has_one_worker_that_writes_for_all() {
    try_in_namespace(|| {
        two_links(2);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pcap");
        let capture = PortSpec::Capture {
            input: None,
            output: Some(path.clone()),
            timed: false,
        };
        let ports = [(0, PortSpec::interface("sw0")), (1, capture)];
        let (report, _) = while_running(2, &ports, "", |_| {
            let left = Host::open("h0");
            for number in 0..FRAMES {
                for flow in 0..FLOWS {
                    left.send(&datagram(flow, false, number));
                }
            }
            // The switch takes what the socket holds before it sees the end.
            std::thread::sleep(Duration::from_millis(300));
        });
        assert!(received(&report).iter().all(|count| *count > 0));
        let file = std::fs::File::open(&path).unwrap();
        let mut reader = pcap_file::pcap::PcapReader::new(file).unwrap();
        let mut expected = BTreeMap::new();
        while let Some(packet) = reader.next_packet() {
            let (flow, number) = read(&packet.unwrap().data);
            let next = expected.entry(flow).or_insert(0);
            assert_eq!(number, *next, "of flow {flow}");
            *next += 1;
        }
        assert_eq!(expected.len(), usize::from(FLOWS));
        assert!(
            expected.values().all(|count| *count == FRAMES),
            "{report:?}"
        );
    });
}

#[test]
fn an_interface_that_is_made_anew_is_divided_again() {
    try_in_namespace(|| {
        two_links(2);
        let (report, notices) = while_running(2, &ports(Access::Packet), "", |notices| {
            exchange(&Host::open("h0"), &Host::open("h1"));
            let until = |text: &str| {
                let deadline = Instant::now() + Duration::from_secs(10);
                while !notices
                    .lock()
                    .unwrap()
                    .iter()
                    .any(|told| told.contains(text))
                {
                    assert!(Instant::now() < deadline, "not told: {text}");
                    std::thread::sleep(Duration::from_millis(10));
                }
            };
            ip("link delete sw1");
            until("1=sw1: down");
            ip("link add sw1 type veth peer name h1");
            ip("link set h1 up");
            ip("link set sw1 up");
            until("1=sw1: up again");
            exchange(&Host::open("h0"), &Host::open("h1"));
        });
        assert_eq!(notices.len(), 2, "{notices:?}");
        let all = 2 * u64::from(FRAMES) * u64::from(FLOWS);
        assert_eq!(
            report.ports[1].host.received, all,
            "those of both interfaces"
        );
    });
}

#[test]
fn a_watch_lowers_its_interface_and_raises_it_again() {
    try_in_namespace(|| {
        two_links(1);
        let (report, _) = while_running(2, &ports(Access::Packet), WATCH, |_| {
            let right = Host::open("h1");
            let hears = || right.send(&frame(100, SIGN_OF_LIFE));
            until_up("sw0", false, || {});
            until_up("sw0", true, hears);
            until_up("sw0", false, || {});
            until_up("sw0", true, hears);
        });
        assert_eq!(report.port_state_failed, 0);
    });
}

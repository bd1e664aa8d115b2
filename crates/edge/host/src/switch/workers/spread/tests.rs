use super::kind::{GENEVE_PORT, GRE, GTP_U_PORT, UDP, VXLAN_PORT};
use super::*;
use crate::switch::workers::flow::{IPV6_BYTES, word};
use proptest::prelude::*;
use stateplane_wire::replication;

const IP: usize = 14;
/// Offset of what UDP carries over IPv4.
const INNER: usize = 42;
const TCP: u8 = 6;

/// Behind Ethernet addresses that end with `last`.
fn ethernet(last: u8, ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let addresses = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, last];
    [&addresses, &ethertype.to_be_bytes()[..], packet].concat()
}

/// An IPv4 packet to an address that ends with `to`.
fn ipv4(protocol: u8, to: u8, segment: &[u8]) -> Vec<u8> {
    let length = (20 + segment.len()) as u16;
    let mut header = vec![0x45, 0];
    header.extend(length.to_be_bytes());
    header.extend([0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, to]);
    [&header[..], segment].concat()
}

fn udp(from: u16, to: u16, data: &[u8]) -> Vec<u8> {
    let words = [from, to, (8 + data.len()) as u16, 0].map(u16::to_be_bytes);
    [words.as_flattened(), data].concat()
}

/// A frame of UDP over IPv4 between two hosts.
fn datagram(from: u16, to: u16, data: &[u8]) -> Vec<u8> {
    ethernet(2, 0x0800, &ipv4(UDP, 9, &udp(from, to, data)))
}

/// Data of GTP-U between two ends: the inner destination's last byte is `to`.
fn tunnelled(to: u8) -> Vec<u8> {
    let inner = ipv4(TCP, to, &[0; 20]);
    let data = [&[0x30, 0xff, 0, 40, 0, 0, 0, 1][..], &inner].concat();
    datagram(GTP_U_PORT, GTP_U_PORT, &data)
}

/// A frame of TCP.
fn plain(to: u8) -> Vec<u8> {
    ethernet(2, 0x0800, &ipv4(TCP, to, &[7; 40]))
}

fn is_ip(frame: &[u8]) -> bool {
    word(frame, 12) == Some(0x0800)
}

/// The number at `at` of a datagram over IPv4 without a tag, if it goes to `port`.
fn of_datagram(frame: &[u8], port: u16, at: usize) -> Option<u16> {
    let is_it = is_ip(frame) && frame.get(23) == Some(&UDP) && word(frame, 36)? == port;
    if is_it { word(frame, at) } else { None }
}

/// The destination of a frame of IPv4.
fn destination(frame: &[u8]) -> Option<u16> {
    if is_ip(frame) { word(frame, 32) } else { None }
}

/// The inner destination of tunnels, and the destination of other frames.
fn inner_or_outer(frame: &[u8]) -> Option<u16> {
    of_datagram(frame, GTP_U_PORT, INNER + 8 + 18).or_else(|| destination(frame))
}

fn steering(spread: Spread) -> Steering {
    Steering {
        own: 2,
        workers: 4,
        key: 0x0123_4567_89ab_cdef,
        spread,
        learned: Arc::default(),
        buffer: Vec::new(),
    }
}

/// True if a frame goes by key at a divided port although it is the first that comes.
fn goes_by_key(frame: &[u8], key_of: impl Fn(&[u8]) -> Option<u16>) -> bool {
    let mut steering = steering(Spread::Auto);
    steering.worker(true, frame, key_of);
    steering.learned.has_any()
}

/// Workers of 64 frames, which a port of worker 2 takes.
fn workers(spread: Spread, divided: bool, frame: impl Fn(u8) -> Vec<u8>) -> Vec<usize> {
    let mut steering = steering(spread);
    let frames = (0..64).map(frame);
    frames
        .map(|frame| {
            let to = steering.worker(divided, &frame, inner_or_outer);
            assert!(!steering.keeps_all(divided) || to == 2);
            to
        })
        .collect()
}

fn are_spread(workers: &[usize]) -> bool {
    (0..4).all(|worker| workers.contains(&worker))
}

#[test]
fn keys_that_the_flow_tells_are_left_to_it() {
    let frames = [
        tunnelled(1),
        plain(1),
        datagram(VXLAN_PORT, VXLAN_PORT, &[0; 60]),
        datagram(replication::PORT, replication::PORT, &[0; 100]),
    ];
    for frame in &frames {
        assert!(!goes_by_key(
            frame,
            |frame| Some(flow_hash(frame, 7) as u16)
        ));
        assert!(!goes_by_key(frame, destination));
        assert!(!goes_by_key(frame, |frame| word(frame, 34)), "a port");
        assert!(!goes_by_key(frame, |_| Some(5)), "one lock for all frames");
        assert!(!goes_by_key(frame, |_| None));
    }
}

#[test]
fn keys_of_inner_headers_are_found_in_the_first_frame_of_a_tunnel() {
    let tunnel = |frame: &[u8]| of_datagram(frame, GTP_U_PORT, INNER + 6);
    assert!(goes_by_key(&tunnelled(1), tunnel));
    assert!(goes_by_key(&tunnelled(1), inner_or_outer));
    for port in [VXLAN_PORT, GENEVE_PORT] {
        let frame = datagram(33_333, port, &[0; 60]);
        assert!(goes_by_key(&frame, |frame| of_datagram(
            frame,
            port,
            INNER + 12
        )));
        assert!(!goes_by_key(&frame, |frame| of_datagram(frame, port, 34)));
    }
    let message = datagram(replication::PORT, replication::PORT, &[0; 100]);
    let flow_key = |frame: &[u8]| of_datagram(frame, replication::PORT, INNER + 40);
    assert!(goes_by_key(&message, flow_key));
}

#[test]
fn a_tunnel_over_ipv6_behind_a_tag_is_one_too() {
    let mut header = [0; IPV6_BYTES];
    header[0] = 0x60;
    header[6] = UDP;
    let packet = [&header[..], &udp(GTP_U_PORT, GTP_U_PORT, &[1; 60])].concat();
    let tagged = [&[0, 7, 0x86, 0xdd][..], &packet].concat();
    let frame = ethernet(2, 0x8100, &tagged);
    let tunnel = IP + 4 + IPV6_BYTES + 8 + 6;
    assert!(goes_by_key(&frame, |frame| word(frame, tunnel)));
    assert!(
        !goes_by_key(&frame, |frame| word(frame, IP + 4 + 10)),
        "an outer address"
    );
}

#[test]
fn the_inner_flow_of_gre_is_left_to_the_kernel_and_its_key_is_not() {
    let with_key = [&[0x20, 0, 8, 0, 1, 2, 3, 4][..], &ipv4(TCP, 1, &[0; 20])].concat();
    let frame = ethernet(2, 0x0800, &ipv4(GRE, 9, &with_key));
    assert!(goes_by_key(&frame, |frame| word(frame, 40)));
    assert!(!goes_by_key(&frame, |frame| word(frame, 42 + 18)));
    let plain = [&[0, 0, 8, 0][..], &ipv4(TCP, 1, &[0; 20])].concat();
    let frame = ethernet(2, 0x0800, &ipv4(GRE, 9, &plain));
    assert!(!goes_by_key(&frame, |frame| word(frame, 38 + 18)));
}

#[test]
fn frames_that_are_not_ip_go_by_key_whatever_type_a_program_has_for_them() {
    for ethertype in [0x0806, 0x1234, 0x88b5, 0xffff] {
        let frame = ethernet(2, ethertype, &[5; 46]);
        assert!(goes_by_key(&frame, |frame| word(frame, 20)));
        let addresses = |frame: &[u8]| word(frame, 4);
        assert!(
            goes_by_key(&frame, addresses),
            "the kernel does not look at them"
        );
    }
}

#[test]
fn plain_datagrams_stay_at_divided_ports_even_if_their_payload_is_the_key() {
    let frame = datagram(999, 4_242, &[0; 60]);
    let mut steering = steering(Spread::Auto);
    for _ in 0..100 {
        let payload = |frame: &[u8]| word(frame, INNER);
        assert_eq!(steering.worker(true, &frame, payload), 2);
    }
}

#[test]
fn a_kind_is_tried_a_few_times_and_again_after_a_change() {
    let mut steering = steering(Spread::Auto);
    let calls = std::cell::Cell::new(0);
    let outer = |frame: &[u8]| {
        calls.set(calls.get() + 1);
        destination(frame)
    };
    for _ in 0..200 {
        assert_eq!(steering.worker(true, &tunnelled(1), outer), 2);
    }
    let tried = calls.replace(0);
    assert!((16..5_000).contains(&tried), "{tried}");
    steering.worker(true, &tunnelled(1), outer);
    assert_eq!(calls.get(), 0, "it is left to the flow");
    // Frames without a key are no trials: entries may be missing yet.
    steering.learned.try_again();
    for _ in 0..200 {
        steering.worker(true, &tunnelled(1), |_| None);
    }
    steering.worker(true, &tunnelled(1), inner_or_outer);
    assert!(steering.learned.has_any());
    steering.learned.try_again();
    assert!(steering.learned.has_any(), "of the same program");
    steering.learned.forget();
    assert!(!steering.learned.has_any());
}

#[test]
fn all_workers_know_as_soon_as_one_has_learned() {
    let mut first = steering(Spread::Auto);
    let mut second = Steering {
        own: 1,
        learned: first.learned.clone(),
        ..steering(Spread::Auto)
    };
    let to = first.worker(true, &tunnelled(1), inner_or_outer);
    let calls = std::cell::Cell::new(0);
    let counted = |frame: &[u8]| {
        calls.set(calls.get() + 1);
        inner_or_outer(frame)
    };
    assert_eq!(second.worker(true, &tunnelled(1), counted), to);
    assert_eq!(calls.get(), 1, "it tries nothing itself");
}

#[test]
fn kinds_are_numbered_in_their_order_and_told_by_outer_headers() {
    for (number, kind) in Kind::ALL.into_iter().enumerate() {
        assert_eq!(kind as usize, number);
    }
    let mut fragment = tunnelled(1);
    assert_eq!(Kind::of(&fragment), Kind::GtpU);
    fragment[20] = 0x20;
    assert_eq!(Kind::of(&fragment), Kind::Other, "others have no ports");
    assert_eq!(Kind::of(&plain(1)), Kind::Ported);
    assert_eq!(Kind::of(&[0; 60]), Kind::NotIp);
    assert_eq!(Kind::of(&[0; 13]), Kind::Other);
    let client = datagram(999, replication::PORT, &[]);
    assert_eq!(Kind::of(&client), Kind::Ported, "a client's port");
    let store = datagram(replication::PORT, replication::PORT, &[]);
    assert_eq!(Kind::of(&store), Kind::Store);
}

#[test]
fn frames_fall_by_flow_as_their_port_says() {
    assert!(steering(Spread::Flow).keeps_all(true));
    assert_eq!(workers(Spread::Flow, true, plain), [2; 64]);
    assert_eq!(workers(Spread::Flow, true, tunnelled), [2; 64]);
    assert!(are_spread(&workers(Spread::Flow, false, plain)));
    let tunnel = workers(Spread::Flow, false, tunnelled);
    assert_eq!(tunnel, [tunnel[0]; 64], "it is one flow");
}

#[test]
fn frames_fall_by_key_at_all_ports() {
    for divided in [true, false] {
        let tunnel = workers(Spread::Key, divided, tunnelled);
        assert!(are_spread(&tunnel));
        assert_eq!(tunnel, workers(Spread::Auto, divided, tunnelled));
        assert!(are_spread(&workers(Spread::Key, divided, plain)));
    }
    // Frames without a key stay, or go by their flow.
    let arp = |to: u8| ethernet(to, 0x0806, &[0; 40]);
    assert_eq!(workers(Spread::Key, true, arp), [2; 64]);
    let by_flow = workers(Spread::Flow, false, arp);
    assert_eq!(workers(Spread::Key, false, arp), by_flow);
    assert_eq!(workers(Spread::Auto, false, arp), by_flow);
}

#[test]
fn frames_fall_by_key_where_the_flow_does_not_tell_it() {
    assert!(are_spread(&workers(Spread::Auto, true, tunnelled)));
    assert_eq!(workers(Spread::Auto, true, plain), [2; 64]);
    let by_key = workers(Spread::Key, false, plain);
    assert_eq!(workers(Spread::Auto, false, plain), by_key);
}

#[test]
fn frames_that_stay_are_not_looked_at() {
    let never = |_: &[u8]| -> Option<u16> { panic!("it costs time") };
    for spread in [Spread::Auto, Spread::Flow] {
        assert_eq!(steering(spread).worker(true, &plain(1), never), 2);
        assert!(!steering(spread).hands_over_divided());
    }
    assert!(steering(Spread::Key).hands_over_divided());
    let alone = Steering {
        workers: 1,
        ..steering(Spread::Key)
    };
    assert!(alone.keeps_all(true) && alone.keeps_all(false));
    assert!(!alone.hands_over_divided());
}

#[test]
fn keys_with_equal_low_bits_spread_and_none_can_be_chosen() {
    let worker = |state: u16, key| {
        let mut steering = Steering {
            key,
            ..steering(Spread::Key)
        };
        steering.worker(true, &[], |_| Some(state))
    };
    let aligned = (0..4096).map(|number| number * 16);
    let mut counts = [0; 4];
    for state in aligned.clone() {
        counts[worker(state, 9)] += 1;
    }
    let even = 900..1150;
    assert!(counts.iter().all(|it| even.contains(it)), "{counts:?}");
    let chosen: Vec<u16> = aligned.filter(|state| worker(*state, 9) == 0).collect();
    let together = chosen.iter().filter(|state| worker(**state, 10) == 0);
    let share = together.count() * 100 / chosen.len();
    assert!((20..30).contains(&share), "{share} %");
}

proptest! {
    #[test]
    fn any_bytes_are_of_a_kind_and_fall_to_a_worker(bytes: Vec<u8>, divided: bool) {
        for spread in [Spread::Auto, Spread::Key] {
            let to = steering(spread).worker(divided, &bytes, |frame| word(frame, 0));
            prop_assert!(to < 4);
        }
    }

    #[test]
    fn any_packet_of_a_kind_is_tried_and_left_as_it_was(
        ethertype in prop::sample::select(vec![0x0800u16, 0x86dd, 0x8100, 0x8864, 0x9999]),
        protocol in prop::sample::select(vec![6u8, 17, 47, 1]),
        port in prop::sample::select(vec![GTP_U_PORT, VXLAN_PORT, replication::PORT, 5]),
        mut packet: Vec<u8>,
    ) {
        let (at, ports) = if ethertype == 0x0800 { (9, 20) } else { (6, 40) };
        if let Some(byte) = packet.get_mut(at) {
            *byte = protocol;
        }
        if let Some(bytes) = packet.get_mut(ports..ports + 4) {
            bytes[..2].copy_from_slice(&port.to_be_bytes());
            bytes[2..].copy_from_slice(&port.to_be_bytes());
        }
        let frame = ethernet(2, ethertype, &packet);
        let mut steering = steering(Spread::Auto);
        let last = |frame: &[u8]| frame.len().checked_sub(2).and_then(|at| word(frame, at));
        let first = steering.worker(true, &frame, last);
        prop_assert!(steering.buffer.is_empty() || steering.buffer == frame);
        prop_assert_eq!(steering.worker(true, &frame, last), first);
    }
}

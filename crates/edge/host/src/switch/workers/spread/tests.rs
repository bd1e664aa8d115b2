use super::kind::{GRE, GTP_U_PORT, UDP, VXLAN_PORT};
use super::samples::{Sample, not_ip, of_ip};
use super::*;
use crate::switch::workers::flow::word;
use proptest::prelude::*;
use stateplane_wire::replication;

const PORTS: [Port; 2] = [0, 3];
const IP: usize = 14;
/// Offset of what UDP carries over IPv4.
const INNER: usize = 42;

fn auto(key_of: impl FnMut(Port, &[u8]) -> Option<u16>) -> Rules {
    Rules::new(Spread::Auto, &PORTS, key_of)
}

/// Kinds that go by key at divided ports.
fn kinds(key_of: impl Fn(&[u8]) -> Option<u16>) -> Vec<&'static str> {
    auto(|_, frame| key_of(frame)).kinds()
}

/// The number at `at` of a datagram over IPv4 without a tag, if it goes to `port`.
fn of_datagram(frame: &[u8], port: u16, at: usize) -> Option<u16> {
    let is_it = word(frame, 12)? == 0x0800 && frame[23] == UDP && word(frame, 36)? == port;
    if is_it { word(frame, at) } else { None }
}

fn is_ip(frame: &[u8]) -> bool {
    word(frame, 12) == Some(0x0800)
}

/// The destination of a frame of IPv4.
fn destination(frame: &[u8]) -> Option<u16> {
    if is_ip(frame) { word(frame, 32) } else { None }
}

/// Data of GTP-U between two ends: what the inner header's addresses end with is `to`.
fn tunnelled(to: u8) -> Vec<u8> {
    let samples = of_ip();
    let is_it = |it: &&Sample| Kind::of(&it.bytes) == Kind::GtpU && is_ip(&it.bytes);
    let sample = samples.iter().find(is_it).unwrap();
    sample.changed(INNER + 8 + 19, to)
}

/// A frame of TCP.
fn plain(to: u8) -> Vec<u8> {
    of_ip()[0].changed(33, to)
}

#[test]
fn keys_that_the_flow_tells_are_left_to_it() {
    let of_ip = |frame: &[u8]| matches!(word(frame, 12), Some(0x0800 | 0x86dd | 0x8100));
    let hash = |frame: &[u8]| of_ip(frame).then(|| flow_hash(frame, 7) as u16);
    assert_eq!(kinds(hash), [""; 0]);
    assert!(kinds(destination).is_empty());
    let has_ports = |frame: &[u8]| is_ip(frame) && [6, UDP].contains(&frame[23]);
    let source_port = |frame: &[u8]| has_ports(frame).then(|| word(frame, 34))?;
    assert!(kinds(source_port).is_empty());
    assert!(kinds(|_| None).is_empty());
}

#[test]
fn keys_of_inner_headers_are_found_for_their_tunnel_alone() {
    let inner_address = |frame: &[u8]| of_datagram(frame, GTP_U_PORT, INNER + 8 + 18);
    assert_eq!(kinds(inner_address), ["GTP-U"]);
    let tunnel = |frame: &[u8]| of_datagram(frame, GTP_U_PORT, INNER + 6);
    assert_eq!(kinds(tunnel), ["GTP-U"]);
    let inner_mac = |frame: &[u8]| of_datagram(frame, VXLAN_PORT, INNER + 8 + 4);
    assert_eq!(kinds(inner_mac), ["VXLAN"]);
    let flow_key = |frame: &[u8]| of_datagram(frame, replication::PORT, INNER + 40);
    assert_eq!(kinds(flow_key), ["messages of the store"]);
}

#[test]
fn the_inner_flow_of_gre_is_left_to_the_kernel_and_its_key_is_not() {
    let is_gre = |frame: &[u8]| is_ip(frame) && frame[23] == GRE;
    let key = |frame: &[u8]| (is_gre(frame) && frame[34] == 0x20).then(|| word(frame, 40))?;
    assert_eq!(kinds(key), ["GRE"]);
    let inner = |frame: &[u8]| (is_gre(frame) && frame[34] == 0).then(|| word(frame, 38 + 18))?;
    assert!(kinds(inner).is_empty());
}

#[test]
fn frames_that_are_not_ip_go_by_key_whatever_type_a_program_has_for_them() {
    for ethertype in [0x0806, 0x1234, 0x88b5, 0xffff] {
        let own = move |frame: &[u8]| word(frame, 12).filter(|it| *it == ethertype);
        assert_eq!(
            kinds(move |frame| own(frame).and(word(frame, 20))),
            ["not IP"]
        );
        assert_eq!(
            kinds(move |frame| own(frame).and(word(frame, 4))),
            ["not IP"],
            "the kernel does not look at MAC addresses"
        );
    }
}

#[test]
fn fields_alike_in_most_frames_give_no_worker_all_of_them() {
    // The type of service, the protocol, the length, and flags of TCP.
    for at in [14, 22, 16, 46] {
        let is_in = |frame: &[u8]| is_ip(frame) && (at < 34 || frame[23] == 6);
        let rules = auto(|_, frame| is_in(frame).then(|| word(frame, at))?);
        assert!(rules.kinds().is_empty(), "{at}");
        assert!(!rules.undivided.has(&plain(1)), "{at}");
    }
    let rules = auto(|_, _| Some(5));
    assert!(rules.kinds().is_empty());
    assert!(!rules.undivided.has(&plain(1)), "one lock for all frames");
    assert!(!rules.undivided.has(&tunnelled(1)));
}

#[test]
fn plain_datagrams_stay_at_divided_ports_even_if_their_payload_is_the_key() {
    let payload = |frame: &[u8]| of_datagram(frame, 4_242, INNER);
    assert!(kinds(payload).is_empty());
    let rules = auto(|_, frame| payload(frame));
    assert!(rules.undivided.has(&plain(1)));
}

#[test]
fn every_port_is_tried_and_frames_with_tags() {
    let at_one = auto(|port, frame| {
        let inner = of_datagram(frame, GTP_U_PORT, INNER + 6);
        if port == 3 { inner } else { None }
    });
    assert_eq!(at_one.kinds(), ["GTP-U"]);
    let tagged = |frame: &[u8]| {
        let inner = [&frame[..12], &frame[16..]].concat();
        let is_tagged = word(frame, 12) == Some(0x8100);
        is_tagged.then(|| of_datagram(&inner, GTP_U_PORT, INNER + 6))?
    };
    assert_eq!(kinds(tagged), ["GTP-U"]);
}

#[test]
fn a_program_that_checks_sums_is_asked_with_right_ones() {
    let sum_of = |bytes: &[u8]| stateplane_wire::checksum::of(bytes);
    let of_message = |frame: &[u8]| {
        let key = of_datagram(frame, replication::PORT, INNER + 40)?;
        let state = usize::from(word(frame, INNER + 70)?);
        let summed = frame.get(INNER..INNER + 72 + state)?;
        (sum_of(summed) == 0 && sum_of(&frame[IP..IP + 20]) == 0).then_some(key)
    };
    assert_eq!(kinds(of_message), ["messages of the store"]);
}

#[test]
fn samples_are_of_every_kind_and_their_flows_are_as_they_say() {
    let (mut samples, mut met) = (of_ip(), [false; Kind::ALL.len()]);
    samples.push(not_ip(0x88b5));
    for sample in &samples {
        let kind = Kind::of(&sample.bytes);
        met[kind as usize] = true;
        let hash = flow_hash(&sample.bytes, 7);
        let same = |at: usize| flow_hash(&sample.changed(at, 0x40), 7) == hash;
        if matches!(kind, Kind::Gre | Kind::NotIp) {
            continue;
        }
        for at in &sample.hidden {
            assert!(same(*at), "{kind:?} {at}");
        }
        for at in &sample.hashed {
            assert!(!same(*at), "{kind:?} {at}");
        }
    }
    let unmet = Kind::ALL.into_iter().filter(|kind| !met[*kind as usize]);
    assert_eq!(unmet.collect::<Vec<_>>(), [Kind::Other]);
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
    let mut one_port = tunnelled(1);
    one_port[36..38].copy_from_slice(&replication::PORT.to_be_bytes());
    assert_eq!(Kind::of(&one_port), Kind::Ported, "a client's port");
    one_port[34..36].copy_from_slice(&replication::PORT.to_be_bytes());
    assert_eq!(Kind::of(&one_port), Kind::Store);
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
        rules: Rules::new(spread, &PORTS, |_, frame| inner_or_outer(frame)),
    }
}

/// Workers of 64 frames, which a port of worker 2 takes.
fn workers(spread: Spread, divided: bool, frame: impl Fn(u8) -> Vec<u8>) -> Vec<usize> {
    let steering = steering(spread);
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
    let arp = |to: u8| [&[to; 12][..], &[8, 6], &[0; 40]].concat();
    assert_eq!(workers(Spread::Key, true, arp), [2; 64]);
    let by_flow = workers(Spread::Flow, false, arp);
    assert_eq!(workers(Spread::Key, false, arp), by_flow);
    assert_eq!(workers(Spread::Auto, false, arp), by_flow);
}

#[test]
fn frames_fall_by_key_where_the_flow_does_not_tell_it() {
    assert_eq!(steering(Spread::Auto).rules.kinds(), ["GTP-U"]);
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
    }
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
        let steering = Steering {
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
        Kind::of(&bytes);
        let steering = steering(Spread::Key);
        let to = steering.worker(divided, &bytes, |frame| word(frame, 0));
        prop_assert!(to < 4);
    }

    #[test]
    fn any_packet_is_of_a_kind(
        ethertype in prop::sample::select(vec![0x0800u16, 0x86dd, 0x8100, 0x8864]),
        protocol in prop::sample::select(vec![6u8, 17, 47, 1]),
        mut packet: Vec<u8>,
    ) {
        let at = if ethertype == 0x0800 { 9 } else { 6 };
        if let Some(byte) = packet.get_mut(at) {
            *byte = protocol;
        }
        let frame = [&[0; 12][..], &ethertype.to_be_bytes(), &packet].concat();
        Kind::of(&frame);
    }
}

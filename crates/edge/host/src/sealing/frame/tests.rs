use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use proptest::prelude::*;
use stateplane_wire::checksum::Sum;

use super::*;

pub(crate) const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(crate) const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// No switch: messages of replication alone are sealed.
const NOBODY: Own = Own {
    coordination: None,
    multicast: None,
    sync: None,
};

pub(crate) fn guard(id: u32, peer: u32, address: Ipv4Addr) -> Guard {
    guard_of(id, peer, address, "11")
}

/// The end `id`, with a key of equal bytes for one peer.
pub(crate) fn guard_of(id: u32, peer: u32, address: Ipv4Addr, byte: &str) -> Guard {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.toml");
    let key = format!("00{}", byte.repeat(31));
    let text = format!(
        "id = {id}\n[[peer]]\nid = {peer}\naddress = \"{address}\"\nkeys = [{{ id = 1, hex = \"{key}\" }}]"
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    Guard::read(&path).unwrap()
}

fn frame(from: Ipv4Addr, to: Ipv4Addr, message: &[u8], padding: usize) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame[0] = 4;
    frame.extend([8, 0, 0x45, 0, 0, 0, 0, 1, 0x40, 0, 33, 17, 0, 0]);
    frame.extend(from.octets());
    frame.extend(to.octets());
    frame.extend(replication::PORT.to_be_bytes().repeat(2));
    frame.extend([0; 4]);
    frame.extend(message);
    set_length(&mut frame, message.len());
    frame.extend(vec![0; padding]);
    frame
}

fn is_right(frame: &[u8]) -> bool {
    let length = usize::from(half(frame, IP + 2));
    Sum::new().over(&frame[IP..UDP]).finish() == 0
        && IP + length == frame.len()
        && usize::from(half(frame, UDP + 4)) == length - 20
}

/// Ends at [`A`] and [`B`] that know each other.
fn pair() -> (Guard, Guard) {
    let (mut a, mut b) = (guard(1, 2, B), guard(2, 1, A));
    let mut counters = FrameCounters::default();
    let mut question = frame(A, B, &[7; 72], 0);
    assert!(seal_frame(&mut a, &mut counters, NOBODY, &mut question));
    let Arrived::Answered(mut answer) = open_frame(&mut b, &mut counters, NOBODY, 0, &mut question)
    else {
        panic!("an answer");
    };
    assert!(is_right(&answer) && answer.len() <= question.len());
    assert_eq!(
        (address(&answer, SOURCE), address(&answer, DESTINATION)),
        (B, A)
    );
    assert_eq!(answer[..6], question[6..12]);
    let Arrived::Answered(mut back) = open_frame(&mut a, &mut counters, NOBODY, 0, &mut answer)
    else {
        panic!("an answer to the answer");
    };
    assert_eq!(
        open_frame(&mut b, &mut counters, NOBODY, 0, &mut back),
        Arrived::Dropped
    );
    assert_eq!(counters, FrameCounters::default());
    (a, b)
}

#[test]
fn a_frame_grows_and_shrinks_by_the_trailer() {
    let (mut a, mut b) = pair();
    let mut counters = FrameCounters::default();
    for (length, padding) in [(72, 0), (10, 20), (1400, 0)] {
        let before = frame(A, B, &vec![9; length], padding);
        let mut sealed = before.clone();
        assert!(seal_frame(&mut a, &mut counters, NOBODY, &mut sealed));
        assert_eq!(sealed.len(), before.len() - padding + TRAILER_LENGTH);
        assert!(is_right(&sealed));
        // The other side's interface may pad, too.
        sealed.extend([0; 3]);
        let end = MESSAGE + length;
        let opened = open_frame(&mut b, &mut counters, NOBODY, 0, &mut sealed);
        assert_eq!(opened, Arrived::Pass(end));
        assert_eq!(sealed[..end], before[..end]);
        assert_eq!(
            open_frame(&mut b, &mut counters, NOBODY, 0, &mut sealed),
            Arrived::Dropped
        );
    }
}

#[test]
fn other_frames_pass_as_they_are() {
    let (mut a, _) = pair();
    let mut counters = FrameCounters::default();
    let message = frame(A, B, &[9; 80], 0);
    for (at, value) in [
        (TYPE, 0x86),
        (IP, 0x46),
        (IP + 6, 0x20),
        (IP + 9, 6),
        (UDP, 0),
        (UDP + 2, 0),
    ] {
        let mut other = message.clone();
        other[at] = value;
        let before = other.clone();
        assert!(seal_frame(&mut a, &mut counters, NOBODY, &mut other));
        assert_eq!(
            open_frame(&mut a, &mut counters, NOBODY, 0, &mut other),
            Arrived::Pass(other.len())
        );
        assert_eq!(other, before);
    }
}

#[test]
fn messages_to_nobody_and_wrong_lengths_do_not_leave() {
    let (mut a, _) = pair();
    let mut counters = FrameCounters::default();
    let mut stray = frame(A, A, &[9; 80], 0);
    assert!(!seal_frame(&mut a, &mut counters, NOBODY, &mut stray));
    assert_eq!(a.counters().unknown_receiver, 1);
    let mut cut = frame(A, B, &[9; 80], 0);
    cut.truncate(100);
    assert!(!seal_frame(&mut a, &mut counters, NOBODY, &mut cut));
    let mut long = frame(A, B, &vec![9; 65_500], 0);
    assert!(!seal_frame(&mut a, &mut counters, NOBODY, &mut long));
    assert_eq!((counters.malformed, counters.too_long), (1, 1));
}

proptest! {
    /// A message with any change, in its bytes or its lengths, is dropped.
    #[test]
    fn changed_frames_are_dropped(
        at in any::<prop::sample::Index>(),
        flip in 1u8..,
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut a, mut b) = pair();
        let mut counters = FrameCounters::default();
        let mut sealed = frame(A, B, &[9; 100], 0);
        seal_frame(&mut a, &mut counters, NOBODY, &mut sealed);
        let mut changed = sealed.clone();
        changed[MESSAGE + at.index(sealed.len() - MESSAGE)] ^= flip;
        prop_assert_eq!(open_frame(&mut b, &mut counters, NOBODY, 0, &mut changed), Arrived::Dropped);
        let mut short = sealed[..MESSAGE + cut.index(sealed.len() - MESSAGE)].to_vec();
        prop_assert_eq!(open_frame(&mut b, &mut counters, NOBODY, 0, &mut short), Arrived::Dropped);
        for at in [IP + 2, IP + 3, UDP + 4, UDP + 5] {
            let mut wrong = sealed.clone();
            wrong[at] ^= flip;
            prop_assert_eq!(open_frame(&mut b, &mut counters, NOBODY, 0, &mut wrong), Arrived::Dropped);
        }
        prop_assert!(matches!(open_frame(&mut b, &mut counters, NOBODY, 0, &mut sealed), Arrived::Pass(_)));
    }

    #[test]
    fn any_bytes_are_taken(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (mut a, _) = pair();
        let mut counters = FrameCounters::default();
        open_frame(&mut a, &mut counters, NOBODY, 0, &mut bytes);
        seal_frame(&mut a, &mut counters, NOBODY, &mut bytes);
    }
}

/// The addresses of a switch that has one in a service.
type OwnAt = fn(Ipv4Addr) -> Own;

/// Services whose messages are sealed at their two ends: the port, and the addresses of a switch that
/// has one there.
const SERVICES: [(u16, OwnAt); 2] = [
    (coordination::PORT, |own| Own {
        coordination: Some(own),
        ..NOBODY
    }),
    (multicast::PORT, |own| Own {
        multicast: Some(own),
        ..NOBODY
    }),
];

/// Ports of messages of a service: between switches, to a host, from a host.
fn ports(service: u16) -> [(u16, u16); 3] {
    [(service, service), (service, 5000), (5000, service)]
}

/// A frame from [`A`] to [`B`] between two ports.
pub(crate) fn message(from: u16, to: u16) -> Vec<u8> {
    let mut frame = frame(A, B, &[9; 160], 0);
    put(&mut frame, UDP, from);
    put(&mut frame, UDP + 2, to);
    frame
}

/// The end at [`B`], a switch of a service, and its answer to the first message of a host at [`A`].
fn answered(service: u16, own: fn(Ipv4Addr) -> Own) -> (Guard, Vec<u8>) {
    let (mut a, mut b) = (guard(1, 2, B), guard(2, 1, A));
    let mut counters = FrameCounters::default();
    let mut question = message(5000, service);
    assert!(seal_frame(&mut a, &mut counters, own(A), &mut question));
    match open_frame(&mut b, &mut counters, own(B), 0, &mut question) {
        Arrived::Answered(answer) => (b, answer),
        other => panic!("no answer: {other:?}"),
    }
}

/// A host, whose port is its own, hears the token by which its next message is taken.
#[test]
fn an_answer_goes_to_the_port_that_asked() {
    for (service, own) in SERVICES {
        let (_, answer) = answered(service, own);
        let ports = [half(&answer, UDP), half(&answer, UDP + 2)];
        assert_eq!(ports, [service, 5000]);
    }
}

/// Messages of a service are sealed if they are the switch's own, whichever side has the port.
/// Those that are forged, cut or repeated are dropped and counted.
#[test]
fn messages_of_a_service_are_sealed_between_their_ends() {
    for (service, own) in SERVICES {
        let (mut a, mut b) = pair();
        let mut counters = FrameCounters::default();
        for (from, to) in ports(service) {
            let before = message(from, to);
            let mut sealed = before.clone();
            assert!(seal_frame(&mut a, &mut counters, own(A), &mut sealed));
            assert_eq!(sealed.len(), before.len() + TRAILER_LENGTH);
            // A switch on the way leaves it alone.
            let mut passed = sealed.clone();
            let third = own(Ipv4Addr::new(10, 0, 0, 3));
            let length = passed.len();
            assert_eq!(
                open_frame(&mut b, &mut counters, third, 0, &mut passed),
                Arrived::Pass(length)
            );
            assert!(seal_frame(&mut b, &mut counters, third, &mut passed));
            assert_eq!(passed, sealed);
            let mut forged = sealed.clone();
            forged[MESSAGE + 20] ^= 1;
            let mut cut = sealed.clone();
            cut.truncate(length - 1);
            for mut wrong in [before.clone(), forged, cut] {
                let opened = open_frame(&mut b, &mut counters, own(B), 0, &mut wrong);
                assert_eq!(opened, Arrived::Dropped);
            }
            let mut again = sealed.clone();
            assert_eq!(
                open_frame(&mut b, &mut counters, own(B), 0, &mut sealed),
                Arrived::Pass(before.len())
            );
            assert_eq!(sealed[..before.len()], before[..]);
            assert_eq!(
                open_frame(&mut b, &mut counters, own(B), 0, &mut again),
                Arrived::Dropped
            );
        }
        let seen = b.counters();
        assert_eq!((seen.opened, seen.replayed, counters.malformed), (3, 3, 3));
        assert_eq!((seen.not_sealed, seen.forged), (3, 3));
        // Without an address in the service its messages are none.
        let mut other = message(5000, service);
        let before = other.clone();
        assert!(seal_frame(&mut a, &mut counters, NOBODY, &mut other));
        assert_eq!(other, before);
    }
}

/// A switch that has an address in one service has none in the other.
#[test]
fn an_address_in_one_service_is_none_in_another() {
    let (mut a, mut b) = pair();
    let mut counters = FrameCounters::default();
    for ((service, _), (_, own)) in SERVICES.into_iter().zip(SERVICES.into_iter().rev()) {
        let before = message(service, service);
        let mut other = before.clone();
        assert!(seal_frame(&mut a, &mut counters, own(A), &mut other));
        assert_eq!(other, before);
        let opened = open_frame(&mut b, &mut counters, own(B), 0, &mut other);
        assert_eq!(opened, Arrived::Pass(before.len()));
    }
}

/// A frame of a service under the switch's own address is a stranger's; others are not judged.
#[test]
fn a_message_under_the_own_address_is_an_impostors() {
    for (service, own) in SERVICES {
        for (from, to) in ports(service) {
            let forged = message(from, to);
            assert!(is_impostor(own(A), &forged) && !is_impostor(own(B), &forged));
        }
        assert!(!is_impostor(own(A), &message(53, 5000)));
    }
}

/// A neighbour whose route to the asker leads through the switch gives its answer back.
#[test]
fn an_answer_that_comes_back_is_no_impostor_and_leaves_as_it_is() {
    for (service, own) in SERVICES {
        let (mut b, answer) = answered(service, own);
        let mut returned = answer.clone();
        assert!(!is_impostor(own(B), &returned));
        let mut counters = FrameCounters::default();
        assert!(seal_frame(&mut b, &mut counters, own(B), &mut returned));
        assert_eq!(returned, answer);
    }
}

use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;

const MESSAGE: &[u8] = b"twenty-four bytes or more";

fn key(byte: u8) -> Key {
    let mut bytes = [byte; Key::LENGTH];
    bytes[0] = !byte;
    Key::new(bytes)
}

/// The configuration of `id` with `peer`, whom it shares the keys of these numbers with.
fn config(id: u32, peer: u32, keys: &[u16], send_with: u16) -> Config {
    let keys = keys.iter().map(|number| (*number, key(*number as u8)));
    Config {
        id,
        peers: vec![PeerConfig {
            id: peer,
            keys: keys.collect(),
            send_with,
        }],
    }
}

/// An end with key 1; `start` tells its starts apart.
fn start(id: u32, peer: u32, start: u8) -> Endpoint {
    let life = u64::from(id) << 8 | u64::from(start);
    Endpoint::new(&config(id, peer, &[1], 1), life, [start; 32]).unwrap()
}

fn sealed(by: &mut Endpoint, to: u32, message: &[u8]) -> Vec<u8> {
    let mut bytes = message.to_vec();
    bytes.extend(by.seal(to, message).unwrap());
    bytes
}

fn answer_of(opened: Opened) -> Option<Answer> {
    match opened {
        Opened::Heard { answer } | Opened::Refused { answer, .. } => answer,
        Opened::Message { .. } => None,
    }
}

fn is_message(opened: Opened) -> bool {
    matches!(opened, Opened::Message { .. })
}

fn refusal(opened: Opened) -> Option<Refusal> {
    match opened {
        Opened::Refused { refusal, .. } => Some(refusal),
        _ => None,
    }
}

/// Lets `a` ask and both answer until no message is left; returns their number.
fn acquaint(now: u64, a: &mut Endpoint, b: &mut Endpoint) -> usize {
    let question = sealed(a, b.id(), MESSAGE);
    let mut answer = answer_of(b.open(now, &question));
    let mut count = 0;
    while let Some(bytes) = answer {
        count += 1;
        assert!(count <= 4, "ends do not answer each other for ever");
        let hearer = if count % 2 == 1 { &mut *a } else { &mut *b };
        answer = answer_of(hearer.open(now, &bytes.0));
    }
    count
}

fn pair() -> (Endpoint, Endpoint) {
    let (mut a, mut b) = (start(1, 2, 1), start(2, 1, 2));
    assert_eq!(acquaint(0, &mut a, &mut b), 2);
    (a, b)
}

#[test]
fn two_answers_make_both_directions_work() {
    let (mut a, mut b) = pair();
    let length = MESSAGE.len();
    for _ in 0..3 {
        let bytes = sealed(&mut a, 2, MESSAGE);
        assert_eq!(b.open(1, &bytes), Opened::Message { from: 1, length });
        let bytes = sealed(&mut b, 1, MESSAGE);
        assert_eq!(a.open(1, &bytes), Opened::Message { from: 2, length });
    }
    assert_eq!(a.counters().opened, 3);
    assert_eq!((b.counters().lives, b.counters().unproven), (1, 1));
}

#[test]
fn nothing_passes_twice_and_order_does_not_matter() {
    let (mut a, mut b) = pair();
    let mut messages: Vec<_> = (0..500).map(|_| sealed(&mut a, 2, MESSAGE)).collect();
    messages.reverse();
    for bytes in &messages {
        assert!(is_message(b.open(1, bytes)));
    }
    for bytes in &messages {
        assert_eq!(refusal(b.open(2, bytes)), Some(Refusal::Replayed));
    }
    for _ in 0..3_000 {
        let bytes = sealed(&mut a, 2, MESSAGE);
        b.open(3, &bytes);
    }
    for bytes in &messages {
        assert_eq!(refusal(b.open(4, bytes)), Some(Refusal::TooOld));
    }
}

#[test]
fn what_an_earlier_life_of_the_sender_sealed_is_refused() {
    let (mut a, mut b) = pair();
    let mut recorded: Vec<_> = (0..10).map(|_| sealed(&mut a, 2, MESSAGE)).collect();
    assert!(is_message(b.open(1, &recorded.pop().unwrap())));
    let mut a = start(1, 2, 3);
    acquaint(1, &mut a, &mut b);
    for bytes in &recorded {
        let opened = b.open(1_000_000, bytes);
        assert_eq!(refusal(opened), Some(Refusal::Unproven));
        // Whom the answer reaches in the new life does not care.
        let answer = answer_of(opened);
        if let Some(answer) = answer {
            assert_eq!(answer_of(a.open(2, &answer.0)), None);
        }
    }
    let bytes = sealed(&mut a, 2, MESSAGE);
    assert!(is_message(b.open(2_000_000, &bytes)));
    assert_eq!(b.counters().lives, 2);
}

#[test]
fn what_was_sealed_before_the_receiver_started_is_refused() {
    let (mut a, mut b) = pair();
    let recorded: Vec<_> = (0..10).map(|_| sealed(&mut a, 2, MESSAGE)).collect();
    assert!(is_message(b.open(1, &recorded[0])));
    let mut b = start(2, 1, 4);
    for bytes in &recorded {
        assert_eq!(refusal(b.open(0, bytes)), Some(Refusal::Unproven));
    }
    let mut after = 20_000;
    acquaint(after, &mut a, &mut b);
    for bytes in &recorded {
        after += 1;
        assert_eq!(refusal(b.open(after, bytes)), Some(Refusal::Unproven));
    }
    let bytes = sealed(&mut a, 2, MESSAGE);
    assert!(is_message(b.open(after, &bytes)));
}

/// Both restart, and an attacker replays everything that was ever on the wire, at both
/// ends, between any two steps.
#[test]
fn replays_between_restarts_change_nothing_and_stop_nothing() {
    let mut random = SmallRng::seed_from_u64(7);
    let mut wire: Vec<(u32, Vec<u8>)> = Vec::new();
    let mut starts = 2;
    let (mut a, mut b) = (start(1, 2, 1), start(2, 1, 2));
    let mut delivered = std::collections::BTreeSet::new();
    let mut number = 0u64;
    let mut fresh = 0;
    for step in 0..4_000u64 {
        let now = step * 5_000;
        match random.random_range(0..40) {
            0 => {
                starts += 1;
                a = start(1, 2, starts);
            }
            1 => {
                starts += 1;
                b = start(2, 1, starts);
            }
            2..=12 if !wire.is_empty() => {
                let (to, bytes) = wire[random.random_range(0..wire.len())].clone();
                let end = if to == 1 { &mut a } else { &mut b };
                let opened = end.open(now, &bytes);
                // It may have been lost the first time, but twice is once too often.
                if is_message(opened) {
                    assert!(delivered.insert(bytes), "step {step}: taken twice");
                }
            }
            _ => {
                number += 1;
                let mut message = MESSAGE.to_vec();
                message.extend(number.to_be_bytes());
                let from_a = random.random::<bool>();
                let (from, to) = if from_a {
                    (&mut a, &mut b)
                } else {
                    (&mut b, &mut a)
                };
                let bytes = sealed(from, to.id(), &message);
                wire.push((to.id(), bytes.clone()));
                let opened = to.open(now, &bytes);
                if is_message(opened) {
                    fresh += 1;
                    assert!(delivered.insert(bytes), "step {step}: taken twice");
                }
                let mut answer = answer_of(opened);
                let mut to_from = true;
                while let Some(Answer(bytes)) = answer {
                    let end = if to_from { &mut *from } else { &mut *to };
                    wire.push((end.id(), bytes.to_vec()));
                    answer = answer_of(end.open(now, &bytes));
                    to_from = !to_from;
                }
            }
        }
        assert!(starts < 255);
    }
    // Each restart costs one message in each direction, and replays cost none.
    assert!(
        fresh + 3 * u64::from(starts) >= number,
        "{fresh} of {number}"
    );
    assert!(fresh > 2_000);
}

#[test]
fn a_replayed_answer_does_not_bring_an_old_token_back() {
    let (mut a, mut b) = (start(1, 2, 1), start(2, 1, 2));
    let question = sealed(&mut a, 2, MESSAGE);
    let old = answer_of(b.open(0, &question)).unwrap();
    a.open(0, &old.0);
    let mut b = start(2, 1, 3);
    acquaint(0, &mut a, &mut b);
    a.open(1, &old.0);
    assert_eq!(a.counters().answers_stale, 1);
    let bytes = sealed(&mut a, 2, MESSAGE);
    assert!(is_message(b.open(1, &bytes)));
}

/// The question of the earlier life bears a number that the new one has used too.
#[test]
fn an_answer_to_an_earlier_life_is_not_heeded() {
    let (mut a, mut b) = (start(1, 2, 1), start(2, 1, 2));
    for _ in 0..2 {
        sealed(&mut a, 2, MESSAGE);
    }
    let question = sealed(&mut a, 2, MESSAGE);
    let earlier = answer_of(b.open(0, &question)).unwrap();
    let mut a = start(1, 2, 3);
    assert_eq!(acquaint(0, &mut a, &mut b), 2);
    for _ in 0..4 {
        let bytes = sealed(&mut a, 2, MESSAGE);
        assert!(is_message(b.open(1, &bytes)));
    }
    a.open(2, &earlier.0);
    assert_eq!(a.counters().answers_stale, 1);
    let bytes = sealed(&mut a, 2, MESSAGE);
    assert!(is_message(b.open(3, &bytes)));
}

/// An answer to a question that was never asked belongs to another life, and is ignored.
#[test]
fn an_answer_to_a_question_that_was_never_asked_is_not_heeded() {
    let (mut a, mut b) = (start(1, 2, 1), start(2, 1, 2));
    let mut twin = start(1, 2, 1);
    for _ in 0..5 {
        sealed(&mut twin, 2, MESSAGE);
    }
    let question = sealed(&mut twin, 2, MESSAGE);
    let answer = answer_of(b.open(0, &question)).unwrap();
    a.open(0, &answer.0);
    assert_eq!(a.counters().answers_stale, 1);
    assert_eq!(a.counters().answers_taken, 0);
}

/// A token heard by one stands for no other, not even where two drew the same life.
#[test]
fn each_life_of_each_peer_is_given_a_token_of_its_own() {
    let mut both = config(2, 1, &[1], 1);
    both.peers.extend(config(2, 3, &[3], 3).peers);
    let mut b = Endpoint::new(&both, 9, [2; 32]).unwrap();
    let tokens = [(1, 7), (1, 8), (3, 7)].map(|(id, life)| {
        let own = config(id, 2, &[id as u16], id as u16);
        let mut asks = Endpoint::new(&own, life, [id as u8; 32]).unwrap();
        let question = sealed(&mut asks, 2, MESSAGE);
        let answer = answer_of(b.open(0, &question)).unwrap();
        u64::from_be_bytes(answer.0[..8].try_into().unwrap())
    });
    let different = std::collections::BTreeSet::from(tokens);
    assert_eq!(different.len(), 3, "{tokens:x?}");
}

/// The numbers of a new life begin again, and were seen in the life before.
#[test]
fn a_new_life_has_a_window_of_its_own() {
    let (mut a, mut b) = pair();
    for start_number in 3..6 {
        for _ in 0..100 {
            let bytes = sealed(&mut a, 2, MESSAGE);
            assert!(is_message(b.open(1, &bytes)));
        }
        a = start(1, 2, start_number);
        acquaint(20_000 * u64::from(start_number), &mut a, &mut b);
    }
    assert_eq!(b.counters().lives, 4);
}

#[test]
fn an_answer_of_another_length_is_none() {
    let (mut a, mut b) = pair();
    for length in [0, 23, 24, 25, 48] {
        let mut bytes = vec![0; length];
        let trailer = a.trailer(2, Kind::Answer, &bytes).unwrap();
        bytes.extend(trailer);
        let opened = b.open(1, &bytes);
        match length {
            24 => assert_eq!(opened, Opened::Heard { answer: None }),
            _ => assert_eq!(refusal(opened), Some(Refusal::NotSealed), "{length}"),
        }
    }
}

#[test]
fn messages_for_others_and_reflected_ones_are_refused() {
    let (mut a, _) = pair();
    let mut c = start(3, 1, 5);
    let bytes = sealed(&mut a, 2, MESSAGE);
    assert_eq!(refusal(c.open(0, &bytes)), Some(Refusal::Forged));
    assert_eq!(refusal(a.open(0, &bytes)), Some(Refusal::UnknownSender));
    assert_eq!(a.seal(9, MESSAGE), None);
    assert_eq!(a.counters().unknown_receiver, 1);
}

#[test]
fn answers_are_bounded_and_never_longer_than_questions() {
    let (mut a, mut b) = (start(1, 2, 1), start(2, 1, 2));
    for length in 0..100 {
        let bytes = sealed(&mut a, 2, &vec![0; length]);
        let answer = answer_of(b.open(length as u64 * 10_000, &bytes));
        assert_eq!(answer.is_some(), length >= 24);
        assert!(answer.is_none_or(|answer| answer.0.len() <= bytes.len()));
    }
    let count = |b: &mut Endpoint, now: u64| {
        let question = sealed(&mut start(1, 2, 9), 2, MESSAGE);
        let answers = (0..1000).filter_map(|_| answer_of(b.open(now, &question)));
        answers.count()
    };
    assert_eq!(count(&mut b, 2_000_000), 8);
    assert_eq!(count(&mut b, 2_000_000), 0);
    assert_eq!(count(&mut b, 2_003_000), 3);
}

#[test]
fn keys_are_replaced_while_messages_flow() {
    let (mut a, mut b) = pair();
    let flow = |a: &mut Endpoint, b: &mut Endpoint| {
        let both = [(1, 2), (2, 1)];
        both.map(|(from, _)| {
            let (from, to) = if from == 1 {
                (&mut *a, &mut *b)
            } else {
                (&mut *b, &mut *a)
            };
            let bytes = sealed(from, to.id(), MESSAGE);
            to.open(9, &bytes)
        })
    };
    let in_flight = sealed(&mut a, 2, MESSAGE);
    let steps: [(&[u16], u16, bool); 6] = [
        (&[1, 2], 1, true),
        (&[1, 2], 1, false),
        (&[1, 2], 2, true),
        (&[1, 2], 2, false),
        (&[2], 2, true),
        (&[2], 2, false),
    ];
    for (keys, send_with, at_a) in steps {
        let end = if at_a { &mut a } else { &mut b };
        let (id, peer) = if at_a { (1, 2) } else { (2, 1) };
        end.replace_keys(&config(id, peer, keys, send_with))
            .unwrap();
        assert!(flow(&mut a, &mut b).into_iter().all(is_message), "{keys:?}");
    }
    assert_eq!(refusal(b.open(9, &in_flight)), Some(Refusal::UnknownKey));
    assert_eq!(b.counters().unproven, 1, "the association goes on");
    // A key of an old number with another secret opens nothing.
    let mut other = config(1, 2, &[2], 2);
    other.peers[0].keys[0].1 = key(77);
    a.replace_keys(&other).unwrap();
    let [to_b, to_a] = flow(&mut a, &mut b);
    assert_eq!(refusal(to_b), Some(Refusal::Forged));
    assert_eq!(refusal(to_a), Some(Refusal::Forged));
}

#[test]
fn a_peer_that_is_removed_is_unknown() {
    let (mut a, mut b) = pair();
    b.replace_keys(&config(2, 3, &[4], 4)).unwrap();
    let bytes = sealed(&mut a, 2, MESSAGE);
    assert_eq!(refusal(b.open(1, &bytes)), Some(Refusal::UnknownSender));
    assert_eq!(b.seal(1, MESSAGE), None);
}

#[test]
fn what_was_recorded_before_a_peer_was_removed_is_refused_when_it_is_back() {
    let (mut a, mut b) = pair();
    let recorded: Vec<_> = (0..10).map(|_| sealed(&mut a, 2, MESSAGE)).collect();
    for bytes in &recorded {
        assert!(is_message(b.open(1, bytes)));
    }
    let answered = sealed(&mut b, 1, MESSAGE);
    assert!(is_message(a.open(1, &answered)));
    b.replace_keys(&config(2, 3, &[4], 4)).unwrap();
    b.replace_keys(&config(2, 1, &[1], 1)).unwrap();
    for bytes in &recorded {
        assert_eq!(refusal(b.open(2, bytes)), Some(Refusal::Replayed));
    }
    // Neither side lost its count.
    let bytes = sealed(&mut b, 1, MESSAGE);
    assert!(is_message(a.open(2, &bytes)));
    let bytes = sealed(&mut a, 2, MESSAGE);
    assert!(is_message(b.open(2, &bytes)));
}

#[test]
fn configurations_that_contradict_themselves_are_refused() {
    let good = config(1, 2, &[1, 2], 2);
    good.check().unwrap();
    let changed = |change: &dyn Fn(&mut Config)| {
        let mut config = good.clone();
        change(&mut config);
        config.check().unwrap_err().code()
    };
    let third = || PeerConfig {
        id: 3,
        keys: vec![(7, key(1))],
        send_with: 7,
    };
    assert_eq!(changed(&|c| c.id = 2), "SEAL001");
    assert_eq!(changed(&|c| c.peers.push(c.peers[0].clone())), "SEAL002");
    assert_eq!(changed(&|c| c.peers[0].keys.clear()), "SEAL003");
    assert_eq!(changed(&|c| c.peers[0].keys[1].0 = 1), "SEAL004");
    assert_eq!(changed(&|c| c.peers.push(third())), "SEAL005");
    assert_eq!(changed(&|c| c.peers[0].send_with = 9), "SEAL006");
    let mut end = start(2, 1, 1);
    assert_eq!(end.replace_keys(&good).unwrap_err().code(), "SEAL007");
}

proptest! {
    /// A message with anything changed, cut or added is refused, and the association goes on.
    #[test]
    fn every_change_is_refused(
        message in proptest::collection::vec(any::<u8>(), 0..200),
        at in any::<prop::sample::Index>(),
        flip in 1u8..,
        cut in any::<prop::sample::Index>(),
        more in proptest::collection::vec(any::<u8>(), 1..60),
    ) {
        let (mut a, mut b) = pair();
        let bytes = sealed(&mut a, 2, &message);
        let mut changed = bytes.clone();
        changed[at.index(bytes.len())] ^= flip;
        let mut longer = bytes.clone();
        longer.extend(&more);
        let mut shifted = more.clone();
        shifted.extend(&bytes);
        for wrong in [&changed, &longer, &shifted, &bytes[..cut.index(bytes.len())].to_vec()] {
            let opened = b.open(1, wrong);
            prop_assert!(refusal(opened).is_some(), "{opened:?}");
            prop_assert_eq!(answer_of(opened), None);
        }
        prop_assert!(is_message(b.open(1, &bytes)));
    }

    /// Any bytes at all.
    #[test]
    fn noise_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let (_, mut b) = pair();
        let mut dressed = bytes.clone();
        if let Some(at) = bytes.len().checked_sub(TRAILER_LENGTH) {
            dressed[at..at + 8].copy_from_slice(&[1, 1, 0, 1, 0, 0, 0, 1]);
        }
        for bytes in [bytes, dressed] {
            prop_assert!(refusal(b.open(1, &bytes)).is_some());
        }
    }
}

//! Stored histories of multicast, and those of a system that works with one delivery changed.

use proptest::prelude::*;
use stateplane_history::Expectation;
use stateplane_history::multicast::{
    Document, Event, EventKind, Final, History, Multicast, MulticastEvent, checkers, judge,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The histories of a folder of this crate's tests, by name.
fn stored(folder: &str) -> Vec<(String, Document)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(folder);
    let entries = fs::read_dir(&folder).expect("the folder of stored histories");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry of it").path())
        .collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).expect("a readable history");
        let document = Document::read(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, document)
    };
    paths.iter().map(read).collect()
}

/// Checkers that object besides the one that a bad history names: finals that grow at each receiver,
/// one for each message, leave no circle, and a message that comes twice is behind itself.
const ALSO: [(&str, &[&str]); 2] = [
    ("circle-of-three-groups.txt", &[checkers::FINALS]),
    (
        "delivered-twice.txt",
        &[checkers::ACYCLIC, checkers::FINALS],
    ),
];

#[test]
fn bad_histories_are_rejected_by_the_checker_they_name_and_no_other() {
    let mut rejecting = BTreeSet::new();
    for (name, document) in stored("multicast_bad") {
        let Some(Expectation::Rejected { by, .. }) = &document.expectation else {
            panic!("{name} names no checker");
        };
        let violations = judge(&document.history);
        let objecting: BTreeSet<_> = violations.iter().map(|of| of.checker).collect();
        let mut expected = BTreeSet::from([*by]);
        let also = ALSO.iter().filter(|(of, _)| name.ends_with(of));
        expected.extend(also.flat_map(|(_, checkers)| *checkers));
        assert_eq!(objecting, expected, "{name}: {violations:?}");
        for violation in &violations {
            let relevant = violation.relevant(&document.history, 4);
            assert!(!relevant.is_empty(), "{name}: {violation}");
        }
        rejecting.insert(*by);
    }
    assert_eq!(rejecting, BTreeSet::from(checkers::NAMES));
}

#[test]
fn good_histories_are_accepted() {
    for (name, document) in stored("multicast_good") {
        assert_eq!(document.expectation, Some(Expectation::Accepted), "{name}");
        assert_eq!(judge(&document.history), [], "{name}");
        let text = document.to_string();
        assert_eq!(Document::read(&text), Ok(document), "{name}");
    }
}

const GROUPS: u8 = 3;
const RECEIVERS: u32 = 2;

/// Messages to groups in one order, each receiver as far as `choices` say, and at the end all.
fn run(choices: &[u32]) -> History {
    let mut events = Vec::new();
    let mut note = |event| {
        let at = events.len() as u64;
        let kind = EventKind::Of(event);
        events.push(Event { at, kind });
    };
    let receivers = (0..GROUPS).flat_map(|group| (0..RECEIVERS).map(move |of| (group, of)));
    let receivers: Vec<(u8, u32)> = receivers.collect();
    let node = |group: u8, of: u32| 100 + 10 * u32::from(group) + of;
    for &(group, of) in &receivers {
        let node = node(group, of);
        note(MulticastEvent::Joined {
            node,
            group,
            peer: None,
            after: None,
        });
    }
    let mut messages: Vec<(u64, u32)> = Vec::new();
    let mut next = vec![0; receivers.len()];
    let deliver = |messages: &[(u64, u32)], place: &mut usize, (group, of): (u8, u32)| {
        let at = *place;
        let (message, to) = *messages.get(at)?;
        *place += 1;
        let at = Final {
            time: at as u64,
            group: to.trailing_zeros() as u8,
        };
        ((to >> group) & 1 == 1).then_some(MulticastEvent::Delivered {
            node: node(group, of),
            group,
            message,
            at,
            digest: message,
        })
    };
    for choice in choices {
        let which = *choice as usize % (receivers.len() + 2);
        if let Some(receiver) = receivers.get(which) {
            deliver(&messages, &mut next[which], *receiver).map(&mut note);
        } else {
            let message = messages.len() as u64 + 1;
            let to = 1 + (choice >> 8) % ((1 << GROUPS) - 1);
            messages.push((message, to));
            note(MulticastEvent::Sent {
                node: 1 + (choice >> 16) % 3,
                message,
                to,
                digest: message,
            });
        }
    }
    note(MulticastEvent::Whole);
    for (which, receiver) in receivers.iter().enumerate() {
        while next[which] < messages.len() {
            deliver(&messages, &mut next[which], *receiver).map(&mut note);
        }
    }
    for (message, _) in messages {
        note(MulticastEvent::Completed { node: 1, message });
    }
    let system = Multicast {
        within: 1 << 40,
        queue: 1,
        window: 1,
    };
    History { system, events }
}

fn deliveries(history: &History) -> Vec<usize> {
    let events = history.events.iter().enumerate();
    let delivered = events
        .filter(|(_, event)| matches!(event.kind, EventKind::Of(MulticastEvent::Delivered { .. })));
    delivered.map(|(index, _)| index).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn one_order_is_accepted(choices in proptest::collection::vec(any::<u32>(), 0..400)) {
        let history = run(&choices);
        let found: Vec<_> = judge(&history).iter().map(|of| of.to_string()).collect();
        prop_assert!(found.is_empty(), "{found:?}");
        let text = history.to_string();
        prop_assert_eq!(Document::read(&text).map(|of| of.history), Ok(history));
    }

    #[test]
    fn a_delivery_that_is_left_out_or_exchanged_is_refused(
        choices in proptest::collection::vec(any::<u32>(), 50..400),
        which: prop::sample::Index,
        exchange: bool,
    ) {
        let mut history = run(&choices);
        let delivered = deliveries(&history);
        prop_assume!(!delivered.is_empty());
        let first = delivered[which.index(delivered.len())];
        let EventKind::Of(MulticastEvent::Delivered { node, .. }) = history.events[first].kind
        else {
            unreachable!("it is a delivery");
        };
        let own = |index: &&usize| {
            **index > first
                && matches!(
                    history.events[**index].kind,
                    EventKind::Of(MulticastEvent::Delivered { node: of, .. }) if of == node
                )
        };
        let second = delivered.iter().find(own).copied();
        match second.filter(|_| exchange) {
            Some(second) => {
                let later = history.events[second].kind.clone();
                let earlier = core::mem::replace(&mut history.events[first].kind, later);
                history.events[second].kind = earlier;
            }
            None => _ = history.events.remove(first),
        }
        prop_assert!(!judge(&history).is_empty());
    }
}

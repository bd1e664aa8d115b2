//! Watches (rule 23): each entry once, in order, or told to be missing.

#[allow(dead_code, reason = "each test needs another part")]
mod chain;
mod driver;

use chain::{GROUPS, Service};
use driver::{Client, run};
use proptest::prelude::*;
use stateplane_coordination::{
    Name, Operation, Owner, Place, Watch, WatchEvent, WatchSettings, When,
};
use stateplane_wire::coordination::Key;

const MS: u64 = 1_000;
const GROUP: u16 = 1;

fn place(key: u8) -> Place {
    Place::within(GROUP, Key([key; 16]))
}

fn client(service: &mut Service) -> [Client; 1] {
    [Client::new(service.agent(4))]
}

/// A writer of its own, whose entries go to others.
fn submit(service: &mut Service, writer: &mut [Client; 1], operation: Operation) {
    let now = service.now;
    writer[0].agent.submit(now, operation).expect("submitted");
    service.exchange(&mut writer[0].agent);
}

fn put(service: &mut Service, writer: &mut [Client; 1], key: u8, value: &[u8]) {
    submit(service, writer, Operation::put(place(key), value));
}

fn seen(watch: &mut Watch) -> Vec<String> {
    let events = std::iter::from_fn(|| watch.poll_event());
    events
        .map(|event| match event {
            WatchEvent::Put { record } => format!("put {}", record.number),
            WatchEvent::Deleted { number, .. } => format!("deleted {number}"),
            WatchEvent::Compacted { oldest } => format!("compacted {oldest}"),
            WatchEvent::Clash => "clash".to_owned(),
        })
        .collect()
}

#[test]
fn a_watch_tells_every_change_of_its_record() {
    let mut service = Service::new();
    let (mut writer, mut watcher) = (client(&mut service), client(&mut service));
    put(&mut service, &mut writer, 1, b"a");
    watcher[0].watches.push(Watch::new(place(1), None));
    run(&mut service, &mut watcher, 10 * MS);
    assert_eq!(seen(&mut watcher[0].watches[0]), ["put 1"]);
    // Changes of others, and failures, have numbers and are no events.
    put(&mut service, &mut writer, 1, b"b");
    put(&mut service, &mut writer, 2, b"x");
    submit(
        &mut service,
        &mut writer,
        Operation::write(place(1), b"c", When::Absent),
    );
    put(&mut service, &mut writer, 1, b"d");
    submit(
        &mut service,
        &mut writer,
        Operation::delete(place(1), When::Always),
    );
    put(&mut service, &mut writer, 1, b"e");
    run(&mut service, &mut watcher, 10 * MS);
    let told = seen(&mut watcher[0].watches[0]);
    assert_eq!(told, ["put 2", "put 5", "deleted 6", "put 7"]);
    assert_eq!(watcher[0].watches[0].next(), Some(8));
}

#[test]
fn a_watch_without_a_record_says_so_first() {
    let mut service = Service::new();
    let (mut writer, mut watcher) = (client(&mut service), client(&mut service));
    put(&mut service, &mut writer, 2, b"x");
    watcher[0].watches.push(Watch::new(place(1), None));
    run(&mut service, &mut watcher, 10 * MS);
    assert_eq!(seen(&mut watcher[0].watches[0]), ["deleted 1"]);
}

#[test]
fn a_watch_of_a_group_tells_all_records() {
    let mut service = Service::new();
    let (mut writer, mut watcher) = (client(&mut service), client(&mut service));
    put(&mut service, &mut writer, 1, b"a");
    watcher[0].watches.push(Watch::group(GROUP, None));
    run(&mut service, &mut watcher, 10 * MS);
    assert!(seen(&mut watcher[0].watches[0]).is_empty());
    put(&mut service, &mut writer, 1, b"b");
    put(&mut service, &mut writer, 2, b"c");
    let owner = Owner {
        session: 1,
        handle: 1,
    };
    submit(
        &mut service,
        &mut writer,
        Operation::acquire(place(3), owner, false),
    );
    run(&mut service, &mut watcher, 10 * MS);
    let told = seen(&mut watcher[0].watches[0]);
    assert_eq!(told, ["put 2", "put 3", "put 4"]);
}

#[test]
fn a_watch_goes_on_from_a_number() {
    let mut service = Service::new();
    let (mut writer, mut watcher) = (client(&mut service), client(&mut service));
    for value in 0..40 {
        put(&mut service, &mut writer, 1 + value % 2, &[value]);
    }
    watcher[0].watches.push(Watch::new(place(2), Some(3)));
    run(&mut service, &mut watcher, 10 * MS);
    let wanted: Vec<_> = (4..=40)
        .step_by(2)
        .map(|number| format!("put {number}"))
        .collect();
    assert_eq!(seen(&mut watcher[0].watches[0]), wanted);
    // From a number that is not there yet: nothing before it.
    watcher[0].watches.push(Watch::new(place(1), Some(43)));
    run(&mut service, &mut watcher, 10 * MS);
    for value in 0..4 {
        put(&mut service, &mut writer, 1, &[value]);
    }
    run(&mut service, &mut watcher, 10 * MS);
    assert_eq!(seen(&mut watcher[0].watches[1]), ["put 43", "put 44"]);
}

#[test]
fn lost_entries_are_asked_for() {
    let mut service = Service::new();
    let (mut writer, mut watcher) = (client(&mut service), client(&mut service));
    watcher[0].watches.push(Watch::group(GROUP, None));
    run(&mut service, &mut watcher, 10 * MS);
    service.lose_entries = 3;
    for value in 0..4 {
        put(&mut service, &mut writer, 1, &[value]);
    }
    run(&mut service, &mut watcher, 10 * MS);
    let told = seen(&mut watcher[0].watches[0]);
    assert_eq!(told, ["put 1", "put 2", "put 3", "put 4"]);
    // Nothing shows that the last is missing until the subscription is renewed.
    service.lose_entries = 1;
    put(&mut service, &mut writer, 1, b"last");
    run(&mut service, &mut watcher, 400 * MS);
    assert!(seen(&mut watcher[0].watches[0]).is_empty());
    run(&mut service, &mut watcher, 200 * MS);
    assert_eq!(seen(&mut watcher[0].watches[0]), ["put 5"]);
}

#[test]
fn what_left_the_ring_is_told_to_be_missing() {
    let mut service = Service::new();
    let (mut writer, mut watcher) = (client(&mut service), client(&mut service));
    service.ring = 4;
    for value in 0..10 {
        put(&mut service, &mut writer, 1 + value % 2, &[value]);
    }
    put(&mut service, &mut writer, 3, b"x");
    put(&mut service, &mut writer, 3, b"y");
    put(&mut service, &mut writer, 2, b"z");
    let watches = &mut watcher[0].watches;
    watches.push(Watch::group(GROUP, Some(2)));
    // Its last change is not known by the switch any more: the record itself is told.
    watches.push(Watch::new(place(1), Some(2)));
    // Its last change is.
    watches.push(Watch::new(place(2), Some(2)));
    watches.push(Watch::new(place(4), Some(2)));
    run(&mut service, &mut watcher, 20 * MS);
    let watches = &mut watcher[0].watches;
    let told = seen(&mut watches[0]);
    assert_eq!(
        told,
        ["compacted 10", "put 10", "put 11", "put 12", "put 13"]
    );
    assert_eq!(seen(&mut watches[1]), ["compacted 10", "put 9"]);
    assert_eq!(seen(&mut watches[2]), ["compacted 10", "put 10", "put 13"]);
    assert_eq!(seen(&mut watches[3]), ["compacted 10", "deleted 13"]);
}

#[test]
fn without_a_place_at_the_switch_a_watch_asks_again_and_again() {
    let mut service = Service::new();
    let (mut writer, mut watcher) = (client(&mut service), client(&mut service));
    service.full = true;
    watcher[0].watches.push(Watch::group(GROUP, None));
    run(&mut service, &mut watcher, 10 * MS);
    assert!(service.subscribers.is_empty());
    put(&mut service, &mut writer, 1, b"a");
    put(&mut service, &mut writer, 1, b"b");
    run(&mut service, &mut watcher, 60 * MS);
    assert_eq!(seen(&mut watcher[0].watches[0]), ["put 1", "put 2"]);
    // Once there is one, few requests do.
    service.full = false;
    run(&mut service, &mut watcher, 60 * MS);
    let before = service.watched;
    run(&mut service, &mut watcher, 2_000 * MS);
    assert!(service.watched - before <= 4, "{before}");
}

#[test]
fn a_new_answerer_learns_of_the_watch_by_its_renewal() {
    let mut service = Service::new();
    let (mut writer, mut watcher) = (client(&mut service), client(&mut service));
    watcher[0].watches.push(Watch::new(place(1), None));
    run(&mut service, &mut watcher, 10 * MS);
    assert_eq!(seen(&mut watcher[0].watches[0]), ["deleted 0"]);
    service.subscribers.clear();
    put(&mut service, &mut writer, 1, b"a");
    run(&mut service, &mut watcher, 600 * MS);
    assert_eq!(seen(&mut watcher[0].watches[0]), ["put 1"]);
    assert_eq!(service.subscribers.len(), 1);
    let (watch, agent) = {
        let client = &mut watcher[0];
        (&mut client.watches[0], &mut client.agent)
    };
    watch.end(service.now, agent);
    service.exchange(agent);
    assert!(service.subscribers.is_empty());
}

/// A record that was told is not told again because others' changes were forgotten.
#[test]
fn what_did_not_change_is_told_once() {
    let mut service = Service::new();
    service.ring = 4;
    let (mut writer, mut watcher) = (client(&mut service), client(&mut service));
    put(&mut service, &mut writer, 1, b"a");
    watcher[0].watches.push(Watch::new(place(1), None));
    run(&mut service, &mut watcher, 10 * MS);
    assert_eq!(seen(&mut watcher[0].watches[0]), ["put 1"]);
    service.lose_entries = 100;
    for _ in 0..8 {
        put(&mut service, &mut writer, 2, b"b");
    }
    service.lose_entries = 0;
    run(&mut service, &mut watcher, 5_000 * MS);
    let told = seen(&mut watcher[0].watches[0]);
    assert!(
        matches!(&told[..], [only] if only.starts_with("compacted")),
        "{told:?}"
    );
}

#[test]
fn a_long_name_is_taken_off_the_value() {
    let mut service = Service::new();
    let (mut writer, mut watcher) = (client(&mut service), client(&mut service));
    let name = Name::new(b"a name that is longer than a key").expect("a name");
    let place = name.place(GROUPS);
    watcher[0].watches.push(Watch::new(place.clone(), Some(1)));
    run(&mut service, &mut watcher, 10 * MS);
    submit(
        &mut service,
        &mut writer,
        Operation::put(place.clone(), b"v"),
    );
    run(&mut service, &mut writer, 10 * MS);
    run(&mut service, &mut watcher, 10 * MS);
    let watch = &mut watcher[0].watches[0];
    let Some(WatchEvent::Put { record }) = watch.poll_event() else {
        panic!("nothing was told")
    };
    assert_eq!(record.value, b"v");
    // A name with the same key, which would take years to find.
    let other = Place {
        prefix: [&[31], &[b'x'; 32][..]].concat(),
        ..place
    };
    let now = watcher[0].watches.len();
    watcher[0].watches.push(Watch::new(other, Some(1)));
    run(&mut service, &mut watcher, 10 * MS);
    assert_eq!(seen(&mut watcher[0].watches[now]), ["clash"]);
}

/// Entries of nobody's subscription, and what is no entry, change nothing.
#[test]
fn entries_of_another_subscription_are_dropped() {
    let mut service = Service::new();
    let (mut writer, mut watcher) = (client(&mut service), client(&mut service));
    watcher[0].watches.push(Watch::group(GROUP, None));
    run(&mut service, &mut watcher, 10 * MS);
    for handle in service.subscribers.values_mut() {
        *handle ^= 2;
    }
    put(&mut service, &mut writer, 1, b"a");
    run(&mut service, &mut watcher, 10 * MS);
    assert!(seen(&mut watcher[0].watches[0]).is_empty());
    assert_eq!(watcher[0].agent.counters().entries, 0);
    assert_eq!(watcher[0].agent.counters().unasked, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is lost, exchanged and repeated: each change once, in order, or told to be missing.
    #[test]
    fn each_change_is_told_once_in_order_or_missing(
        ring in 4_u64..40,
        from in prop::option::of(1_u64..30),
        steps in prop::collection::vec((0_u8..8, 0_u32..6, any::<u64>()), 1..60),
        of_group: bool,
    ) {
        let mut service = Service::new();
        service.ring = ring;
        let (mut writer, mut watcher) = (client(&mut service), client(&mut service));
        let settings = WatchSettings { renew: 20 * MS, poll: 5 * MS, gap: MS };
        let watch = if of_group {Watch::group(GROUP, from)} else {Watch::new(place(1), from)};
        watcher[0].watches.push(watch.with_settings(settings));
        for (step, number, draw) in steps {
            match step {
                0..=2 => {
                    let key = 1 + (draw % 2) as u8;
                    put(&mut service, &mut writer, key, &draw.to_be_bytes());
                }
                3 => service.lose_entries = number,
                4 => {
                    let count = service.entries.len();
                    if count > 0 {
                        service.entries.rotate_left(draw as usize % count);
                        let again = service.entries[0].clone();
                        service.entries.push_back(again);
                    }
                }
                5 => service.subscribers.clear(),
                6 => service.lose_replies = number,
                _ => run(&mut service, &mut watcher, u64::from(number) * 2 * MS),
            }
        }
        service.lose_entries = 0;
        service.lose_replies = 0;
        run(&mut service, &mut watcher, 5_000 * MS);
        // One more, after the watch began.
        put(&mut service, &mut writer, 1, b"end");
        run(&mut service, &mut watcher, 1_000 * MS);
        let changes: Vec<u64> = service.changes(GROUP)
            .filter(|(_, key)| of_group || *key == place(1).key)
            .map(|(number, _)| number)
            .collect();
        let watch = &mut watcher[0].watches[0];
        let mut told: Vec<(u64, bool)> = Vec::new();
        let (mut complete_from, mut last) = (from, 0);
        while let Some(event) = watch.poll_event() {
            match event {
                WatchEvent::Put { record } => {
                    prop_assert!(record.number > last, "{} after {last}", record.number);
                    last = record.number;
                    told.push((last, true));
                }
                WatchEvent::Deleted { number, .. } => {
                    prop_assert!(number >= last && !changes.contains(&number));
                }
                WatchEvent::Compacted { oldest } => {
                    prop_assert!(oldest > last);
                    complete_from = Some(oldest);
                    told.retain(|(number, _)| *number < oldest);
                    // What was told before that was complete.
                    let before: Vec<u64> = told.iter().map(|(number, _)| *number).collect();
                    prop_assert!(before.iter().all(|number| changes.contains(number)));
                }
                WatchEvent::Clash => prop_assert!(false, "a clash"),
            }
        }
        let first = complete_from.or(told.first().map(|(number, _)| *number));
        let newest = service.newest(GROUP);
        prop_assert_eq!(watch.next(), Some(from.unwrap_or(0).max(newest + 1)));
        let Some(first) = first else {
            prop_assert!(from.is_none());
            return Ok(());
        };
        let wanted: Vec<u64> = changes.iter().copied().filter(|at| *at >= first).collect();
        let told: Vec<u64> = told.iter().map(|(at, _)| *at).filter(|at| *at >= first).collect();
        prop_assert_eq!(told, wanted);
    }
}

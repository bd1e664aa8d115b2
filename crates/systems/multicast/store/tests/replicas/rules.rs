//! Rules of one replica and one client.

use super::{REPLY, command, key, key_of, place, value};
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_multicast::FinalTime;
use stateplane_multicast_store::{
    Busy, Client, ClientConfig, Key, Message, Operation, Outcome, Part, Reason, Replica,
    ReplicaConfig, Reply, Snapshot, StoreConfig, To, Value, Verdict,
};

const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 4801);

fn replica() -> Replica {
    let mut replica = Replica::new(ReplicaConfig::new(StoreConfig::new(0, 2)));
    // Client 7 is known from place 1 on.
    deliver(&mut replica, 1, 7, 0, Operation::Open {});
    part(&mut replica, 1, Verdict::New {}, true, &[]);
    while replica.poll_transmit().is_some() {}
    replica
}

fn deliver(replica: &mut Replica, at: u64, client: u64, number: u64, operation: Operation) {
    let groups = operation.groups(2);
    let opened = u64::from(operation != Operation::Open {});
    let payload = command(client, number, opened, operation);
    replica.handle_delivery(at, place(at), groups, payload);
}

/// A part of shard 1.
fn part(replica: &mut Replica, at: u64, verdict: Verdict, room: bool, values: &[Option<Value>]) {
    let values = values.to_vec();
    let part = Part {
        at: place(at),
        shard: 1,
        verdict,
        room,
        values,
    };
    replica.handle_datagram(at, PEER, &Message::Part { part }.to_vec());
}

/// Outcomes that the replica answered: number of the operation, its place, what became of it.
fn answers(replica: &mut Replica) -> Vec<(u64, u64, Outcome)> {
    let sent = core::iter::from_fn(|| replica.poll_transmit());
    let answers = sent.filter_map(|transmit| match Message::parse(&transmit.bytes) {
        Ok(Message::Answer {
            number,
            at,
            outcome,
            ..
        }) => {
            assert_eq!(transmit.to, To::Address(REPLY));
            Some((number, at.time, outcome))
        }
        _ => None,
    });
    answers.collect()
}

fn put(key: Key, text: &str) -> Operation {
    Operation::Put {
        key,
        value: value(text),
    }
}

fn get(key: Key) -> Operation {
    Operation::Get { key }
}

fn values(values: &[Option<&str>]) -> Outcome {
    let values = values.iter().map(|text| text.map(value)).collect();
    Outcome::Values { values }
}

fn decided(done: bool, found: &[Option<&str>]) -> Outcome {
    let Outcome::Values { values } = values(found) else {
        unreachable!("they are values")
    };
    Outcome::Decided { done, values }
}

fn refused(reason: Reason) -> Outcome {
    Outcome::Refused { reason }
}

#[test]
fn operations_of_one_shard() {
    let mut replica = replica();
    let key = key_of(0, 0);
    let swap = |expected: Option<&str>, new: Option<&str>| Operation::Swap {
        key: key.clone(),
        expected: expected.map(value),
        value: new.map(value),
    };
    let cases = [
        (get(key.clone()), values(&[None])),
        (put(key.clone(), "a"), Outcome::Done {}),
        (swap(Some("b"), Some("c")), decided(false, &[Some("a")])),
        (swap(Some("a"), Some("c")), decided(true, &[Some("a")])),
        (get(key.clone()), values(&[Some("c")])),
        (swap(Some("c"), None), decided(true, &[Some("c")])),
        (swap(None, Some("d")), decided(true, &[None])),
        (Operation::Delete { key: key.clone() }, Outcome::Done {}),
        (get(key.clone()), values(&[None])),
    ];
    for (number, (operation, outcome)) in (1..).zip(cases) {
        deliver(&mut replica, 1 + number, 7, number, operation.clone());
        let expected = vec![(number, 1 + number, outcome)];
        assert_eq!(answers(&mut replica), expected, "{operation:?}");
    }
}

#[test]
fn nothing_behind_an_operation_of_several_shards_is_answered_before_all_have_come_to_it() {
    let mut replica = replica();
    let (own, other) = (key_of(0, 0), key_of(1, 0));
    deliver(&mut replica, 2, 7, 1, put(own.clone(), "a"));
    assert_eq!(answers(&mut replica).len(), 1);
    deliver(
        &mut replica,
        3,
        7,
        2,
        Operation::Read {
            keys: vec![other.clone(), own.clone()],
        },
    );
    deliver(&mut replica, 4, 8, 0, get(own.clone()));
    assert_eq!(replica.waits_for(), Some((place(3), 0b10)));
    let sent: Vec<_> = core::iter::from_fn(|| replica.poll_transmit()).collect();
    let [transmit] = sent.as_slice() else {
        panic!("the part alone leaves: {sent:?}")
    };
    let Ok(Message::Part { part: told }) = Message::parse(&transmit.bytes) else {
        panic!("it is a part")
    };
    assert_eq!(
        (transmit.to, told.values),
        (To::Shard(1), vec![Some(value("a"))])
    );
    // Parts of another place and of its own shard change nothing.
    part(&mut replica, 5, Verdict::New {}, true, &[None]);
    assert_eq!(answers(&mut replica), []);
    part(&mut replica, 3, Verdict::New {}, true, &[Some(value("b"))]);
    let read = (2, 3, values(&[Some("b"), Some("a")]));
    assert_eq!(
        answers(&mut replica),
        [read, (0, 4, refused(Reason::Forgotten {}))]
    );
}

#[test]
fn a_part_that_is_missing_is_asked_for_and_given_again() {
    let mut replica = replica();
    let keys = vec![key_of(1, 0), key_of(0, 0)];
    deliver(&mut replica, 2, 7, 1, Operation::Read { keys });
    while replica.poll_transmit().is_some() {}
    let due = replica.poll_timeout().expect("it asks");
    replica.handle_timeout(due - 1);
    assert_eq!(replica.poll_transmit(), None);
    replica.handle_timeout(due);
    let ask = replica.poll_transmit().expect("it asks");
    assert_eq!(ask.to, To::Shard(1));
    assert_eq!(
        Message::parse(&ask.bytes),
        Ok(Message::Ask { at: place(2) })
    );
    let later = replica.poll_timeout().expect("it asks again");
    assert!(later - due > due - 2, "it backs off");

    // Asked itself, it gives what it has, is silent of what it has not come to, and tells of what
    // it does not keep.
    for (at, answers) in [(2, 1), (9, 0), (0, 1)] {
        let ask = Message::Ask { at: place(at) };
        replica.handle_datagram(due, PEER, &ask.to_vec());
        let sent: Vec<_> = core::iter::from_fn(|| replica.poll_transmit()).collect();
        assert_eq!(sent.len(), answers, "{at}");
        assert!(sent.iter().all(|transmit| transmit.to == To::Address(PEER)));
    }
    assert_eq!(replica.stuck(), None);
    let gone = Message::Gone {
        at: place(2),
        shard: 1,
    };
    replica.handle_datagram(due, PEER, &gone.to_vec());
    assert_eq!(replica.stuck(), Some((place(2), 1)));
    part(&mut replica, 2, Verdict::New {}, true, &[None]);
    assert_eq!(replica.stuck(), None);
}

#[test]
fn a_move_takes_the_value_along_or_does_nothing() {
    let (own, other) = (key_of(0, 0), key_of(1, 0));
    let there = || Some(value("there"));
    let cases = [
        // Own value, that of the other shard, and if the move is done.
        (Some("here"), None, true),
        (None, None, false),
        (Some("here"), there(), false),
    ];
    for (before, found, done) in cases {
        let mut replica = replica();
        if let Some(text) = before {
            deliver(&mut replica, 2, 7, 1, put(own.clone(), text));
        }
        let shift = Operation::Move {
            from: own.clone(),
            to: other.clone(),
        };
        deliver(&mut replica, 3, 7, 2, shift);
        part(&mut replica, 3, Verdict::New {}, true, &[found]);
        let answered = answers(&mut replica).pop();
        let Some((2, 3, Outcome::Decided { done: told, .. })) = answered else {
            panic!("{answered:?}")
        };
        assert_eq!(told, done);
        assert_eq!(
            replica.store().records().count(),
            usize::from(before.is_some() && !done)
        );
    }
    // The other way, the value comes with the part.
    let mut replica = replica();
    let shift = Operation::Move {
        from: other,
        to: own.clone(),
    };
    deliver(&mut replica, 2, 7, 1, shift);
    part(&mut replica, 2, Verdict::New {}, true, &[there()]);
    let records: Vec<_> = replica.store().records().collect();
    assert_eq!(records, [(&own, &value("there"))]);
}

#[test]
fn an_operation_is_executed_at_most_once() {
    let mut replica = replica();
    let key = key_of(0, 0);
    deliver(&mut replica, 2, 7, 1, put(key.clone(), "a"));
    deliver(
        &mut replica,
        3,
        7,
        2,
        Operation::Delete { key: key.clone() },
    );
    while replica.poll_transmit().is_some() {}
    // The last again: its answer; one before: a refusal; nothing changes.
    deliver(&mut replica, 4, 7, 2, put(key.clone(), "b"));
    deliver(&mut replica, 5, 7, 1, put(key.clone(), "b"));
    let told = answers(&mut replica);
    assert_eq!(
        told,
        [(2, 3, Outcome::Done {}), (1, 5, refused(Reason::Late {}))]
    );
    assert_eq!(replica.store().records().count(), 0);
}

#[test]
fn shards_execute_an_operation_together_or_not_at_all() {
    let verdicts = [
        (Verdict::Forgotten {}, Reason::Forgotten {}),
        (Verdict::Late {}, Reason::Late {}),
        // It was executed there, and what came of it is forgotten here.
        (Verdict::Again {}, Reason::Late {}),
    ];
    for (verdict, reason) in verdicts {
        let mut replica = replica();
        let (own, other) = (key_of(0, 0), key_of(1, 0));
        deliver(&mut replica, 2, 7, 1, put(own.clone(), "a"));
        while replica.poll_transmit().is_some() {}
        deliver(
            &mut replica,
            3,
            7,
            2,
            Operation::Move {
                from: own,
                to: other,
            },
        );
        part(&mut replica, 3, verdict, true, &[None]);
        assert_eq!(answers(&mut replica), [(2, 3, refused(reason))]);
        assert_eq!(replica.store().records().count(), 1);
    }
}

#[test]
fn a_client_that_opened_again_is_another() {
    let mut replica = replica();
    let key = key_of(0, 0);
    let late = command(7, 1, 0, put(key.clone(), "late"));
    replica.handle_delivery(2, place(2), 1, late);
    assert_eq!(
        answers(&mut replica),
        [(1, 2, refused(Reason::Forgotten {}))]
    );
    assert_eq!(replica.store().records().count(), 0);
}

#[test]
fn records_and_clients_have_bounds() {
    let sizes = StoreConfig {
        most_records: 2,
        most_clients: 2,
        ..StoreConfig::new(0, 2)
    };
    let mut replica = Replica::new(ReplicaConfig::new(sizes));
    for client in 7..10 {
        deliver(&mut replica, client, client, 0, Operation::Open {});
        part(&mut replica, client, Verdict::New {}, true, &[]);
    }
    while replica.poll_transmit().is_some() {}
    assert_eq!(replica.store().clients(), 2);
    // The first has been forgotten, the others not.
    let deliver = |replica: &mut Replica, at, client, number, operation: Operation| {
        let groups = operation.groups(2);
        let payload = command(client, number, client, operation);
        replica.handle_delivery(at, place(at), groups, payload);
        answers(replica).pop().map(|(_, _, outcome)| outcome)
    };
    let keys: Vec<Key> = (0..4).map(|number| key_of(0, number)).collect();
    let outcome = deliver(&mut replica, 10, 7, 1, get(keys[0].clone()));
    assert_eq!(outcome, Some(refused(Reason::Forgotten {})));
    for (number, key) in (1..3).zip(&keys) {
        let outcome = deliver(&mut replica, 10 + number, 8, number, put(key.clone(), "a"));
        assert_eq!(outcome, Some(Outcome::Done {}));
    }
    let full = Some(refused(Reason::Full {}));
    assert_eq!(
        deliver(&mut replica, 13, 8, 3, put(keys[2].clone(), "a")),
        full
    );
    let swap = |key: &Key, expected| Operation::Swap {
        key: key.clone(),
        expected,
        value: Some(value("b")),
    };
    assert_eq!(deliver(&mut replica, 14, 8, 4, swap(&keys[2], None)), full);
    let known = deliver(&mut replica, 15, 8, 5, swap(&keys[0], Some(value("a"))));
    assert_eq!(known, Some(decided(true, &[Some("a")])));
    // A move into a full shard does nothing in any.
    let shift = Operation::Move {
        from: key_of(1, 0),
        to: keys[3].clone(),
    };
    assert_eq!(deliver(&mut replica, 16, 8, 6, shift), None);
    part(&mut replica, 16, Verdict::New {}, true, &[Some(value("c"))]);
    assert_eq!(answers(&mut replica), [(6, 16, refused(Reason::Full {}))]);
    // One within the shard needs no room.
    let shift = Operation::Move {
        from: keys[0].clone(),
        to: keys[3].clone(),
    };
    let moved = deliver(&mut replica, 17, 8, 7, shift);
    assert_eq!(moved, Some(decided(true, &[Some("b"), None])));
    assert_eq!(replica.store().records().count(), 2);
}

#[test]
fn the_queue_has_a_bound_and_stops_who_feeds_it() {
    let config = ReplicaConfig {
        queue: 2,
        ..ReplicaConfig::new(StoreConfig::new(0, 2))
    };
    let mut replica = Replica::new(config);
    deliver(&mut replica, 1, 7, 0, Operation::Open {});
    for at in 2..4 {
        assert!(replica.has_room());
        deliver(&mut replica, at, 7, at, get(key_of(0, 0)));
    }
    assert!(!replica.has_room());
    deliver(&mut replica, 4, 7, 4, get(key_of(0, 0)));
    assert_eq!((replica.queued(), replica.counters().overflows), (3, 1));
    part(&mut replica, 1, Verdict::New {}, true, &[]);
    assert!(replica.has_room());
}

#[test]
fn parts_that_are_early_have_a_bound_and_the_nearest_are_kept() {
    let config = ReplicaConfig {
        kept: 2,
        ..ReplicaConfig::new(StoreConfig::new(0, 2))
    };
    let mut replica = Replica::new(config);
    for at in [5, 4, 3] {
        part(&mut replica, at, Verdict::New {}, true, &[]);
    }
    assert_eq!(replica.counters().early, 1);
    for (at, waits) in [(3, false), (4, false), (5, true)] {
        deliver(&mut replica, at, at, 0, Operation::Open {});
        assert_eq!(replica.waits_for().is_some(), waits, "{at}");
    }
}

#[test]
fn what_is_no_command_is_counted_and_takes_its_place() {
    let mut replica = replica();
    let key = key_of(0, 0);
    replica.handle_delivery(2, place(2), 1, b"no command".to_vec());
    // To a group more than its key's.
    replica.handle_delivery(3, place(3), 3, command(7, 1, 1, get(key.clone())));
    // At a place that is over.
    replica.handle_delivery(4, place(3), 1, command(7, 1, 1, get(key)));
    replica.handle_datagram(5, PEER, b"no message");
    let counters = replica.counters();
    assert_eq!(
        (counters.malformed, counters.behind, counters.strange),
        (1, 1, 1)
    );
    assert_eq!(replica.store().at(), place(3));
    assert_eq!(
        answers(&mut replica),
        [(1, 3, refused(Reason::Misdirected {}))]
    );
}

#[test]
fn a_joiner_passes_over_what_the_snapshot_has() {
    let mut first = replica();
    let (own, other) = (key_of(0, 0), key_of(1, 0));
    deliver(&mut first, 2, 7, 1, put(own.clone(), "a"));
    deliver(
        &mut first,
        3,
        7,
        2,
        Operation::Read {
            keys: vec![own.clone(), other],
        },
    );
    part(&mut first, 3, Verdict::New {}, true, &[None]);
    let bytes = first.snapshot().to_vec();
    let config = ReplicaConfig::new(StoreConfig::new(0, 2));
    let snapshot = Snapshot::parse(config.store, &bytes).expect("a snapshot");
    assert_eq!((snapshot.at(), &snapshot), (place(3), &first.snapshot()));
    let mut second = Replica::joining(config, snapshot);
    deliver(&mut second, 2, 7, 1, put(own.clone(), "b"));
    deliver(&mut second, 4, 7, 2, put(own.clone(), "b"));
    deliver(&mut second, 5, 7, 3, get(own));
    let read = values(&[Some("a"), None]);
    let told = answers(&mut second);
    assert_eq!(told, [(2, 3, read), (3, 5, values(&[Some("a")]))]);
    // It gives parts from before it joined.
    second.handle_datagram(6, PEER, &Message::Ask { at: place(3) }.to_vec());
    let sent = second.poll_transmit().expect("the part");
    assert!(matches!(
        Message::parse(&sent.bytes),
        Ok(Message::Part { .. })
    ));
    // Of two messages of one time, the second may wait when the state is taken.
    let keys = vec![key_of(0, 0), key_of(1, 0)];
    assert!(first.snapshot().covers(3) && !first.snapshot().covers(4));
    let later = FinalTime { time: 3, group: 1 };
    let read = command(7, 3, 1, Operation::Read { keys });
    first.handle_delivery(7, later, 3, read);
    assert!(first.snapshot().covers(2) && !first.snapshot().covers(3));
    let small = StoreConfig {
        most_records: 0,
        ..config.store
    };
    assert!(Snapshot::parse(small, &bytes).is_err());
}

#[test]
fn a_state_covers_what_passed_without_a_command() {
    let mut replica = replica();
    replica.handle_passed(8);
    let covers = |replica: &Replica, time| replica.snapshot().covers(time);
    assert!(covers(&replica, 8) && !covers(&replica, 9));
    let (own, other) = (key_of(0, 0), key_of(1, 0));
    let keys = vec![own.clone(), other];
    deliver(&mut replica, 9, 7, 1, Operation::Read { keys });
    // The read waits for the other shard.
    replica.handle_passed(12);
    assert!(!covers(&replica, 9));
    part(&mut replica, 9, Verdict::New {}, true, &[None]);
    replica.handle_passed(12);
    assert!(covers(&replica, 12) && !covers(&replica, 13));
    replica.handle_passed(11);
    assert!(covers(&replica, 12));
    deliver(&mut replica, 13, 7, 2, put(own, "a"));
    let last = answers(&mut replica).pop();
    assert_eq!(last, Some((2, 13, Outcome::Done {})));
}

/// A receiver that joined gets a message again that was delivered before, and replicas of other
/// shards do not: they never come to its place.
#[test]
fn what_was_executed_before_waits_for_no_shard() {
    let mut replica = replica();
    let (own, other) = (key_of(0, 0), key_of(1, 0));
    let keys = vec![own.clone(), other];
    deliver(
        &mut replica,
        2,
        7,
        1,
        Operation::Read { keys: keys.clone() },
    );
    part(&mut replica, 2, Verdict::New {}, true, &[None]);
    deliver(
        &mut replica,
        3,
        7,
        1,
        Operation::Read { keys: keys.clone() },
    );
    deliver(&mut replica, 4, 7, 2, put(own, "a"));
    deliver(&mut replica, 5, 7, 1, Operation::Read { keys });
    let read = values(&[None, None]);
    let late = Outcome::Refused {
        reason: Reason::Late {},
    };
    let expected = [
        (1, 2, read.clone()),
        (1, 2, read),
        (2, 4, Outcome::Done {}),
        (1, 5, late),
    ];
    assert_eq!(answers(&mut replica), expected);
    assert_eq!(replica.queued(), 0);
}

/// A command that waits for parts, and those behind it, are executed in one call.
#[test]
fn what_one_call_executes_can_be_fetched() {
    let config = ReplicaConfig {
        queue: 1,
        ..ReplicaConfig::new(StoreConfig::new(0, 2))
    };
    let mut replica = Replica::new(config);
    let own = key_of(0, 0);
    deliver(&mut replica, 1, 7, 0, Operation::Open {});
    deliver(&mut replica, 2, 7, 1, put(own.clone(), "a"));
    part(&mut replica, 1, Verdict::New {}, true, &[]);
    let places = |replica: &mut Replica| -> Vec<(u64, u64)> {
        let executed = core::iter::from_fn(|| replica.poll_executed());
        executed.map(|of| (of.first.time, of.at.time)).collect()
    };
    assert_eq!(places(&mut replica), [(1, 1), (2, 2)]);
    // A repeated operation was executed first where it was executed.
    deliver(&mut replica, 3, 7, 1, put(own, "b"));
    assert_eq!(places(&mut replica), [(2, 3)]);
}

fn client() -> Client {
    Client::new(
        0,
        ClientConfig {
            client: 7,
            shards: 2,
            reply: REPLY,
            repeat_us: 10,
            longest_repeat_us: 25,
        },
    )
}

fn answer(client: u64, number: u64, at: u64, outcome: Outcome) -> Vec<u8> {
    let at = FinalTime { time: at, group: 0 };
    Message::Answer {
        client,
        number,
        at,
        outcome,
    }
    .to_vec()
}

#[test]
fn a_client_repeats_and_takes_one_answer() {
    let mut client = client();
    let get = || get(key("k"));
    assert_eq!(client.call(0, get()), Err(Busy::UnderWay));
    let (groups, open) = client.poll_send().expect("it opens");
    assert_eq!((groups, client.poll_send()), (0b11, None));
    let mut repeats = Vec::new();
    for now in 0..60 {
        client.handle_timeout(now);
        if let Some((_, again)) = client.poll_send() {
            assert_eq!(again, open);
            repeats.push(now);
        }
    }
    assert_eq!(repeats, [10, 30, 55]);
    // Answers to others, and to other numbers.
    client.handle_datagram(&answer(8, 0, 5, Outcome::Opened {}));
    client.handle_datagram(&answer(7, 1, 5, Outcome::Opened {}));
    client.handle_datagram(b"no message");
    assert_eq!(client.poll_reply(), None);
    client.handle_datagram(&answer(7, 0, 5, Outcome::Opened {}));
    client.handle_datagram(&answer(7, 0, 6, Outcome::Opened {}));
    let reply = Reply {
        number: 0,
        at: place(5),
        outcome: Outcome::Opened {},
    };
    assert_eq!(
        (client.poll_reply(), client.poll_reply()),
        (Some(reply), None)
    );
    assert_eq!((client.poll_timeout(), client.is_idle()), (None, true));

    assert_eq!(
        client.call(60, Operation::Read { keys: Vec::new() }),
        Err(Busy::Keys(0))
    );
    assert_eq!(client.call(60, Operation::Open {}), Err(Busy::Keys(0)));
    assert_eq!(client.call(60, get()), Ok(1));
    assert_eq!(client.call(60, get()), Err(Busy::UnderWay));
    let (_, sent) = client.poll_send().expect("it asks");
    let Ok(Message::Command { command }) = Message::parse(&sent) else {
        panic!("it is a command")
    };
    assert_eq!(
        (command.client, command.number, command.opened),
        (7, 1, place(5))
    );
    client.handle_datagram(&answer(7, 1, 9, Outcome::Done {}));
    assert_eq!(client.poll_reply().map(|reply| reply.number), Some(1));
    assert_eq!(client.call(61, get()), Ok(2));
}

//! Remains of dead clients: reapers and transactions, at each step at which one may die.

#[allow(dead_code, reason = "each test needs another part")]
mod chain;
#[allow(dead_code, reason = "each test needs another part")]
mod driver;

use chain::{GROUPS, Service};
use driver::{Client, run};
use stateplane_coordination::{
    Action, Change, Denied, Guard, Hold, Lane, Lanes, Mutex, Name, Operation, Owner, Place, Reaper,
    ReaperSettings, Refused, Session, SessionRecord, SessionSettings, SessionState, Transaction,
    TransactionState, Wait, When, Write,
};
use stateplane_wire::coordination::{Key, Kind};

const MS: u64 = 1_000;
const TTL: u64 = 100 * MS;

fn place(name: &str) -> Place {
    Name::new(name.as_bytes()).expect("a name").place(GROUPS)
}

fn value(service: &Service, place: &Place) -> Option<Vec<u8>> {
    let group = place.group.expect("a group");
    service
        .record(group, place.key)
        .map(|stored| stored.value.clone())
}

fn with_session(service: &mut Service) -> Client {
    let mut client = Client::new(service.agent(4));
    let settings = SessionSettings::new(TTL);
    client.session = Some(Session::open(service.now, &mut client.agent, settings).expect("asked"));
    run(service, std::slice::from_mut(&mut client), 5 * MS);
    client
}

fn reaping(service: &mut Service, sessions: &[Lanes]) -> Client {
    let mut client = Client::new(service.agent(8));
    let mut reaper = Reaper::new(ReaperSettings::new(TTL));
    sessions
        .iter()
        .for_each(|lanes| reaper.watch(service.now, *lanes));
    client.reaper = Some(reaper);
    client
}

fn ended(client: &Client) -> u64 {
    client.reaper.as_ref().expect("a reaper").ended()
}

/// A client that owns a lock, a place in another's queue, a record, and one with a token.
fn owns_all(service: &mut Service, other: &mut Client) -> Client {
    let mut client = with_session(service);
    let session = client.agent.lanes().expect("lanes").session;
    let mut mutexes =
        ["lock", "queue"].map(|name| Mutex::new(place(name), Owner { session, handle: 1 }));
    let theirs = Owner {
        session: other.agent.lanes().expect("lanes").session,
        handle: 9,
    };
    let mut first = Mutex::new(place("queue"), theirs);
    first
        .acquire(service.now, &mut other.agent, Wait::Forever)
        .expect("asked");
    service.exchange(&mut other.agent);
    other.mutexes.push(first);
    for mutex in &mut mutexes {
        mutex
            .acquire(service.now, &mut client.agent, Wait::Forever)
            .expect("asked");
    }
    client.mutexes.extend(mutexes);
    for (name, token) in [("mine", 0), ("fenced", 1)] {
        let write = Write {
            value: b"x".to_vec(),
            session,
            token,
            ..Write::default()
        };
        let operation = Operation::new(place(name), Action::Write(write));
        client
            .agent
            .submit(service.now, operation)
            .expect("submitted");
    }
    run(service, std::slice::from_mut(&mut client), 5 * MS);
    assert_eq!(client.mutexes[1].hold(), Hold::Waiting);
    client
}

/// Checks that nothing of the dead client's is still there, and whether its lanes take writes.
fn assert_nothing_left(service: &mut Service, mut dead: Client) {
    let lanes = dead.agent.lanes().expect("lanes");
    for ((_, key), stored) in &service.records {
        let session = match stored.kind {
            Kind::Empty => 0,
            _ => stored.session,
        };
        assert_ne!(session, lanes.session, "{key:?} is left");
        let waiters = stored.value.get(16..).filter(|_| stored.kind == Kind::Lock);
        let mut waiters = waiters.unwrap_or_default().chunks(8);
        assert!(
            !waiters.any(|one| one[..4] == lanes.session.to_be_bytes()),
            "it waits"
        );
    }
    for group in 0..GROUPS {
        let write = Operation::put(Place::within(group, Key([group as u8; 16])), b"late");
        _ = dead.agent.submit(service.now, write);
        service.events(&mut dead.agent);
        assert!(value(service, &Place::within(group, Key([group as u8; 16]))).is_none());
    }
    let again = dead
        .agent
        .submit(service.now, Operation::put(place("x"), b"late"));
    assert_eq!(again, Err(Refused::NoLanes));
}

#[test]
fn all_that_a_dead_session_owned_is_released() {
    let mut service = Service::new();
    let mut other = with_session(&mut service);
    let dead = owns_all(&mut service, &mut other);
    let mut reaper = reaping(&mut service, &[dead.agent.lanes().expect("lanes")]);
    let died = service.now;
    while ended(&reaper) == 0 {
        assert!(service.now < died + 5 * TTL, "it was not ended");
        run(&mut service, std::slice::from_mut(&mut reaper), MS);
        run(&mut service, std::slice::from_mut(&mut other), MS);
    }
    assert!(
        service.now >= died + TTL - 20 * MS,
        "it was ended before its TTL"
    );
    assert_eq!(
        reaper.reaper.as_mut().expect("a reaper").poll_ended(),
        dead.agent.lanes()
    );
    // The record that saw a token stays, empty, and remembers it.
    let fenced = place("fenced");
    let stored = &service.records[&(fenced.group.expect("a group"), fenced.key)];
    assert_eq!((stored.kind, stored.token), (Kind::Empty, 1));
    assert_nothing_left(&mut service, dead);
    // What others own is theirs.
    assert!(matches!(other.mutexes[0].hold(), Hold::Held { .. }));
    assert_eq!(
        other.session.expect("a session").state(),
        SessionState::Connected
    );
}

#[test]
fn a_session_that_is_kept_alive_is_left_alone() {
    let mut service = Service::new();
    let client = with_session(&mut service);
    let reaper = reaping(&mut service, &[client.agent.lanes().expect("lanes")]);
    let mut all = [client, reaper];
    run(&mut service, &mut all, 10 * TTL);
    assert_eq!(ended(&all[1]), 0);
    let session = all[0].session.as_ref().expect("a session");
    assert_eq!(session.state(), SessionState::Connected);
}

/// A client that closes its session need not wait for its TTL.
#[test]
fn a_closed_session_is_ended_at_once() {
    let mut service = Service::new();
    let mut client = with_session(&mut service);
    let now = service.now;
    client
        .session
        .as_mut()
        .expect("a session")
        .close(now, &mut client.agent)
        .expect("asked");
    run(&mut service, std::slice::from_mut(&mut client), 5 * MS);
    assert_eq!(
        client.session.as_ref().expect("a session").state(),
        SessionState::Closed
    );
    let mut reaper = reaping(&mut service, &[client.agent.lanes().expect("lanes")]);
    run(&mut service, std::slice::from_mut(&mut reaper), 30 * MS);
    assert_eq!(ended(&reaper), 1);
}

/// Rule 19: what lies in other groups is freed at once; the session's end is told when the group is
/// back.
#[test]
fn a_group_that_is_down_keeps_only_what_lies_in_it() {
    let mut service = Service::new();
    let mut other = with_session(&mut service);
    let dead = owns_all(&mut service, &mut other);
    let lanes = dead.agent.lanes().expect("lanes");
    let owned: Vec<(u16, Key)> = ["lock", "queue", "mine", "fenced"]
        .map(|name| (place(name).group.expect("a group"), place(name).key))
        .to_vec();
    let record = dead.agent.group(&SessionRecord::place(lanes.session));
    let down = owned.iter().map(|(group, _)| *group);
    let down = down
        .into_iter()
        .find(|group| *group != record)
        .expect("one");
    service.down.insert(down);
    let mut both = [other, reaping(&mut service, &[lanes])];
    // The reaper's operations have seconds.
    run(&mut service, &mut both, 4 * TTL);
    let owns = |service: &Service, group: u16, key: Key| {
        let stored = service.record(group, key);
        let live = stored.filter(|stored| stored.kind != Kind::Empty);
        live.is_some_and(|stored| {
            let lock = stored.kind == Kind::Lock;
            let value = if lock { &stored.value[..] } else { &[] };
            let mut owners = value.get(..4).into_iter().chain(value.get(16..20));
            owners.any(|one| one == lanes.session.to_be_bytes())
                || (!lock && stored.session == lanes.session)
        })
    };
    assert!(owned.iter().any(|(group, _)| *group != down));
    for (group, key) in &owned {
        assert_eq!(owns(&service, *group, *key), *group == down, "{key:?}");
    }
    assert_eq!(ended(&both[1]), 0);
    // A session that dies meanwhile waits no longer than for that group, either.
    let late = with_session(&mut service);
    let late_lanes = late.agent.lanes().expect("lanes");
    let mine = ["x1", "x2", "x3", "x4", "x5"].map(place);
    let mine = mine.iter().find(|place| place.group != Some(down));
    let mine = mine.expect("one elsewhere").clone();
    let mut late = late;
    let owner = Owner {
        session: late_lanes.session,
        handle: 1,
    };
    let acquire = Operation::acquire(mine.clone(), owner, false);
    late.agent.submit(service.now, acquire).expect("submitted");
    service.exchange(&mut late.agent);
    assert!(value(&service, &mine).is_some());
    let now = service.now;
    let reaper = both[1].reaper.as_mut().expect("a reaper");
    reaper.watch(now, late_lanes);
    run(&mut service, &mut both, 4 * TTL);
    assert_eq!(value(&service, &mine), None);
    service.down.clear();
    run(&mut service, &mut both, 120 * TTL);
    assert_eq!(ended(&both[1]), 2);
    assert_nothing_left(&mut service, dead);
}

/// Rule 19: any reaper goes on from any point at which another died.
#[test]
fn a_reaper_goes_on_where_another_died() {
    let mut finished = false;
    for steps in 0.. {
        let mut service = Service::new();
        let mut other = with_session(&mut service);
        let dead = owns_all(&mut service, &mut other);
        let lanes = dead.agent.lanes().expect("lanes");
        let mut first = reaping(&mut service, &[lanes]);
        run(&mut service, std::slice::from_mut(&mut first), TTL - 5 * MS);
        // It dies after so many of its requests.
        for _ in 0..steps * 7 {
            first.agent.handle_timeout(service.now);
            let due = service.now;
            first
                .reaper
                .as_mut()
                .expect("a reaper")
                .handle_timeout(due, &mut first.agent);
            let Some((_, request)) = first.agent.poll_transmit() else {
                service.now += 5 * MS;
                continue;
            };
            let (_, reply) = service.handle(&request).expect("a reply");
            first
                .agent
                .handle_datagram(service.now, chain::SWITCH, &reply);
            while let Some(event) = first.agent.poll_event() {
                let reaper = first.reaper.as_mut().expect("a reaper");
                reaper.handle_event(service.now, &mut first.agent, &event);
            }
        }
        finished = ended(&first) > 0;
        let mut second = reaping(&mut service, &[lanes]);
        while ended(&second) == 0 {
            assert!(
                service.now < 20 * TTL,
                "the second did not finish after step {steps}"
            );
            run(&mut service, std::slice::from_mut(&mut second), MS);
        }
        assert_nothing_left(&mut service, dead);
        if finished {
            break;
        }
    }
    assert!(finished);
}

/// Rule 19: owners without a record count as ending.
#[test]
fn what_a_session_without_a_record_owns_is_released() {
    let mut service = Service::new();
    let mut stray = Client::new(service.agent(1));
    let session = stray.agent.lanes().expect("lanes").session;
    let write = Write {
        value: b"x".to_vec(),
        session,
        ..Write::default()
    };
    let operation = Operation::new(place("stray"), Action::Write(write));
    stray.agent.submit(0, operation).expect("submitted");
    service.exchange(&mut stray.agent);
    // The end of another session makes the reaper search the groups.
    let dead = with_session(&mut service);
    let mut reaper = reaping(&mut service, &[dead.agent.lanes().expect("lanes")]);
    run(&mut service, std::slice::from_mut(&mut reaper), 4 * TTL);
    assert_eq!(value(&service, &place("stray")), None);
}

fn transfer(client: &mut Client, now: u64, seed: u64) {
    let session = client.agent.lanes().expect("lanes").session;
    let owner = Owner {
        session,
        handle: 10,
    };
    let places = [place("alice"), place("a-bob-whose-name-is-long")];
    let mut transaction = Transaction::new(&client.agent, &places, owner, seed);
    transaction.begin(now, &mut client.agent, u64::MAX);
    client.transactions.push(transaction);
}

fn accounts(service: &Service) -> (u8, u8) {
    let alice = value(service, &place("alice")).map_or(0, |value| value[0]);
    let bob = value(service, &place("a-bob-whose-name-is-long"));
    (
        alice,
        bob.map_or(0, |value| *value.last().expect("an amount")),
    )
}

/// Moves one from the first account to the second.
fn commit(client: &mut Client, now: u64) {
    let transaction = client.transactions.last_mut().expect("a transaction");
    let amount = |at: usize| {
        let record = transaction.records()[at].as_ref();
        record.map_or(if at == 0 { 100 } else { 0 }, |record| record.value[0])
    };
    let changes = [(0, amount(0) - 1), (1, amount(1) + 1)];
    let changes = changes.map(|(place, value)| Change {
        place,
        value: Some(vec![value]),
    });
    transaction
        .commit(now, &mut client.agent, &changes)
        .expect("asked");
}

#[test]
fn transactions_of_two_clients_are_serial() {
    let mut service = Service::new();
    let mut all = [with_session(&mut service), with_session(&mut service)];
    let mut done = 0;
    for client in &mut all {
        transfer(client, service.now, 1);
    }
    let began = service.now;
    while done < 20 {
        assert!(
            service.now < began + 60_000 * MS,
            "only {done} went through"
        );
        run(&mut service, &mut all, MS);
        for client in &mut all {
            match client.transactions.last().expect("a transaction").state() {
                TransactionState::Ready => commit(client, service.now),
                TransactionState::Committed => {
                    done += 1;
                    client.transactions.clear();
                    transfer(client, service.now, 1 + done);
                }
                TransactionState::Aborted | TransactionState::Lost => panic!("it went wrong"),
                _ => {}
            }
        }
        let (alice, bob) = accounts(&service);
        assert!(done == 0 || alice.abs_diff(100 - bob) <= 1);
    }
    for client in &mut all {
        let now = service.now;
        let transaction = client.transactions.last_mut().expect("a transaction");
        transaction.abort(now, &mut client.agent);
    }
    run(&mut service, &mut all, 100 * MS);
    assert_eq!(accounts(&service), (80, 20));
    let locks = service
        .records
        .values()
        .filter(|stored| stored.kind == Kind::Lock);
    assert_eq!(locks.count(), 0);
}

/// Rule 22: whenever the client dies, its changes are all made or none is.
#[test]
fn a_dead_clients_transaction_is_finished_or_undone() {
    finished_or_undone(None);
}

/// Rule 22: so it is if one of the groups does not answer the reaper for a time.
#[test]
fn a_dead_clients_transaction_is_finished_although_a_group_is_down() {
    (0..GROUPS).for_each(|group| finished_or_undone(Some(group)));
}

fn finished_or_undone(down: Option<u16>) {
    let mut outcomes = Vec::new();
    for requests in 0..60 {
        let mut service = Service::new();
        let mut client = with_session(&mut service);
        let lanes = client.agent.lanes().expect("lanes");
        transfer(&mut client, service.now, 1);
        let mut sent = 0;
        while sent < requests {
            let Some((_, request)) = client.agent.poll_transmit() else {
                break;
            };
            sent += 1;
            let (_, reply) = service.handle(&request).expect("a reply");
            client
                .agent
                .handle_datagram(service.now, chain::SWITCH, &reply);
            while let Some(event) = client.agent.poll_event() {
                for transaction in &mut client.transactions {
                    transaction.handle_event(service.now, &mut client.agent, &event);
                }
            }
            if client.transactions[0].state() == TransactionState::Ready {
                commit(&mut client, service.now);
            }
        }
        let committed = client.transactions[0].state() == TransactionState::Committed;
        let mut reaper = reaping(&mut service, &[lanes]);
        service.down.extend(down);
        run(&mut service, std::slice::from_mut(&mut reaper), 3 * TTL);
        service.down.clear();
        let died = service.now;
        while ended(&reaper) == 0 {
            assert!(service.now < died + 10 * TTL, "it was not ended");
            run(&mut service, std::slice::from_mut(&mut reaper), MS);
        }
        let amounts = accounts(&service);
        assert!(
            [(0, 0), (99, 1)].contains(&amounts),
            "{amounts:?} after {requests} requests"
        );
        assert!(!committed || amounts == (99, 1));
        outcomes.push((amounts, committed));
        assert_nothing_left(&mut service, client);
        let left = service
            .records
            .values()
            .filter(|stored| stored.kind != Kind::Empty);
        assert_eq!(left.count(), if amounts == (99, 1) { 2 } else { 0 });
    }
    // Some died before the decision, some behind it, some after all.
    for outcome in [((0, 0), false), ((99, 1), false), ((99, 1), true)] {
        assert!(outcomes.contains(&outcome), "{outcome:?} did not occur");
    }
}

#[test]
fn a_transaction_without_its_locks_in_time_is_aborted() {
    let mut service = Service::new();
    let mut all = [with_session(&mut service), with_session(&mut service)];
    transfer(&mut all[0], service.now, 1);
    run(&mut service, &mut all, 20 * MS);
    assert_eq!(all[0].transactions[0].state(), TransactionState::Ready);
    let session = all[1].agent.lanes().expect("lanes").session;
    let places = [place("carol"), place("alice")];
    let owner = Owner {
        session,
        handle: 10,
    };
    let mut second = Transaction::new(&all[1].agent, &places, owner, 2);
    second.begin(service.now, &mut all[1].agent, service.now + 50 * MS);
    all[1].transactions.push(second);
    run(&mut service, &mut all, 200 * MS);
    let second = &all[1].transactions[0];
    assert_eq!(
        (second.state(), second.denied()),
        (TransactionState::Aborted, Some(Denied::TimedOut))
    );
    // It gave back what it got meanwhile.
    let locks = service
        .records
        .values()
        .filter(|stored| stored.kind == Kind::Lock);
    assert_eq!(locks.count(), 2);
}

/// Rule 21: a single change is judged with its lock in one pass.
#[test]
fn a_change_without_its_lock_is_not_made() {
    let mut service = Service::new();
    let mut all = [with_session(&mut service), with_session(&mut service)];
    let session = all[0].agent.lanes().expect("lanes").session;
    let owner = Owner {
        session,
        handle: 10,
    };
    let mut transaction = Transaction::new(&all[0].agent, &[place("alice")], owner, 2);
    transaction.begin(service.now, &mut all[0].agent, u64::MAX);
    all[0].transactions.push(transaction);
    run(&mut service, &mut all, 20 * MS);
    // Somebody takes the lock away.
    let locks = service
        .records
        .iter()
        .filter(|(_, stored)| stored.kind == Kind::Lock);
    let locks: Vec<(u16, Key)> = locks.map(|(place, _)| *place).collect();
    for (group, key) in locks {
        let mut release = Operation::release(Place::within(group, key), owner);
        release.lane = Lane::Any;
        all[1]
            .agent
            .submit(service.now, release)
            .expect("submitted");
    }
    run(&mut service, &mut all, 20 * MS);
    let now = service.now;
    let change = Change {
        place: 0,
        value: Some(b"x".to_vec()),
    };
    let transaction = &mut all[0].transactions[0];
    transaction
        .commit(now, &mut all[0].agent, &[change])
        .expect("asked");
    run(&mut service, &mut all, 20 * MS);
    assert_eq!(all[0].transactions[0].state(), TransactionState::Aborted);
    assert_eq!(value(&service, &place("alice")), None);
}

/// Rule 21: a write may be guarded by another record of its group, and by a token.
#[test]
fn guards_and_tokens_refuse() {
    let mut service = Service::new();
    let mut client = with_session(&mut service);
    let at = |number: u8| Place::within(1, Key([number; 16]));
    let mut write = |guard, token| {
        let value = b"v".to_vec();
        let write = Write {
            value,
            guard,
            token,
            when: When::Always,
            session: 0,
        };
        let operation = Operation::new(at(1), Action::Write(write));
        client
            .agent
            .submit(service.now, operation)
            .expect("submitted");
        let events = service.events(&mut client.agent);
        match events.last() {
            Some(stateplane_coordination::Event::Answered { answer, .. }) => answer.outcome,
            other => panic!("{other:?}"),
        }
    };
    use stateplane_wire::coordination::Outcome::{Done, Guarded, StaleToken};
    assert_eq!(write(Some(Guard::Present(at(2).key)), 0), Guarded);
    assert_eq!(write(Some(Guard::Absent(at(2).key)), 5), Done);
    assert_eq!(write(None, 4), StaleToken);
    assert_eq!(write(Some(Guard::Token(at(1).key, 5)), 5), Guarded);
    assert_eq!(write(None, 6), Done);
}

#[test]
fn a_sessions_record_is_read_as_it_was_written() {
    let lanes = Lanes {
        session: 0x0102_0304,
        first: 0x0506,
        count: 7,
        incarnation: 8,
    };
    for ending in [false, true] {
        let record = SessionRecord { lanes, ending };
        assert_eq!(SessionRecord::parse(&record.bytes()), Some(record));
    }
    assert_eq!(SessionRecord::parse(b"something"), None);
}

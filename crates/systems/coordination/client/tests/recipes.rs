//! Recipes of several clients against a chain in memory, in steps of a millisecond.

#[allow(dead_code, reason = "each test needs another part")]
mod chain;
mod driver;

use chain::{GROUPS, Service};
use driver::{Client, run};
use stateplane_coordination::{
    Barrier, Denied, Event, Hold, LeaderLatch, Membership, MembershipEvent, Mutex, Name, Operation,
    Owner, Passage, Place, ReadWriteLock, Seat, Semaphore, Session, SessionRecord, SessionSettings,
    SessionState, Wait, When,
};
use stateplane_wire::coordination::Outcome;

const MS: u64 = 1_000;

fn lock(name: &str) -> Place {
    Name::new(name.as_bytes())
        .expect("a name")
        .lock_place(GROUPS)
}

fn clients<const N: usize>(service: &mut Service) -> [Client; N] {
    std::array::from_fn(|_| Client::new(service.agent(4)))
}

fn owner(session: u32, handle: u32) -> Owner {
    Owner { session, handle }
}

fn is_held(hold: Hold) -> bool {
    matches!(hold, Hold::Held { .. })
}

/// Rule 20: first come first served; the token grows from holder to holder.
#[test]
fn a_mutex_goes_through_its_queue() {
    let mut service = Service::new();
    let mut all: [Client; 3] = clients(&mut service);
    for (index, client) in all.iter_mut().enumerate() {
        let mut mutex = Mutex::new(lock("m"), owner(index as u32 + 1, 1));
        mutex
            .acquire(service.now, &mut client.agent, Wait::Forever)
            .expect("asked");
        client.mutexes.push(mutex);
        run(&mut service, std::slice::from_mut(client), 5 * MS);
    }
    let mut tokens = Vec::new();
    for holder in 0..3 {
        run(&mut service, &mut all, 20 * MS);
        let held: Vec<bool> = all
            .iter()
            .map(|one| is_held(one.mutexes[0].hold()))
            .collect();
        assert_eq!(held, (0..3).map(|one| one == holder).collect::<Vec<_>>());
        tokens.push(all[holder].mutexes[0].token());
        let client = &mut all[holder];
        client.mutexes[0]
            .release(service.now, &mut client.agent)
            .expect("asked");
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    run(&mut service, &mut all, 20 * MS);
    assert!(service.records.is_empty());
}

#[test]
fn who_does_not_wait_any_longer_leaves_the_queue() {
    let mut service = Service::new();
    let mut all: [Client; 2] = clients(&mut service);
    for (index, client) in all.iter_mut().enumerate() {
        client
            .mutexes
            .push(Mutex::new(lock("m"), owner(index as u32 + 1, 1)));
    }
    let [first, second] = &mut all;
    first.mutexes[0]
        .acquire(0, &mut first.agent, Wait::Try)
        .expect("asked");
    service.exchange(&mut first.agent);
    second.mutexes[0]
        .acquire(0, &mut second.agent, Wait::Try)
        .expect("asked");
    run(&mut service, &mut all, 10 * MS);
    let [_, second] = &mut all;
    assert_eq!(second.mutexes[0].denied(), Some(Denied::Taken));
    let end = service.now + 30 * MS;
    second.mutexes[0]
        .acquire(service.now, &mut second.agent, Wait::Until(end))
        .expect("asked");
    run(&mut service, &mut all, 15 * MS);
    assert_eq!(all[1].mutexes[0].hold(), Hold::Waiting);
    run(&mut service, &mut all, 50 * MS);
    assert_eq!(all[1].mutexes[0].hold(), Hold::Idle);
    assert_eq!(all[1].mutexes[0].denied(), Some(Denied::TimedOut));
    let [first, _] = &mut all;
    first.mutexes[0]
        .release(service.now, &mut first.agent)
        .expect("asked");
    run(&mut service, &mut all, 10 * MS);
    assert!(service.records.is_empty(), "a place in the queue was left");
}

/// After an unknown outcome the lane resolves, and the release follows.
#[test]
fn a_lock_acquired_unknowingly_is_released() {
    let mut service = Service::new();
    let mut all: [Client; 1] = clients(&mut service);
    let mut mutex = Mutex::new(lock("m"), owner(1, 1));
    service.lose_replies = u32::MAX;
    let wait = Wait::Until(100 * MS);
    mutex.acquire(0, &mut all[0].agent, wait).expect("asked");
    all[0].mutexes.push(mutex);
    run(&mut service, &mut all, 200 * MS);
    assert_eq!(
        (service.records.len(), all[0].mutexes[0].hold()),
        (1, Hold::Releasing)
    );
    service.lose_replies = 0;
    run(&mut service, &mut all, 200 * MS);
    assert_eq!(
        (service.records.len(), all[0].mutexes[0].hold()),
        (0, Hold::Idle)
    );
}

/// Rule 19: the TTL counts from the sending of the last keepalive that was answered.
#[test]
fn a_session_lives_by_answered_keepalives() {
    let mut service = Service::new();
    let mut all: [Client; 1] = clients(&mut service);
    let settings = SessionSettings::new(100 * MS);
    let session = Session::open(0, &mut all[0].agent, settings).expect("asked");
    all[0].session = Some(session);
    run(&mut service, &mut all, 300 * MS);
    let state = |all: &[Client]| all[0].session.as_ref().expect("a session").state();
    assert_eq!(state(&all), SessionState::Connected);
    let valid = all[0].session.as_ref().expect("a session").valid_until();
    assert!((service.now + 75 * MS..=service.now + 99 * MS).contains(&valid));
    service.lose_requests = u32::MAX;
    run(&mut service, &mut all, 60 * MS);
    assert_eq!(state(&all), SessionState::Suspended);
    service.lose_requests = 0;
    run(&mut service, &mut all, 30 * MS);
    assert_eq!(state(&all), SessionState::Connected);
    service.lose_requests = u32::MAX;
    run(&mut service, &mut all, 101 * MS);
    assert_eq!(state(&all), SessionState::Lost);
    service.lose_requests = 0;
    run(&mut service, &mut all, 100 * MS);
    assert_eq!(state(&all), SessionState::Lost);
}

/// Rule 19: a keepalive never makes the record, nor takes a reaper's mark away.
#[test]
fn a_keepalive_brings_no_session_back() {
    for marks in [false, true] {
        let mut service = Service::new();
        let mut all: [Client; 2] = clients(&mut service);
        let settings = SessionSettings::new(100 * MS);
        all[0].session = Some(Session::open(0, &mut all[0].agent, settings).expect("asked"));
        run(&mut service, &mut all, 10 * MS);
        let lanes = all[0].agent.lanes().expect("lanes");
        let ending = SessionRecord {
            lanes,
            ending: true,
        }
        .bytes();
        let place = SessionRecord::place(lanes.session);
        let group = all[0].agent.group(&place);
        let end = if marks {
            Operation::put(place.clone(), &ending)
        } else {
            Operation::delete(place.clone(), When::Always)
        };
        all[1].agent.submit(service.now, end).expect("submitted");
        run(&mut service, &mut all, 50 * MS);
        let session = all[0].session.as_ref().expect("a session");
        assert_eq!(session.state(), SessionState::Lost);
        let record = service
            .record(group, place.key)
            .map(|stored| stored.value.clone());
        assert_eq!(record, marks.then(|| ending.to_vec()));
    }
}

#[test]
fn a_semaphore_admits_as_many_as_it_has_permits() {
    let mut service = Service::new();
    let mut all: [Client; 5] = clients(&mut service);
    for (index, client) in all.iter_mut().enumerate() {
        let owner = owner(index as u32 + 1, index as u32);
        let mut semaphore = Semaphore::new(&client.agent, &lock("s"), owner, 2);
        semaphore
            .acquire(0, &mut client.agent, Wait::Forever)
            .expect("asked");
        client.semaphores.push(semaphore);
    }
    let mut served = Vec::new();
    for _ in 0..60 {
        run(&mut service, &mut all, 20 * MS);
        let held: Vec<usize> = (0..5)
            .filter(|one| is_held(all[*one].semaphores[0].hold()))
            .collect();
        assert!(held.len() <= 2, "{held:?} hold two permits");
        if let Some(one) = held.first() {
            let client = &mut all[*one];
            client.semaphores[0].release(service.now, &mut client.agent);
            served.push(*one);
        }
    }
    served.sort_unstable();
    assert_eq!(served, [0, 1, 2, 3, 4]);
    assert!(service.records.is_empty());
}

#[test]
fn a_semaphore_that_is_only_tried_is_denied() {
    let mut service = Service::new();
    let mut all: [Client; 2] = clients(&mut service);
    for (index, client) in all.iter_mut().enumerate() {
        let owner = owner(index as u32 + 1, 0);
        let mut semaphore = Semaphore::new(&client.agent, &lock("s"), owner, 1);
        semaphore
            .acquire(0, &mut client.agent, Wait::Try)
            .expect("asked");
        client.semaphores.push(semaphore);
        run(&mut service, std::slice::from_mut(client), 20 * MS);
    }
    assert!(is_held(all[0].semaphores[0].hold()));
    assert_eq!(all[1].semaphores[0].hold(), Hold::Idle);
    assert_eq!(all[1].semaphores[0].denied(), Some(Denied::Taken));
}

#[test]
fn readers_share_and_a_writer_is_alone() {
    let mut service = Service::new();
    let mut all: [Client; 4] = clients(&mut service);
    for (index, client) in all.iter_mut().enumerate() {
        let owner = owner(index as u32 + 1, index as u32);
        client
            .locks
            .push(ReadWriteLock::new(&client.agent, &lock("rw"), owner, 3));
    }
    let hold = |all: &[Client], one: usize| is_held(all[one].locks[0].hold());
    for (one, client) in all.iter_mut().enumerate().take(2) {
        assert_eq!(one as u32 + 1, client.agent.lanes().expect("lanes").session);
        client.locks[0]
            .read(service.now, &mut client.agent, Wait::Forever)
            .expect("asked");
    }
    run(&mut service, &mut all, 50 * MS);
    assert!(hold(&all, 0) && hold(&all, 1), "two readers share");
    // The writer waits for both, and the reader behind it for the writer.
    let now = service.now;
    all[2].locks[0]
        .write(now, &mut all[2].agent, Wait::Forever)
        .expect("asked");
    run(&mut service, &mut all, 20 * MS);
    let now = service.now;
    all[3].locks[0]
        .read(now, &mut all[3].agent, Wait::Forever)
        .expect("asked");
    for reader in 0..2 {
        run(&mut service, &mut all, 50 * MS);
        assert!(!hold(&all, 2) && !hold(&all, 3));
        let client = &mut all[reader];
        client.locks[0].release(service.now, &mut client.agent);
    }
    run(&mut service, &mut all, 50 * MS);
    assert!(hold(&all, 2) && !hold(&all, 3));
    let now = service.now;
    all[2].locks[0].release(now, &mut all[2].agent);
    run(&mut service, &mut all, 50 * MS);
    assert!(!hold(&all, 2) && hold(&all, 3));
}

#[test]
fn members_come_and_go() {
    let mut service = Service::new();
    let mut all: [Client; 3] = clients(&mut service);
    for (index, client) in all.iter_mut().enumerate() {
        let owner = owner(index as u32 + 1, 0);
        client
            .memberships
            .push(Membership::new(&client.agent, &lock("g"), owner, 2));
        client.memberships[0].join(0, &mut client.agent, &[index as u8]);
        run(&mut service, std::slice::from_mut(client), 5 * MS);
    }
    run(&mut service, &mut all, 50 * MS);
    let seats: Vec<Seat> = all
        .iter()
        .map(|client| client.memberships[0].seat())
        .collect();
    assert_eq!(seats, [Seat::Taken(0), Seat::Taken(1), Seat::Full]);
    let members: Vec<_> = all[2].memberships[0].members().collect();
    assert_eq!(members, [(0, [0].as_slice()), (1, [1].as_slice())]);
    let now = service.now;
    all[0].memberships[0].leave(now, &mut all[0].agent);
    run(&mut service, &mut all, 50 * MS);
    let left = MembershipEvent::Left { seat: 0 };
    let events: Vec<_> = std::iter::from_fn(|| all[2].memberships[0].poll_event()).collect();
    assert_eq!(events.last(), Some(&left));
    assert_eq!(all[0].memberships[0].seat(), Seat::None);
}

#[test]
fn parties_enter_and_leave_together() {
    let mut service = Service::new();
    let mut all: [Client; 3] = clients(&mut service);
    for (index, client) in all.iter_mut().enumerate() {
        let owner = owner(index as u32 + 1, index as u32);
        client
            .barriers
            .push(Barrier::new(&client.agent, &lock("b"), owner, 3));
    }
    let passages = |all: &[Client]| -> Vec<Passage> {
        all.iter()
            .map(|client| client.barriers[0].passage())
            .collect()
    };
    for party in 0..3 {
        assert!(!passages(&all).contains(&Passage::Inside));
        let client = &mut all[party];
        client.barriers[0].enter(service.now, &mut client.agent);
        run(&mut service, &mut all, 100 * MS);
    }
    assert_eq!(passages(&all), [Passage::Inside; 3]);
    for party in 0..3 {
        assert!(!passages(&all).contains(&Passage::Left));
        let client = &mut all[party];
        client.barriers[0].leave(service.now, &mut client.agent);
        run(&mut service, &mut all, 100 * MS);
    }
    assert_eq!(passages(&all), [Passage::Left; 3]);
    assert!(service.records.is_empty());
}

#[test]
fn leadership_goes_on_when_the_leader_resigns() {
    let mut service = Service::new();
    let mut all: [Client; 2] = clients(&mut service);
    for (index, client) in all.iter_mut().enumerate() {
        let owner = owner(index as u32 + 1, 1);
        let mut latch = LeaderLatch::new(&client.agent, &lock("l"), owner, &[index as u8]);
        latch.run(service.now, &mut client.agent).expect("asked");
        client.latches.push(latch);
        run(&mut service, std::slice::from_mut(client), 10 * MS);
    }
    let announcement = LeaderLatch::announcement(&all[0].agent, &lock("l"));
    let group = all[0].agent.group(&announcement);
    let leader = |service: &Service| {
        service
            .record(group, announcement.key)
            .map(|stored| stored.value.clone())
    };
    assert!(is_held(all[0].latches[0].hold()) && !is_held(all[1].latches[0].hold()));
    assert_eq!(leader(&service), Some(vec![0]));
    let now = service.now;
    all[0].latches[0].resign(now, &mut all[0].agent);
    run(&mut service, &mut all, 50 * MS);
    assert_eq!(all[0].latches[0].hold(), Hold::Idle);
    assert!(is_held(all[1].latches[0].hold()));
    assert_eq!(leader(&service), Some(vec![1]));
}

/// Names longer than a key are compared by the agent; another with the same key is told.
#[test]
fn a_clash_of_names_is_told() {
    let mut service = Service::new();
    let mut agent = service.agent(2);
    let name = Name::new(b"a name that is longer than a key").expect("a name");
    let mut ask = |place: Place, value: Option<&[u8]>| {
        let operation = match value {
            Some(value) => Operation::put(place, value),
            None => Operation::read(place),
        };
        agent.submit(0, operation).expect("submitted");
        service.events(&mut agent).pop().expect("an event")
    };
    let place = name.place(GROUPS);
    let wrote = ask(place.clone(), Some(b"v"));
    assert!(matches!(wrote, Event::Answered { answer, .. } if answer.outcome == Outcome::Done));
    let Event::Answered { answer, .. } = ask(place.clone(), None) else {
        panic!("no answer")
    };
    assert_eq!(answer.record.expect("a record").value, b"v");
    // A name with the same key, which would take years to find.
    let other = Place {
        prefix: [&[31], &[b'x'; 32][..]].concat(),
        ..place
    };
    let reason = stateplane_coordination::Reason::Clash;
    for value in [None, Some(b"w".as_slice())] {
        assert!(
            matches!(ask(other.clone(), value), Event::Failed { reason: told, .. } if told == reason)
        );
    }
}

/// Rule 19.
#[test]
fn the_ttl_counts_from_the_sending() {
    let mut service = Service::new();
    let mut agent = service.agent(1);
    let mut session = Session::open(0, &mut agent, SessionSettings::new(100 * MS)).expect("asked");
    service.now = 50 * MS;
    for event in service.events(&mut agent) {
        session.handle_event(service.now, &mut agent, &event);
    }
    assert_eq!(session.state(), SessionState::Connected);
    assert_eq!(session.valid_until(), 99 * MS);
}

//! Rule 19: a group that was founded anew knows no lane that ended, and takes nothing of a session
//! that did.

#[allow(dead_code, reason = "each test needs another part")]
mod chain;
#[allow(dead_code, reason = "each test needs another part")]
mod driver;

use chain::{GROUPS, Service};
use driver::{Client, run};
use stateplane_coordination::{
    Event, Operation, Place, Reaper, ReaperSettings, Session, SessionRecord, SessionSettings,
    SessionState,
};
use stateplane_wire::coordination::{Key, Outcome};

const MS: u64 = 1_000;
const TTL: u64 = 100 * MS;
const KEY: Key = Key([7; 16]);

/// A client whose session is connected, the group of its record, and the other groups.
fn connected(service: &mut Service) -> (Client, u16, Vec<u16>) {
    let mut client = Client::new(service.agent(2));
    let settings = SessionSettings::new(TTL);
    client.session = Some(Session::open(service.now, &mut client.agent, settings).expect("asked"));
    run(service, std::slice::from_mut(&mut client), 5 * MS);
    assert_eq!(state(&client), SessionState::Connected);
    let session = client.agent.lanes().expect("lanes").session;
    let home = client.agent.group(&SessionRecord::place(session));
    let others = (0..GROUPS).filter(|group| *group != home).collect();
    (client, home, others)
}

fn state(client: &Client) -> SessionState {
    client.session.as_ref().expect("a session").state()
}

/// Ends the client's session while it stands still.
fn reap(service: &mut Service, client: &Client) {
    let mut reaping = Client::new(service.agent(8));
    let mut reaper = Reaper::new(ReaperSettings::new(TTL));
    reaper.watch(service.now, client.agent.lanes().expect("lanes"));
    reaping.reaper = Some(reaper);
    run(service, std::slice::from_mut(&mut reaping), 4 * TTL);
    assert_eq!(reaping.reaper.expect("a reaper").ended(), 1);
}

/// The client learns that `group` begins anew, and writes there; true if the write was done.
fn writes_late(service: &mut Service, client: &mut Client, group: u16) -> bool {
    let chain = service.found_anew(group);
    client.agent.learn(service.now, chain);
    let write = Operation::put(Place::within(group, KEY), b"late");
    let ticket = client.agent.submit(service.now, write).ok();
    let events = service.events(&mut client.agent);
    for event in &events {
        let session = client.session.as_mut().expect("a session");
        session.handle_event(service.now, &mut client.agent, event);
    }
    let done = events.iter().any(|event| {
        matches!(event, Event::Answered { ticket: of, answer }
            if Some(*of) == ticket && answer.outcome == Outcome::Done)
    });
    assert_eq!(done, service.record(group, KEY).is_some());
    done
}

#[test]
fn a_session_that_ended_writes_nothing_where_a_founding_forgot_its_lanes() {
    let mut service = Service::new();
    let (mut client, _, others) = connected(&mut service);
    reap(&mut service, &client);
    assert!(!writes_late(&mut service, &mut client, others[0]));
    assert_eq!(state(&client), SessionState::Lost);
}

#[test]
fn a_session_that_lives_goes_on_in_a_new_founding() {
    let mut service = Service::new();
    let (mut client, _, others) = connected(&mut service);
    for group in others {
        assert!(writes_late(&mut service, &mut client, group));
    }
    assert_eq!(state(&client), SessionState::Connected);
}

/// A reaper died after it had moved the lanes on, but before it had removed the record.
#[test]
fn a_session_that_is_marked_writes_nothing_in_a_new_founding() {
    let mut service = Service::new();
    let (mut client, home, others) = connected(&mut service);
    let lanes = client.agent.lanes().expect("lanes");
    let record = SessionRecord {
        lanes,
        ending: true,
    };
    let place = (home, SessionRecord::key(lanes.session));
    let stored = service.records.get_mut(&place).expect("a record");
    stored.value = record.bytes().to_vec();
    assert!(!writes_late(&mut service, &mut client, others[0]));
    assert_eq!(state(&client), SessionState::Lost);
}

#[test]
fn a_session_whose_record_is_lost_with_its_group_is_over() {
    let mut service = Service::new();
    let (mut client, home, others) = connected(&mut service);
    assert!(!writes_late(&mut service, &mut client, home));
    assert_eq!(state(&client), SessionState::Lost);
    assert!(!writes_late(&mut service, &mut client, others[0]));
}

/// The record was read before the session was ended and another group founded: it proves nothing of
/// that one.
#[test]
fn a_read_of_the_record_proves_nothing_of_a_later_founding() {
    let mut service = Service::new();
    let (mut client, _, others) = connected(&mut service);
    let chain = service.found_anew(others[0]);
    client.agent.learn(service.now, chain);
    let (_, read) = client.agent.poll_transmit().expect("a read");
    let (_, reply) = service.handle(&read).expect("a reply");
    reap(&mut service, &client);
    let chain = service.found_anew(others[1]);
    client.agent.learn(service.now, chain);
    client
        .agent
        .handle_datagram(service.now, chain::SWITCH, &reply);
    let write = Operation::put(Place::within(others[1], KEY), b"late");
    client.agent.submit(service.now, write).expect("submitted");
    service.events(&mut client.agent);
    assert!(service.record(others[1], KEY).is_none());
}

/// Nothing is sent to the new founding before the record was read; what waits ends by its deadline as
/// something that was not done.
#[test]
fn what_waits_for_the_proof_expires() {
    let mut service = Service::new();
    let (mut client, home, others) = connected(&mut service);
    service.down.insert(home);
    let chain = service.found_anew(others[0]);
    client.agent.learn(service.now, chain);
    let write = Operation::put(Place::within(others[0], KEY), b"x");
    let ticket = client.agent.submit(service.now, write).expect("submitted");
    let end = service.now + 2 * client.agent.settings().deadline_us;
    service.run(&mut client.agent, end);
    let events = service.events(&mut client.agent);
    let expired = Event::Expired {
        ticket,
        refusal: None,
    };
    assert!(events.contains(&expired), "{events:?}");
    service.down.clear();
    let end = service.now + MS * 1_000;
    service.run(&mut client.agent, end);
    assert!(service.record(others[0], KEY).is_none());
    assert!(writes_late(&mut service, &mut client, others[0]));
}

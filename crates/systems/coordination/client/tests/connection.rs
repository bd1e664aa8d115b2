//! A connection against a scripted controller.

#[allow(dead_code, reason = "each test needs another part")]
mod chain;

use std::net::{Ipv4Addr, SocketAddrV4};

use chain::{GROUPS, SWITCH, Service};
use stateplane_coordination::{
    Connection, ConnectionEvent, Event, Lanes, Operation, Place, Settings,
};
use stateplane_wire::coordination::{Address, Key, Outcome};
use stateplane_wire::coordination_control::{Chain, END_OF_GROUPS, Message, Opened, Session};

const FIRST: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 50), 4795);
const SECOND: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 51), 4795);

fn connection(lanes: u16) -> Connection {
    let client = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 9), 40_000);
    Connection::new(0, &[FIRST, SECOND], Settings::new(client, 1), lanes, 5)
}

fn row(group: u16) -> Chain {
    Chain {
        group,
        generation: 0,
        epoch: 1,
        flags: 0,
        members: 1,
        chain_1: Address(*SWITCH.ip()),
        chain_2: Address::NONE,
        chain_3: Address::NONE,
        chain_4: Address::NONE,
    }
}

fn chains(groups: std::ops::Range<u16>, version: u64, next: u16) -> Vec<u8> {
    let message = Message::Chains {
        controller: 3,
        version,
        groups: GROUPS,
        slots: 64,
        next,
        chains: groups.map(row).collect(),
    };
    message.to_vec()
}

fn asked(connection: &mut Connection) -> Vec<(SocketAddrV4, Message)> {
    std::iter::from_fn(|| connection.poll_transmit())
        .map(|(to, bytes)| {
            (
                to,
                Message::parse(&bytes).expect("a message to the controller"),
            )
        })
        .collect()
}

/// The nonce of the OPEN among what was asked.
fn nonce(asked: &[(SocketAddrV4, Message)]) -> u64 {
    let nonce = asked.iter().find_map(|(_, message)| match message {
        Message::Open { nonce, .. } => Some(*nonce),
        _ => None,
    });
    nonce.expect("an OPEN")
}

fn opened(nonce: u64, session: u32) -> Vec<u8> {
    let opened = Opened {
        nonce,
        session,
        first_lane: 8,
        count: 2,
        lane_incarnation: 0,
        groups: GROUPS,
        lanes: 1024,
        slots: 64,
        ttl_ms: 10_000,
    };
    Message::Opened(opened).to_vec()
}

#[test]
fn it_learns_all_chains_and_opens_a_session() {
    let mut connection = connection(2);
    let first = asked(&mut connection);
    assert!(matches!(first[0], (FIRST, Message::Learn(learn)) if learn.group == 0));
    // The list comes in two parts; its version is the first part's.
    connection.handle_datagram(1, FIRST, &chains(0..2, 7, 2));
    let second = asked(&mut connection);
    assert!(matches!(second[0], (_, Message::Learn(learn)) if learn.group == 2));
    connection.handle_datagram(2, FIRST, &chains(2..GROUPS, 9, END_OF_GROUPS));
    connection.handle_datagram(3, FIRST, &opened(nonce(&first), 5));
    let lanes = Lanes {
        session: 5,
        first: 8,
        count: 2,
        incarnation: 0,
    };
    assert_eq!(connection.poll_event(3), Some(ConnectionEvent::Known));
    let ttl_us = 10_000_000;
    assert_eq!(
        connection.poll_event(3),
        Some(ConnectionEvent::Opened { lanes, ttl_us })
    );
    // Later, what changed is asked for.
    connection.handle_timeout(1_100_000);
    let later = asked(&mut connection);
    assert!(
        matches!(later[0].1, Message::Learn(learn) if (learn.controller, learn.version) == (3, 7))
    );
    // The agent works.
    let mut service = Service::new();
    let put = Operation::put(Place::of(Key([1; 16])), b"one");
    connection
        .agent()
        .expect("an agent")
        .submit(4, put)
        .expect("submitted");
    let (_, request) = connection.poll_transmit().expect("a request");
    let (_, reply) = service.handle(&request).expect("a reply");
    connection.handle_datagram(5, SWITCH, &reply);
    let event = connection.poll_event(5);
    assert!(
        matches!(event, Some(ConnectionEvent::Agent(Event::Answered { answer, .. }))
        if answer.outcome == Outcome::Done)
    );
}

#[test]
fn a_silent_controller_is_followed_by_the_next() {
    let mut connection = connection(0);
    assert_eq!(asked(&mut connection)[0].0, FIRST);
    let at = connection.poll_timeout().expect("a repetition");
    connection.handle_timeout(at);
    assert_eq!(asked(&mut connection)[0].0, SECOND);
}

#[test]
fn answers_of_strangers_and_to_other_questions_change_nothing() {
    let mut connection = connection(2);
    let first = asked(&mut connection);
    let stranger = SocketAddrV4::new(Ipv4Addr::new(10, 9, 9, 9), 4795);
    connection.handle_datagram(1, stranger, &chains(0..GROUPS, 1, END_OF_GROUPS));
    assert_eq!(connection.malformed(), 1);
    connection.handle_datagram(1, FIRST, &opened(nonce(&first).wrapping_add(1), 5));
    assert_eq!(connection.poll_event(1), None);
    // No lanes: the question stays.
    connection.handle_datagram(1, FIRST, &opened(nonce(&first), 0));
    assert_eq!(connection.poll_event(1), Some(ConnectionEvent::Known));
    assert_eq!(connection.poll_event(1), Some(ConnectionEvent::NoLanes));
    connection.handle_timeout(100_000);
    assert_eq!(nonce(&asked(&mut connection)), nonce(&first));
}

#[test]
fn a_reaper_lists_and_closes_sessions() {
    let mut connection = connection(0);
    asked(&mut connection);
    connection.list(0, 0);
    assert!(matches!(
        asked(&mut connection)[0].1,
        Message::List { session: 0, .. }
    ));
    let row = Session {
        session: 4,
        first_lane: 1,
        count: 1,
        lane_incarnation: 2,
        age_ms: 3,
    };
    let sessions = Message::Sessions {
        controller: 3,
        sessions: 1,
        free_lanes: 9,
        ttl_ms: 10,
        next: u32::MAX,
        rows: vec![row],
    };
    connection.handle_datagram(1, FIRST, &sessions.to_vec());
    let lanes = Lanes {
        session: 4,
        first: 1,
        count: 1,
        incarnation: 2,
    };
    let sessions = vec![(lanes, 3_000)];
    let listed = ConnectionEvent::Sessions {
        sessions,
        ttl_us: 10_000,
        next: None,
    };
    assert_eq!(connection.poll_event(1), Some(listed));
    connection.close(2, lanes);
    assert!(matches!(asked(&mut connection)[0].1, Message::Close(lanes) if lanes.session == 4));
    connection.handle_datagram(3, FIRST, &Message::Ended { session: 4 }.to_vec());
    assert!(!connection.is_closing());
}

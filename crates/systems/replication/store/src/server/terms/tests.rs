use stateplane_wire::control::{ChainConfig, Member};
use stateplane_wire::replication::{Key, MessageType, Repr, field, older};
use stateplane_wire::term::Changes;

use super::*;
use crate::server::testing::{self, SWITCH, configure, member, save, sent, started};

const CHAIN: u16 = 1;
const P: u64 = 100_000;
const Q: u64 = 400_000;

fn heartbeat(incarnation: u32) -> Heartbeat {
    Heartbeat {
        switch_id: 3,
        incarnation,
        number: 1,
        send_time: 77,
        stream: 0,
        version: 0,
    }
}

/// Messages of terms that `server` sends at `now`, and to whom.
fn told(server: &mut Server, now: u64) -> Vec<(Recipient, Message)> {
    let sent = sent(server, now).into_iter();
    let parsed = sent.map(|(to, bytes)| (to, Message::parse(&bytes)));
    parsed
        .filter_map(|(to, message)| Some((to, message.ok()?)))
        .collect()
}

/// The reply to a heartbeat at `now`.
fn beat(server: &mut Server, now: u64) -> Reply {
    let bytes = heartbeat(5).to_vec().unwrap();
    server.handle_request(now, SWITCH, &bytes);
    let told = told(server, now).into_iter();
    let mut replies = told.filter_map(|(to, message)| match message {
        Message::Reply(reply) if to == Recipient::Switch(SWITCH) => Some(reply),
        _ => None,
    });
    replies.next().expect("a reply")
}

fn covers(server: &mut Server, now: u64) -> bool {
    let rows = beat(server, now).changes.rows;
    let row = rows.iter().find(|row| row.shard == CHAIN);
    row.is_some_and(|row| row.flags & row_flag::HOLDS != 0)
}

fn configuration(epoch: u32, members: &[u32], joining: Option<u32>) -> ChainConfig {
    ChainConfig {
        chain: CHAIN,
        epoch,
        members: members.iter().map(|number| member(*number, 7)).collect(),
        joining: joining.map(|number| member(number, 7)),
    }
}

/// Server `number` in that configuration, which is on its disk.
fn server_in(number: u32, config: &ChainConfig) -> Server {
    let mut server = testing::managed(member(number, 7), 1_000_000)
        .server(1)
        .unwrap();
    configure(&mut server, config);
    save(&mut server, &mut Vec::new());
    server
}

/// Carries questions of the head and their answers at `now`.
fn exchange(head: &mut Server, other: &mut Server, of: Member, now: u64) {
    let questions = told(head, now).into_iter();
    let questions: Vec<_> = questions
        .filter_map(|(to, message)| match message {
            Message::Question(question) if to == Recipient::Neighbour(of.links) => Some(question),
            _ => None,
        })
        .collect();
    for question in questions {
        other.handle_link(now, member(1, 7).links, &question.to_vec());
    }
    for (_, message) in told(other, now) {
        if let Message::Answer(answer) = message {
            head.handle_link(now, of.links, &answer.to_vec());
        }
    }
}

#[test]
fn the_head_of_a_fixed_chain_covers_what_it_serves() {
    let mut server = started(&testing::fixed(1, 0, 7));
    let reply = beat(&mut server, 10);
    assert_eq!((reply.send_time, reply.number), (77, 1));
    assert_eq!(u64::from(reply.promise), P);
    let covered = Row {
        shard: 0,
        epoch: 1,
        flags: row_flag::HOLDS,
    };
    assert_eq!(reply.changes.rows, [covered]);
    let mut tail = started(&testing::fixed(2, 1, 7));
    assert_eq!(beat(&mut tail, 10).changes.rows[0].flags, 0);
}

#[test]
fn a_reply_waits_for_no_disk() {
    let mut server = started(&testing::fixed(1, 0, 7));
    testing::ask(&mut server, 0, 1, 1);
    assert_eq!(u64::from(beat(&mut server, 10).promise), P);
    assert_eq!(server.poll_transmit(10), None, "the answer waits");
}

#[test]
fn another_waits_until_the_promise_ends_and_what_is_withheld_is_named() {
    let mut server = started(&testing::fixed(1, 0, 7));
    let request = |switch_id, incarnation| {
        let request = Repr {
            chain_epoch: 1,
            switch_id,
            incarnation,
            claim: 1,
            request: 1,
            ..Repr::new(MessageType::LeaseRequest, Key([1; 16]))
        };
        request.to_vec().unwrap()
    };
    server.handle_request(500_000, SWITCH, &request(3, 5));
    save(&mut server, &mut Vec::new());
    beat(&mut server, 500_000);
    server.handle_request(500_001, SWITCH, &request(4, 1));
    assert_eq!(beat(&mut server, 560_000).withheld, [0; 0]);
    sent(&mut server, 600_001);
    assert_eq!(beat(&mut server, 600_001).withheld, [0]);
    // The last promise that covers it is of 560 ms.
    sent(&mut server, 659_999);
    assert_eq!(server.replica(0).unwrap().parked().0, 1);
    sent(&mut server, 560_000 + P);
    assert_eq!(server.replica(0).unwrap().parked().0, 0);
    assert_eq!(beat(&mut server, 661_000).withheld, [0; 0]);
    assert_eq!(server.counters().withheld, 1);
}

#[test]
fn a_head_covers_only_what_others_back() {
    let config = configuration(1, &[1, 2], None);
    let (mut head, mut other) = (server_in(1, &config), server_in(2, &config));
    assert!(!covers(&mut head, 10));
    exchange(&mut head, &mut other, member(2, 7), 5_100);
    assert!(covers(&mut head, 5_101));
    let backed = 5_100 + head.template.backed_time();
    assert!(covers(&mut head, backed - 1));
    assert!(!covers(&mut head, backed));
    exchange(&mut head, &mut other, member(2, 7), 600_000);
    assert!(covers(&mut head, 600_001));
    // In the next configuration that the other does not follow yet.
    let next = configuration(2, &[1, 2], None);
    configure(&mut head, &next);
    save(&mut head, &mut Vec::new());
    assert!(!covers(&mut head, 600_002));
    exchange(&mut head, &mut other, member(2, 7), 700_100);
    assert!(!covers(&mut head, 700_101));
    configure(&mut other, &next);
    save(&mut other, &mut Vec::new());
    exchange(&mut head, &mut other, member(2, 7), 705_200);
    assert!(covers(&mut head, 705_201));
    // The other one heads nothing.
    assert!(!covers(&mut other, 705_201));
}

#[test]
fn a_configuration_that_is_not_on_the_disk_is_not_followed() {
    let config = configuration(1, &[1, 2], None);
    let (mut head, mut other) = (server_in(1, &config), server_in(2, &config));
    exchange(&mut head, &mut other, member(2, 7), 5_000);
    configure(&mut other, &configuration(2, &[1, 2], None));
    let question = Question {
        server: 1,
        incarnation: 7,
        number: 9,
        backing: 1,
        stream: 0,
        version: 0,
    };
    let mut asked = || {
        other.handle_link(6_000, member(1, 7).links, &question.to_vec());
        let answers = told(&mut other, 6_000).into_iter();
        let mut rows = answers.filter_map(|(_, message)| match message {
            Message::Answer(answer) => Some(answer.changes.rows),
            _ => None,
        });
        let flags = rows.next().unwrap()[0].flags;
        save(&mut other, &mut Vec::new());
        flags
    };
    assert_eq!(asked(), 0);
    assert_eq!(asked(), row_flag::HOLDS);
}

#[test]
fn a_server_that_comes_back_follows_what_its_disk_has() {
    let setup = testing::managed(member(1, 7), 1_000_000);
    let mut server = setup.server(1).unwrap();
    let mut records: Vec<_> = server.saved_state().unwrap().collect();
    for epoch in 1..4 {
        configure(&mut server, &configuration(epoch, &[1], None));
        save(&mut server, &mut records);
    }
    assert!(covers(&mut server, 10));
    let mut back = testing::recovered(setup, &records).unwrap();
    assert!(covers(&mut back, 10));
}

#[test]
fn a_replica_that_may_have_joined_must_back_too() {
    let config = configuration(1, &[1, 2], Some(3));
    let (mut head, mut tail) = (server_in(1, &config), server_in(2, &config));
    let mut joiner = server_in(3, &config);
    exchange(&mut head, &mut tail, member(2, 7), 5_000);
    assert!(covers(&mut head, 5_001));
    tail.chains.get_mut(&CHAIN).unwrap().told_joined = true;
    tail.terms.look_again();
    exchange(&mut head, &mut tail, member(2, 7), 200_000);
    assert!(!covers(&mut head, 200_001));
    exchange(&mut head, &mut joiner, member(3, 7), 205_100);
    assert!(covers(&mut head, 205_101));
}

#[test]
fn a_new_head_waits_for_the_time_of_a_backing() {
    let mut server = server_in(2, &configuration(1, &[1, 2], None));
    configure(&mut server, &configuration(2, &[2], None));
    let owner = crate::record::Owner {
        switch: 3,
        incarnation: 5,
        claim: 1,
    };
    let replica = server.replica(CHAIN).unwrap();
    assert_eq!(replica.outwaits(CHAIN, &owner), 1 + Q);
}

#[test]
fn answers_to_what_was_not_asked_back_nothing() {
    let config = configuration(1, &[1, 2], None);
    let mut head = server_in(1, &config);
    let answer = Answer {
        server: 1,
        incarnation: 7,
        number: 99,
        whole: true,
        changes: Changes {
            stream: 4,
            after: 0,
            version: 1,
            rows: vec![Row {
                shard: CHAIN,
                epoch: 1,
                flags: row_flag::HOLDS,
            }],
        },
    };
    head.handle_link(10, member(2, 7).links, &answer.to_vec());
    assert!(!covers(&mut head, 11));
    head.handle_link(12, SWITCH, b"SPT1 and no more");
    head.handle_request(12, SWITCH, &heartbeat(0).to_vec().unwrap());
    assert_eq!(head.server_counters().term_malformed, 2);
}

#[test]
fn a_switch_of_version_1_is_refused_in_version_1_and_told_of_once() {
    let mut server = started(&testing::fixed(1, 0, 7));
    let mut probe = older::probe(3, 5, 0, 1, 10).unwrap();
    server.handle_request(10, SWITCH, &probe);
    assert_eq!(server.poll_transmit(10), None, "its switch is not older");
    assert_eq!(server.poll_older(), None);
    assert_eq!(server.counters().wrong_version, 0);
    // A first transmission, by the same checksum: 0 and 0xffff count the same.
    probe[field::ATTEMPT..field::ATTEMPT + 2].fill(0);
    for _ in 0..2 {
        server.handle_request(10, SWITCH, &probe);
        let refusal = server.poll_transmit(10).unwrap();
        assert!(older::is_answer(&refusal.bytes, 3, 5));
    }
    assert_eq!(server.poll_older(), Some((3, 1)));
    assert_eq!(server.poll_older(), None);
    assert_eq!(server.server_counters().older_version, 2);
}

mod bounds;
mod older_disk;

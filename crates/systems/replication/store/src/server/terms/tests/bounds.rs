//! The bounds of a promise, and heads that are not backed.

use super::*;
use crate::record::Owner;
use crate::server::Setup;

const OWNER: Owner = Owner {
    switch: 3,
    incarnation: 5,
    claim: 1,
};

/// The answers that `server` gives at `now` to a question for `backing` µs.
fn answers(server: &mut Server, now: u64, backing: u32) -> Vec<Answer> {
    let question = Question {
        server: 1,
        incarnation: 7,
        number: 9,
        backing,
        stream: 0,
        version: 0,
    };
    server.handle_link(now, member(1, 7).links, &question.to_vec());
    let told = told(server, now).into_iter();
    told.filter_map(|(_, message)| match message {
        Message::Answer(answer) => Some(answer),
        _ => None,
    })
    .collect()
}

#[test]
fn who_has_too_many_shards_withheld_is_promised_nothing() {
    let mut server = started(&testing::fixed(1, 0, 7));
    for shard in 0..MOST_WITHHELD as u16 {
        server.promises.withhold((shard, Key([1; 16])), &OWNER);
    }
    let reply = beat(&mut server, 10);
    assert_eq!(u64::from(reply.promise), P);
    assert_eq!(reply.withheld.len(), MOST_WITHHELD);
    server.promises.withhold((99, Key([1; 16])), &OWNER);
    let reply = beat(&mut server, 20);
    assert_eq!((reply.promise, reply.withheld), (0, Vec::new()));
    assert_eq!(server.promised(98, &OWNER), 10 + P);
}

#[test]
fn who_has_not_all_rows_is_promised_nothing() {
    let mut server = started(&testing::fixed(1, 0, 7));
    beat(&mut server, 5);
    for shard in 1..400 {
        server.terms.set(shard, 1, row_flag::HOLDS, 0);
    }
    let mut asked = heartbeat(6);
    let mut promises = Vec::new();
    for now in 10..13 {
        server.handle_request(now, SWITCH, &asked.to_vec().unwrap());
        let Some((_, Message::Reply(reply))) = told(&mut server, now).pop() else {
            panic!("no reply");
        };
        (asked.stream, asked.version) = (reply.changes.stream, reply.changes.version);
        promises.push(u64::from(reply.promise));
    }
    assert_eq!(promises, [0, 0, P]);
    let owner = Owner {
        incarnation: 6,
        ..OWNER
    };
    assert_eq!(server.promised(1, &owner), 12 + P);
}

#[test]
fn nobody_is_backed_for_longer_than_others_are_outwaited() {
    let mut server = server_in(2, &configuration(1, &[1, 2], None));
    assert_eq!(answers(&mut server, 10, Q as u32).len(), 1);
    for _ in 0..2 {
        assert_eq!(answers(&mut server, 20, Q as u32 + 1), []);
    }
    assert_eq!(server.server_counters().backing_too_long, 2);
    let longer = LongerBacking {
        from: member(1, 7).links,
        asked: Q as u32 + 1,
        given: Q as u32,
    };
    assert_eq!(server.poll_longer_backing(), Some(longer));
    assert_eq!(server.poll_longer_backing(), None);
}

#[test]
fn a_tail_that_comes_back_may_have_told_of_who_joins() {
    let setup = testing::managed(member(2, 7), 1_000_000);
    let mut server = setup.server(1).unwrap();
    let mut records: Vec<_> = server.saved_state().unwrap().collect();
    configure(&mut server, &configuration(1, &[1, 2], Some(3)));
    save(&mut server, &mut records);
    let flags = |server: &mut Server| answers(server, 20, 1)[0].changes.rows[0].flags;
    assert_eq!(flags(&mut server), row_flag::HOLDS);
    let mut back = testing::recovered(setup, &records).unwrap();
    assert_eq!(flags(&mut back), row_flag::HOLDS | row_flag::JOINED);
}

#[test]
fn an_empty_server_of_a_fixed_chain_grants_nothing_for_the_time_of_a_backing() {
    let start = 1_000;
    let mut server = testing::fixed(1, 0, 7).server(start).unwrap();
    testing::ask(&mut server, 0, 1, 1);
    save(&mut server, &mut Vec::new());
    let mut answered = |now| {
        sent(&mut server, now);
        save(&mut server, &mut Vec::new());
        sent(&mut server, now).len()
    };
    assert_eq!(answered(start + Q - 1), 0);
    assert_eq!(answered(start + Q), 1);
}

#[test]
fn what_is_saved_changes_rows_only_where_a_configuration_is_in_it() {
    let mut server = server_in(1, &configuration(1, &[1], None));
    assert!(covers(&mut server, 10));
    testing::ask(&mut server, CHAIN, 1, 1);
    save(&mut server, &mut Vec::new());
    assert!(!server.terms.changed);
    configure(&mut server, &configuration(2, &[1], None));
    beat(&mut server, 20);
    assert!(!server.terms.changed);
    save(&mut server, &mut Vec::new());
    assert!(server.terms.changed);
    assert!(covers(&mut server, 30));
}

#[test]
fn a_head_asks_for_backing_while_its_disk_is_waited_for() {
    let config = configuration(1, &[1, 2], None);
    let (mut head, mut other) = (server_in(1, &config), server_in(2, &config));
    exchange(&mut head, &mut other, member(2, 7), 5_000);
    testing::ask(&mut head, CHAIN, 1, 1);
    assert!(head.poll_record().is_some());
    let due = head.ask_again(5_001).unwrap();
    assert!(due > 5_001);
    assert_eq!(head.poll_transmit(5_001), None);
    head.ask_again(due);
    let datagram = head.poll_transmit(due).expect("a question");
    let question = Message::parse(&datagram.bytes);
    assert!(matches!(question, Ok(Message::Question(_))));
    assert_eq!(head.poll_transmit(due), None, "the entry waits");
    other.handle_link(due, member(1, 7).links, &datagram.bytes);
    for (_, message) in told(&mut other, due) {
        if let Message::Answer(answer) = message {
            head.handle_link(due, member(2, 7).links, &answer.to_vec());
        }
    }
    let backed = due + head.template.backed_time();
    assert!(covers(&mut head, backed - 1));
}

#[test]
fn a_head_that_falls_silent_covers_nothing() {
    stateplane_invariant::in_production(|| {
        let mut setup = testing::managed(member(1, 7), 1_000_000);
        if let Setup::Managed { template, .. } = &mut setup {
            template.authentic = true;
        }
        let config = configuration(1, &[1, 2], None);
        let (mut head, mut other) = (setup.server(1).unwrap(), server_in(2, &config));
        configure(&mut head, &config);
        testing::ask(&mut head, CHAIN, 1, 1);
        save(&mut head, &mut Vec::new());
        exchange(&mut head, &mut other, member(2, 7), 10);
        assert!(covers(&mut head, 20));
        let replica = &mut head.chains.get_mut(&CHAIN).unwrap().replica;
        replica.base = replica.applied() + 1;
        testing::ask(&mut head, CHAIN, 2, 1);
        assert_eq!(head.silenced().count(), 1);
        assert!(!covers(&mut head, 30));
    });
}

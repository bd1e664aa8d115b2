use stateplane_wire::replication::RefusalCode;
use stateplane_wire::term::Row;

use super::*;
use crate::Stream;

const HEAD: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn terms() -> Terms {
    let mut terms = Terms::new(3, 5, 4);
    terms.set_head(1_000, 0, HEAD, 1);
    terms
}

fn stream(id: u32, rows: &[(u16, u32)]) -> Stream {
    let mut stream = Stream::new(id);
    for &(shard, epoch) in rows {
        stream.set(Row {
            shard,
            epoch,
            flags: row_flag::HOLDS,
        });
    }
    stream
}

/// The next heartbeat, and the head that it is for.
fn asked(terms: &mut Terms, now: u64) -> (Ipv4Addr, Heartbeat) {
    let (head, bytes) = terms.poll_heartbeat(now).expect("a heartbeat");
    let Ok(Message::Heartbeat(heartbeat)) = Message::parse(&bytes) else {
        panic!("a heartbeat, not {bytes:?}")
    };
    (head, heartbeat)
}

fn heartbeat(terms: &mut Terms, now: u64) -> Heartbeat {
    asked(terms, now).1
}

/// A reply with a promise of `promise` µs, if its rows are whole.
fn promising(promise: u32, stream: &Stream, heartbeat: &Heartbeat, withheld: &[u16]) -> Vec<u8> {
    let (changes, whole) = stream.changes(heartbeat.stream, heartbeat.version);
    let reply = Reply {
        switch_id: heartbeat.switch_id,
        incarnation: heartbeat.incarnation,
        number: heartbeat.number,
        send_time: heartbeat.send_time,
        promise: if whole { promise } else { 0 },
        withheld: withheld.to_vec(),
        changes,
    };
    reply.to_vec().expect("a reply")
}

fn reply(stream: &Stream, heartbeat: &Heartbeat, withheld: &[u16]) -> Vec<u8> {
    promising(102_400, stream, heartbeat, withheld)
}

fn exchange(terms: &mut Terms, stream: &Stream, sent: u64, arrived: u64) {
    let heartbeat = heartbeat(terms, sent);
    let reply = reply(stream, &heartbeat, &[]);
    assert!(terms.handle_reply(arrived, HEAD, &reply));
}

#[test]
fn a_term_lasts_from_the_reply_until_its_promise_by_the_send_time_is_over() {
    let mut terms = terms();
    exchange(&mut terms, &stream(9, &[(0, 1)]), 1_000, 1_300);
    let term = Term {
        since: 1_300,
        // 102,400 without a 512th.
        deadline: 1_000 + 102_200,
    };
    assert_eq!(terms.poll_change(), Some((0, term)));
    assert_eq!(terms.poll_change(), None);
    assert!(term.permits(1_302, 1_301));
    assert!(!term.permits(1_301, 1_300));
    assert!(!term.permits(103_200, 1_301));
    assert_eq!(terms.term(1), Term::default());
}

#[test]
fn heartbeats_come_twice_a_promise_and_sooner_while_unanswered() {
    let mut terms = terms();
    exchange(&mut terms, &stream(9, &[(0, 1)]), 1_000, 1_300);
    assert_eq!(terms.poll_timeout(), Some(1_000 + 50_000));
    assert_eq!(terms.poll_heartbeat(50_999), None);
    heartbeat(&mut terms, 51_000);
    assert_eq!(terms.poll_timeout(), Some(51_000 + 10_240));
    heartbeat(&mut terms, 61_240);
    // A head that is dead for longer costs no more than one that lives.
    heartbeat(&mut terms, 104_000);
    assert_eq!(terms.poll_timeout(), Some(104_000 + 51_200));
}

/// The head has to be backed in a new configuration, which takes some ms; half a promise later is too
/// late.
#[test]
fn a_head_that_does_not_cover_a_shard_yet_is_asked_again_before_the_term_ends() {
    let mut terms = terms();
    terms.set_head(1_000, 1, HEAD, 1);
    let mut stream = stream(9, &[(0, 1), (1, 1)]);
    exchange(&mut terms, &stream, 1_000, 1_300);
    assert_eq!(terms.poll_timeout(), Some(1_000 + 50_000));
    let row = |flags| Row {
        shard: 1,
        epoch: 2,
        flags,
    };
    stream.set(row(0));
    exchange(&mut terms, &stream, 52_000, 52_300);
    assert_eq!(terms.poll_timeout(), Some(52_000 + 10_240));
    // It answers later than that.
    exchange(&mut terms, &stream, 62_240, 73_000);
    assert_eq!(terms.poll_timeout(), Some(73_000));
    stream.set(row(row_flag::HOLDS));
    exchange(&mut terms, &stream, 73_000, 73_300);
    assert_eq!(terms.poll_timeout(), Some(73_000 + 51_200));
    assert_eq!(terms.term(1).since, 1_300);
    assert_eq!(terms.lapses(), 0);
    // A term that has lapsed, or is withheld, is no reason to ask sooner.
    stream.set(row(0));
    let withheld = heartbeat(&mut terms, 124_200);
    let bytes = reply(&stream, &withheld, &[1]);
    terms.handle_reply(124_300, HEAD, &bytes);
    assert_eq!(terms.poll_timeout(), Some(124_200 + 51_200));
    exchange(&mut terms, &stream, 175_400, 175_700);
    assert_eq!(terms.poll_timeout(), Some(175_400 + 51_200));
}

#[test]
fn the_next_head_is_asked_soon() {
    let mut terms = terms();
    terms.set_head(1_000, 1, OTHER, 1);
    let streams = [(HEAD, 9, 0), (OTHER, 7, 1)];
    for (head, id, shard) in streams {
        let (to, heartbeat) = asked(&mut terms, 1_000);
        assert_eq!(to, head);
        terms.handle_reply(
            1_300,
            head,
            &reply(&stream(id, &[(shard, 1)]), &heartbeat, &[]),
        );
    }
    assert_eq!(terms.poll_timeout(), Some(51_000));
    // No sooner than it would be asked without an answer.
    terms.set_head(2_000, 0, OTHER, 2);
    assert_eq!(terms.poll_timeout(), Some(1_000 + 10_240));
    // A configuration alone, with the same head, is no reason.
    terms.set_head(2_000, 1, OTHER, 2);
    heartbeat(&mut terms, 11_240);
    assert_eq!(terms.heard().count(), 1);
    terms.set_head(40_000, 0, HEAD, 3);
    assert_eq!(terms.poll_heartbeat(40_000).map(|it| it.0), Some(HEAD));
}

#[test]
fn a_head_is_asked_soon_for_a_shard_whose_term_has_ended() {
    let (mut terms, stream) = (terms(), stream(9, &[(0, 1)]));
    exchange(&mut terms, &stream, 1_000, 1_300);
    let deadline = terms.term(0).deadline;
    // It answers without covering the shard, as while not all back it.
    let heartbeat = heartbeat(&mut terms, deadline);
    terms.handle_reply(
        deadline + 300,
        HEAD,
        &reply(&Stream::new(9), &heartbeat, &[]),
    );
    let due = terms.poll_timeout();
    terms.set_head(deadline + 11_000, 0, HEAD, 2);
    assert_eq!(terms.poll_timeout(), Some(deadline + 11_000));
    assert!(due > terms.poll_timeout());
}

#[test]
fn a_term_that_goes_on_keeps_what_was_granted_and_a_lapse_does_not() {
    let (mut terms, stream) = (terms(), stream(9, &[(0, 1)]));
    exchange(&mut terms, &stream, 1_000, 1_300);
    exchange(&mut terms, &stream, 60_000, 60_300);
    assert_eq!(terms.term(0).since, 1_300);
    assert_eq!(terms.lapses(), 0);
    let deadline = terms.term(0).deadline;
    exchange(&mut terms, &stream, deadline - 10, deadline);
    assert_eq!(terms.term(0).since, deadline);
    assert_eq!(terms.lapses(), 1);
}

#[test]
fn another_stream_in_the_same_configuration_ends_what_was_granted() {
    let mut terms = terms();
    exchange(&mut terms, &stream(9, &[(0, 1)]), 1_000, 1_300);
    exchange(&mut terms, &stream(10, &[(0, 1)]), 60_000, 60_300);
    assert_eq!(terms.term(0).since, 60_300);
}

#[test]
fn a_newer_configuration_goes_on_and_an_older_one_says_nothing() {
    let mut terms = terms();
    exchange(&mut terms, &stream(9, &[(0, 2)]), 1_000, 1_300);
    terms.set_head(2_000, 1, OTHER, 1);
    let (to, question) = asked(&mut terms, 2_000);
    assert_eq!(to, OTHER);
    let older = reply(&stream(7, &[(0, 1)]), &question, &[]);
    assert!(terms.handle_reply(2_300, OTHER, &older));
    assert_eq!(terms.term(0).deadline, 1_000 + 102_200);
    exchange(&mut terms, &stream(9, &[(0, 3)]), 60_000, 60_300);
    assert_eq!(terms.term(0).since, 1_300);
}

#[test]
fn what_is_withheld_or_not_covered_lapses() {
    let mut terms = terms();
    (1..3).for_each(|shard| terms.set_head(1_000, shard, HEAD, 1));
    let mut stream = stream(9, &[(0, 1), (1, 1), (2, 1)]);
    exchange(&mut terms, &stream, 1_000, 1_300);
    stream.set(Row {
        shard: 2,
        epoch: 1,
        flags: 0,
    });
    let beat = heartbeat(&mut terms, 60_000);
    let bytes = reply(&stream, &beat, &[1]);
    terms.handle_reply(60_300, HEAD, &bytes);
    assert_eq!(terms.term(0).deadline, 60_000 + 102_200);
    assert_eq!(terms.term(1).deadline, 1_000 + 102_200);
    assert_eq!(terms.term(2).deadline, 1_000 + 102_200);
}

/// Fixed chains beside each other have the same number of configuration, and each server covers all
/// shards that it serves.
#[test]
fn who_is_not_the_head_of_a_shard_promises_nothing_about_it() {
    let mut terms = terms();
    terms.set_head(1_000, 1, OTHER, 1);
    let streams = [(HEAD, 9), (OTHER, 7)].map(|(head, id)| (head, stream(id, &[(0, 1), (1, 1)])));
    for (now, answers) in [(1_000, 2), (60_000, 1)] {
        for _ in 0..2 {
            let (head, heartbeat) = asked(&mut terms, now);
            let mut known = streams.iter().take(answers);
            if let Some((_, stream)) = known.find(|(address, _)| *address == head) {
                terms.handle_reply(now + 300, head, &reply(stream, &heartbeat, &[]));
            }
        }
    }
    // OTHER did not answer the second time.
    let term = |deadline| Term {
        since: 1_300,
        deadline,
    };
    assert_eq!(terms.term(0), term(60_000 + 102_200));
    assert_eq!(terms.term(1), term(1_000 + 102_200));
    assert_eq!(terms.lapses(), 0);
}

#[test]
fn heartbeats_are_no_rarer_than_ports_need_them() {
    let mut terms = terms();
    let long = stream(9, &[(0, 1)]);
    let first = heartbeat(&mut terms, 1_000);
    let of_ten_seconds = promising(10_000_000, &long, &first, &[]);
    assert!(terms.handle_reply(1_300, HEAD, &of_ten_seconds));
    heartbeat(&mut terms, 51_000);
    assert_eq!(terms.poll_timeout(), Some(51_000 + 250_000));
}

#[test]
fn a_reply_counts_only_with_all_rows() {
    let mut terms = Terms::new(3, 5, 400);
    (0..400).for_each(|shard| terms.set_head(1_000, shard, HEAD, 1));
    let rows: Vec<_> = (0..400).map(|shard| (shard, 1)).collect();
    let stream = stream(9, &rows);
    exchange(&mut terms, &stream, 1_000, 1_300);
    assert_eq!(terms.term(0), Term::default());
    // More follow at once.
    exchange(&mut terms, &stream, 1_300, 1_600);
    exchange(&mut terms, &stream, 1_600, 1_900);
    assert_eq!(terms.term(399).since, 1_900);
    assert_eq!(terms.poll_timeout(), Some(1_600 + 50_000));
}

#[test]
fn replies_to_others_and_of_streams_that_were_left_change_nothing() {
    let mut terms = terms();
    let (old, new) = (stream(9, &[(0, 1)]), stream(10, &[(0, 1)]));
    let first = heartbeat(&mut terms, 1_000);
    exchange(&mut terms, &new, 20_000, 20_300);
    let before = terms.term(0);
    terms.handle_reply(30_000, HEAD, &reply(&old, &first, &[]));
    assert_eq!(terms.term(0), before);
    let other = Heartbeat {
        incarnation: 6,
        ..first
    };
    assert!(!terms.handle_reply(30_000, HEAD, &reply(&new, &other, &[])));
    let future = Heartbeat {
        send_time: 40_000,
        ..first
    };
    assert!(!terms.handle_reply(30_000, HEAD, &reply(&new, &future, &[])));
    assert!(!terms.handle_reply(30_000, HEAD, b"SPT1 and no more"));
    // From whom it asked nothing.
    assert!(terms.handle_reply(30_000, OTHER, &reply(&new, &first, &[])));
    assert_eq!(terms.term(0), before);
}

#[test]
fn a_change_of_the_program_ends_what_was_granted() {
    let mut terms = terms();
    exchange(&mut terms, &stream(9, &[(0, 1)]), 1_000, 1_300);
    while terms.poll_change().is_some() {}
    terms.program_changed(5_000);
    assert_eq!(terms.term(0).since, 5_000);
    assert_eq!(terms.term(0).deadline, 1_000 + 102_200);
    let changes = core::iter::from_fn(|| terms.poll_change());
    assert_eq!(changes.count(), 4);
}

#[test]
fn heads_without_a_shard_are_not_asked_any_more() {
    let mut terms = terms();
    terms.set_head(1_000, 0, OTHER, 2);
    let asked = terms.poll_heartbeat(1_000).map(|(head, _)| head);
    assert_eq!(asked, Some(OTHER));
    assert_eq!(terms.poll_heartbeat(1_000), None);
    assert_eq!(terms.heard().count(), 1);
}

#[test]
fn a_silent_head_is_asked_in_version_1_and_told_of_once() {
    let mut terms = terms();
    let mut told = Vec::new();
    for now in (1_000..4_000_000).step_by(10_000) {
        while let Some((head, bytes)) = terms.poll_heartbeat(now) {
            if let Some((_, refusal)) = older::refusal(&bytes, RefusalCode::WrongServer) {
                assert!(terms.handle_reply(now, head, &refusal));
                told.push(now);
            }
        }
    }
    assert_eq!(told.len(), 3);
    assert_eq!(terms.poll_older(), Some(HEAD));
    assert_eq!(terms.poll_older(), None);
}

#[test]
fn the_wire_of_a_heartbeat_names_what_is_known() {
    let (mut terms, stream) = (terms(), stream(9, &[(0, 1), (1, 1)]));
    exchange(&mut terms, &stream, 1_000, 1_300);
    let next = heartbeat(&mut terms, 60_000);
    assert_eq!((next.stream, next.version), (9, 2));
    assert_eq!((next.number, next.send_time), (2, 60_000));
    assert_eq!((next.switch_id, next.incarnation), (3, 5));
}

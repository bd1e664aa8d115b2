use proptest::prelude::*;

use super::*;

const CONFIG: SenderConfig = SenderConfig {
    session: 7,
    lanes: 2,
    first_number: 0x12_0000_0001,
    longest: 100,
    repeat_us: 1_000,
    longest_repeat_us: 4_000,
    give_up_us: 10_000,
};

/// Groups and ids of the STARTs that are to be sent.
fn starts(sender: &mut Sender) -> Vec<(u8, u8, u64)> {
    let mut sent = Vec::new();
    while let Some((group, start)) = sender.poll_transmit() {
        assert_eq!(start.group, group);
        assert_eq!(start.message_type, MessageType::Start);
        assert!(start.to_vec().is_ok());
        sent.push((group, start.lane, start.number));
    }
    sent
}

fn complete(call: Call, group: u8, time: u64) -> Repr<'static> {
    Repr {
        group,
        session: call.session,
        lane: call.lane,
        number: call.number,
        final_time: time,
        final_group: 1,
        ..Repr::new(MessageType::Complete)
    }
}

fn refused(call: Call, group: u8, code: Code) -> Repr<'static> {
    Repr {
        message_type: MessageType::Refused,
        code: code as u8,
        ..complete(call, group, 0)
    }
}

#[test]
fn a_call_is_complete_when_every_group_has_answered() {
    let mut sender = Sender::new(CONFIG);
    let call = sender.send(0, 0b101, b"x".to_vec()).unwrap();
    let number = CONFIG.first_number;
    assert_eq!(starts(&mut sender), [(0, 0, number), (2, 0, number)]);
    sender.handle_message(0, &complete(call, 0, 30));
    sender.handle_message(0, &complete(call, 0, 30));
    sender.handle_message(0, &complete(call, 1, 99));
    assert_eq!(sender.poll_event(), None);
    sender.handle_message(0, &complete(call, 2, 30));
    let at = FinalTime { time: 30, group: 1 };
    assert_eq!(sender.poll_event(), Some(Event::Complete { call, at }));
    // The lane goes on, and START tells the greatest timestamp that the host knows.
    let next = sender.send(5, 1, Vec::new()).unwrap();
    assert_eq!((next.lane, next.number), (0, number + 1));
    let (_, start) = sender.poll_transmit().unwrap();
    assert_eq!(start.final_time, 30);
}

#[test]
fn a_forgotten_final_time_moves_what_the_host_knows() {
    let mut sender = Sender::new(CONFIG);
    let call = sender.send(0, 1, Vec::new()).unwrap();
    starts(&mut sender);
    let forgotten = Repr {
        flags: flag::VOID,
        ..complete(call, 0, 30)
    };
    sender.handle_message(0, &forgotten);
    let at = FinalTime { time: 0, group: 0 };
    assert_eq!(sender.poll_event(), Some(Event::Complete { call, at }));
    sender.send(5, 0b10, Vec::new()).unwrap();
    let (_, start) = sender.poll_transmit().unwrap();
    assert_eq!(start.final_time, 30);
}

#[test]
fn only_who_has_not_answered_is_asked_again_ever_later() {
    let mut sender = Sender::new(CONFIG);
    let call = sender.send(0, 0b11, Vec::new()).unwrap();
    starts(&mut sender);
    sender.handle_message(0, &complete(call, 1, 5));
    let mut times = Vec::new();
    for _ in 0..5 {
        let due = sender.poll_timeout().unwrap();
        sender.handle_timeout(due - 1);
        assert_eq!(starts(&mut sender), []);
        sender.handle_timeout(due);
        assert_eq!(starts(&mut sender), [(0, 0, call.number)]);
        times.push(due);
    }
    assert_eq!(times, [1_000, 3_000, 7_000, 11_000, 15_000]);
}

#[test]
fn who_answers_slowly_is_waited_for() {
    let mut sender = Sender::new(CONFIG);
    let mut now = 0;
    let mut patience_after = |times, late| {
        for _ in 0..times {
            let call = sender.send(now, 1, Vec::new()).unwrap();
            now += late;
            sender.handle_timeout(now);
            sender.handle_message(now, &complete(call, 0, 5));
        }
        let call = sender.send(now, 1, Vec::new()).unwrap();
        let patience = (1..).find(|after| sender.handle_timeout(now + after));
        now += 500;
        sender.handle_message(now, &complete(call, 0, 5));
        patience.unwrap()
    };
    // Twice the mean and variation of RFC 6298, at least the shortest time and at most the longest.
    assert_eq!(patience_after(20, 500), 1_000);
    assert_eq!(patience_after(2, 900), 2 * (593 + 4 * 162));
    // Answers to what was repeated count too: each takes longer than the shortest time.
    assert_eq!(patience_after(20, 3_000), CONFIG.longest_repeat_us);
    assert!(patience_after(60, 500) < 1_200);
}

#[test]
fn what_later_messages_passed_is_repeated_before_its_time() {
    let mut sender = Sender::new(SenderConfig {
        lanes: 64,
        ..CONFIG
    });
    let lost = sender.send(0, 1, Vec::new()).unwrap();
    let other = sender.send(0, 2, Vec::new()).unwrap();
    let later: Vec<Call> = (0..2 * PASSED)
        .map(|_| sender.send(0, 1, Vec::new()).unwrap())
        .collect();
    starts(&mut sender);
    let (first, second) = later.split_at(usize::from(PASSED));
    for call in &first[1..] {
        sender.handle_message(10, &complete(*call, 0, 5));
        assert_eq!(starts(&mut sender), []);
    }
    sender.handle_message(10, &complete(first[0], 0, 5));
    assert_eq!(starts(&mut sender), [(0, lost.lane, lost.number)]);
    // It was sent last then. Messages to one group say nothing of those to another.
    for call in second {
        sender.handle_message(20, &complete(*call, 0, 5));
    }
    assert_eq!(starts(&mut sender), []);
    sender.handle_message(20, &complete(other, 1, 5));
    sender.handle_message(20, &complete(lost, 0, 5));
    assert_eq!(sender.under_way(), 0);
}

#[test]
fn another_leader_is_sent_what_its_group_did_not_answer() {
    let mut sender = Sender::new(CONFIG);
    let both = sender.send(0, 0b11, Vec::new()).unwrap();
    let other = sender.send(0, 0b10, Vec::new()).unwrap();
    starts(&mut sender);
    sender.handle_message(100, &complete(both, 1, 5));
    sender.handle_leader(500, 1);
    assert_eq!(starts(&mut sender), [(1, other.lane, other.number)]);
    sender.handle_leader(500, 0);
    assert_eq!(starts(&mut sender), [(0, both.lane, both.number)]);
    // It is given the time that a first START has, and a refusal may be the dead leader's.
    assert_eq!(sender.poll_timeout(), Some(1_000));
    sender.handle_timeout(1_499);
    assert_eq!(starts(&mut sender), []);
    sender.handle_message(600, &refused(other, 1, Code::UnknownSession));
    assert_eq!(sender.poll_event(), None);
    sender.handle_timeout(1_500);
    assert_eq!(starts(&mut sender).len(), 2);
    sender.handle_leader(2_000, 40);
    assert_eq!(starts(&mut sender), []);
}

#[test]
fn an_unknown_outcome_is_told_once_and_keeps_its_lane() {
    let mut sender = Sender::new(SenderConfig { lanes: 1, ..CONFIG });
    let call = sender.send(0, 1, Vec::new()).unwrap();
    for now in [1_000, 3_000, 7_000, 11_000, 15_000] {
        sender.handle_timeout(now);
    }
    assert_eq!(sender.poll_event(), Some(Event::Unknown { call }));
    assert_eq!(sender.poll_event(), None);
    assert_eq!(sender.send(16_000, 1, Vec::new()), Err(SendError::NoLane));
    sender.handle_message(0, &complete(call, 0, 8));
    assert!(matches!(sender.poll_event(), Some(Event::Complete { .. })));
    assert!(sender.send(17_000, 1, Vec::new()).is_ok());
}

#[test]
fn a_refusal_ends_a_call_only_if_nobody_can_have_taken_it() {
    let mut sender = Sender::new(CONFIG);
    let call = sender.send(0, 1, Vec::new()).unwrap();
    // The leader or its window changes: the START is repeated.
    sender.handle_message(0, &refused(call, 0, Code::NotLeader));
    sender.handle_message(0, &refused(call, 0, Code::Full));
    assert_eq!(sender.poll_event(), None);
    let code = Code::UnknownSession;
    sender.handle_message(0, &refused(call, 0, code));
    assert_eq!(sender.poll_event(), Some(Event::Refused { call, code }));
    // Of two STARTs the other may have been taken, by another leader or in another group.
    let repeated = sender.send(0, 1, Vec::new()).unwrap();
    sender.handle_timeout(1_000);
    sender.handle_message(0, &refused(repeated, 0, code));
    let several = sender.send(0, 3, Vec::new()).unwrap();
    sender.handle_message(0, &refused(several, 0, code));
    assert_eq!(sender.poll_event(), None);
    assert_eq!(sender.under_way(), 2);
}

#[test]
fn what_cannot_be_sent_is_refused_at_once() {
    let mut sender = Sender::new(CONFIG);
    let none = sender.send(0, 0, Vec::new());
    assert_eq!(none, Err(SendError::NoDestination));
    let long = sender.send(0, 1, vec![0; 101]);
    let expected = SendError::TooLong {
        longest: 100,
        found: 101,
    };
    assert_eq!(long, Err(expected));
    assert!(sender.send(0, 1, vec![0; 100]).is_ok());
    assert!(sender.send(0, 1, Vec::new()).is_ok());
    assert_eq!(sender.send(0, 1, Vec::new()), Err(SendError::NoLane));
}

#[test]
fn numbers_that_are_used_up_close_the_lane() {
    let mut sender = Sender::new(SenderConfig {
        lanes: 1,
        first_number: NUMBER_END - 1,
        ..CONFIG
    });
    let call = sender.send(0, 1, Vec::new()).unwrap();
    starts(&mut sender);
    sender.handle_message(0, &complete(call, 0, 1));
    assert_eq!(sender.send(0, 1, Vec::new()), Err(SendError::NoLane));
}

proptest! {
    /// Whatever comes, a lane carries one message at a time, and each ends at most once.
    #[test]
    fn each_call_ends_at_most_once(
        steps in proptest::collection::vec((0u8..5, 0u8..3, 0u8..4, any::<u8>()), 0..200),
    ) {
        let mut sender = Sender::new(CONFIG);
        let mut calls: Vec<Call> = Vec::new();
        let mut ended = std::collections::BTreeSet::new();
        let mut now = 0;
        for (step, which, group, code) in steps {
            let call = calls.len().checked_sub(1 + usize::from(which)).map(|at| calls[at]);
            match (step, call) {
                (0, _) => {
                    let sent = sender.send(now, u32::from(group), vec![code]);
                    if let Ok(call) = sent {
                        prop_assert!(!calls.contains(&call));
                        calls.push(call);
                    }
                }
                (1, Some(call)) => sender.handle_message(now, &complete(call, group, 1)),
                (2, Some(call)) => {
                    let mut message = refused(call, group, Code::Full);
                    message.code = code;
                    sender.handle_message(now, &message);
                }
                (3, _) => {
                    now += 700;
                    sender.handle_timeout(now);
                }
                _ => {
                    starts(&mut sender);
                }
            }
            prop_assert!(sender.under_way() <= 2);
            while let Some(event) = sender.poll_event() {
                if let Event::Complete { call, .. } | Event::Refused { call, .. } = event {
                    prop_assert!(ended.insert(call));
                }
            }
        }
        prop_assert_eq!(calls.len() - ended.len(), sender.under_way());
    }
}

#[test]
fn a_group_that_does_not_answer_leaves_lanes_for_others() {
    let mut sender = Sender::new(SenderConfig { lanes: 8, ..CONFIG });
    let other = sender.send(0, 0b10, Vec::new()).unwrap();
    while sender.send(1, 1, Vec::new()).is_ok() {}
    assert_eq!(sender.under_way(), 7);
    for now in 2..100 {
        assert_eq!(sender.send(now, 1, Vec::new()), Err(SendError::NoLane));
    }
    // Each answer of the other group makes room for a message to it.
    let mut call = other;
    for now in 100..200 {
        sender.handle_message(now, &complete(call, 1, now));
        call = sender.send(now, 0b10, Vec::new()).unwrap();
    }
}

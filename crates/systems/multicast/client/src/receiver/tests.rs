use proptest::prelude::*;

use super::*;

const CONFIG: ReceiverConfig = ReceiverConfig {
    group: 0,
    number: 1,
    list_version: 3,
    position: 0,
    window: 16,
    queue: 4,
};

/// An entry of group 0 with a message; its number is `number` in a lane of its own.
fn entry(index: u32, timestamp: u64, lane: u8, last: u64) -> Repr<'static> {
    Repr {
        group: 0,
        index,
        timestamp,
        final_time: last,
        destinations: 1,
        session: 7,
        lane,
        number: 1,
        ..Repr::new(MessageType::Deliver)
    }
}

fn with_payload<'a>(entry: &Repr<'_>, payload: &'a [u8]) -> Repr<'a> {
    Repr {
        flags: flag::PAYLOAD,
        payload,
        group: entry.group,
        index: entry.index,
        timestamp: entry.timestamp,
        final_time: entry.final_time,
        destinations: entry.destinations,
        session: entry.session,
        lane: entry.lane,
        number: entry.number,
        ..Repr::new(MessageType::Deliver)
    }
}

fn no_op(index: u32, timestamp: u64) -> Repr<'static> {
    Repr {
        flags: flag::NO_OP,
        ..entry(index, timestamp, 0, timestamp)
    }
}

/// Lanes of all messages that are ready, in their order.
fn delivered(receiver: &mut Receiver) -> Vec<u8> {
    let mut lanes = Vec::new();
    while let Some(Delivery::Message { id, .. }) = receiver.poll_deliver() {
        lanes.push(id.lane);
    }
    lanes
}

fn received(receiver: &mut Receiver) -> Option<(u32, u64)> {
    let message = receiver.poll_transmit()?;
    assert_eq!(message.message_type, MessageType::Received);
    assert_eq!((message.origin, message.list_version), (1, 3));
    Some((message.index, message.final_time))
}

#[test]
fn a_timestamp_has_passed_when_all_up_to_it_is_fetched() {
    let mut receiver = Receiver::new(CONFIG);
    let late = entry(1, 10, 1, 12);
    assert_eq!(receiver.handle_message(&with_payload(&late, b"a")), Ok(()));
    assert_eq!(receiver.passed(), Some(10));
    assert_eq!(receiver.handle_message(&no_op(2, 12)), Ok(()));
    assert_eq!(receiver.passed(), None);
    assert_eq!(delivered(&mut receiver), [1]);
    assert_eq!(receiver.passed(), Some(12));
    receiver.handle_eviction();
    while receiver.poll_deliver().is_some() {}
    assert_eq!(receiver.passed(), None);
}

#[test]
fn a_gap_holds_back_what_is_behind_it() {
    let mut receiver = Receiver::new(CONFIG);
    let (first, second) = (entry(1, 10, 1, 10), entry(2, 11, 2, 11));
    assert_eq!(
        receiver.handle_message(&with_payload(&second, b"b")),
        Ok(())
    );
    assert_eq!(delivered(&mut receiver), []);
    assert_eq!(received(&mut receiver), Some((0, 0)));
    assert_eq!(receiver.handle_message(&with_payload(&first, b"a")), Ok(()));
    assert_eq!(delivered(&mut receiver), [1, 2]);
    assert_eq!(received(&mut receiver), Some((2, 0)));
    assert_eq!(received(&mut receiver), None);
}

#[test]
fn an_entry_waits_for_its_payload() {
    let mut receiver = Receiver::new(CONFIG);
    let first = entry(1, 10, 1, 10);
    assert_eq!(receiver.handle_message(&first), Ok(()));
    // At that index another message stood before it was cut off.
    let other = Repr {
        message_type: MessageType::Payload,
        ..with_payload(&entry(1, 10, 9, 10), b"other")
    };
    assert_eq!(receiver.handle_message(&other), Ok(()));
    assert_eq!(receiver.position(), 0);
    let payload = Repr {
        message_type: MessageType::Payload,
        ..with_payload(&first, b"own")
    };
    assert_eq!(receiver.handle_message(&payload), Ok(()));
    let expected = Delivery::Message {
        id: MessageId {
            session: 7,
            lane: 1,
            number: 1,
        },
        at: FinalTime { time: 10, group: 0 },
        destinations: 1,
        payload: b"own".to_vec(),
    };
    assert_eq!(receiver.poll_deliver(), Some(expected));
}

/// The entry of `entry` as its leader in `epoch` sends it at first, with `commit` committed.
fn came<'a>(entry: &Repr<'_>, epoch: u32, commit: u32, payload: &'a [u8]) -> Repr<'a> {
    Repr {
        message_type: MessageType::Payload,
        epoch,
        commit,
        ..with_payload(entry, payload)
    }
}

#[test]
fn what_a_leader_sent_and_committed_in_one_epoch_needs_no_deliver() {
    let mut receiver = Receiver::new(CONFIG);
    let entries = [
        entry(1, 10, 1, 10),
        entry(2, 11, 2, 11),
        entry(3, 12, 3, 12),
    ];
    for entry in &entries {
        let message = came(entry, 5, 0, b"x");
        assert_eq!(receiver.handle_message(&message), Ok(()));
    }
    assert_eq!(delivered(&mut receiver), []);
    // DELIVER of the last one alone, and the commit index of anything else.
    let second = Repr {
        epoch: 5,
        commit: 2,
        ..entries[1]
    };
    assert_eq!(receiver.handle_message(&second), Ok(()));
    assert_eq!(delivered(&mut receiver), [1, 2]);
    let next = came(&entry(4, 13, 4, 13), 5, 3, b"y");
    assert_eq!(receiver.handle_message(&next), Ok(()));
    assert_eq!(delivered(&mut receiver), [3]);
    assert_eq!(received(&mut receiver), Some((3, 0)));
}

#[test]
fn another_epochs_commit_index_says_nothing_of_an_entry() {
    let mut receiver = Receiver::new(CONFIG);
    let first = entry(1, 10, 1, 10);
    assert_eq!(receiver.handle_message(&came(&first, 5, 0, b"x")), Ok(()));
    // The next leader committed another entry at this index.
    let later = came(&entry(2, 20, 2, 20), 6, 1, b"y");
    assert_eq!(receiver.handle_message(&later), Ok(()));
    assert_eq!(delivered(&mut receiver), []);
    // Nor does the older leader's, when it comes late.
    let late = came(&entry(3, 12, 3, 12), 5, 2, b"z");
    assert_eq!(receiver.handle_message(&late), Ok(()));
    assert_eq!(delivered(&mut receiver), []);
    let told = Repr {
        epoch: 6,
        commit: 2,
        ..with_payload(&entry(1, 15, 7, 15), b"own")
    };
    assert_eq!(receiver.handle_message(&told), Ok(()));
    assert_eq!(delivered(&mut receiver), [7, 2]);
    // An older leader's payload does not take the place of a later one's.
    let third = came(&entry(3, 21, 4, 21), 6, 2, b"w");
    assert_eq!(receiver.handle_message(&third), Ok(()));
    assert_eq!(receiver.handle_message(&late), Ok(()));
    let committed = came(&entry(4, 22, 5, 22), 6, 4, b"v");
    assert_eq!(receiver.handle_message(&committed), Ok(()));
    assert_eq!(delivered(&mut receiver), [4, 5]);
}

#[test]
fn the_place_of_a_message_to_several_groups_is_told() {
    let mut receiver = Receiver::new(CONFIG);
    let both = Repr {
        destinations: 0b11,
        ..entry(1, 10, 1, 10)
    };
    let message = Repr {
        destinations: 0b11,
        ..came(&both, 5, 1, b"x")
    };
    assert_eq!(receiver.handle_message(&message), Ok(()));
    assert_eq!(delivered(&mut receiver), []);
    let told = Repr {
        final_time: 12,
        final_group: 1,
        epoch: 5,
        commit: 1,
        ..both
    };
    assert_eq!(receiver.handle_message(&told), Ok(()));
    assert_eq!(received(&mut receiver), Some((1, 12)));
}

/// Position and flags of an answer.
fn answer(receiver: &mut Receiver) -> Option<(u32, u8)> {
    let message = receiver.poll_transmit()?;
    Some((message.index, message.flags))
}

#[test]
fn a_gap_is_told_once() {
    let mut receiver = Receiver::new(CONFIG);
    assert_eq!(answer(&mut receiver), Some((0, 0)));
    // The first payload is lost.
    let (first, second) = (entry(1, 10, 1, 10), entry(2, 11, 2, 11));
    assert_eq!(receiver.handle_message(&came(&second, 5, 0, b"b")), Ok(()));
    assert_eq!(answer(&mut receiver), Some((0, flag::GAP)));
    let third = came(&entry(3, 12, 3, 12), 5, 0, b"c");
    assert_eq!(receiver.handle_message(&third), Ok(()));
    assert_eq!(answer(&mut receiver), None);
    receiver.handle_tick();
    assert_eq!(answer(&mut receiver), Some((0, flag::GAP)));
    // It comes: none is committed yet, which is no gap.
    assert_eq!(receiver.handle_message(&came(&first, 5, 0, b"a")), Ok(()));
    assert_eq!(answer(&mut receiver), None);
    // DELIVER of a later one has come, and not that of the next, a no-op.
    let fifth = Repr {
        epoch: 5,
        commit: 5,
        ..with_payload(&entry(5, 14, 4, 14), b"e")
    };
    assert_eq!(receiver.handle_message(&fifth), Ok(()));
    assert_eq!(answer(&mut receiver), Some((3, flag::GAP)));
    assert_eq!(receiver.handle_message(&no_op(4, 13)), Ok(()));
    assert_eq!(answer(&mut receiver), Some((5, 0)));
}

#[test]
fn an_entry_that_a_later_one_answers_for_is_not_answered() {
    let mut receiver = Receiver::new(CONFIG);
    assert_eq!(answer(&mut receiver), Some((0, 0)));
    let told = |index: u32, more| {
        let entry = entry(index, u64::from(index), index as u8, u64::from(index));
        Repr {
            flags: flag::PAYLOAD | more,
            ..with_payload(&entry, b"a")
        }
    };
    assert_eq!(receiver.handle_message(&told(1, flag::LATER)), Ok(()));
    assert_eq!(delivered(&mut receiver), [1]);
    assert_eq!(answer(&mut receiver), None);
    // An entry that comes again is answered, and a tick answers for all that are taken.
    let again = receiver.handle_message(&told(1, flag::LATER));
    assert_eq!(again, Err(Ignored::Taken(1)));
    assert_eq!(answer(&mut receiver), Some((1, 0)));
    assert_eq!(receiver.handle_message(&told(2, flag::LATER)), Ok(()));
    receiver.handle_tick();
    assert_eq!(answer(&mut receiver), Some((2, 0)));
    assert_eq!(receiver.handle_message(&told(3, flag::LATER)), Ok(()));
    assert_eq!(receiver.handle_message(&told(4, 0)), Ok(()));
    assert_eq!(answer(&mut receiver), Some((4, 0)));
}

#[test]
fn a_message_to_several_groups_is_no_gap_until_they_decide() {
    let mut receiver = Receiver::new(CONFIG);
    assert_eq!(answer(&mut receiver), Some((0, 0)));
    let shared = |index, lane| Repr {
        destinations: 3,
        ..entry(index, 9 + u64::from(index), lane, 20)
    };
    assert_eq!(
        receiver.handle_message(&came(&shared(1, 1), 5, 0, b"a")),
        Ok(())
    );
    assert_eq!(
        receiver.handle_message(&came(&shared(2, 2), 5, 0, b"b")),
        Ok(())
    );
    // The second one is decided first.
    assert_eq!(receiver.handle_message(&shared(2, 2)), Ok(()));
    assert_eq!(answer(&mut receiver), None);
    assert_eq!(receiver.handle_message(&shared(1, 1)), Ok(()));
    assert_eq!(answer(&mut receiver), Some((2, 0)));
    // A payload that is lost is one.
    assert_eq!(receiver.handle_message(&shared(3, 3)), Ok(()));
    assert_eq!(answer(&mut receiver), Some((2, flag::GAP)));
}

#[test]
fn a_message_to_several_groups_that_many_passed_is_a_gap() {
    let mut receiver = Receiver::new(ReceiverConfig {
        window: 64,
        queue: 64,
        ..CONFIG
    });
    assert_eq!(answer(&mut receiver), Some((0, 0)));
    let first = Repr {
        destinations: 3,
        ..entry(1, 1, 0, 1)
    };
    assert_eq!(receiver.handle_message(&came(&first, 5, 0, b"a")), Ok(()));
    let told = |index: u32, destinations| Repr {
        destinations,
        ..with_payload(&entry(index, u64::from(index), index as u8, 50), b"b")
    };
    // The group's own may be told long before.
    assert_eq!(receiver.handle_message(&told(40, 1)), Ok(()));
    assert_eq!(receiver.handle_message(&told(33, 3)), Ok(()));
    assert_eq!(answer(&mut receiver), None);
    assert_eq!(receiver.handle_message(&told(34, 3)), Ok(()));
    assert_eq!(answer(&mut receiver), Some((0, flag::GAP)));
}

#[test]
fn an_answer_tells_what_changed_or_was_repeated() {
    let mut receiver = Receiver::new(CONFIG);
    assert_eq!(received(&mut receiver), Some((0, 0)));
    let first = came(&entry(1, 10, 1, 10), 5, 0, b"x");
    assert_eq!(receiver.handle_message(&first), Ok(()));
    assert_eq!(received(&mut receiver), None);
    let first = with_payload(&entry(1, 10, 1, 10), b"y");
    assert_eq!(receiver.handle_message(&first), Ok(()));
    assert_eq!(received(&mut receiver), Some((1, 0)));
    assert_eq!(receiver.handle_message(&first), Err(Ignored::Taken(1)));
    assert_eq!(received(&mut receiver), Some((1, 0)));
    receiver.handle_tick();
    assert_eq!(received(&mut receiver), Some((1, 0)));
}

#[test]
fn a_later_final_time_waits_for_the_log() {
    let mut receiver = Receiver::new(CONFIG);
    let far = with_payload(&entry(1, 10, 1, 12), b"");
    let near = with_payload(&entry(2, 11, 2, 11), b"");
    assert_eq!(receiver.handle_message(&far), Ok(()));
    // It says what it waits for, so that the leader appends a no-op.
    assert_eq!(received(&mut receiver), Some((1, 12)));
    assert_eq!(receiver.handle_message(&near), Ok(()));
    assert_eq!(delivered(&mut receiver), [2]);
    assert_eq!(receiver.handle_message(&no_op(3, 12)), Ok(()));
    assert_eq!(delivered(&mut receiver), [1]);
    assert_eq!(received(&mut receiver), Some((3, 0)));
}

#[test]
fn equal_times_are_ordered_by_group() {
    let mut receiver = Receiver::new(CONFIG);
    let other = Repr {
        final_group: 2,
        ..with_payload(&entry(1, 10, 1, 12), b"")
    };
    let own = with_payload(&entry(2, 12, 2, 12), b"");
    assert_eq!(receiver.handle_message(&other), Ok(()));
    assert_eq!(receiver.handle_message(&own), Ok(()));
    assert_eq!(delivered(&mut receiver), [2, 1]);
}

#[test]
fn duplicates_and_void_entries_take_their_index_alone() {
    let mut receiver = Receiver::new(CONFIG);
    let first = with_payload(&entry(1, 10, 1, 10), b"");
    assert_eq!(receiver.handle_message(&first), Ok(()));
    assert_eq!(received(&mut receiver), Some((1, 0)));
    // The leader has not heard that it came: it is told again.
    assert_eq!(receiver.handle_message(&first), Err(Ignored::Taken(1)));
    assert_eq!(received(&mut receiver), Some((1, 0)));
    // The same message with a later index, and one whose lane went on.
    let again = entry(2, 11, 1, 10);
    let void = Repr {
        flags: flag::VOID,
        ..entry(3, 12, 5, 12)
    };
    assert_eq!(receiver.handle_message(&again), Ok(()));
    assert_eq!(receiver.handle_message(&void), Ok(()));
    assert_eq!(delivered(&mut receiver), [1]);
    assert_eq!(receiver.position(), 3);
}

#[test]
fn a_full_queue_delays_received_and_keeps_a_window() {
    let mut receiver = Receiver::new(CONFIG);
    for index in 1..=16 {
        let lane = u8::try_from(index).unwrap();
        let message = with_payload(&entry(index, index.into(), lane, index.into()), b"");
        assert_eq!(receiver.handle_message(&message), Ok(()));
    }
    assert_eq!(receiver.queued(), 4);
    assert!(receiver.position() <= 5);
    let beyond = with_payload(&entry(40, 40, 40, 40), b"");
    let ignored = receiver.handle_message(&beyond);
    assert_eq!(ignored, Err(Ignored::BeyondWindow(40)));
    assert_eq!(delivered(&mut receiver), (1..=16).collect::<Vec<_>>());
    assert_eq!(received(&mut receiver), Some((16, 0)));
}

#[test]
fn an_evicted_receiver_says_so_and_nothing_else() {
    let mut receiver = Receiver::new(CONFIG);
    let first = with_payload(&entry(1, 10, 1, 10), b"");
    assert_eq!(receiver.handle_message(&first), Ok(()));
    receiver.handle_eviction();
    receiver.handle_eviction();
    let second = with_payload(&entry(2, 11, 2, 11), b"");
    assert_eq!(receiver.handle_message(&second), Err(Ignored::Evicted));
    assert!(matches!(
        receiver.poll_deliver(),
        Some(Delivery::Message { .. })
    ));
    assert_eq!(receiver.poll_deliver(), Some(Delivery::Evicted));
    assert_eq!(receiver.poll_deliver(), None);
    receiver.handle_tick();
    assert_eq!(receiver.poll_transmit(), None);
}

#[test]
fn what_is_not_for_it_changes_nothing() {
    let mut receiver = Receiver::new(CONFIG);
    let other = Repr {
        group: 1,
        ..entry(1, 10, 1, 10)
    };
    assert_eq!(receiver.handle_message(&other), Err(Ignored::OtherGroup(1)));
    let ack = Repr::new(MessageType::Ack);
    assert_eq!(
        receiver.handle_message(&ack),
        Err(Ignored::OtherType(MessageType::Ack))
    );
}

proptest! {
    /// However messages are lost, repeated and reordered, what came is delivered in one order.
    #[test]
    fn every_arrival_gives_the_same_order(
        begin in any::<u32>(),
        later in proptest::collection::vec(0u64..6, 1..14),
        arrivals in proptest::collection::vec((0usize..16, any::<bool>()), 0..120),
    ) {
        let mut entries = Vec::new();
        for (lane, later) in (0u8..).zip(&later) {
            let index = begin.wrapping_add(1 + u32::from(lane));
            let timestamp = 10 + 2 * u64::from(lane);
            entries.push(entry(index, timestamp, lane, timestamp + 2 * later));
        }
        let count = u32::try_from(entries.len()).unwrap();
        // A no-op takes the log beyond all final timestamps.
        let closing = no_op(begin.wrapping_add(1 + count), 100);
        let mut expected: Vec<_> = entries.iter().map(|one| (one.final_time, one.lane)).collect();
        expected.sort_unstable();
        expected.dedup_by_key(|one| one.0);
        prop_assume!(expected.len() == entries.len());
        let mut receiver = Receiver::new(ReceiverConfig { position: begin, ..CONFIG });
        let mut lanes = Vec::new();
        for (which, bears) in arrivals {
            let message = match entries.get(which) {
                Some(one) if bears => with_payload(one, b"x"),
                Some(one) => *one,
                None => closing,
            };
            let _ = receiver.handle_message(&message);
            lanes.extend(delivered(&mut receiver));
        }
        // At last all come once.
        for one in entries.iter().rev() {
            let _ = receiver.handle_message(&with_payload(one, b"x"));
        }
        let _ = receiver.handle_message(&closing);
        lanes.extend(delivered(&mut receiver));
        let expected: Vec<u8> = expected.into_iter().map(|one| one.1).collect();
        prop_assert_eq!(lanes, expected);
    }
}

#[test]
fn who_joins_goes_on_with_a_peers_state() {
    let mut peer = Receiver::new(CONFIG);
    let (first, second) = (entry(1, 10, 1, 10), entry(2, 11, 2, 20));
    assert_eq!(peer.handle_message(&with_payload(&first, b"a")), Ok(()));
    assert_eq!(peer.handle_message(&with_payload(&second, b"b")), Ok(()));
    let snapshot = peer.snapshot();
    assert_eq!(snapshot.position(), 2);
    let config = ReceiverConfig {
        number: 5,
        list_version: 4,
        ..CONFIG
    };
    let mut joiner = Receiver::joining(config, snapshot);
    // What the peer's program had not fetched, and what waits, is the joiner's too.
    for receiver in [&mut peer, &mut joiner] {
        assert_eq!(delivered(receiver), [1]);
        assert_eq!(receiver.handle_message(&no_op(3, 20)), Ok(()));
        assert_eq!(delivered(receiver), [2]);
    }
    // It drops what the peer took, and answers for itself.
    let again = entry(4, 21, 1, 21);
    assert_eq!(joiner.handle_message(&with_payload(&again, b"a")), Ok(()));
    assert_eq!(delivered(&mut joiner), []);
    let received = joiner.poll_transmit().expect("it answers");
    assert_eq!((received.origin, received.list_version), (5, 4));
    assert_eq!(received.index, 4);
}

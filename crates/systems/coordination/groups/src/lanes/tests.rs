use core::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

fn asker(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
}

fn store(table: &mut LaneTable) -> (LaneBook, Vec<Answer>) {
    let book = table.poll_book().unwrap();
    assert_eq!(table.poll_book(), None);
    let answers = table.stored(&book).unwrap();
    assert_eq!(table.stored(&book), None);
    (book, answers)
}

/// The lanes of a session that is opened and stored.
fn open(table: &mut LaneTable, nonce: u64, count: u16) -> Lanes {
    assert!(table.open(0, nonce, count, asker(1)));
    let (_, answers) = store(table);
    assert_eq!(answers.len(), 1);
    assert_eq!((answers[0].closed, answers[0].to), (false, Some(asker(1))));
    answers[0].session.lanes
}

fn close(table: &mut LaneTable, lanes: &Lanes) {
    assert!(table.close(lanes, asker(2)));
    let (_, answers) = store(table);
    assert_eq!(answers.len(), 1);
    assert_eq!((answers[0].closed, answers[0].to), (true, Some(asker(2))));
    assert_eq!(answers[0].session.lanes, *lanes);
}

/// A table of `count` lanes of this incarnation that nobody has.
fn used(count: u16, incarnation: u16, last: u32) -> LaneTable {
    let first = 0;
    let book = LaneBook {
        version: 1,
        last,
        sessions: Vec::new(),
        free: vec![LaneRun {
            first,
            count,
            incarnation,
        }],
    };
    LaneTable::new(count, Some(&book), 0)
}

#[test]
fn lanes_come_back_with_the_next_incarnation_and_numbers_of_sessions_never() {
    let mut table = LaneTable::new(8, None, 0);
    let first = open(&mut table, 1, 5);
    assert_eq!((first.session, first.first, first.count), (1, 0, 5));
    let second = open(&mut table, 2, 5);
    // Fewer than wanted.
    assert_eq!((second.session, second.first, second.count), (2, 5, 3));
    assert!(!table.open(0, 3, 1, asker(1)));
    close(&mut table, &first);
    assert_eq!(table.free_lanes(), 5);
    let third = open(&mut table, 3, 5);
    assert_eq!((third.session, third.first, third.incarnation), (3, 0, 1));
    close(&mut table, &second);
    close(&mut table, &third);
    // No run is long enough: the longest.
    let fourth = open(&mut table, 4, 8);
    assert_eq!((fourth.first, fourth.count, fourth.incarnation), (0, 5, 2));
}

#[test]
fn lanes_are_closed_only_as_they_were_opened_and_once() {
    let mut table = LaneTable::new(8, None, 0);
    assert!(table.open(0, 1, 2, asker(1)));
    let lanes = table.sessions[&1].open.lanes;
    // It is not stored that the session has them.
    assert!(table.close(&lanes, asker(2)));
    store(&mut table);
    assert_eq!(table.poll_book(), None);
    for wrong in [
        Lanes { count: 1, ..lanes },
        Lanes {
            incarnation: 1,
            ..lanes
        },
    ] {
        assert!(table.close(&wrong, asker(2)));
        assert_eq!(table.poll_book(), None);
    }
    let other = Lanes {
        session: 2,
        ..lanes
    };
    assert!(!table.close(&other, asker(2)));
    assert!(table.close(&lanes, asker(2)));
    let book = table.poll_book().unwrap();
    assert!(table.close(&lanes, asker(3)));
    assert_eq!(table.free_lanes(), 6);
    let answers = table.stored(&book).unwrap();
    assert_eq!(answers[0].to, Some(asker(3)));
    assert_eq!(table.free_lanes(), 8);
    assert_eq!(table.poll_book(), None);
}

#[test]
fn what_is_asked_while_a_book_is_stored_comes_with_the_next() {
    let mut table = LaneTable::new(8, None, 0);
    assert!(table.open(0, 1, 2, asker(1)));
    let first = table.poll_book().unwrap();
    assert!(table.open(0, 2, 2, asker(2)));
    table.ask_again(1, asker(3));
    assert_eq!(table.poll_book(), None);
    let answers = table.stored(&first).unwrap();
    assert_eq!(answers.len(), 1);
    assert_eq!(
        (answers[0].session.nonce, answers[0].to),
        (1, Some(asker(3)))
    );
    let lanes = answers[0].session.lanes;
    assert!(table.close(&lanes, asker(1)));
    let (second, answers) = store(&mut table);
    assert_eq!(second.version, first.version + 1);
    let of = |answer: &Answer| (answer.session.nonce, answer.closed);
    let answers: Vec<(u64, bool)> = answers.iter().map(of).collect();
    assert_eq!(answers, [(2, false), (1, true)]);
    assert!(table.of_nonce(1).is_none());
}

#[test]
fn the_run_of_the_lowest_incarnation_that_is_long_enough_is_taken() {
    let mut table = LaneTable::new(10, None, 0);
    let first = open(&mut table, 1, 4);
    let between = open(&mut table, 2, 1);
    close(&mut table, &first);
    // Free: 0 to 3 of incarnation 1, 5 to 9 of incarnation 0.
    let few = open(&mut table, 3, 2);
    assert_eq!((few.first, few.incarnation), (5, 0));
    let more = open(&mut table, 4, 4);
    assert_eq!((more.first, more.incarnation), (0, 1));
    close(&mut table, &between);
    // Free: 4 of incarnation 1, 7 to 9 of incarnation 0.
    let most = open(&mut table, 5, 9);
    assert_eq!((most.first, most.count), (7, 3));
}

#[test]
fn a_lane_of_the_last_incarnation_is_not_handed_out() {
    assert!(!used(2, u16::MAX, 1).open(0, 1, 1, asker(1)));
    let lanes = open(&mut used(2, u16::MAX - 1, 1), 1, 1);
    assert_eq!(lanes.incarnation, u16::MAX - 1);
}

#[test]
fn the_last_session_has_no_next() {
    assert!(!used(2, 1, LAST_SESSION).open(0, 1, 1, asker(1)));
    let lanes = open(&mut used(2, 1, LAST_SESSION - 1), 1, 1);
    assert_eq!(lanes.session, LAST_SESSION);
}

proptest! {
    /// No lane has two sessions, incarnations grow with each session of a lane, and who finds what
    /// was stored has the same table.
    #[test]
    fn lanes_have_one_session_each(
        steps in proptest::collection::vec(any::<(bool, u16, u8)>(), 1..80)
    ) {
        const LANES: u16 = 24;
        let mut table = LaneTable::new(LANES, None, 0);
        let mut last = [None::<u16>; LANES as usize];
        let (mut held, mut session) = (Vec::<Lanes>::new(), 0);
        for (nonce, (opens, count, which)) in steps.into_iter().enumerate() {
            if opens {
                if !table.open(0, nonce as u64, count % 9 + 1, asker(1)) {
                    prop_assert_eq!(table.free_lanes(), 0);
                    continue;
                }
                let lanes = table.of_nonce(nonce as u64).unwrap().open.lanes;
                prop_assert!(lanes.session > session);
                session = lanes.session;
                for lane in lanes.first..lanes.first + lanes.count {
                    let before = last[usize::from(lane)].replace(lanes.incarnation);
                    prop_assert!(before.is_none_or(|before| before < lanes.incarnation));
                    let has = |held: &&Lanes| (held.first..held.first + held.count).contains(&lane);
                    prop_assert_eq!(held.iter().find(has), None);
                }
                held.push(lanes);
            } else if !held.is_empty() {
                let lanes = held.swap_remove(usize::from(which) % held.len());
                prop_assert!(table.close(&lanes, asker(1)));
            } else {
                continue;
            }
            let (book, _) = store(&mut table);
            let found = LaneTable::new(LANES, Some(&book), 0);
            prop_assert_eq!(&found.lanes, &table.lanes);
            prop_assert!(found.sessions.keys().eq(table.sessions.keys()));
            prop_assert_eq!((found.last, found.version), (table.last, table.version));
        }
    }
}

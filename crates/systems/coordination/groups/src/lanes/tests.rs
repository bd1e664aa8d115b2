use core::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

fn asker(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
}

/// First lane, number of lanes and incarnation of a session that is opened and stored.
fn open(table: &mut LaneTable, nonce: u64, count: u16) -> Lanes {
    let range = table.open(0, nonce, count, asker(1)).unwrap();
    assert_eq!(table.stored(&range), Some(Some(asker(1))));
    range.lanes
}

fn close(table: &mut LaneTable, lanes: &Lanes) {
    let range = table.close(lanes, asker(2)).unwrap();
    assert_eq!(table.stored(&range), Some(Some(asker(2))));
}

#[test]
fn lanes_come_back_with_the_next_incarnation_and_numbers_of_sessions_never() {
    let mut table = LaneTable::new(8, [], 0);
    let first = open(&mut table, 1, 5);
    assert_eq!((first.session, first.first, first.count), (1, 0, 5));
    let second = open(&mut table, 2, 5);
    // Fewer than wanted.
    assert_eq!((second.session, second.first, second.count), (2, 5, 3));
    assert_eq!(table.open(0, 3, 1, asker(1)), None);
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
    let mut table = LaneTable::new(8, [], 0);
    let range = table.open(0, 1, 2, asker(1)).unwrap();
    // It is not stored that the session has them.
    assert_eq!(table.close(&range.lanes, asker(2)), None);
    table.stored(&range);
    for wrong in [
        Lanes {
            count: 1,
            ..range.lanes
        },
        Lanes {
            incarnation: 1,
            ..range.lanes
        },
        Lanes {
            session: 2,
            ..range.lanes
        },
    ] {
        assert_eq!(table.close(&wrong, asker(2)), None);
    }
    let closed = table.close(&range.lanes, asker(2)).unwrap();
    assert_eq!(table.close(&range.lanes, asker(3)), None);
    assert_eq!(table.free_lanes(), 6);
    assert_eq!(table.stored(&closed), Some(Some(asker(3))));
    assert_eq!(table.stored(&closed), None);
    assert_eq!(table.free_lanes(), 8);
}

#[test]
fn the_run_of_the_lowest_incarnation_that_is_long_enough_is_taken() {
    let mut table = LaneTable::new(10, [], 0);
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
    let mut range = Range {
        lanes: Lanes {
            session: 1,
            first: 0,
            count: 2,
            incarnation: u16::MAX - 1,
        },
        nonce: 1,
        closed: true,
    };
    let mut table = LaneTable::new(2, [range], 0);
    assert_eq!(table.open(0, 1, 1, asker(1)), None);
    range.lanes.incarnation -= 1;
    let mut table = LaneTable::new(2, [range], 0);
    assert_eq!(open(&mut table, 1, 1).incarnation, u16::MAX - 1);
}

#[test]
fn the_last_session_is_refused() {
    let lanes = Lanes {
        session: MOST_SESSIONS,
        first: 0,
        count: 1,
        incarnation: 0,
    };
    let (nonce, closed) = (1, true);
    let range = Range {
        lanes,
        nonce,
        closed,
    };
    let mut table = LaneTable::new(2, [range], 0);
    assert_eq!(table.open(0, 2, 1, asker(1)), None);
}

proptest! {
    /// No lane has two sessions, incarnations grow with each session of a lane, and who finds what
    /// was stored has the same table.
    #[test]
    fn lanes_have_one_session_each(steps in proptest::collection::vec(any::<(bool, u16, u8)>(), 1..80)) {
        const LANES: u16 = 24;
        let mut table = LaneTable::new(LANES, [], 0);
        let mut log: Vec<Range> = Vec::new();
        let mut last = [None::<u16>; LANES as usize];
        let (mut held, mut session) = (Vec::<Lanes>::new(), 0);
        for (nonce, (opens, count, which)) in steps.into_iter().enumerate() {
            if opens {
                let Some(range) = table.open(0, nonce as u64, count % 9 + 1, asker(1)) else {
                    prop_assert_eq!(table.free_lanes(), 0);
                    continue;
                };
                table.stored(&range);
                log.push(range);
                let lanes = range.lanes;
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
                let range = table.close(&lanes, asker(1)).unwrap();
                table.stored(&range);
                log.push(range);
            }
            let found = LaneTable::new(LANES, log.iter().copied(), 0);
            prop_assert_eq!(&found.lanes, &table.lanes);
            prop_assert!(found.sessions.keys().eq(table.sessions.keys()));
            prop_assert_eq!(found.last, table.last);
        }
    }
}

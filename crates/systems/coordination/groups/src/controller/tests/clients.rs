//! Chains, sessions and lanes for clients.

use stateplane_wire::coordination_control::{
    Chain, DOWN, END_OF_GROUPS, JOINS, Lanes, Learn, Message, Opened, room_for_chains,
    room_for_sessions,
};

use super::*;
use world::CLIENT;

fn open(world: &mut World, nonce: u64, lanes: u16) -> Vec<Opened> {
    let answers = world.client(&Message::Open { nonce, lanes }).into_iter();
    let opened = answers.map(|answer| match answer {
        Message::Opened(opened) => opened,
        other => panic!("{other:?}"),
    });
    opened.collect()
}

fn lanes(opened: &Opened) -> Lanes {
    Lanes {
        session: opened.session,
        first: opened.first_lane,
        count: opened.count,
        incarnation: opened.lane_incarnation,
    }
}

/// All rows newer than `version` of `controller`, and the version they have.
fn learn(world: &mut World, controller: u32, version: u64, room: u16) -> (Vec<Chain>, u32, u64) {
    let (mut rows, mut group, mut first) = (Vec::new(), 0, None);
    loop {
        let request = Message::Learn(Learn {
            controller,
            version,
            group,
            room,
        });
        let length = request.to_vec().len();
        let answers = world.client(&request);
        let [
            Message::Chains {
                controller,
                version,
                groups,
                next,
                chains,
                ..
            },
        ] = &answers[..]
        else {
            panic!("{answers:?}");
        };
        assert!(answers[0].to_vec().len() <= length);
        assert_eq!(*groups, world.settings.groups);
        let first = *first.get_or_insert((*controller, *version));
        rows.extend(chains);
        if *next == END_OF_GROUPS {
            return (rows, first.0, first.1);
        }
        group = *next;
    }
}

#[test]
fn clients_learn_a_chain_when_it_is_stored() {
    let mut world = settled(4);
    let room = room_for_chains(32);
    let (_, controller, version) = learn(&mut world, 0, 0, room);
    world.silent.insert(3);
    let mut decided = Vec::new();
    while decided.is_empty() {
        world.now += 10_000;
        world.controller.handle_timeout(world.now);
        for (to, message) in world.sent() {
            if to != 3 {
                world.deliver(to, &message);
            }
        }
        decided.extend(std::iter::from_fn(|| world.controller.poll_record()));
    }
    let (rows, ..) = learn(&mut world, 0, 0, room);
    assert!(rows.iter().all(|row| row.epoch == 1), "{rows:?}");
    assert_eq!(rows.len(), GROUPS.into());
    for decision in &decided {
        world.controller.handle_stored(world.now, decision);
    }
    let (rows, ..) = learn(&mut world, controller, version, room);
    assert!(rows.iter().all(|row| row.epoch == 2), "{rows:?}");
    assert_eq!(rows.len(), decided.len());
}

#[test]
fn clients_learn_all_chains_and_then_what_changed() {
    let mut world = settled(4);
    for rows in [1, 3, 32] {
        let (rows, ..) = learn(&mut world, 0, 0, room_for_chains(rows));
        let groups: Vec<u16> = rows.iter().map(|row| row.group).collect();
        assert_eq!(groups, Vec::from_iter(0..GROUPS));
        for row in rows {
            let config = world.config(row.group);
            let members = config.members.iter().map(|it| it.address);
            assert!(row.switches().eq(members));
            assert_eq!(
                (row.generation, row.epoch, row.members, row.flags),
                (1, 1, 3, 0)
            );
        }
    }
    let room = room_for_chains(4);
    let (_, controller, version) = learn(&mut world, 0, 0, room);
    assert_eq!(learn(&mut world, controller, version, room).0, []);
    world.joins = false;
    world.switches.insert(2, SwitchModel::new(201));
    world.pass(1_000_000);
    let (rows, ..) = learn(&mut world, controller, version, room);
    assert_eq!(
        rows.len(),
        (0..GROUPS).filter(|it| world.config(*it).epoch > 1).count()
    );
    let joins = rows.iter().filter(|row| row.flags == JOINS);
    assert_eq!(joins.count(), 1);
    // Another start counts anew.
    let (rows, ..) = learn(&mut world, controller + 1, version, room);
    assert_eq!(rows.len(), GROUPS.into());
}

#[test]
fn clients_learn_which_groups_are_down() {
    let mut world = settled(3);
    let (_, controller, version) = learn(&mut world, 0, 0, 200);
    world.silent.extend([1, 2, 3]);
    world.pass(200_000);
    let (rows, ..) = learn(&mut world, controller, version, 200);
    assert_eq!(rows.len(), GROUPS.into());
    assert!(rows.iter().all(|row| row.flags == DOWN));
    world.silent.clear();
    world.pass(200_000);
    let (rows, ..) = learn(&mut world, controller, version, 200);
    assert!(rows.iter().all(|row| row.flags == 0));
}

#[test]
fn a_repeated_open_gets_the_same_session() {
    let mut world = settled(3);
    let first = open(&mut world, 1, 4);
    assert_eq!(first.len(), 1);
    let opened = first[0];
    assert_eq!((opened.session, opened.first_lane, opened.count), (1, 0, 4));
    assert_eq!(
        (opened.groups, opened.lanes, opened.slots),
        (GROUPS, 16, 1024)
    );
    assert_eq!((opened.ttl_ms, opened.lane_incarnation), (10_000, 0));
    assert_eq!(open(&mut world, 1, 4), first);
    assert_eq!(open(&mut world, 2, 4)[0].first_lane, 4);
    // Also from a later controller.
    let log = world.log.clone();
    world.controller = Controller::new(settings(3), 8, [9; 32], log, world.now).unwrap();
    world.pass(200_000);
    assert_eq!(open(&mut world, 1, 4), first);
    assert_eq!(open(&mut world, 3, 20)[0].count, 8);
    assert_eq!(open(&mut world, 4, 1)[0].session, 0);
    assert_eq!(world.controller.counters().refused, 1);
    let malformed = Message::Open { nonce: 5, lanes: 0 };
    assert_eq!(world.client(&malformed), []);
}

#[test]
fn a_session_is_stored_before_it_is_answered() {
    let mut world = settled(3);
    let bytes = Message::Open { nonce: 1, lanes: 4 }.to_vec();
    world.controller.handle_message(world.now, CLIENT, &bytes);
    world.sent();
    assert_eq!(world.answers, []);
    let decision = world.controller.poll_record().unwrap();
    // A repeated one does not open another.
    world.controller.handle_message(world.now, CLIENT, &bytes);
    assert_eq!(world.controller.poll_record(), None);
    world.sent();
    assert_eq!(world.answers, []);
    world.controller.handle_stored(world.now, &decision);
    world.sent();
    assert_eq!(world.answers.len(), 1);
}

#[test]
fn lanes_of_an_ended_session_come_back_with_the_next_incarnation() {
    let mut world = settled(3);
    let first = open(&mut world, 1, 10)[0];
    let ended = Message::Ended { session: 1 };
    let close = Message::Close(lanes(&first));
    assert_eq!(world.client(&close), std::slice::from_ref(&ended));
    assert_eq!(world.client(&close), [ended]);
    let second = open(&mut world, 2, 16)[0];
    // Lanes 10 to 15 were never used.
    assert_eq!(
        (second.session, second.first_lane, second.count),
        (2, 0, 10)
    );
    assert_eq!(second.lane_incarnation, 1);
    // A late repetition of the first one's OPEN opens another session.
    assert_eq!(open(&mut world, 1, 1)[0].session, 3);
    // Who never was is not ended.
    let never = Lanes {
        session: 4,
        ..lanes(&first)
    };
    assert_eq!(world.client(&Message::Close(never)), []);
    // Nor does the number of one that was ended return from what is stored.
    let last = open(&mut world, 8, 1)[0];
    assert_eq!(last.session, 4);
    world.client(&Message::Close(lanes(&last)));
    let log = world.log.clone();
    world.controller = Controller::new(settings(3), 8, [9; 32], log, world.now).unwrap();
    world.pass(200_000);
    assert_eq!(open(&mut world, 9, 1)[0].session, 5);
}

#[test]
fn reapers_find_all_sessions() {
    let mut world = settled(3);
    for nonce in 1..=5 {
        open(&mut world, nonce, 2);
    }
    world.pass(3_000_000);
    let second = Lanes {
        session: 2,
        first: 2,
        count: 2,
        incarnation: 0,
    };
    world.client(&Message::Close(second));
    let (mut session, mut found) = (0, Vec::new());
    while session != u32::MAX {
        let room = room_for_sessions(2);
        let answers = world.client(&Message::List { session, room });
        let [
            Message::Sessions {
                sessions,
                free_lanes,
                ttl_ms,
                next,
                rows,
                ..
            },
        ] = &answers[..]
        else {
            panic!("{answers:?}");
        };
        assert_eq!((*sessions, *free_lanes, *ttl_ms), (4, 8, 10_000));
        assert!(rows.len() <= 2);
        assert!(rows.iter().all(|row| row.age_ms == 3000 && row.count == 2));
        found.extend(rows.iter().map(|row| row.session));
        session = *next;
    }
    assert_eq!(found, [1, 3, 4, 5]);
}

#[test]
fn who_is_behind_hands_out_nothing() {
    let mut world = settled(3);
    let mut message = Repr::new(MessageType::Configured);
    (message.group, message.generation, message.epoch) = (2, 1, 99);
    let from = SocketAddrV4::new(address(1), PORT);
    let bytes = message.to_vec().unwrap();
    world.controller.handle_message(world.now, from, &bytes);
    assert_eq!(open(&mut world, 1, 1), []);
    world.pass(1_000_000);
    assert_eq!(open(&mut world, 1, 1).len(), 1);
}

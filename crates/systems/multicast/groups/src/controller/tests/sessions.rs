//! Sessions and their slots (rules 21, 22).

use stateplane_wire::multicast_control::{Learn, Message, NO_SLOT, reason, room_for_leaders};

use super::*;
use program::Entry;
use world::CLIENT;

fn learn(slot: u16, incarnation: u16) -> Message {
    Message::Learn(Learn {
        slot,
        incarnation,
        room: room_for_leaders(32),
    })
}

#[test]
fn a_session_is_told_when_every_switch_takes_its_lanes() {
    let mut world = settled(3);
    let asks = world.client(&Message::Open { nonce: 5, lanes: 9 });
    assert!(asks.is_empty(), "the switches do not know of it");
    world.nodes.get_mut(&1).unwrap().cut = true;
    world.run(50_000);
    assert!(world.answers.is_empty());
    world.nodes.get_mut(&1).unwrap().cut = false;
    let opened = world.open(5, 9);
    assert_eq!((opened.slot, opened.incarnation, opened.lanes), (0, 1, 8));
    assert_eq!((opened.groups, opened.reason), (0b111, reason::OPENED));
    for node in world.nodes.values() {
        assert_eq!(node.sessions[&0].lanes, 8);
    }
    // A repeated OPEN is answered alike, another one gets another slot.
    assert_eq!(world.open(5, 9), opened);
    assert_eq!(world.open(6, 2).slot, 1);
}

#[test]
fn lanes_granted_are_at_most_a_quarter_of_a_window() {
    let mut world = settled(3);
    // A window of 64 entries.
    assert_eq!(world.controller.lanes(), (0, 16));
    assert_eq!(world.open(1, 8).lanes, 8);
    assert_eq!(world.open(2, 6).lanes, 6);
    assert_eq!(world.open(3, 8).lanes, 2);
    let refused = world.open(4, 1);
    assert_eq!((refused.slot, refused.reason), (NO_SLOT, reason::NO_LANE));
    assert_eq!(world.controller.lanes(), (16, 16));
    assert_eq!(world.controller.counters().refused, 1);
}

#[test]
fn a_session_without_a_free_slot_is_refused() {
    let mut world = settled(3);
    for nonce in 1..=4 {
        assert_ne!(world.open(nonce, 1).slot, NO_SLOT);
    }
    let refused = world.open(5, 1);
    assert_eq!((refused.slot, refused.reason), (NO_SLOT, reason::NO_SLOT));
}

/// An entry of session slot 0 in the log of a group's leader.
fn append(world: &mut World, group: u8) {
    let leader = world.leader(group);
    let entry = Entry {
        id: 1 << 40,
        term: 0,
        session: Some((0, 1)),
    };
    assert!(world.nodes.get_mut(&leader).unwrap().append(group, entry));
}

#[test]
fn a_slot_passes_on_only_when_no_log_holds_an_entry_of_it() {
    let mut world = settled(3);
    world.load = false;
    world.open(1, 8);
    append(&mut world, 0);
    world.run(50_000);
    let closed = Message::Closed {
        slot: 0,
        incarnation: 1,
    };
    let close = Message::Close {
        slot: 0,
        incarnation: 1,
    };
    assert_eq!(world.client(&close), std::slice::from_ref(&closed));
    assert_eq!(world.controller.sessions(), (0, 1));
    world.run(1_000_000);
    assert_eq!(world.controller.sessions(), (0, 1));
    // Its lanes are not another's, and no START is taken for it.
    assert_eq!(world.controller.lanes().0, 8);
    assert!(
        world
            .nodes
            .values()
            .all(|node| node.sessions[&0].lanes == 0)
    );
    let leader = world.leader(0);
    world.nodes.get_mut(&leader).unwrap().free(0);
    world.run(1_000_000);
    assert_eq!(world.controller.sessions(), (0, 0));
    assert_eq!(world.controller.lanes().0, 0);
    assert_eq!(world.client(&close), [closed]);
    // The next session of the slot has greater numbers.
    for nonce in 2..=5 {
        world.open(nonce, 1);
    }
    let slots = world.nodes[&1].sessions.values();
    assert!(slots.clone().all(|slot| slot.lanes == 1));
    assert_eq!(world.controller.counters().freed, 1);
    assert!(world.log.iter().any(|decision| match decision {
        Decision::Slots(book) => book.slots[0].incarnation == 2,
        Decision::Group(_) => false,
    }));
}

#[test]
fn a_slot_waits_for_a_switch_that_may_come_back_with_its_log() {
    let mut world = settled(3);
    world.load = false;
    world.open(1, 8);
    append(&mut world, 0);
    world.run(50_000);
    let follower = (1..=3).find(|it| *it != world.leader(0)).unwrap();
    world.nodes.get_mut(&follower).unwrap().down = true;
    let leader = world.leader(0);
    world.nodes.get_mut(&leader).unwrap().free(0);
    world.client(&Message::Close {
        slot: 0,
        incarnation: 1,
    });
    world.run(1_000_000);
    assert_eq!(world.controller.sessions(), (0, 1));
    world.nodes.get_mut(&follower).unwrap().down = false;
    world.run(1_000_000);
    assert_eq!(world.controller.sessions(), (0, 0));
}

#[test]
fn a_switch_that_starts_anew_holds_nothing_of_a_slot() {
    let mut world = settled(3);
    world.load = false;
    world.open(1, 8);
    append(&mut world, 0);
    world.run(50_000);
    let follower = (1..=3).find(|it| *it != world.leader(0)).unwrap();
    world.nodes.get_mut(&follower).unwrap().down = true;
    let leader = world.leader(0);
    world.nodes.get_mut(&leader).unwrap().free(0);
    world.client(&Message::Close {
        slot: 0,
        incarnation: 1,
    });
    world.run(500_000);
    assert_eq!(world.controller.sessions(), (0, 1));
    world.reset(follower);
    world.run(1_000_000);
    assert_eq!(world.controller.sessions(), (0, 0));
}

#[test]
fn a_session_lives_by_learning_and_ends_in_silence() {
    let mut world = settled(3);
    let opened = world.open(1, 4);
    for _ in 0..30 {
        world.run(world.settings.session_ttl / 10);
        let answers = world.client(&learn(opened.slot, opened.incarnation));
        let Some(Message::Leaders { open, leaders, .. }) = answers.last() else {
            panic!("{answers:?}");
        };
        assert!(open);
        assert_eq!(leaders.len(), usize::from(GROUPS));
        for leader in leaders {
            assert_eq!(leader.leader, address(world.leader(leader.group)));
        }
    }
    world.run(world.settings.session_ttl + 1_000_000);
    let answers = world.client(&learn(opened.slot, opened.incarnation));
    assert!(matches!(
        answers[..],
        [Message::Leaders { open: false, .. }]
    ));
    assert_eq!(world.controller.counters().expired, 1);
    assert_eq!(world.controller.sessions(), (0, 0));
    // One that asks for less gets no more than it made room for.
    let small = Message::Learn(Learn {
        slot: NO_SLOT,
        incarnation: 0,
        room: room_for_leaders(1),
    });
    let answers = world.client(&small);
    let [Message::Leaders { leaders, .. }] = &answers[..] else {
        panic!("{answers:?}");
    };
    assert_eq!(leaders.len(), 1);
    assert_eq!(answers[0].to_vec().len(), small.to_vec().len());
}

#[test]
fn sessions_outlive_the_controller_and_a_pause_of_it_is_nobodys_silence() {
    let mut world = settled(3);
    let opened = world.open(1, 4);
    world.restart();
    world.run(500_000);
    assert_eq!(world.controller.sessions(), (1, 0));
    assert_eq!(world.open(1, 4), opened);
    // The controller stands still, as long as a session may be silent.
    world.now += 2 * world.settings.session_ttl;
    world.controller.handle_timeout(world.now);
    world.run(100_000);
    assert_eq!(world.controller.sessions(), (1, 0));
    let from = SocketAddrV4::new(*CLIENT.ip(), 5001);
    let open = learn(opened.slot, opened.incarnation);
    let answers = world.client_at(from, &open);
    assert!(matches!(answers[..], [Message::Leaders { open: true, .. }]));
}

#[test]
fn sessions_are_told_unasked_of_a_leader_that_leads() {
    let mut world = settled(3);
    let opened = world.open(1, 4);
    let from = SocketAddrV4::new(*CLIENT.ip(), 5001);
    world.client_at(from, &learn(opened.slot, opened.incarnation));
    let dead = world.leader(0);
    world.nodes.get_mut(&dead).unwrap().down = true;
    world.run(world.settings.detection + 50_000);
    let leading = world.config(0);
    let address = leading.leading().unwrap().address;
    let told = core::mem::take(&mut world.answers);
    let mut of_group = told.iter().filter_map(|message| match message {
        Message::Leaders {
            slot,
            incarnation,
            open: true,
            leaders,
            ..
        } => {
            assert_eq!((*slot, *incarnation), (opened.slot, opened.incarnation));
            leaders.iter().find(|leader| leader.group == 0)
        }
        _ => None,
    });
    let leader = of_group.next().unwrap();
    assert_eq!((leader.epoch, leader.leader), (leading.epoch, address));
    // Once in an epoch.
    world.run(500_000);
    assert!(world.answers.is_empty());
}

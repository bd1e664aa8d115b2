mod epochs;
mod invariants;
mod members;
mod program;
mod random;
mod receivers;
mod sessions;
mod world;

use std::collections::BTreeSet;

use super::*;
use world::{GROUPS, World, address, settings};

/// A world of `switches` whose groups are founded and settled.
fn settled(switches: u32) -> World {
    let mut world = World::new(switches);
    world.load = true;
    world.run(2_000_000);
    assert!(world.controller.is_settled());
    world
}

/// Switches of a group's present configuration.
fn switches_of(world: &World, group: u8) -> BTreeSet<u32> {
    let config = world.config(group);
    config.members().iter().map(|it| it.switch).collect()
}

#[test]
fn groups_are_founded_on_different_switches_and_led() {
    let world = settled(4);
    let mut leaders = BTreeSet::new();
    for group in 0..GROUPS {
        let state = world.controller.group(group).unwrap();
        assert!(state.established);
        assert_eq!(state.config.epoch, 1);
        assert_eq!(switches_of(&world, group).len(), 3);
        leaders.insert(world.leader(group));
        assert!(world.committed[&group].len() > 10);
        let standing = state.standing.unwrap();
        assert_eq!(standing.promised, 1);
    }
    assert!(leaders.len() > 1, "{leaders:?}");
    let counters = world.controller.counters();
    assert_eq!((counters.epochs, counters.appointed), (3, 3));
}

#[test]
fn nothing_is_founded_before_enough_switches_live() {
    let mut world = World::new(3);
    world.nodes.get_mut(&3).unwrap().down = true;
    world.run(3_000_000);
    assert!((0..GROUPS).all(|group| world.controller.group(group).is_none()));
    world.nodes.get_mut(&3).unwrap().down = false;
    world.run(500_000);
    assert!(world.controller.is_settled());
}

#[test]
fn a_switch_that_never_answers_is_waited_for_only_a_while() {
    let mut world = World::new(4);
    world.nodes.get_mut(&4).unwrap().down = true;
    world.run(900_000);
    assert!(world.controller.group(0).is_none());
    world.run(400_000);
    assert!(world.controller.is_settled());
    assert!((0..GROUPS).all(|group| !switches_of(&world, group).contains(&4)));
}

#[test]
fn a_group_that_another_controller_led_is_not_founded_anew() {
    let mut world = settled(3);
    // Its decisions are lost.
    world.log.clear();
    world.restart();
    world.run(3_000_000);
    assert!(world.log.is_empty());
    assert!(world.controller.is_behind());
}

#[test]
fn members_of_a_group_are_in_different_racks() {
    let mut settings = settings(6);
    for switch in &mut settings.switches {
        switch.domain = switch.number % 3;
    }
    let mut world = World::with(settings, 1);
    world.load = true;
    world.run(2_000_000);
    for group in 0..GROUPS {
        let racks: BTreeSet<u32> = switches_of(&world, group).iter().map(|it| it % 3).collect();
        assert_eq!(racks.len(), 3);
    }
}

#[test]
fn what_is_no_message_for_a_controller_is_counted() {
    let mut world = settled(3);
    let stranger = SocketAddrV4::new(Ipv4Addr::new(10, 9, 9, 9), 4799);
    let ping =
        stateplane_wire::multicast::Repr::new(stateplane_wire::multicast::MessageType::Promise);
    let bytes = ping.to_vec().unwrap();
    world.controller.handle_message(world.now, stranger, &bytes);
    assert_eq!(world.controller.counters().foreign, 1);
    let known = SocketAddrV4::new(address(1), 4799);
    world.controller.handle_message(world.now, known, b"SPM1");
    world
        .controller
        .handle_message(world.now, known, b"anything");
    assert_eq!(world.controller.counters().malformed, 2);
    let bytes = crate::follower::Follower::new(77, 1).beat(Vec::new(), []);
    world
        .controller
        .handle_message(world.now, world::host(1), &bytes);
    assert_eq!(world.controller.counters().foreign, 2);
}

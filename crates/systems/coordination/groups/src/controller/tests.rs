mod clients;
mod invariants;
mod random;
mod recovery;
mod standing;
mod switches;
mod world;

use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_wire::coordination::{MessageType, PORT, Repr, flag};

use super::*;
use crate::settings::Switch;
use world::{GROUPS, SwitchModel, World, address, settings};

/// A world of `switches` whose groups are founded and settled.
fn settled(switches: u32) -> World {
    let mut world = World::new(switches);
    world.pass(2_000_000);
    assert!(world.controller.is_settled());
    world
}

/// Switches of a group: members head first, and who joins.
fn chain(world: &World, group: u16) -> (Vec<u32>, Option<u32>) {
    let config = world.controller.configuration(group).unwrap();
    let members = config.members.iter().map(|it| it.switch).collect();
    (members, config.joining.map(|it| it.switch))
}

/// Groups of which `switch` is a member.
fn groups_of(world: &World, switch: u32) -> usize {
    let configs = world.controller.configurations();
    let has = configs.filter(|config| config.members.iter().any(|it| it.switch == switch));
    has.count()
}

#[test]
fn groups_are_founded_on_different_switches() {
    let world = settled(4);
    for config in world.controller.configurations() {
        let founding = (config.generation, config.epoch, config.founds);
        assert_eq!(founding, (1, 1, true));
        let switches: BTreeSet<u32> = config.members.iter().map(|it| it.switch).collect();
        assert_eq!(switches.len(), 3);
    }
    let keys = world.controller.configurations().map(|it| it.hash_key);
    let keys: BTreeSet<[u8; 16]> = keys.collect();
    assert_eq!(keys.len(), GROUPS.into());
    // The keys are those of the seed.
    let mut other = World::new(4);
    other.controller = Controller::new(settings(4), 7, [4; 32], [], 0).unwrap();
    other.pass(2_000_000);
    assert!(!keys.contains(&other.config(0).hash_key));
}

#[test]
fn members_of_a_group_are_in_different_racks() {
    let mut settings = settings(6);
    for switch in &mut settings.switches {
        switch.domain = switch.number % 3;
    }
    let mut world = World::with(settings);
    world.pass(2_000_000);
    let racks = |world: &World| {
        for group in 0..GROUPS {
            let (members, _) = chain(world, group);
            let racks: BTreeSet<u32> = members.iter().map(|switch| switch % 3).collect();
            assert_eq!((members.len(), racks.len()), (3, 3), "{members:?}");
        }
    };
    racks(&world);
    world.silent.insert(2);
    world.pass(10_000_000);
    assert!(world.controller.is_settled());
    racks(&world);
    // Of two racks, switches of one keep two replicas.
    world.silent.insert(5);
    world.pass(10_000_000);
    assert!(world.controller.is_settled());
    for group in 0..GROUPS {
        assert_eq!(chain(&world, group).0.len(), 3);
    }
}

#[test]
fn nothing_is_founded_before_enough_switches_live() {
    let mut world = World::new(3);
    world.silent.insert(3);
    world.pass(5_000_000);
    assert_eq!(world.controller.configurations().count(), 0);
    world.silent.clear();
    world.pass(500_000);
    assert!(world.controller.is_settled());
}

#[test]
fn a_switch_that_never_answers_is_waited_for_only_a_while() {
    let mut world = World::new(4);
    world.silent.insert(4);
    world.pass(900_000);
    assert_eq!(world.controller.configurations().count(), 0);
    world.pass(200_000);
    assert!(world.controller.is_settled());
    assert_eq!(groups_of(&world, 4), 0);
}

#[test]
fn a_switch_that_is_added_takes_its_share_one_group_at_a_time() {
    let mut world = World::new(4);
    world.silent.insert(4);
    world.pass(2_000_000);
    world.silent.clear();
    world.joins = false;
    world.pass(1_000_000);
    let joins = world.controller.configurations();
    assert_eq!(joins.filter(|it| it.joining.is_some()).count(), 1);
    world.joins = true;
    world.pass(3_000_000);
    assert!(world.controller.is_settled());
    assert!(groups_of(&world, 4) > 0);
    for group in 0..GROUPS {
        assert_eq!(chain(&world, group).0.len(), 3);
    }
}

#[test]
fn a_configuration_is_sent_when_it_is_stored_and_again_until_it_is_followed() {
    // Nobody asks how far members are.
    let mut world = World::with(Settings {
        standstill: 0,
        ..settings(3)
    });
    world.pass(2_000_000);
    world.silent.insert(3);
    let mut decided = Vec::new();
    while decided.is_empty() {
        world.now += 10_000;
        world.controller.handle_timeout(world.now);
        for (to, message) in world.sent() {
            assert_ne!(message.message_type, MessageType::Configure);
            if to != 3 {
                world.deliver(to, &message);
            }
        }
        decided.extend(std::iter::from_fn(|| world.controller.poll_record()));
    }
    assert_eq!(decided.len(), GROUPS.into());
    let configures = |world: &mut World| {
        let sent = world.sent().into_iter();
        let sent = sent.filter(|(_, it)| it.message_type == MessageType::Configure);
        sent.collect::<Vec<_>>()
    };
    world.controller.handle_stored(world.now, &decided[0]);
    let first = configures(&mut world);
    let to: Vec<u32> = first.iter().map(|(to, _)| *to).collect();
    assert_eq!(to.len(), 2);
    assert_eq!((first[0].1.epoch, first[0].1.hops), (2, 2));
    // One of them answers; the other one is told again.
    world.deliver(to[0], &first[0].1);
    world.now += world.settings.resend;
    world.controller.handle_timeout(world.now);
    let again = configures(&mut world);
    let again: Vec<u32> = again.iter().map(|(to, _)| *to).collect();
    assert_eq!(again, to[1..]);
    assert_eq!(world.controller.counters().resent, 1);
    world.deliver(to[1], &first[1].1);
    world.now += world.settings.resend;
    world.controller.handle_timeout(world.now);
    assert!(configures(&mut world).is_empty());
}

#[test]
fn a_configuration_says_all_that_a_switch_needs() {
    let mut world = World::new(4);
    world.now += 1;
    world.controller.handle_timeout(world.now);
    let mut founding = None;
    for _ in 0..4 {
        world.store();
        for (to, message) in world.sent() {
            if message.message_type == MessageType::Configure && message.epoch == 1 {
                founding = Some((to, message));
            }
            world.deliver(to, &message);
        }
    }
    let (to, message) = founding.unwrap();
    let config = world.config(message.group).clone();
    assert_eq!(message.client(), world.settings.address);
    assert_eq!(message.handle, to * 100);
    assert_eq!((message.generation, message.hops), (1, 3));
    assert_eq!(message.flags, flag::FOUNDS);
    assert_eq!(message.operand.0, config.hash_key);
    assert!(
        message
            .chain()
            .eq(config.members.iter().map(|it| it.address))
    );
}

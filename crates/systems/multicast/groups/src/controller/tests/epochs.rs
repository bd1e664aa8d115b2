//! Leaders that die, are deaf or only come back, and controllers that do (rules 6, 7, 9, 11).

use stateplane_wire::multicast::{MessageType, Packet, Repr};

use super::*;

#[test]
fn a_leader_that_dies_is_followed_by_a_member_that_has_all() {
    let mut world = settled(3);
    let leader = world.leader(0);
    let before = world.committed[&0].len();
    world.nodes.get_mut(&leader).unwrap().down = true;
    world.run(world.settings.detection + 50_000);
    let state = world.controller.group(0).unwrap();
    assert!(state.established);
    assert_eq!(state.config.epoch, 2);
    assert_ne!(world.leader(0), leader);
    assert!(world.committed[&0].len() > before);
    // It comes back with its log, and follows.
    world.nodes.get_mut(&leader).unwrap().down = false;
    world.run(1_000_000);
    assert_eq!(world.config(0).epoch, 2);
    assert!(world.controller.is_settled());
    assert_eq!(world.nodes[&leader].logs[&0].promised, 2);
}

#[test]
fn a_leader_whose_program_is_cut_off_is_replaced_though_its_host_lives() {
    let mut world = settled(3);
    let leader = world.leader(0);
    world.nodes.get_mut(&leader).unwrap().deaf = true;
    world.run(world.settings.detection + 100_000);
    assert!(world.controller.group(0).unwrap().established);
    assert_ne!(world.leader(0), leader);
    assert!(world.controller.counters().deaf >= 1);
    assert_eq!(world.controller.counters().deaths, 0);
}

#[test]
fn an_epoch_without_a_majority_waits_for_one() {
    let mut world = settled(3);
    let others: Vec<u32> = (1..=3).filter(|it| *it != world.leader(0)).collect();
    for switch in &others {
        world.nodes.get_mut(switch).unwrap().down = true;
    }
    let leader = world.leader(0);
    world.nodes.get_mut(&leader).unwrap().deaf = true;
    world.run(3_000_000);
    let state = world.controller.group(0).unwrap();
    assert_eq!(state.config.leader, None);
    world.nodes.get_mut(&leader).unwrap().deaf = false;
    world.run(1_000_000);
    let state = world.controller.group(0).unwrap();
    assert_eq!(
        (state.config.leader, state.promised.count_ones()),
        (None, 1)
    );
    world.nodes.get_mut(&others[0]).unwrap().down = false;
    world.run(1_000_000);
    assert!(world.controller.group(0).unwrap().established);
}

#[test]
fn a_controller_that_restarts_begins_an_epoch_and_keeps_the_leader() {
    let mut world = settled(3);
    let leaders: Vec<u32> = (0..GROUPS).map(|group| world.leader(group)).collect();
    world.restart();
    world.run(500_000);
    assert!(world.controller.is_settled());
    for group in 0..GROUPS {
        assert_eq!(world.config(group).epoch, 2);
        assert_eq!(world.leader(group), leaders[usize::from(group)]);
    }
}

/// A world in which nothing is stored by itself, with the first decision about group 0 after its
/// leader died.
fn decided() -> (World, Decision) {
    let mut world = settled(3);
    let leader = world.leader(0);
    world.nodes.get_mut(&leader).unwrap().down = true;
    let found = loop {
        world.now += 1_000;
        world.controller.handle_timeout(world.now);
        while let Some(transmit) = world.controller.poll_transmit() {
            assert!(prepare(&transmit).is_none(), "it is not stored");
        }
        let records = std::iter::from_fn(|| world.controller.poll_record());
        let of_zero = |it: &Decision| matches!(it, Decision::Group(it) if it.group == 0);
        if let Some(decision) = records.collect::<Vec<_>>().into_iter().find(of_zero) {
            break decision;
        }
    };
    (world, found)
}

fn prepare(transmit: &Transmit) -> Option<(u32, u32)> {
    let packet = Packet::new_checked(&transmit.bytes).ok()?;
    let message = Repr::parse(&packet);
    let prepares = message.message_type == MessageType::Prepare;
    prepares.then_some((message.epoch, message.incarnation))
}

#[test]
fn an_epoch_is_told_when_it_is_stored_to_the_starts_of_all_members() {
    let (mut world, decision) = decided();
    world.controller.handle_stored(world.now, &decision);
    let sent = std::iter::from_fn(|| world.controller.poll_transmit());
    let mut told: Vec<(u32, u32)> = sent.filter_map(|it| prepare(&it)).collect();
    told.sort_unstable();
    assert_eq!(told, [(2, 1000), (2, 2000), (2, 3000)]);
}

/// The answer of a member to PREPARE of epoch 2 of group 0.
fn promise(world: &mut World, number: u8, change: impl Fn(&mut Repr<'_>)) {
    let members = world.config(0).voters();
    let member = members.iter().find(|it| it.number == number).unwrap();
    let mut message = Repr {
        epoch: 2,
        origin: number,
        incarnation: member.incarnation,
        index: 10,
        term: 1,
        ..Repr::new(MessageType::Promise)
    };
    change(&mut message);
    let from = SocketAddrV4::new(member.address, 4799);
    let bytes = message.to_vec().unwrap();
    world.controller.handle_message(world.now, from, &bytes);
}

/// The leader that is appointed next in group 0.
fn appointed(world: &mut World) -> Option<u8> {
    world.now += world.settings.patience;
    world.controller.handle_timeout(world.now);
    let records = std::iter::from_fn(|| world.controller.poll_record());
    let mut leaders = records.filter_map(|decision| match decision {
        Decision::Group(config) if config.group == 0 => config.leader,
        _ => None,
    });
    leaders.next()
}

#[test]
fn the_promiser_with_the_greatest_term_and_then_index_leads() {
    for (terms, leader) in [
        ([(1, 10), (1, 11)], 1),
        ([(1, 11), (1, 10)], 0),
        ([(2, 5), (1, 100)], 0),
        ([(1, 100), (2, 5)], 1),
    ] {
        let (mut world, decision) = decided();
        world.controller.handle_stored(world.now, &decision);
        for (number, (term, index)) in (0..).zip(terms) {
            promise(&mut world, number, |it| (it.term, it.index) = (term, index));
        }
        assert_eq!(appointed(&mut world), Some(leader), "{terms:?}");
    }
}

#[test]
fn one_promise_is_no_majority_nor_is_one_of_another_start_epoch_or_member() {
    let (mut world, decision) = decided();
    world.controller.handle_stored(world.now, &decision);
    promise(&mut world, 0, |_| ());
    promise(&mut world, 0, |_| ());
    promise(&mut world, 1, |it| it.incarnation += 1);
    promise(&mut world, 1, |it| it.epoch = 1);
    promise(&mut world, 1, |it| it.epoch = 3);
    promise(&mut world, 1, |it| it.origin = 2);
    promise(&mut world, 1, |it| it.origin = 7);
    assert_eq!(appointed(&mut world), None);
    promise(&mut world, 1, |_| ());
    assert!(appointed(&mut world).is_some());
}

#[test]
fn a_controller_that_is_behind_decides_nothing() {
    let mut world = settled(3);
    let leader = world.leader(0);
    world
        .nodes
        .get_mut(&leader)
        .unwrap()
        .logs
        .get_mut(&0)
        .unwrap()
        .promised = 9;
    world.run(50_000);
    assert!(world.controller.is_behind());
    let decided = world.log.len();
    world.nodes.get_mut(&leader).unwrap().down = true;
    world.run(100_000);
    assert_eq!(world.log.len(), decided);
    assert!(world.controller.counters().ahead > 0);
}

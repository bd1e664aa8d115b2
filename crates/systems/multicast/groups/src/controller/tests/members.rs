//! Members that are exchanged (rules 5, 11, 12).

use super::*;

#[test]
fn a_switch_that_starts_anew_learns_before_it_votes_again() {
    let mut world = settled(3);
    let leader = world.leader(0);
    let other = (1..=3).find(|it| *it != leader).unwrap();
    world.reset(other);
    let mut sizes = vec![3];
    let mut learned = false;
    for _ in 0..400 {
        world.run(5_000);
        let config = world.config(0);
        let start = |it: &&Member| it.switch == other && it.incarnation == other * 1000 + 1;
        if let Some(learner) = config.learner {
            assert!(start(&&learner));
            learned = true;
        }
        if config.members().iter().any(|it| start(&it)) {
            assert!(learned);
        }
        if sizes.last() != Some(&config.members().len()) {
            sizes.push(config.members().len());
        }
    }
    assert_eq!(sizes, [3, 2, 3]);
    assert!(world.controller.is_settled());
    let counters = world.controller.counters();
    assert_eq!((counters.joined, counters.left), (3, 3));
}

#[test]
fn a_switch_that_stays_away_is_replaced() {
    let mut world = settled(4);
    let away = world.leader(0);
    world.nodes.get_mut(&away).unwrap().down = true;
    world.run(world.settings.replace_after / 2);
    assert!(switches_of(&world, 0).contains(&away));
    world.run(world.settings.replace_after + 1_000_000);
    assert!(world.controller.is_settled());
    for group in 0..GROUPS {
        assert!(!switches_of(&world, group).contains(&away));
        assert_eq!(switches_of(&world, group).len(), 3);
    }
}

#[test]
fn a_drained_switch_leaves_its_groups_and_comes_back() {
    let mut world = settled(4);
    let drained = world.leader(0);
    world.controller.drain(world.now, drained, true);
    world.run(2_000_000);
    assert!((0..GROUPS).all(|group| !switches_of(&world, group).contains(&drained)));
    assert!(world.controller.is_settled());
    world.controller.drain(world.now, drained, false);
    world.run(2_000_000);
    assert!(world.controller.is_settled());
    assert!((0..GROUPS).any(|group| switches_of(&world, group).contains(&drained)));
}

#[test]
fn a_number_is_not_anothers_while_its_switch_may_answer_by_it() {
    let mut world = settled(4);
    let away = world.leader(0);
    let number = world.config(0).leader.unwrap();
    // Its host does not hear that it is no member any more.
    world.nodes.get_mut(&away).unwrap().cut = true;
    world.run(3_000_000);
    assert!(!switches_of(&world, 0).contains(&away));
    let former = |world: &World| {
        let config = world.config(0);
        config
            .former
            .iter()
            .any(|it| it.switch == away && it.number == number)
    };
    assert!(former(&world));
    for _ in 0..2 {
        let other = world.leader(0);
        world.reset(other);
        world.run(2_000_000);
        assert!(former(&world));
        let holders = world.config(0).holders();
        let of_number = holders.iter().filter(|it| it.number == number);
        assert!(of_number.clone().all(|it| it.switch == away));
    }
    world.nodes.get_mut(&away).unwrap().cut = false;
    world.run(3_000_000);
    assert!(!former(&world));
}

#[test]
fn a_learner_that_takes_too_long_leaves_its_place_for_a_while() {
    let mut settings = settings(4);
    settings.join_timeout = 300_000;
    settings.retry_after = 3_000_000;
    let mut world = World::with(settings, 1);
    world.load = true;
    world.run(2_000_000);
    let outside = (1..=4)
        .find(|it| !switches_of(&world, 0).contains(it))
        .unwrap();
    world.nodes.get_mut(&outside).unwrap().deaf = true;
    let away = (1..=4)
        .find(|it| *it != outside && *it != world.leader(0))
        .unwrap();
    world.nodes.get_mut(&away).unwrap().down = true;
    world.run(2_500_000);
    assert!(world.controller.counters().join_timeouts >= 1);
    assert_eq!(world.config(0).learner, None);
    world.nodes.get_mut(&outside).unwrap().deaf = false;
    world.run(8_000_000);
    assert!(world.controller.is_settled());
    assert!(switches_of(&world, 0).contains(&outside));
}

#[test]
fn a_learner_that_dies_learns_no_more() {
    let mut world = settled(3);
    let other = (1..=3).find(|it| *it != world.leader(0)).unwrap();
    world.reset(other);
    world.nodes.get_mut(&other).unwrap().deaf = true;
    world.run(500_000);
    assert_eq!(world.config(0).learner.unwrap().switch, other);
    world.nodes.get_mut(&other).unwrap().down = true;
    world.run(500_000);
    assert_eq!(world.config(0).learner, None);
    assert_eq!(world.config(0).epoch, 1);
}

/// A group whose next configuration has a fourth member, and in which nobody promised the epoch: the
/// members of the first configuration, and the new one. All programs are deaf.
fn unsettled() -> (World, Vec<Member>, Member) {
    let mut world = settled(4);
    let drained = world.leader(0);
    world.controller.drain(world.now, drained, true);
    for _ in 0..20_000 {
        world.run(500);
        let config = world.config(0);
        if config.configs.len() == 2 {
            let first = config.configs[0].clone();
            let members = config.members().iter();
            let new: Vec<&Member> = members.filter(|it| !first.contains(it)).collect();
            for node in world.nodes.values_mut() {
                node.deaf = true;
            }
            // Another epoch of these configurations, which nobody promised.
            world.restart();
            world.run(50_000);
            assert_eq!(world.config(0).configs.len(), 2);
            return (world, first, *new[0]);
        }
    }
    panic!("nobody joins");
}

#[test]
fn a_change_needs_majorities_of_all_configurations_since_the_last_established() {
    let hear = |world: &mut World, member: &Member| {
        world.nodes.get_mut(&member.switch).unwrap().deaf = false;
        world.run(500_000);
        let state = world.controller.group(0).unwrap();
        (state.established, state.promised.count_ones())
    };
    // The new member and one of the first configuration are no majority of either; with another one
    // there are three of four, and two of three.
    let (mut world, first, new) = unsettled();
    assert_eq!(hear(&mut world, &new), (false, 1));
    assert_eq!(hear(&mut world, &first[0]), (false, 2));
    assert!(hear(&mut world, &first[1]).0);
    // Two of the first configuration are a majority of that alone.
    let (mut world, first, _) = unsettled();
    assert_eq!(hear(&mut world, &first[0]), (false, 1));
    assert_eq!(hear(&mut world, &first[1]), (false, 2));
    assert!(hear(&mut world, &first[2]).0);
}

#[test]
fn a_group_does_not_need_the_vote_of_one_that_comes_for_one_that_is_gone() {
    let mut world = settled(3);
    let other = (1..=3).find(|it| *it != world.leader(0)).unwrap();
    world.reset(other);
    // It loses its memory again when it would be a member.
    for _ in 0..20_000 {
        world.run(500);
        let config = world.config(0);
        let incarnation = other * 1000 + 1;
        if config
            .members()
            .iter()
            .any(|it| it.incarnation == incarnation)
        {
            world.reset(other);
            world.run(2_000_000);
            assert!(world.controller.is_settled());
            return;
        }
    }
    panic!("it does not join");
}

/// A member is taken out, and in the next epoch it has a longer log than the first `staying` of the
/// others; a leader was appointed before with the configuration without it, or none was. Gives it, and
/// the epoch in which they promise.
fn taken_out_with_the_longest_log(tried: bool, staying: usize) -> (World, Member, u32) {
    let mut world = settled(4);
    let leader = world.leader(0);
    // The leader leaves: in the epoch without it, it is the only one with the longest log.
    world.controller.drain(world.now, leader, true);
    let out = loop {
        world.run(500);
        let config = world.config(0);
        let appointed = config.leader.is_some();
        if config.configs.len() == 2 && config.members().len() == 3 && appointed == tried {
            assert!(!config.members().iter().any(|it| it.switch == leader));
            break config;
        }
    };
    let witness = *out.voters().iter().find(|it| it.switch == leader).unwrap();
    for node in world.nodes.values_mut() {
        node.deaf = true;
    }
    // Another epoch of these configurations begins, in which all promise.
    world.restart();
    world.run(50_000);
    let epoch = world.config(0).epoch;
    let promise = |world: &mut World, member: Member| {
        let index = if member == witness { 500 } else { 400 };
        let message = stateplane_wire::multicast::Repr {
            group: 0,
            epoch,
            origin: member.number,
            incarnation: member.incarnation,
            index,
            term: 1,
            ..stateplane_wire::multicast::Repr::new(
                stateplane_wire::multicast::MessageType::Promise,
            )
        };
        let from = SocketAddrV4::new(member.address, 4799);
        let bytes = message.to_vec().unwrap();
        world.controller.handle_message(world.now, from, &bytes);
    };
    // Two are a majority of the present configuration, and none of the one before.
    let (first, rest) = out.members()[..staying].split_at(2);
    for member in first {
        promise(&mut world, *member);
        world.run(10_000);
    }
    assert_eq!(
        (world.config(0).epoch, world.config(0).leader),
        (epoch, None)
    );
    for member in rest.iter().chain([&witness]) {
        promise(&mut world, *member);
    }
    world.run(10_000);
    (world, witness, epoch)
}

/// Two members promise, and the one that was taken out. Gives the configurations that follow.
fn taken_out_and_alone_can_lead(tried: bool) -> Vec<Vec<Member>> {
    let (world, witness, epoch) = taken_out_with_the_longest_log(tried, 2);
    let config = world.config(0);
    assert_eq!(config.epoch, epoch + 1);
    assert!(config.members().contains(&witness));
    assert_eq!(world.controller.counters().restored, 1);
    config.configs
}

#[test]
fn a_member_taken_out_does_not_count_where_the_others_are_majorities() {
    for tried in [true, false] {
        let (world, witness, epoch) = taken_out_with_the_longest_log(tried, 3);
        let config = world.config(0);
        assert_eq!(config.epoch, epoch);
        let leader = config.leader.expect("a leader");
        assert_ne!(leader, witness.number);
        assert!(!config.members().contains(&witness));
        assert_eq!(world.controller.counters().restored, 0);
    }
}

#[test]
fn a_member_taken_out_that_alone_can_lead_is_taken_back() {
    assert_eq!(taken_out_and_alone_can_lead(true).len(), 2);
    // Nothing can be committed by a configuration that never had a leader.
    assert_eq!(taken_out_and_alone_can_lead(false).len(), 1);
}

#[test]
fn a_configuration_without_a_majority_is_left_if_it_never_had_a_leader() {
    let mut world = settled(4);
    let members = world.config(0).members().to_vec();
    let leader = world.leader(0);
    let silent = members.iter().find(|it| it.switch != leader).unwrap();
    world.nodes.get_mut(&silent.switch).unwrap().down = true;
    for _ in 0..200_000 {
        world.run(20);
        let config = world.config(0);
        if config.configs.len() == 2 {
            assert!(config.untried, "{config:?}");
            // The fourth member loses its memory before it promises: with it and the silent one two
            // of four are gone.
            let comes = config.members().iter().find(|it| !members.contains(it));
            world.reset(comes.unwrap().switch);
            world.run(2_000_000);
            let state = world.controller.group(0).unwrap();
            assert!(state.established, "{state:?}");
            assert!(world.controller.counters().restored > 0);
            return;
        }
    }
    panic!("nobody joins");
}

#[test]
fn the_number_of_a_learner_is_used_once_in_an_epoch() {
    let mut world = settled(5);
    let outside: Vec<u32> = (1..=5)
        .filter(|it| !switches_of(&world, 0).contains(it))
        .collect();
    for switch in &outside {
        world.nodes.get_mut(switch).unwrap().deaf = true;
    }
    let away = (1..=5)
        .find(|it| !outside.contains(it) && *it != world.leader(0))
        .unwrap();
    world.nodes.get_mut(&away).unwrap().down = true;
    world.run(2_000_000);
    let first = world.config(0).learner.unwrap();
    let epoch = world.config(0).epoch;
    // It starts anew, and its new start learns in the same epoch.
    world.reset(first.switch);
    world.nodes.get_mut(&first.switch).unwrap().deaf = true;
    world.run(1_000_000);
    let second = world.config(0).learner.unwrap();
    assert_eq!(world.config(0).epoch, epoch);
    assert_ne!(second, first);
    assert_ne!(second.number, first.number);
}

#[test]
fn a_configuration_is_not_settled_before_its_leader_committed() {
    let (mut world, ..) = unsettled();
    let configs = world.config(0).configs;
    for node in world.nodes.values_mut() {
        node.deaf = false;
    }
    while world.config(0).leader.is_none() {
        world.run(100);
    }
    // The others do not hear of its no-op.
    let leader = world.leader(0);
    for (switch, node) in &mut world.nodes {
        node.deaf = *switch != leader;
    }
    for _ in 0..40 {
        world.run(1_000);
        let state = world.controller.group(0).unwrap();
        assert!(!state.established);
        assert_eq!(state.config.configs, configs);
    }
    for node in world.nodes.values_mut() {
        node.deaf = false;
    }
    world.run(1_000_000);
    assert_eq!(world.config(0).configs.len(), 1);
}

#[test]
fn a_group_whose_members_are_all_lost_is_founded_anew_by_an_operators_word() {
    let mut world = settled(4);
    let error = |world: &mut World, group| {
        let error = world.controller.refound(world.now, group).unwrap_err();
        assert!(!error.to_string().is_empty());
        error.code()
    };
    assert_eq!(error(&mut world, GROUPS), "K131");
    assert_eq!(error(&mut world, 0), "K132");
    for switch in 1..=4 {
        world.nodes.get_mut(&switch).unwrap().down = true;
    }
    world.run(500_000);
    assert_eq!(error(&mut world, 0), "K133");
    for switch in 1..=4 {
        world.reset(switch);
    }
    world.run(3_000_000);
    assert!(!world.controller.is_settled());
    let epoch = world.config(0).epoch;
    world.committed.clear();
    world.refounds = true;
    for group in 0..GROUPS {
        world.controller.refound(world.now, group).unwrap();
    }
    world.run(1_000_000);
    assert!(world.controller.is_settled());
    assert!(world.config(0).epoch > epoch);
    assert!(!world.committed[&0].is_empty());
}

//! Failures, recovery and planned changes.

use super::*;

#[test]
fn switches_at_any_position_are_cut_out_at_once() {
    for lost in [
        vec![1],
        vec![2],
        vec![3],
        vec![1, 3],
        vec![2, 3],
        vec![1, 2],
    ] {
        let mut world = settled(3);
        let before: Vec<Vec<u32>> = (0..GROUPS).map(|group| chain(&world, group).0).collect();
        world.silent.extend(&lost);
        world.pass(150_000);
        for (group, before) in (0..GROUPS).zip(before) {
            let (members, joining) = chain(&world, group);
            let stay = before.into_iter().filter(|switch| !lost.contains(switch));
            assert_eq!((members, joining), (stay.collect(), None));
            assert_eq!(world.config(group).epoch, 2);
        }
        assert_eq!(world.controller.counters().deaths, lost.len() as u64);
    }
}

/// One member is dead, and one is only cut off from the controller, when the third dies too: the
/// one that is cut off stays a member, and goes on when it is heard again.
#[test]
fn nobody_is_left_out_for_one_that_has_just_died() {
    let mut world = settled(3);
    world.silent.extend([1, 2]);
    world.pass(30_000);
    world.silent.insert(3);
    world.pass(80_000);
    assert_eq!(world.controller.counters().deaths, 2);
    for group in 0..GROUPS {
        assert_eq!(world.config(group).epoch, 1, "group {group}");
    }
    world.silent.remove(&2);
    world.pass(200_000);
    for group in 0..GROUPS {
        assert_eq!(chain(&world, group), (vec![2], None));
    }
}

#[test]
fn the_groups_of_a_lost_switch_spread_over_all_that_live() {
    let mut world = World::with(Settings {
        groups: 64,
        ..settings(6)
    });
    world.pass(2_000_000);
    let with_one: BTreeSet<u16> = (0..64)
        .filter(|group| chain(&world, *group).0.contains(&1))
        .collect();
    let before: Vec<usize> = (2..=6).map(|switch| groups_of(&world, switch)).collect();
    world.silent.insert(1);
    world.pass(20_000_000);
    assert!(world.controller.is_settled());
    assert_eq!(world.controller.counters().joined, with_one.len() as u64);
    for (switch, before) in (2..=6).zip(before) {
        assert!(groups_of(&world, switch) > before, "switch {switch}");
    }
}

#[test]
fn a_switch_joins_behind_the_tail_and_is_member_when_it_answers() {
    let mut world = settled(3);
    world.joins = false;
    world.switches.insert(3, SwitchModel::new(301));
    world.pass(500_000);
    let group = (0..GROUPS)
        .find(|it| chain(&world, *it).1.is_some())
        .unwrap();
    let (members, joining) = chain(&world, group);
    assert_eq!((members.len(), joining), (2, Some(3)));
    let joins = world.config(group).clone();
    assert_eq!(joins.joining.unwrap().incarnation, 301);
    // Nothing comes of an answer of another incarnation, of another switch, of an earlier
    // configuration, or without the flag.
    let told = |world: &mut World, switch: u32, incarnation, epoch, flags| {
        let mut message = Repr::new(MessageType::Configured);
        message.group = group;
        (message.generation, message.epoch) = (1, epoch);
        (message.handle, message.flags) = (incarnation, flags);
        let from = SocketAddrV4::new(address(switch), PORT);
        let bytes = message.to_vec().unwrap();
        world.controller.handle_message(world.now, from, &bytes);
        world.store();
        world.config(group).epoch
    };
    let epoch = joins.epoch;
    let joined = flag::JOINED;
    assert_eq!(told(&mut world, 3, 300, epoch, joined), epoch);
    assert_eq!(told(&mut world, 3, 301, epoch - 1, joined), epoch);
    assert_eq!(told(&mut world, 3, 301, epoch, 0), epoch);
    let tail = joins.members[1];
    assert_eq!(
        told(&mut world, tail.switch, tail.incarnation, epoch, joined),
        epoch
    );
    assert_eq!(told(&mut world, 3, 301, epoch, joined), epoch + 1);
    let (now, joining) = chain(&world, group);
    assert_eq!((now, joining), ([members, vec![3]].concat(), None));
}

#[test]
fn what_joined_in_an_earlier_configuration_joins_again() {
    let mut world = settled(4);
    world.joins = false;
    world.silent.insert(4);
    world.pass(3_000_000);
    let group = (0..GROUPS)
        .find(|it| chain(&world, *it).1.is_some())
        .unwrap_or(0);
    let Some(joining) = chain(&world, group).1 else {
        // No chain had switch 4.
        panic!("no group lost a member");
    };
    let epoch = world.config(group).epoch;
    let head = chain(&world, group).0[0];
    // The head dies while the switch joins.
    world.silent.insert(head);
    world.pass(150_000);
    assert_eq!(world.config(group).epoch, epoch + 1);
    assert_eq!(chain(&world, group).1, Some(joining));
    assert_eq!(chain(&world, group).0.len(), 1);
    let incarnation = world.config(group).joining.unwrap().incarnation;
    let mut message = Repr::new(MessageType::Configured);
    (message.group, message.generation, message.epoch) = (group, 1, epoch);
    (message.handle, message.flags) = (incarnation, flag::JOINED);
    let from = SocketAddrV4::new(address(joining), PORT);
    world
        .controller
        .handle_message(world.now, from, &message.to_vec().unwrap());
    world.act();
    assert_eq!(chain(&world, group).1, Some(joining));
}

#[test]
fn a_joiner_that_answers_outlives_all_members() {
    let mut world = settled(3);
    world.joins = false;
    world.switches.insert(3, SwitchModel::new(301));
    world.pass(500_000);
    let group = (0..GROUPS)
        .find(|it| chain(&world, *it).1.is_some())
        .unwrap();
    let config = world.config(group).clone();
    world.silent.extend([1, 2]);
    world.pass(200_000);
    assert_eq!(*world.config(group), config);
    // It has taken all over, which was not known yet.
    world.joins = true;
    world.pass(400_000);
    assert_eq!(chain(&world, group), (vec![3], None));
    // Other groups, that it did not join, are down.
    let down = (0..GROUPS).filter(|it| *it != group);
    for group in down {
        assert!(!chain(&world, group).0.contains(&3));
    }
}

#[test]
fn a_switch_copies_one_group_at_a_time() {
    let mut world = World::with(Settings {
        groups: 64,
        ..settings(7)
    });
    world.pass(2_000_000);
    world.joins = false;
    world.silent.insert(1);
    world.pass(3_000_000);
    let joins: Vec<GroupConfig> = world
        .controller
        .configurations()
        .filter(|config| config.joining.is_some())
        .cloned()
        .collect();
    assert!(joins.len() > 1, "switches do not wait for each other");
    let pairs = joins
        .iter()
        .flat_map(|it| [*it.members.last().unwrap(), it.joining.unwrap()]);
    let mut busy: Vec<u32> = pairs.map(|it| it.switch).collect();
    let all = busy.len();
    busy.sort_unstable();
    busy.dedup();
    assert_eq!(busy.len(), all);
    // Those that wait have their turn.
    world.joins = true;
    world.pass(20_000_000);
    assert!(world.controller.is_settled());
}

#[test]
fn who_takes_too_long_to_join_leaves_its_place_to_another() {
    let mut world = World::with(Settings {
        join_timeout: 2_000_000,
        ..settings(5)
    });
    world.pass(2_000_000);
    world.silent.insert(1);
    world.joins = false;
    world.pass(1_500_000);
    let joins = |world: &World| {
        let groups = (0..GROUPS).map(|it| (it, chain(world, it).1));
        let joins = groups.filter_map(|(group, joining)| Some((group, joining?)));
        joins.collect::<BTreeMap<u16, u32>>()
    };
    let first = joins(&world);
    assert!(!first.is_empty());
    world.pass(2_500_000);
    assert!(world.controller.counters().join_timeouts >= first.len() as u64);
    for (group, switch) in joins(&world) {
        assert_ne!(first.get(&group), Some(&switch));
    }
    world.joins = true;
    world.pass(30_000_000);
    assert!(world.controller.is_settled());
}

#[test]
fn who_returns_joins_empty_and_one_with_another_start_is_another() {
    let mut world = settled(3);
    world.switches.insert(2, SwitchModel::new(201));
    world.pass(30_000);
    // Its PONGs are those of another start, which is believed when the former one is silent.
    assert_eq!(world.config(0).epoch, 1);
    world.pass(2_000_000);
    assert!(world.controller.is_settled());
    for config in world.controller.configurations() {
        let member = config.members.last().unwrap();
        assert_eq!((member.switch, member.incarnation), (2, 201));
        assert_eq!(config.epoch, 4);
    }
}

#[test]
fn a_group_whose_members_are_all_lost_is_down_until_it_is_founded_anew() {
    let mut world = settled(4);
    let config = world.config(5).clone();
    assert_eq!(
        world.controller.refound(world.now, 5).unwrap_err().code(),
        "K112"
    );
    let lost: Vec<u32> = config.members.iter().map(|it| it.switch).collect();
    world.silent.extend(&lost);
    world.pass(200_000);
    // Its switches come back empty.
    for switch in &lost {
        world
            .switches
            .insert(*switch, SwitchModel::new(switch * 100 + 1));
    }
    world.silent.clear();
    world.pass(5_000_000);
    assert_eq!(*world.config(5), config);
    assert!(world.controller.counters().down > 0);
    world.controller.refound(world.now, 5).unwrap();
    assert_eq!(
        world.controller.refound(world.now, 5).unwrap_err().code(),
        "K113"
    );
    world.act();
    let next = world.config(5);
    assert_eq!((next.generation, next.epoch, next.founds), (2, 2, true));
    assert_ne!(next.hash_key, config.hash_key);
    assert_eq!(next.members.len(), 3);
    assert_eq!(
        world
            .controller
            .refound(world.now, GROUPS)
            .unwrap_err()
            .code(),
        "K111"
    );
}

#[test]
fn who_had_not_joined_does_not_keep_a_group_and_founds_it_with_others() {
    let mut world = settled(5);
    world.joins = false;
    let config = world.config(5).clone();
    let dead = config.members[0].switch;
    world.silent.insert(dead);
    world.pass(1_000_000);
    let joining = world.config(5).joining.expect("another joins");
    let lost: Vec<u32> = config.members.iter().map(|it| it.switch).collect();
    world.silent.extend(&lost);
    world.pass(200_000);
    // They come back empty, and are those where placement wants the group.
    for switch in lost {
        let start = SwitchModel::new(switch * 100 + 1);
        world.switches.insert(switch, start);
    }
    world.silent.clear();
    world.pass(200_000);
    world.controller.refound(world.now, 5).unwrap();
    world.act();
    let next = world.config(5);
    assert!(next.founds && next.joining.is_none());
    assert_eq!(next.members.len(), 3);
    assert_eq!(next.members.last(), Some(&joining));
}

#[test]
fn a_group_lacks_a_member_from_a_death_until_another_has_joined() {
    let mut world = settled(3);
    let lacking = |world: &World| -> Vec<Option<u64>> {
        let groups = 0..GROUPS;
        let since = groups.map(|group| world.controller.lacking_since(group));
        since.collect()
    };
    assert!(lacking(&world).iter().all(Option::is_none));
    world.silent.insert(2);
    let died = world.now;
    world.pass(3_000_000);
    for since in lacking(&world) {
        let since = since.expect("a member is missing");
        assert!((died..died + 500_000).contains(&since), "{since}");
    }
    world.switches.insert(2, SwitchModel::new(201));
    world.silent.clear();
    world.pass(3_000_000);
    assert!(lacking(&world).iter().all(Option::is_none));
}

#[test]
fn who_has_joined_keeps_a_group() {
    let mut world = settled(5);
    world.joins = false;
    let config = world.config(5).clone();
    world.silent.insert(config.members[0].switch);
    world.pass(1_000_000);
    assert!(world.config(5).joining.is_some());
    world.joins = true;
    world.controller.handle_timeout(world.now);
    world.pass(1_000_000);
    world
        .silent
        .extend(config.members.iter().map(|it| it.switch));
    world.pass(200_000);
    let refused = world.controller.refound(world.now, 5).unwrap_err();
    assert_eq!(refused.code(), "K112");
}

#[test]
fn a_switch_that_was_cut_off_and_is_the_last_member_serves_again() {
    let mut world = settled(3);
    world.silent.extend([1, 2, 3]);
    world.pass(1_000_000);
    let epochs: BTreeSet<u32> = world
        .controller
        .configurations()
        .map(|it| it.epoch)
        .collect();
    assert_eq!(epochs, BTreeSet::from([1]));
    world.silent.clear();
    world.pass(100_000);
    assert!(world.controller.is_settled());
}

#[test]
fn a_drained_switch_leaves_each_group_when_another_has_joined() {
    let mut world = settled(4);
    world.joins = false;
    let before = groups_of(&world, 2);
    assert!(before > 0);
    world.controller.drain(world.now, 2, true);
    world.pass(1_000_000);
    assert_eq!(groups_of(&world, 2), before);
    assert_eq!(world.controller.can_stop(2), Ok(Some(2)));
    world.joins = true;
    world.pass(5_000_000);
    assert_eq!(groups_of(&world, 2), 0);
    assert_eq!(world.controller.can_stop(2), Ok(None));
    assert!(world.controller.is_settled());
    assert!((0..GROUPS).all(|group| chain(&world, group).0.len() == 3));
    world.controller.drain(world.now, 2, false);
    world.pass(5_000_000);
    assert_eq!(groups_of(&world, 2), before);
}

#[test]
fn a_switch_can_stop_while_each_group_has_another_whole_member() {
    let mut world = settled(3);
    assert_eq!(world.controller.can_stop(1), Ok(Some(2)));
    world.joins = false;
    world.silent.extend([2, 3]);
    world.pass(200_000);
    let all: Vec<u16> = (0..GROUPS).collect();
    assert_eq!(world.controller.can_stop(1), Err(UnsafeStop(all)));
    assert_eq!(world.controller.can_stop(9), Ok(None));
}

#[test]
fn no_chain_is_longer_than_a_message_can_name() {
    let mut world = settled(7);
    // Switches come and go while nobody is done joining in time.
    for switch in [1, 2, 3, 4, 5, 6, 7] {
        world.controller.drain(world.now, switch, true);
        world.pass(300_000);
        world.controller.drain(world.now, switch, false);
        world.pass(100_000);
        for config in world.controller.configurations() {
            assert!(config.all().count() <= 4, "{config:?}");
            assert!(config.members.len() >= 3, "{config:?}");
        }
    }
    world.pass(20_000_000);
    assert!(world.controller.is_settled());
}

#[test]
fn the_last_configuration_number_has_no_next() {
    let mut world = settled(3);
    let mut last = world.config(3).clone();
    last.epoch = u32::MAX;
    let stored = [world.log.clone(), vec![Decision::Group(last)]].concat();
    world.controller = Controller::new(settings(3), 8, [0; 32], stored, world.now).unwrap();
    world.silent.insert(1);
    world.pass(500_000);
    assert!(world.controller.counters().exhausted > 0);
    assert_eq!(world.config(3).members.len(), 3);
    world.silent.extend([2, 3]);
    world.pass(500_000);
    let refused = world.controller.refound(world.now, 3);
    assert_eq!(refused.unwrap_err().code(), "K114");
}

//! Messages between the controller and switches.

use super::*;

#[test]
fn a_controller_goes_on_from_what_is_stored() {
    let mut world = settled(4);
    world.silent.insert(3);
    world.pass(300_000);
    let before: Vec<GroupConfig> = world.controller.configurations().cloned().collect();
    let log = world.log.clone();
    world.controller = Controller::new(settings(4), 8, [9; 32], log, world.now).unwrap();
    assert!(world.controller.configurations().eq(before.iter()));
    world.pass(5_000_000);
    assert!(world.controller.is_settled());
    assert!(!world.controller.is_behind());
}

#[test]
fn a_controller_without_the_last_decisions_makes_none() {
    let mut world = settled(4);
    let log = world.log.clone();
    world.silent.insert(3);
    world.pass(5_000_000);
    world.silent.clear();
    let length = world.log.len();
    world.controller = Controller::new(settings(4), 8, [9; 32], log, world.now).unwrap();
    world.silent.insert(1);
    world.pass(2_000_000);
    assert!(world.controller.is_behind());
    assert_eq!(world.log.len(), length);
    // Nor one that has nothing at all.
    world.controller = Controller::new(settings(4), 9, [9; 32], [], world.now).unwrap();
    world.silent.clear();
    world.pass(3_000_000);
    assert!(world.controller.is_behind());
    assert_eq!(world.controller.configurations().count(), 0);
}

#[test]
fn a_forged_claim_is_forgotten() {
    let mut world = settled(3);
    let mut message = Repr::new(MessageType::Configured);
    (message.group, message.generation, message.epoch) = (2, 1, 99);
    message.handle = 100;
    let from = SocketAddrV4::new(address(1), PORT);
    let bytes = message.to_vec().unwrap();
    world.controller.handle_message(world.now, from, &bytes);
    assert!(world.controller.is_behind());
    world.silent.insert(2);
    world.pass(200_000);
    assert_eq!(world.config(0).epoch, 1);
    world.pass(500_000);
    assert!(!world.controller.is_behind());
    assert_eq!(world.config(0).epoch, 2);
}

#[test]
fn an_operator_founds_anew_what_others_decided() {
    let mut world = settled(3);
    world.silent.insert(1);
    world.pass(500_000);
    world.silent.clear();
    world.pass(3_000_000);
    let epoch = world.config(4).epoch;
    // The log is lost.
    world.controller = Controller::new(settings(3), 8, [9; 32], [], world.now).unwrap();
    world.pass(3_000_000);
    assert!(world.controller.is_behind());
    for group in 0..GROUPS {
        world.controller.refound(world.now, group).unwrap();
        world.act();
    }
    let config = world.config(4);
    assert_eq!((config.generation, config.epoch), (2, epoch + 1));
    world.pass(1_000_000);
    assert!(world.controller.is_settled());
    assert!(!world.controller.is_behind());
}

#[test]
fn who_was_cut_off_is_told_that_it_is_no_member() {
    let mut world = settled(4);
    let group = (0..GROUPS)
        .find(|it| chain(&world, *it).0.contains(&2))
        .unwrap();
    world.silent.insert(2);
    world.pass(150_000);
    assert_eq!(world.switches[&2].follows[&group].1, 1);
    // Also by a later controller.
    let log = world.log.clone();
    world.controller = Controller::new(settings(4), 8, [9; 32], log, world.now).unwrap();
    world.joins = false;
    world.silent.clear();
    world.pass(300_000);
    for group in 0..GROUPS {
        let epoch = world.config(group).epoch;
        assert_eq!(world.switches[&2].follows[&group].1, epoch, "group {group}");
    }
}

#[test]
fn founders_follow_before_the_next_configuration() {
    let mut world = World::new(3);
    // Nobody follows the founding, and one dies.
    let step = |world: &mut World, silent: &[u32], follows: bool| {
        for _ in 0..30 {
            world.now += 10_000;
            world.controller.handle_timeout(world.now);
            world.store();
            for (to, message) in world.sent() {
                let founds = message.epoch > 0;
                if !silent.contains(&to) && (follows || !founds) {
                    world.deliver(to, &message);
                }
            }
        }
    };
    step(&mut world, &[], false);
    assert_eq!(world.config(0).epoch, 1);
    step(&mut world, &[3], false);
    assert_eq!(world.controller.counters().deaths, 1);
    assert_eq!(world.config(0).epoch, 1);
    step(&mut world, &[3], true);
    assert_eq!(world.config(0).epoch, 2);
}

#[test]
fn a_step_waits_until_the_one_before_is_stored() {
    let mut world = settled(4);
    let decided = |world: &mut World, silent: &[u32]| {
        world.silent.extend(silent);
        for _ in 0..20 {
            world.now += 10_000;
            world.controller.handle_timeout(world.now);
            for (to, message) in world.sent() {
                if !world.silent.contains(&to) {
                    world.deliver(to, &message);
                }
            }
        }
        std::iter::from_fn(|| world.controller.poll_record()).collect::<Vec<_>>()
    };
    let first = decided(&mut world, &[1]);
    assert!(!first.is_empty());
    let again = |decision: &Decision| {
        first.iter().any(|first| match (first, decision) {
            (Decision::Group(a), Decision::Group(b)) => a.group == b.group,
            _ => false,
        })
    };
    let second = decided(&mut world, &[2]);
    assert!(!second.iter().any(again));
    for decision in &first {
        world.controller.handle_stored(world.now, decision);
    }
    assert!(decided(&mut world, &[]).iter().any(again));
}

#[test]
fn requests_to_failed_switches_are_redirected_until_they_return() {
    let mut world = settled(4);
    world.silent.extend([2, 4]);
    world.pass(200_000);
    let redirected = |world: &World, switch: u32| {
        let all = world.switches[&switch].redirects.values();
        let some = all.filter(|address| !address.is_unspecified());
        some.copied().collect::<BTreeSet<Ipv4Addr>>()
    };
    let both = BTreeSet::from([address(2), address(4)]);
    assert_eq!(redirected(&world, 1), both);
    assert_eq!(redirected(&world, 3), both);
    // A switch that starts anew is told, also by a controller that just began.
    world.switches.insert(3, SwitchModel::new(301));
    let log = world.log.clone();
    world.controller = Controller::new(settings(4), 8, [9; 32], log, world.now).unwrap();
    world.pass(300_000);
    assert_eq!(redirected(&world, 1), both);
    assert_eq!(redirected(&world, 3), both);
    world.silent.remove(&2);
    world.pass(200_000);
    assert!(!redirected(&world, 1).contains(&address(2)));
    assert!(!redirected(&world, 3).contains(&address(2)));
}

#[test]
fn more_failures_than_places_are_counted() {
    let mut world = World::with(Settings {
        redirects: 1,
        ..settings(5)
    });
    world.pass(2_000_000);
    world.silent.insert(4);
    world.pass(200_000);
    assert_eq!(world.controller.counters().not_redirected, 0);
    world.silent.insert(5);
    world.pass(1_000_000);
    assert_eq!(world.controller.redirected().count(), 1);
    assert_eq!(world.controller.counters().not_redirected, 1);
}

#[test]
fn what_is_not_for_the_controller_is_counted() {
    let mut world = settled(3);
    let before = world.log.len();
    let one = SocketAddrV4::new(address(1), PORT);
    let other = SocketAddrV4::new(Ipv4Addr::new(10, 9, 9, 9), PORT);
    let pong = Repr::new(MessageType::Pong).to_vec().unwrap();
    let read = Repr::new(MessageType::Request).to_vec().unwrap();
    let sent = [
        (one, &pong[..20]),
        (one, &read[..]),
        (one, b"SPG1"),
        (other, &pong[..]),
    ];
    for (from, bytes) in sent {
        world.controller.handle_message(world.now, from, bytes);
    }
    let counters = world.controller.counters();
    assert_eq!((counters.malformed, counters.foreign), (3, 1));
    let mut unknown = Repr::new(MessageType::Configured);
    (unknown.group, unknown.epoch) = (GROUPS, 3);
    let unknown = unknown.to_vec().unwrap();
    world.controller.handle_message(world.now, one, &unknown);
    assert_eq!(world.controller.counters().malformed, 4);
    assert_eq!(world.log.len(), before);
}

#[test]
fn a_pong_to_another_controller_does_not_count() {
    let mut world = settled(3);
    world.silent.insert(1);
    let mut pong = Repr::new(MessageType::Pong);
    (pong.handle, pong.session) = (100, 6);
    for number in 0..30 {
        pong.request = 1_000_000 + number;
        let from = SocketAddrV4::new(address(1), PORT);
        let bytes = pong.to_vec().unwrap();
        world.controller.handle_message(world.now, from, &bytes);
        world.pass(10_000);
    }
    assert_eq!(world.controller.counters().deaths, 1);
}

#[test]
fn a_hundred_groups_change_at_once() {
    let mut world = World::with(Settings {
        groups: 100,
        ..settings(4)
    });
    world.pass(2_000_000);
    let epochs = |world: &World| {
        let configs = world.controller.configurations();
        configs.map(|config| config.epoch).collect::<Vec<u32>>()
    };
    assert_eq!(epochs(&world), vec![1; 100]);
    world.silent.insert(1);
    world.pass(world.settings.detection + world.settings.ping);
    let left = groups_of(&world, 1);
    assert_eq!(left, 0);
}

#[test]
fn switches_that_the_settings_forget_lose_their_groups() {
    let mut world = settled(4);
    let log = world.log.clone();
    let mut fewer = settings(4);
    fewer.switches.pop();
    fewer.switches.push(Switch {
        number: 5,
        address: address(5),
        domain: 5,
    });
    world.switches.insert(5, SwitchModel::new(500));
    world.controller = Controller::new(fewer, 8, [9; 32], log, world.now).unwrap();
    world.pass(10_000_000);
    assert_eq!(groups_of(&world, 4), 0);
    assert!(groups_of(&world, 5) > 0);
}

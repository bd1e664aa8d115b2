//! Groups that stand still between members that live.

use super::*;

/// A world with one group whose chain is settled, and its members.
fn one_group(switches: u32) -> (World, Vec<u32>) {
    let mut world = World::with(Settings {
        groups: 1,
        ..settings(switches)
    });
    world.pass(2_000_000);
    let (members, _) = chain(&world, 0);
    assert_eq!(members.len(), 3);
    (world, members)
}

fn stop_rounds(world: &mut World, switches: &[u32]) {
    for switch in switches {
        let model = world.switches.get_mut(switch).unwrap();
        model.standing.insert(0);
    }
}

#[test]
fn of_members_without_rounds_the_first_is_left_out_and_replaced() {
    for place in 0..3 {
        let (mut world, members) = one_group(4);
        stop_rounds(&mut world, &members[place..]);
        // A round goes from the answerer to the head: the head gets it from the tail.
        let victim = if place == 0 {
            members[2]
        } else {
            members[place]
        };
        world.pass(1_900_000);
        assert_eq!(chain(&world, 0).0, members, "too early");
        world.pass(700_000);
        let (left, _) = chain(&world, 0);
        assert!(!left.contains(&victim), "{left:?} without {victim}");
        for model in world.switches.values_mut() {
            model.standing.clear();
        }
        world.pass(3_000_000);
        let (whole, joining) = chain(&world, 0);
        assert_eq!((whole.len(), joining), (3, None));
        assert!(!whole.contains(&victim));
        assert_eq!(world.controller.counters().standstills, 1);
    }
}

#[test]
fn who_stays_behind_its_predecessor_is_left_out() {
    let (mut world, members) = one_group(4);
    let number = |world: &mut World, switch: u32, number: u64| {
        let model = world.switches.get_mut(&switch).unwrap();
        model.newest.insert(0, number);
    };
    for at in [0, 1] {
        number(&mut world, members[at], 9);
    }
    number(&mut world, members[2], 8);
    world.pass(3_000_000);
    let (left, _) = chain(&world, 0);
    assert!(!left.contains(&members[2]), "{left:?}");
}

#[test]
fn who_is_behind_and_moves_stays() {
    let (mut world, members) = one_group(4);
    for step in 1..100 {
        for (place, switch) in members.iter().enumerate() {
            let model = world.switches.get_mut(switch).unwrap();
            model.newest.insert(0, 10 * step - place as u64);
        }
        world.pass(100_000);
    }
    assert_eq!(chain(&world, 0).0, members);
    assert_eq!(world.controller.counters().standstills, 0);
}

#[test]
fn a_short_pause_is_no_standstill() {
    let (mut world, members) = one_group(4);
    for _ in 0..5 {
        stop_rounds(&mut world, &members);
        world.pass(1_200_000);
        for model in world.switches.values_mut() {
            model.standing.clear();
        }
        world.pass(600_000);
    }
    assert_eq!(chain(&world, 0).0, members);
}

#[test]
fn a_switch_that_stands_again_stays_out_longer() {
    // Three switches only: who is left out is the one that comes back.
    let (mut world, members) = one_group(3);
    let victim = members[2];
    stop_rounds(&mut world, &[victim]);
    world.pass(120_000_000);
    // Out for 10, 20, 40 seconds and so on, with the time until it is noticed between.
    let stood = world.controller.counters().standstills;
    assert!((3..=5).contains(&stood), "{stood}");
}

#[test]
fn a_copy_that_stands_still_is_given_up() {
    let (mut world, members) = one_group(4);
    world.joins = false;
    world.silent.insert(members[1]);
    world.pass(2_000_000);
    let (left, joining) = chain(&world, 0);
    assert_eq!(left.len(), 2);
    let joining = joining.unwrap();
    stop_rounds(&mut world, &left);
    world.pass(2_700_000);
    assert_ne!(chain(&world, 0).1, Some(joining));
    assert_eq!(world.controller.counters().standstills, 1);
}

#[test]
fn who_is_alone_and_copies_is_given_time() {
    let (mut world, members) = one_group(4);
    world.joins = false;
    world.silent.extend(&members[1..]);
    world.pass(2_000_000);
    let (left, joining) = chain(&world, 0);
    assert_eq!((left.len(), joining.is_some()), (1, true));
    stop_rounds(&mut world, &left);
    world.pass(10_000_000);
    assert_eq!(chain(&world, 0), (left, joining));
}

#[test]
fn a_standstill_of_zero_leaves_nobody_out() {
    let (mut world, members) = one_group(4);
    let mut settings = world.settings.clone();
    settings.standstill = 0;
    let log = world.log.clone();
    world.controller = Controller::new(settings, 8, [3; 32], log, world.now).unwrap();
    stop_rounds(&mut world, &members);
    world.pass(20_000_000);
    assert_eq!(chain(&world, 0).0, members);
}

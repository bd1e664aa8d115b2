//! Lists of receivers (rule 26).

use stateplane_wire::multicast::{MessageType, Repr, flag};
use stateplane_wire::multicast_control::{Joined, Message, NO_NUMBER, joined};

use super::*;

fn from(receiver: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 8, receiver), 4799)
}

fn ask(world: &mut World, receiver: u8, number: u8, leaves: bool) -> Joined {
    let join = Message::Join {
        nonce: receiver.into(),
        group: 0,
        number,
        position: 0,
        leaves,
    };
    let answers = world.client_at(from(receiver), &join);
    let [Message::Joined(joined)] = answers[..] else {
        panic!("{answers:?}");
    };
    joined
}

/// Asks until the receiver is listed.
fn join(world: &mut World, receiver: u8) -> Joined {
    for _ in 0..100 {
        let answer = ask(world, receiver, NO_NUMBER, false);
        if answer.state != joined::WAITS {
            return answer;
        }
        world.run(5_000);
    }
    panic!("receiver {receiver} is not listed");
}

#[test]
fn a_receiver_is_told_its_place_when_the_leader_has_it_on_its_list() {
    let mut world = settled(3);
    let leader = world.leader(0);
    assert_eq!(ask(&mut world, 1, NO_NUMBER, false).state, joined::WAITS);
    world.nodes.get_mut(&leader).unwrap().deaf = true;
    world.run(30_000);
    // What the leader says with the list of before.
    let start = world.config(0).leading().unwrap();
    let leading = Repr {
        epoch: world.config(0).epoch,
        incarnation: start.incarnation,
        origin: start.number,
        flags: flag::ESTABLISHED,
        ..Repr::new(MessageType::Leading)
    };
    let bytes = leading.to_vec().unwrap();
    let program = SocketAddrV4::new(start.address, 4799);
    world.controller.handle_message(world.now, program, &bytes);
    assert_eq!(ask(&mut world, 1, NO_NUMBER, false).state, joined::WAITS);
    world.nodes.get_mut(&leader).unwrap().deaf = false;
    let first = join(&mut world, 1);
    assert_eq!(
        (first.state, first.number, first.list),
        (joined::LISTED, 0, 1)
    );
    let log = &world.nodes[&world.leader(0)].logs[&0];
    assert_eq!((log.list, log.receivers), (1, 1));
    assert!(first.from_index as usize <= log.base && first.from_time > 0);
    assert_eq!(first.window, 64);
    let second = join(&mut world, 2);
    assert_eq!((second.number, second.list), (1, 2));
    let row = &world.nodes[&leader].tables[&0];
    let addresses: Vec<Ipv4Addr> = row.receivers.iter().map(|it| it.address).collect();
    assert_eq!(addresses, [*from(1).ip(), *from(2).ip()]);
}

/// A leader whose own no-op is not committed may lack what covers a freed message.
#[test]
fn a_receiver_begins_where_an_established_leader_is() {
    let mut world = settled(3);
    let epoch = world.config(0).epoch;
    world.restart();
    while world.config(0).epoch == epoch || world.config(0).leading().is_none() {
        world.run(50);
    }
    for node in world.nodes.values_mut() {
        node.deaf = true;
    }
    assert_eq!(ask(&mut world, 1, NO_NUMBER, false).state, joined::WAITS);
    world.run(30_000);
    let config = world.config(0);
    assert_eq!(config.receivers.len(), 1);
    let start = config.leading().unwrap();
    let leading = |flags| Repr {
        epoch: config.epoch,
        incarnation: start.incarnation,
        origin: start.number,
        list_version: config.list,
        flags,
        base: 3,
        timestamp: 7,
        ..Repr::new(MessageType::Leading)
    };
    let program = SocketAddrV4::new(start.address, 4799);
    for (flags, state) in [(0, joined::WAITS), (flag::ESTABLISHED, joined::LISTED)] {
        let bytes = leading(flags).to_vec().unwrap();
        world.controller.handle_message(world.now, program, &bytes);
        let answer = ask(&mut world, 1, NO_NUMBER, false);
        assert_eq!(answer.state, state);
        if state == joined::LISTED {
            assert_eq!((answer.from_index, answer.from_time), (3, 7));
        }
    }
}

#[test]
fn a_receiver_of_no_group_or_of_a_full_list_is_refused() {
    let mut world = settled(3);
    for receiver in 1..=8 {
        assert_eq!(join(&mut world, receiver).state, joined::LISTED);
        for earlier in 1..=receiver {
            ask(&mut world, earlier, earlier - 1, false);
        }
    }
    assert_eq!(join(&mut world, 9).state, joined::FULL);
    let nowhere = Message::Join {
        nonce: 1,
        group: GROUPS,
        number: NO_NUMBER,
        position: 0,
        leaves: false,
    };
    let answers = world.client(&nowhere);
    let [Message::Joined(answer)] = answers[..] else {
        panic!("{answers:?}");
    };
    assert_eq!(answer.state, joined::NO_GROUP);
}

#[test]
fn a_silent_receiver_is_taken_off_and_told_so() {
    let mut world = settled(3);
    let ttl = world.settings.receiver_ttl;
    join(&mut world, 1);
    join(&mut world, 2);
    for _ in 0..8 {
        world.run(ttl / 4);
        assert_eq!(ask(&mut world, 2, 1, false).state, joined::LISTED);
    }
    assert_eq!(world.config(0).receivers.len(), 1);
    let told = ask(&mut world, 1, 0, false);
    assert_eq!((told.state, told.list), (joined::TAKEN_OFF, 3));
    assert_eq!(world.controller.counters().taken_off, 1);
    // Who joins anew is another receiver of the list.
    world.run(100_000);
    assert_eq!(join(&mut world, 1).state, joined::LISTED);
    assert_eq!(world.config(0).list, 4);
}

#[test]
fn a_receiver_that_stands_still_while_more_waits_is_taken_off() {
    let mut world = settled(3);
    let ttl = world.settings.receiver_ttl;
    join(&mut world, 1);
    // It has all that is committed as long as it takes it.
    for _ in 0..16 {
        world.run(ttl / 8);
        assert_eq!(ask(&mut world, 1, 0, false).state, joined::LISTED);
    }
    world.receives = false;
    for _ in 0..16 {
        world.run(ttl / 8);
        if ask(&mut world, 1, 0, false).state == joined::TAKEN_OFF {
            return;
        }
    }
    panic!("it is on the list");
}

#[test]
fn a_receiver_leaves_and_its_number_passes_on_when_the_leader_knows() {
    let mut world = settled(3);
    join(&mut world, 1);
    join(&mut world, 2);
    ask(&mut world, 1, 0, true);
    // The leader does not hear that it left.
    let leader = world.leader(0);
    world.nodes.get_mut(&leader).unwrap().deaf = true;
    ask(&mut world, 3, NO_NUMBER, false);
    world.run(20_000);
    ask(&mut world, 3, NO_NUMBER, false);
    let numbers: Vec<u8> = world
        .config(0)
        .receivers
        .iter()
        .map(|it| it.number)
        .collect();
    assert_eq!(numbers, [1, 2]);
    assert_eq!(ask(&mut world, 1, 0, true).state, joined::TAKEN_OFF);
    world.nodes.get_mut(&leader).unwrap().deaf = false;
    world.run(20_000);
    assert_eq!(join(&mut world, 4).number, 0);
}

#[test]
fn a_receiver_of_an_address_takes_the_place_of_an_earlier_one() {
    let mut world = settled(3);
    join(&mut world, 1);
    let again = Message::Join {
        nonce: 77,
        group: 0,
        number: NO_NUMBER,
        position: 0,
        leaves: false,
    };
    for _ in 0..20 {
        world.client_at(from(1), &again);
        world.run(10_000);
    }
    let receivers = world.config(0).receivers;
    assert_eq!(receivers.len(), 1);
    assert_eq!(receivers[0].nonce, 77);
}

#[test]
fn a_new_leader_has_the_whole_list_and_tells_who_joins_anew() {
    let mut world = settled(3);
    join(&mut world, 1);
    ask(&mut world, 1, 0, false);
    ask(&mut world, 2, NO_NUMBER, false);
    let leader = world.leader(0);
    world.nodes.get_mut(&leader).unwrap().down = true;
    for _ in 0..50 {
        world.run(10_000);
        ask(&mut world, 1, 0, false);
        ask(&mut world, 2, NO_NUMBER, false);
    }
    let second = join(&mut world, 2);
    let log = &world.nodes[&world.leader(0)].logs[&0];
    assert_eq!(
        (second.state, log.receivers, log.list),
        (joined::LISTED, 0b11, 2)
    );
    // Another controller keeps the list.
    world.restart();
    for _ in 0..20 {
        world.run(10_000);
        assert_ne!(ask(&mut world, 1, 0, false).state, joined::TAKEN_OFF);
    }
    assert_eq!(ask(&mut world, 1, 0, false).state, joined::LISTED);
    assert_eq!(world.config(0).list, 2);
}

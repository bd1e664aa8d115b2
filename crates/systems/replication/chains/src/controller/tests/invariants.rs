//! Each invariant of the controller, broken.

use std::panic::{AssertUnwindSafe, catch_unwind};

use stateplane_invariant::{Effect, Invariant, in_production};

use super::*;

type Break = fn(&mut World);

const BREAKS: [(Invariant, Break); 4] = [
    (Invariant::StoredDecision, stores_another),
    (Invariant::DecisionNumber, runs_out_of_numbers),
    (Invariant::ControllerTable, remembers_too_many_switches),
    (Invariant::ControllerTable, remembers_too_many_servers),
];

/// Three servers, and chains that they follow.
fn settled() -> World {
    let mut world = World::new(3);
    world.pass(500_000);
    assert!(world.controller.is_settled());
    world
}

fn stores_another(world: &mut World) {
    let config = loop {
        world.now += 50_000;
        for server in 1..=2 {
            world.tell(server, Vec::new());
        }
        if let Some(config) = world.controller.poll_record() {
            break config;
        }
    };
    world.sent();
    let other = ChainConfig {
        members: config.members[1..].to_vec(),
        ..config
    };
    world.controller.handle_stored(world.now, &other);
    assert!(!world.controller.chains[&other.chain].stored);
}

fn runs_out_of_numbers(world: &mut World) {
    let mut last = world.controller.configuration(3).unwrap().clone();
    last.epoch = u32::MAX;
    let now = world.now;
    world.controller = Controller::new(settings(), 2, [last.clone()], now).unwrap();
    world.controller.stale.clear();
    let gone = last.members.pop().unwrap();
    world.controller.servers.all.remove(&gone.server);
    world.controller.stale.insert(3);
    world.controller.reconsider(now);
    assert_eq!(world.controller.configuration(3).unwrap().members.len(), 3);
}

fn remembers_too_many_switches(world: &mut World) {
    let address = SocketAddrV4::new(Ipv4Addr::new(10, 9, 9, 9), 4795);
    let version = 0;
    for switch in 0..=MOST_SWITCHES as u32 {
        let subscriber = Subscriber { address, version };
        world.controller.switches.insert(switch, subscriber);
    }
    world.controller.subscribe(address, 7, 1, version);
    assert!(world.controller.switches.is_empty());
}

fn remembers_too_many_servers(world: &mut World) {
    for server in 0..=MOST_SERVERS as u32 {
        world
            .controller
            .servers
            .remember(world.now, member(server, 1));
    }
    let known = world.controller.servers.all.len();
    world.tell(1, Vec::new());
    assert_eq!(world.controller.servers.all.len(), known - 1);
}

#[test]
fn in_tests_a_broken_invariant_panics() {
    for (invariant, break_it) in BREAKS {
        let mut world = settled();
        let broken = catch_unwind(AssertUnwindSafe(|| break_it(&mut world)));
        let message = broken.expect_err(invariant.code());
        let message = message.downcast_ref::<String>().unwrap();
        assert!(message.contains(invariant.code()), "{message}");
    }
}

#[test]
fn in_production_a_broken_invariant_has_its_effect() {
    for (invariant, break_it) in BREAKS {
        in_production(|| {
            let mut world = settled();
            break_it(&mut world);
            assert_eq!(world.controller.broken().of(invariant), 1, "{invariant:?}");
            assert_eq!(world.controller.poll_broken().unwrap().invariant, invariant);
            assert_eq!(world.controller.poll_broken(), None);
            let silenced = world.controller.silenced().is_some();
            assert_eq!(silenced, invariant.effect() == Effect::Silence);
            if silenced {
                world.now += settings().resend;
                world.tell(2, Vec::new());
                world.controller.handle_timeout(world.now);
                assert_eq!(world.controller.poll_record(), None);
                assert!(world.sent().is_empty());
            }
        });
    }
}

//! Each invariant of the controller, broken.

use std::panic::{AssertUnwindSafe, catch_unwind};

use stateplane_invariant::{Invariant, in_production};

use super::*;

fn stores_another(world: &mut World) {
    let mut config = world.config(2);
    config.former.clear();
    config.record += 7;
    let decision = Decision::Group(config);
    world.controller.handle_stored(world.now, &decision);
}

fn stores_a_book_that_is_none(world: &mut World) {
    let decision = Decision::Slots(SlotBook::default());
    world.controller.handle_stored(world.now, &decision);
}

fn decides_twice(world: &mut World) {
    let config = world.config(2);
    world.controller.decide(world.now, config.clone());
    world.controller.decide(world.now, config);
}

type Break = fn(&mut World);

const BREAKS: [(Invariant, Break); 3] = [
    (Invariant::StoredDecision, stores_another),
    (Invariant::StoredDecision, stores_a_book_that_is_none),
    (Invariant::DecisionNumber, decides_twice),
];

#[test]
fn in_tests_a_broken_invariant_panics() {
    for (invariant, break_it) in BREAKS {
        let mut world = settled(3);
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
            let mut world = settled(3);
            break_it(&mut world);
            assert_eq!(world.controller.broken().of(invariant), 1);
            assert_eq!(world.controller.poll_broken().unwrap().invariant, invariant);
            let silenced = world.controller.silenced().is_some();
            assert_eq!(silenced, invariant == Invariant::StoredDecision);
            if silenced {
                while world.controller.poll_transmit().is_some() {}
                world.now += 1_000_000;
                world.controller.handle_timeout(world.now);
                assert_eq!(world.controller.poll_transmit(), None);
                assert_eq!(world.controller.poll_record(), None);
            }
        });
    }
}

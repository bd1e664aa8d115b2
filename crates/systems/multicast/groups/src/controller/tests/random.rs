//! Random faults: switches that die, lose their memory, are cut off or deaf, messages that are lost,
//! late and doubled, controllers that start anew from what was stored. Whatever happens, what a
//! leader committed is in the log of every later one ([`World`] compares).

use proptest::prelude::*;

use super::*;

const SWITCHES: u32 = 5;

/// True if every configuration that is not settled keeps a majority with memory without `switch`.
fn may_forget(world: &World, switch: u32) -> bool {
    (0..GROUPS).all(|group| {
        let last = world.log.iter().rev().find_map(|decision| match decision {
            Decision::Group(config) if config.group == group => Some(config),
            _ => None,
        });
        let configs = last.map_or(&[][..], |config| &config.configs);
        configs.iter().all(|config| {
            let keeps = |it: &&Member| {
                it.switch != switch && world.nodes[&it.switch].incarnation == it.incarnation
            };
            config.iter().filter(keeps).count() * 2 > config.len()
        })
    })
}

fn fault(world: &mut World) {
    let switch = 1 + world.chance.below(SWITCHES.into()) as u32;
    let what = world.chance.below(12);
    let forgets = may_forget(world, switch);
    let node = world.nodes.get_mut(&switch).unwrap();
    match what {
        0 | 1 => node.down = !node.down,
        2 | 3 => node.cut = !node.cut,
        4 | 5 => node.deaf = !node.deaf,
        6..=8 if forgets => world.reset(switch),
        9 => world.restart(),
        10 => {
            let drained = world.chance.percent(30);
            world.controller.drain(world.now, switch, drained);
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_fault_loses_what_is_committed(seed: u64) {
        let mut world = World::with(settings(SWITCHES), seed);
        world.load = true;
        world.faults = true;
        for _ in 0..40 {
            let time = 20_000 + world.chance.below(500_000);
            world.run(time);
            fault(&mut world);
        }
        world.faults = false;
        for switch in 1..=SWITCHES {
            let node = world.nodes.get_mut(&switch).unwrap();
            (node.down, node.cut, node.deaf) = (false, false, false);
            world.controller.drain(world.now, switch, false);
        }
        world.run(15_000_000);
        prop_assert!(!world.controller.is_behind());
        prop_assert!(world.controller.is_settled());
        for group in 0..GROUPS {
            let before = world.committed[&group].len();
            world.run(100_000);
            prop_assert!(world.committed[&group].len() > before);
        }
    }
}

mod world;

use super::*;
use world::World;

#[test]
fn groups_are_founded_on_different_switches() {
    let mut world = World::new(4);
    world.pass(500_000);
    assert!(world.controller.is_settled());
    for config in world.controller.configurations() {
        assert_eq!(
            (config.generation, config.epoch, config.founds),
            (1, 1, true)
        );
        let switches: BTreeSet<u32> = config.members.iter().map(|it| it.switch).collect();
        assert_eq!(switches.len(), 3);
    }
}

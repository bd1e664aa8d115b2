//! Priorities of entries that a program puts in its tables, beside those of controllers.

use crate::support::{World, field};
use stateplane_rpc::proto::v1::{
    self, entity::Entity, field_match as by, field_match::FieldMatchType as Match, update::Type,
};

const SOURCE: &str = include_str!("../programs/priorities.p4");

fn priorities(world: &mut World, table: &str) -> Vec<i32> {
    let table_id = world.id(table);
    let all = v1::TableEntry {
        table_id,
        ..v1::TableEntry::default()
    };
    let entries = world.read(Entity::TableEntry(all)).into_iter();
    let priorities = entries.map(|entity| match entity {
        Entity::TableEntry(entry) => entry.priority,
        other => panic!("{other:?}"),
    });
    let mut priorities: Vec<i32> = priorities.collect();
    priorities.sort_unstable();
    priorities
}

#[test]
fn entries_of_programs_have_the_priorities_of_the_specification() {
    let mut world = World::of(SOURCE);
    assert_eq!(priorities(&mut world, "written"), [1, 50]);
    assert_eq!(priorities(&mut world, "in_order"), [1, 11, 21]);
    assert_eq!(
        priorities(&mut world, "smallest"),
        [1, 21],
        "the greatest wins"
    );
    assert_eq!(priorities(&mut world, "fixed"), [1, 2]);
}

/// Sends a frame to destination `1` through the table of that Ethernet type; returns the port.
fn sent(world: &mut World, kind: u8) -> u16 {
    let mut frame = vec![0; 60];
    (frame[5], frame[13]) = (1, kind);
    world.frame(0, &frame);
    world.transmitted().expect("a frame").port
}

#[test]
fn an_entry_of_a_controller_wins_by_its_priority() {
    let mut world = World::of(SOURCE);
    let insert = |world: &mut World, table: &str, port: u8, priority| {
        let entry = v1::TableEntry {
            table_id: world.id(table),
            r#match: vec![field(
                1,
                Match::Ternary(by::Ternary {
                    value: vec![1],
                    mask: vec![0xff, 0xff],
                }),
            )],
            priority,
            action: Some(world.action("send", &[&[port]])),
            ..v1::TableEntry::default()
        };
        world
            .update(Type::Insert, Entity::TableEntry(entry))
            .unwrap();
    };
    assert_eq!(
        [1, 2, 3, 4].map(|kind| sent(&mut world, kind)),
        [1, 1, 1, 1]
    );
    insert(&mut world, "in_order", 2, 20);
    assert_eq!(sent(&mut world, 2), 1, "20 is less than 21");
    for (kind, table) in [(1, "written"), (2, "in_order"), (3, "smallest")] {
        insert(&mut world, table, 3, 100);
        assert_eq!(sent(&mut world, kind), 3, "{table}");
    }
}

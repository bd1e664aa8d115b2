//! Direct counters and meters of default entries.

use crate::support::{SOURCE, World, prepare, update};
use stateplane_rpc::PipelineAction;
use stateplane_rpc::proto::v1::{self, entity::Entity, update::Type, write_request::Atomicity};
use tonic::Code;

/// An IPv4 packet, which no entry of `routes` and `acl` fits.
fn packet() -> Vec<u8> {
    let mut frame = vec![0; 64];
    (frame[12], frame[14]) = (0x08, 0x45);
    frame
}

fn default(world: &World, table: &str) -> v1::TableEntry {
    v1::TableEntry {
        table_id: world.id(table),
        is_default_action: true,
        ..v1::TableEntry::default()
    }
}

fn counter(world: &World, packets: i64, bytes: i64) -> Entity {
    Entity::DirectCounterEntry(v1::DirectCounterEntry {
        table_entry: Some(default(world, "routes")),
        data: Some(v1::CounterData {
            packet_count: packets,
            byte_count: bytes,
        }),
    })
}

const CONFIG: v1::MeterConfig = v1::MeterConfig {
    cir: 1,
    cburst: 1,
    pir: 1,
    pburst: 2,
    eburst: 0,
};

fn meter(world: &World, counts: Option<[i64; 3]>) -> Entity {
    let of = |packets: i64| {
        Some(v1::CounterData {
            packet_count: packets,
            byte_count: 64 * packets,
        })
    };
    Entity::DirectMeterEntry(v1::DirectMeterEntry {
        table_entry: Some(default(world, "acl")),
        config: Some(CONFIG),
        counter_data: counts.map(|[green, yellow, red]| v1::MeterCounterData {
            green: of(green),
            yellow: of(yellow),
            red: of(red),
        }),
    })
}

fn run(world: &mut World, packets: u32) {
    for _ in 0..packets {
        world.frame(0, &packet());
    }
    world.settle();
}

#[test]
fn packets_that_hit_no_entry_are_counted_by_the_default_entry() {
    let mut world = World::new();
    run(&mut world, 3);
    assert_eq!(world.read(counter(&world, 0, 0)), [counter(&world, 3, 192)]);
    let written = counter(&world, 10, 100);
    world.update(Type::Modify, written.clone()).unwrap();
    assert_eq!(world.read(written.clone()), [written]);
    run(&mut world, 1);
    assert_eq!(
        world.read(counter(&world, 0, 0)),
        [counter(&world, 11, 164)]
    );
    let with_data = v1::TableEntry {
        counter_data: Some(v1::CounterData::default()),
        ..default(&world, "routes")
    };
    let read = world.read(Entity::TableEntry(with_data));
    let expected = v1::TableEntry {
        action: Some(world.action("NoAction", &[])),
        counter_data: Some(v1::CounterData {
            packet_count: 11,
            byte_count: 164,
        }),
        ..default(&world, "routes")
    };
    assert_eq!(read, [Entity::TableEntry(expected)]);
    let all = Entity::DirectCounterEntry(v1::DirectCounterEntry {
        table_entry: Some(v1::TableEntry {
            is_default_action: true,
            ..v1::TableEntry::default()
        }),
        data: None,
    });
    assert_eq!(world.read(all), [counter(&world, 11, 164)]);
    let reset = Entity::TableEntry(default(&world, "routes"));
    world.update(Type::Modify, reset).unwrap();
    assert_eq!(world.read(counter(&world, 0, 0)), [counter(&world, 0, 0)]);
}

#[test]
fn packets_that_hit_no_entry_are_metered_by_the_default_entry() {
    let mut world = World::new();
    world.update(Type::Modify, meter(&world, None)).unwrap();
    run(&mut world, 4);
    let counted = meter(&world, Some([1, 1, 2]));
    let asked = meter(&world, Some([0, 0, 0]));
    assert_eq!(world.read(asked), std::slice::from_ref(&counted));
    let mut many = CONFIG;
    many.cburst = 100;
    many.pburst = 100;
    let modified = v1::TableEntry {
        action: Some(world.action("drop", &[])),
        meter_config: Some(many),
        ..default(&world, "acl")
    };
    let modified = Entity::TableEntry(modified);
    world.update(Type::Modify, modified.clone()).unwrap();
    assert_eq!(world.read(modified.clone()), [modified]);
}

#[test]
fn what_belongs_to_default_entries_is_put_back_and_kept() {
    let mut world = World::new();
    run(&mut world, 2);
    let counted = counter(&world, 2, 128);
    let good = counter(&world, 7, 7);
    let bad = Entity::TableEntry(v1::TableEntry {
        action: Some(world.action("via", &[&[1], &[1]])),
        ..default(&world, "routes")
    });
    let metered = Entity::TableEntry(v1::TableEntry {
        action: Some(world.action("drop", &[])),
        meter_config: Some(CONFIG),
        ..default(&world, "acl")
    });
    let updates = [good, metered, bad].map(|entity| update(Type::Modify, entity));
    let request = v1::WriteRequest {
        atomicity: Atomicity::RollbackOnError.into(),
        ..world.request(updates.to_vec())
    };
    assert!(world.send(request).is_err());
    assert_eq!(world.read(counted.clone()), std::slice::from_ref(&counted));
    let plain = Entity::TableEntry(v1::TableEntry {
        meter_config: Some(CONFIG),
        ..default(&world, "acl")
    });
    let expected = Entity::TableEntry(v1::TableEntry {
        action: Some(world.action("NoAction", &[])),
        ..default(&world, "acl")
    });
    assert_eq!(world.read(plain), [expected]);
    let other = format!("{SOURCE}// another text\n");
    let ticket = world.core.set_pipeline(
        v1::SetForwardingPipelineConfigRequest {
            device_id: 1,
            election_id: Some(v1::Uint128 { high: 0, low: 1 }),
            action: PipelineAction::ReconcileAndCommit.into(),
            config: Some(v1::ForwardingPipelineConfig {
                p4_device_config: other.as_bytes().to_vec(),
                ..v1::ForwardingPipelineConfig::default()
            }),
            ..v1::SetForwardingPipelineConfigRequest::default()
        },
        Some(prepare(&other)),
    );
    let set = stateplane_rpc::Outcome::PipelineSet(ticket, Ok(()));
    assert!(world.settle().contains(&set));
    assert_eq!(world.read(counted.clone()), [counted]);
}

#[test]
fn wrong_default_entries_are_refused() {
    let mut world = World::new();
    let code = |world: &mut World, entry| world.code(Type::Modify, Entity::TableEntry(entry));
    let ages = v1::TableEntry {
        idle_timeout_ns: 1,
        ..default(&world, "l2")
    };
    assert_eq!(code(&mut world, ages), Code::InvalidArgument);
    let counts = v1::TableEntry {
        counter_data: Some(v1::CounterData::default()),
        ..default(&world, "l2")
    };
    assert_eq!(code(&mut world, counts), Code::InvalidArgument);
    let named = Entity::DirectCounterEntry(v1::DirectCounterEntry {
        table_entry: Some(v1::TableEntry {
            priority: 1,
            ..default(&world, "routes")
        }),
        data: Some(v1::CounterData::default()),
    });
    assert_eq!(world.code(Type::Modify, named), Code::InvalidArgument);
}

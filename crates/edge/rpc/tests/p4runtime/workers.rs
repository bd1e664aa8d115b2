//! Counts of several switches that run one program: the control plane reads and sets sums, and a
//! batch that fails, or a pipeline that replaces another, loses none.

use crate::support::{SOURCE, World, prepare, update};
use stateplane_rpc::proto::v1::{self, entity::Entity, update::Type, write_request::Atomicity};
use stateplane_rpc::{Outcome, PipelineAction};
use stateplane_runtime::Engine;

/// An IPv4 packet to 10.0.0.`to`.
fn packet(to: u8) -> Vec<u8> {
    let mut frame = vec![0; 64];
    (frame[12], frame[14]) = (0x08, 0x45);
    frame[30..34].copy_from_slice(&[10, 0, 0, to]);
    frame
}

/// Frames to each of the switches.
fn run(world: &mut World, to: u8, each: u32) {
    for _ in 0..3 * each {
        world.frame(0, &packet(to));
    }
    world.settle();
}

fn data(packets: i64) -> v1::CounterData {
    v1::CounterData {
        packet_count: packets,
        byte_count: 64 * packets,
    }
}

/// A route, with what it has counted.
fn route(world: &World, to: u8, packets: i64) -> Entity {
    let prefix = v1::field_match::FieldMatchType::Lpm(v1::field_match::Lpm {
        value: vec![10, 0, 0, to],
        prefix_len: 32,
    });
    Entity::TableEntry(v1::TableEntry {
        table_id: world.id("routes"),
        r#match: vec![crate::support::field(1, prefix)],
        action: Some(world.action("send", &[&[2]])),
        counter_data: Some(data(packets)),
        ..v1::TableEntry::default()
    })
}

/// All routes with their counts.
fn routes(world: &mut World) -> Vec<Entity> {
    world.read(Entity::TableEntry(v1::TableEntry {
        table_id: world.id("routes"),
        counter_data: Some(v1::CounterData::default()),
        ..v1::TableEntry::default()
    }))
}

fn element(world: &World, index: i64, packets: i64) -> Entity {
    Entity::CounterEntry(v1::CounterEntry {
        counter_id: world.id("per_port"),
        index: Some(v1::Index { index }),
        data: Some(data(packets)),
    })
}

/// All elements of the counter, but for those of nothing.
fn elements(world: &mut World) -> Vec<Entity> {
    let all = world.read(Entity::CounterEntry(v1::CounterEntry {
        counter_id: world.id("per_port"),
        ..v1::CounterEntry::default()
    }));
    let counted = |entity: &Entity| match entity {
        Entity::CounterEntry(entry) => entry.data != Some(data(0)),
        _ => false,
    };
    all.into_iter().filter(counted).collect()
}

#[test]
fn counts_of_all_switches_are_read_and_set_as_one() {
    let mut world = World::new();
    world.update(Type::Insert, route(&world, 1, 0)).unwrap();
    run(&mut world, 1, 2);
    // By name, by wildcard, and twice: nothing is moved that is then lost.
    for _ in 0..2 {
        assert_eq!(world.read(route(&world, 1, 0)), [route(&world, 1, 6)]);
        assert_eq!(routes(&mut world), [route(&world, 1, 6)]);
        assert_eq!(world.read(element(&world, 1, 0)), [element(&world, 1, 6)]);
        assert_eq!(elements(&mut world), [element(&world, 1, 6)]);
    }
    run(&mut world, 1, 1);
    world.update(Type::Modify, element(&world, 1, 100)).unwrap();
    world.update(Type::Modify, route(&world, 1, 50)).unwrap();
    run(&mut world, 1, 1);
    assert_eq!(elements(&mut world), [element(&world, 1, 103)]);
    assert_eq!(routes(&mut world), [route(&world, 1, 53)]);
    // A whole array at once.
    let Entity::CounterEntry(all) = element(&world, 0, 7) else {
        panic!("it is an element");
    };
    let all = v1::CounterEntry { index: None, ..all };
    world
        .update(Type::Modify, Entity::CounterEntry(all))
        .unwrap();
    run(&mut world, 1, 1);
    let expected: Vec<_> = (0..8)
        .map(|index| element(&world, index, if index == 1 { 10 } else { 7 }))
        .collect();
    assert_eq!(elements(&mut world), expected);
}

#[test]
fn a_batch_that_fails_leaves_counts_of_all_switches() {
    let mut world = World::new();
    for to in [1, 2] {
        let route = route(&world, to, 0);
        world.update(Type::Insert, route).unwrap();
        run(&mut world, to, 2);
    }
    let updates = vec![
        update(Type::Delete, route(&world, 1, 0)),
        update(Type::Modify, route(&world, 2, 1000)),
        update(Type::Modify, element(&world, 1, 1000)),
        // There is no such route.
        update(Type::Delete, route(&world, 3, 0)),
    ];
    for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        let request = v1::WriteRequest {
            atomicity: atomicity.into(),
            ..world.request(updates.clone())
        };
        assert!(world.send(request).is_err());
        let mut left = routes(&mut world);
        left.sort_by_key(|entity| match entity {
            Entity::TableEntry(entry) => format!("{:?}", entry.r#match),
            _ => String::new(),
        });
        assert_eq!(left, [route(&world, 1, 6), route(&world, 2, 6)]);
        assert_eq!(elements(&mut world), [element(&world, 1, 12)]);
    }
    // The packets of every switch find what was put back.
    let sent = world.sent(2);
    run(&mut world, 1, 1);
    assert_eq!(world.sent(2), sent + 3);
}

#[test]
fn all_switches_run_a_new_pipeline_at_once_with_what_they_counted() {
    let mut world = World::new();
    world.update(Type::Insert, route(&world, 1, 0)).unwrap();
    run(&mut world, 1, 2);
    let set = |world: &mut World, source: &str, action: PipelineAction| {
        let request = v1::SetForwardingPipelineConfigRequest {
            device_id: 1,
            election_id: Some(v1::Uint128 { high: 0, low: 1 }),
            action: action.into(),
            config: Some(v1::ForwardingPipelineConfig {
                p4_device_config: source.as_bytes().to_vec(),
                ..v1::ForwardingPipelineConfig::default()
            }),
            ..v1::SetForwardingPipelineConfigRequest::default()
        };
        let ticket = world.core.set_pipeline(request, Some(prepare(source)));
        let outcome = Outcome::PipelineSet(ticket, Ok(()));
        assert!(world.settle().contains(&outcome));
    };
    // Counts by another element, and writes another number to the register.
    let other = SOURCE
        .replace("per_port.count(1)", "per_port.count(2)")
        .replace("0x11223344", "0x55667788");
    set(&mut world, &other, PipelineAction::ReconcileAndCommit);
    assert_eq!(routes(&mut world), [route(&world, 1, 6)]);
    assert_eq!(elements(&mut world), [element(&world, 1, 6)]);
    let total = |world: &World| {
        let state = world.switch.engine().state();
        let value = state.register("totals").unwrap().word(1);
        value.unwrap()
    };
    assert_eq!(total(&world), 0x1122_3344, "it is kept");
    for switch in 1..=3 {
        world.frame(0, &packet(1));
        world.settle();
        assert_eq!(total(&world), 0x5566_7788);
        let expected = [element(&world, 1, 6), element(&world, 2, switch)];
        assert_eq!(elements(&mut world), expected);
        assert_eq!(routes(&mut world), [route(&world, 1, 6 + switch)]);
    }
    set(&mut world, SOURCE, PipelineAction::VerifyAndCommit);
    assert_eq!(routes(&mut world), []);
    assert_eq!(elements(&mut world), []);
    let sent = world.sent(2);
    run(&mut world, 1, 1);
    assert_eq!(world.sent(2), sent, "no switch has the route");
    assert_eq!(elements(&mut world), [element(&world, 1, 3)]);
}

#[test]
fn ports_count_what_all_switches_pass() {
    let mut world = World::new();
    run(&mut world, 1, 4);
    let ticket = world
        .core
        .ports(stateplane_rpc::proto::stateplane::v1::PortsRequest { device_id: 1 });
    let received = world
        .settle()
        .into_iter()
        .find_map(|outcome| match outcome {
            Outcome::Ports(of, Ok(ports)) if of == ticket => Some(ports[0].rx_packets),
            _ => None,
        });
    assert_eq!(received, Some(12));
}

//! Types translated to strings: a controller says texts, packets carry numbers.

use crate::support::{World, exact, prepare, update};
use stateplane_rpc::proto::v1::{
    self, entity::Entity, stream_message_request::Update as Say, update::Type,
    write_request::Atomicity,
};
use stateplane_rpc::{PipelineAction, WriteRefusal};
use stateplane_runtime::Engine;
use tonic::Code;

const SOURCE: &str = include_str!("../programs/translated.p4");

/// Sends what the controller calls `class` to what it calls `port`.
fn entry(world: &World, class: &str, port: &str) -> Entity {
    Entity::TableEntry(v1::TableEntry {
        table_id: world.id("classes"),
        r#match: vec![exact(1, class.as_bytes())],
        action: Some(world.action("send", &[port.as_bytes()])),
        ..v1::TableEntry::default()
    })
}

/// The ports of the entries, as packets get them.
fn ports(world: &World) -> Vec<u64> {
    let state = world.switch.engine().state();
    let entries = state.tables()[0].entries();
    let data = entries.iter().map(|listed| listed.entry.data[0].clone());
    data.map(|port| u64::try_from(port).unwrap()).collect()
}

#[test]
fn texts_stand_for_ports_and_numbers() {
    let mut world = World::of(SOURCE);
    let gold = entry(&world, "gold", "eth1");
    let silver = entry(&world, "silver", "3");
    world.update(Type::Insert, gold.clone()).unwrap();
    world.update(Type::Insert, silver.clone()).unwrap();
    assert_eq!(ports(&world), [1, 3]);
    assert_eq!(world.code(Type::Insert, gold.clone()), Code::AlreadyExists);
    let all = Entity::TableEntry(v1::TableEntry {
        table_id: world.id("classes"),
        ..v1::TableEntry::default()
    });
    assert_eq!(world.read(all.clone()), [gold.clone(), silver.clone()]);
    let far = entry(&world, "bronze", "512");
    assert_eq!(world.code(Type::Insert, far), Code::OutOfRange);
    let twice = entry(&world, "bronze", "1");
    let code = world.code(Type::Insert, twice);
    assert_eq!(code, Code::InvalidArgument, "that is eth1");
    let ticket = world.core.set_pipeline(
        v1::SetForwardingPipelineConfigRequest {
            device_id: 1,
            election_id: Some(v1::Uint128 { high: 0, low: 1 }),
            action: PipelineAction::ReconcileAndCommit.into(),
            config: Some(v1::ForwardingPipelineConfig {
                p4_device_config: SOURCE.as_bytes().to_vec(),
                ..v1::ForwardingPipelineConfig::default()
            }),
            ..v1::SetForwardingPipelineConfigRequest::default()
        },
        Some(prepare(SOURCE)),
    );
    let set = stateplane_rpc::Outcome::PipelineSet(ticket, Ok(()));
    assert!(world.settle().contains(&set));
    assert_eq!(world.read(all), [gold, silver], "the texts stay");
    assert_eq!(ports(&world), [1, 3]);
}

#[test]
fn packets_out_name_ports_by_text() {
    let mut world = World::of(SOURCE);
    let packet = |port: &str| {
        let metadata = |metadata_id, value: &[u8]| v1::PacketMetadata {
            metadata_id,
            value: value.to_vec(),
        };
        Say::Packet(v1::PacketOut {
            payload: vec![0; 60],
            metadata: vec![metadata(1, port.as_bytes()), metadata(2, &[0])],
        })
    };
    let primary = world.primary;
    let before = world.sent(1);
    world.say(primary, packet("eth1"));
    let after = world.sent(1);
    assert_eq!(after, before + 1);
    assert!(world.told.is_empty(), "{:?}", world.told);
    world.say(primary, packet("600"));
    assert_eq!(world.told.len(), 1, "an error of the stream");
}

/// The code of a request that inserts or deletes entries.
fn change(
    world: &mut World,
    atomicity: Atomicity,
    changes: &[(Type, &str, &str)],
) -> Result<(), WriteRefusal> {
    let updates = changes
        .iter()
        .map(|(kind, class, port)| update(*kind, entry(world, class, port)));
    let request = v1::WriteRequest {
        atomicity: atomicity.into(),
        ..world.request(updates.collect())
    };
    world.send(request)
}

#[test]
fn a_text_is_free_after_its_last_use() {
    let mut world = World::of(SOURCE);
    // More classes than an 8-bit field has numbers, a few at a time.
    for round in 0..300 {
        let class = format!("class {round}");
        let one = [(Type::Insert, class.as_str(), "1")];
        change(&mut world, Atomicity::ContinueOnError, &one).unwrap();
        let gone = [(Type::Delete, class.as_str(), "1")];
        change(&mut world, Atomicity::ContinueOnError, &gone).unwrap();
    }
    let kept = entry(&world, "kept", "3");
    world.update(Type::Insert, kept.clone()).unwrap();
    let number = entry(&world, "2", "3");
    assert_eq!(
        world.code(Type::Insert, number.clone()),
        Code::Ok,
        "no text has it"
    );
    let all = Entity::TableEntry(v1::TableEntry {
        table_id: world.id("classes"),
        ..v1::TableEntry::default()
    });
    assert_eq!(world.read(all), [kept, number]);
}

#[test]
fn refused_writes_take_no_text() {
    let modes = [
        Atomicity::ContinueOnError,
        Atomicity::RollbackOnError,
        Atomicity::DataplaneAtomic,
    ];
    for mode in modes {
        let mut world = World::of(SOURCE);
        for round in 0..300 {
            let class = format!("class {round}");
            // The port is out of range.
            let wrong = [(Type::Insert, class.as_str(), "600")];
            assert!(change(&mut world, mode, &wrong).is_err());
            let read = entry(&world, &format!("read {round}"), "1");
            assert_eq!(world.read(read), []);
        }
        let good = [(Type::Insert, "gold", "1")];
        change(&mut world, mode, &good).unwrap();
        let number = [(Type::Insert, "1", "1")];
        assert!(change(&mut world, mode, &number).is_err(), "1 is gold");
    }
    // Of a whole batch that fails, all is as before, the texts too.
    for mode in &modes[1..] {
        let mut world = World::of(SOURCE);
        let gold = entry(&world, "gold", "1");
        world.update(Type::Insert, gold.clone()).unwrap();
        let batch = [
            (Type::Delete, "gold", "1"),
            (Type::Insert, "silver", "2"),
            (Type::Insert, "bronze", "600"),
        ];
        assert!(change(&mut world, *mode, &batch).is_err());
        let all = Entity::TableEntry(v1::TableEntry {
            table_id: world.id("classes"),
            ..v1::TableEntry::default()
        });
        assert_eq!(world.read(all), [gold]);
        let number = [(Type::Insert, "2", "1")];
        change(&mut world, *mode, &number).unwrap();
    }
}

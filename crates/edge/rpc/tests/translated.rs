//! Types translated to strings: a controller says texts, packets carry numbers.

mod support;

use stateplane_rpc::PipelineAction;
use stateplane_rpc::proto::v1::{
    self, entity::Entity, stream_message_request::Update as Say, update::Type,
};
use stateplane_runtime::Engine;
use support::{World, exact, prepare};
use tonic::Code;

const SOURCE: &str = include_str!("programs/translated.p4");

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
    let before = world.switch.port_counters(1).unwrap().tx_packets;
    world.say(primary, packet("eth1"));
    let after = world.switch.port_counters(1).unwrap().tx_packets;
    assert_eq!(after, before + 1);
    assert!(world.told.is_empty(), "{:?}", world.told);
    world.say(primary, packet("600"));
    assert_eq!(world.told.len(), 1, "an error of the stream");
}

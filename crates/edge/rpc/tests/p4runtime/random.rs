//! Messages that were damaged: the core answers each, and goes on.

use crate::support;
use crate::support::{World, damage, exact, update};
use prost::Message;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use stateplane_rpc::proto::v1::{self, entity::Entity, update::Type};

/// A write, with entities of all kinds.
fn write(world: &World) -> v1::WriteRequest {
    let index = Some(v1::Index { index: 1 });
    let entities = [
        Entity::TableEntry(world.l2(1, 1)),
        Entity::ActionProfileMember(v1::ActionProfileMember {
            action_profile_id: world.id("hops"),
            member_id: 1,
            action: Some(world.plain("via", &[&[1], &[1]])),
        }),
        Entity::ActionProfileGroup(v1::ActionProfileGroup {
            action_profile_id: world.id("hops"),
            group_id: 1,
            members: vec![v1::action_profile_group::Member {
                member_id: 1,
                weight: 1,
                watch_kind: None,
            }],
            max_size: 2,
        }),
        Entity::MeterEntry(v1::MeterEntry {
            meter_id: world.id("limits"),
            index,
            config: Some(v1::MeterConfig::default()),
            counter_data: None,
        }),
        Entity::CounterEntry(v1::CounterEntry {
            counter_id: world.id("per_port"),
            index,
            data: Some(v1::CounterData::default()),
        }),
        Entity::ValueSetEntry(v1::ValueSetEntry {
            value_set_id: world.id("ip_types"),
            members: vec![v1::ValueSetMember {
                r#match: vec![exact(1, &[1])],
            }],
        }),
        Entity::RegisterEntry(v1::RegisterEntry {
            register_id: world.id("totals"),
            index,
            data: Some(v1::P4Data {
                data: Some(v1::p4_data::Data::Bitstring(vec![1])),
            }),
        }),
        Entity::DigestEntry(v1::DigestEntry {
            digest_id: world.id("seen_t"),
            config: Some(v1::digest_entry::Config::default()),
        }),
    ];
    let kinds = [Type::Insert, Type::Modify, Type::Delete];
    let updates = kinds
        .iter()
        .flat_map(|kind| entities.iter().map(|entity| update(*kind, entity.clone())))
        .collect();
    v1::WriteRequest {
        atomicity: v1::write_request::Atomicity::RollbackOnError.into(),
        ..world.request(updates)
    }
}

#[test]
fn damaged_writes_are_answered_and_all_or_nothing() {
    let mut world = World::new();
    let mut random = SmallRng::seed_from_u64(11);
    let good = write(&world).encode_to_vec();
    let everything = [
        Entity::TableEntry(v1::TableEntry::default()),
        Entity::ActionProfileMember(v1::ActionProfileMember::default()),
        Entity::ActionProfileGroup(v1::ActionProfileGroup::default()),
        Entity::CounterEntry(v1::CounterEntry::default()),
        Entity::MeterEntry(v1::MeterEntry::default()),
        Entity::RegisterEntry(v1::RegisterEntry::default()),
        Entity::ValueSetEntry(v1::ValueSetEntry::default()),
        Entity::DigestEntry(v1::DigestEntry::default()),
        Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry::default()),
    ];
    let mut read = 0;
    for _ in 0..16_000 {
        let Ok(request) = v1::WriteRequest::decode(&*damage(&mut random, &good)) else {
            continue;
        };
        read += 1;
        let whole = request.atomicity != 0;
        let before = everything.clone().map(|entity| world.read(entity));
        let refused = world.send(request).is_err();
        if refused && whole {
            let after = everything.clone().map(|entity| world.read(entity));
            assert_eq!(after, before, "a batch that failed changed something");
        }
    }
    assert!(read > 200, "only {read} messages could be read");
}

#[test]
fn damaged_reads_and_stream_messages_are_answered() {
    let mut world = World::new();
    let mut random = SmallRng::seed_from_u64(12);
    let entities = write(&world).updates.into_iter().take(8);
    let good_read = v1::ReadRequest {
        device_id: 1,
        entities: entities.filter_map(|update| update.entity).collect(),
        ..v1::ReadRequest::default()
    }
    .encode_to_vec();
    let good_packet = v1::StreamMessageRequest {
        update: Some(v1::stream_message_request::Update::Packet(v1::PacketOut {
            payload: vec![0; 60],
            metadata: vec![
                v1::PacketMetadata {
                    metadata_id: 1,
                    value: vec![1],
                };
                3
            ],
        })),
    }
    .encode_to_vec();
    for _ in 0..4000 {
        if let Ok(request) = v1::ReadRequest::decode(&*damage(&mut random, &good_read)) {
            world.core.read(request);
            assert!(!world.settle().is_empty());
        }
        if let Ok(message) = v1::StreamMessageRequest::decode(&*damage(&mut random, &good_packet)) {
            let primary = world.primary;
            world.core.stream_message(primary, message);
            world.settle();
        }
        world.told.clear();
        world.ended.clear();
        let _ = random.random::<u8>();
    }
    world.primary = world.core.open_stream();
    let primary = world.primary;
    world.say(primary, support::arbitration(u64::MAX));
    assert!(!world.told.is_empty(), "it goes on");
}

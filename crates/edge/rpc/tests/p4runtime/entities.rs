//! Entities of every kind, written and read back.

use crate::support;
use crate::support::{CPU_PORT, SOURCE, World, exact, field, update};
use stateplane_rpc::proto::v1::{
    self, entity::Entity, field_match as by, field_match::FieldMatchType as Match, p4_data::Data,
    packet_replication_engine_entry as replication, table_action, update::Type,
};
use stateplane_rpc::{Outcome, PipelineAction, WriteRefusal};
use tonic::Code;

/// Written entities are read, and are absent after their deletion.
fn keeps(world: &mut World, written: Entity, wildcard: Entity) {
    world.update(Type::Insert, written.clone()).unwrap();
    assert_eq!(world.read(wildcard.clone()), std::slice::from_ref(&written));
    assert_eq!(
        world.code(Type::Insert, written.clone()),
        Code::AlreadyExists
    );
    world.update(Type::Modify, written.clone()).unwrap();
    world.update(Type::Delete, written.clone()).unwrap();
    assert_eq!(world.read(wildcard), []);
    assert_eq!(world.code(Type::Delete, written), Code::NotFound);
}

#[test]
fn table_entries_of_all_match_kinds() {
    let mut world = World::new();
    let all = |world: &World, table: &str| {
        Entity::TableEntry(v1::TableEntry {
            table_id: world.id(table),
            ..v1::TableEntry::default()
        })
    };
    let entry = v1::TableEntry {
        metadata: b"mine".to_vec(),
        idle_timeout_ns: 5_000_000_000,
        action: Some(world.action("send", &[&[3]])),
        r#match: vec![exact(1, &[1])],
        ..world.l2(1, 3)
    };
    let wildcard = all(&world, "l2");
    keeps(&mut world, Entity::TableEntry(entry), wildcard);
    let route = v1::TableEntry {
        table_id: world.id("routes"),
        r#match: vec![field(
            1,
            Match::Lpm(by::Lpm {
                value: vec![10, 0, 0, 0],
                prefix_len: 8,
            }),
        )],
        action: Some(world.action("send", &[&[1]])),
        ..v1::TableEntry::default()
    };
    let wildcard = all(&world, "routes");
    keeps(&mut world, Entity::TableEntry(route), wildcard);
    let acl = v1::TableEntry {
        table_id: world.id("acl"),
        r#match: vec![
            field(
                1,
                Match::Ternary(by::Ternary {
                    value: vec![10, 0, 0, 0],
                    mask: vec![255, 0, 0, 0],
                }),
            ),
            field(
                2,
                Match::Range(by::Range {
                    low: vec![6],
                    high: vec![17],
                }),
            ),
            field(3, Match::Optional(by::Optional { value: vec![64] })),
        ],
        priority: 10,
        action: Some(world.action("drop", &[])),
        ..v1::TableEntry::default()
    };
    let wildcard = all(&world, "acl");
    keeps(&mut world, Entity::TableEntry(acl.clone()), wildcard);
    let of = |priority| {
        Entity::TableEntry(v1::TableEntry {
            priority,
            ..acl.clone()
        })
    };
    let other = Entity::TableEntry(v1::TableEntry {
        r#match: acl.r#match[..1].to_vec(),
        ..acl.clone()
    });
    for entity in [of(10), of(20), other] {
        world.update(Type::Insert, entity).unwrap();
    }
    let any = Entity::TableEntry(v1::TableEntry {
        action: None,
        priority: 0,
        ..acl.clone()
    });
    assert_eq!(world.read(any), [of(10), of(20)], "of any priority");
    assert_eq!(world.read(of(20)), [of(20)]);
    assert_eq!(world.read(of(30)), []);
}

#[test]
fn default_and_constant_entries() {
    let mut world = World::new();
    let default = |world: &World, action| v1::TableEntry {
        table_id: world.id("l2"),
        is_default_action: true,
        action,
        ..v1::TableEntry::default()
    };
    let drop = world.action("drop", &[]);
    let written = Entity::TableEntry(default(&world, Some(drop)));
    world.update(Type::Modify, written.clone()).unwrap();
    assert_eq!(world.read(written.clone()), std::slice::from_ref(&written));
    assert_eq!(world.code(Type::Insert, written), Code::InvalidArgument);
    let reset = Entity::TableEntry(default(&world, None));
    world.update(Type::Modify, reset.clone()).unwrap();
    let nothing = world.action("NoAction", &[]);
    let expected = Entity::TableEntry(default(&world, Some(nothing)));
    assert_eq!(world.read(reset), [expected]);
    let fixed = v1::TableEntry {
        table_id: world.id("fixed"),
        ..v1::TableEntry::default()
    };
    let read = world.read(Entity::TableEntry(fixed.clone()));
    let [Entity::TableEntry(constant)] = &read[..] else {
        panic!("{read:?}");
    };
    assert!(constant.is_const);
    let constant = v1::TableEntry {
        is_const: false,
        ..constant.clone()
    };
    let constant = Entity::TableEntry(constant);
    assert_eq!(world.code(Type::Delete, constant), Code::PermissionDenied);
    let fixed = Entity::TableEntry(v1::TableEntry {
        is_default_action: true,
        action: Some(world.action("drop", &[])),
        ..fixed
    });
    assert_eq!(world.code(Type::Modify, fixed), Code::PermissionDenied);
}

#[test]
fn members_groups_and_sets_of_actions() {
    let mut world = World::new();
    let hops = world.id("hops");
    let member = |world: &World, id: u32| v1::ActionProfileMember {
        action_profile_id: hops,
        member_id: id,
        action: Some(world.plain("via", &[&[id as u8], &[0xee]])),
    };
    for id in [1, 2] {
        let member = Entity::ActionProfileMember(member(&world, id));
        world.update(Type::Insert, member).unwrap();
    }
    let group = v1::ActionProfileGroup {
        action_profile_id: hops,
        group_id: 7,
        members: [(1, 1), (2, 3)]
            .map(|(member_id, weight)| v1::action_profile_group::Member {
                member_id,
                weight,
                watch_kind: Some(v1::action_profile_group::member::WatchKind::WatchPort(
                    vec![member_id as u8],
                )),
            })
            .to_vec(),
        max_size: 8,
    };
    let written = Entity::ActionProfileGroup(group.clone());
    world.update(Type::Insert, written.clone()).unwrap();
    let all = Entity::ActionProfileGroup(v1::ActionProfileGroup::default());
    assert_eq!(world.read(all), std::slice::from_ref(&written));
    let entry = |world: &World, kind: u16, what| v1::TableEntry {
        table_id: world.id("balanced"),
        r#match: vec![exact(1, &kind.to_be_bytes())],
        action: Some(v1::TableAction { r#type: Some(what) }),
        ..v1::TableEntry::default()
    };
    let by_group = table_action::Type::ActionProfileGroupId(7);
    let by_group = Entity::TableEntry(entry(&world, 0x800, by_group));
    world.update(Type::Insert, by_group.clone()).unwrap();
    assert_eq!(
        world.code(Type::Delete, written.clone()),
        Code::FailedPrecondition
    );
    let in_group = Entity::ActionProfileMember(member(&world, 1));
    assert_eq!(world.code(Type::Delete, in_group), Code::FailedPrecondition);
    let set = v1::ActionProfileActionSet {
        action_profile_actions: vec![v1::ActionProfileAction {
            action: Some(world.plain("via", &[&[2], &[0xdd]])),
            weight: 2,
            watch_kind: None,
        }],
        ..v1::ActionProfileActionSet::default()
    };
    let set = table_action::Type::ActionProfileActionSet(set);
    let by_set = Entity::TableEntry(entry(&world, 0x86dd, set));
    world.update(Type::Insert, by_set.clone()).unwrap();
    let all = v1::TableEntry {
        table_id: world.id("balanced"),
        ..v1::TableEntry::default()
    };
    assert_eq!(
        world.read(Entity::TableEntry(all)),
        [by_group.clone(), by_set]
    );
    let missing = table_action::Type::ActionProfileMemberId(9);
    let missing = Entity::TableEntry(entry(&world, 1, missing));
    assert_eq!(world.code(Type::Insert, missing), Code::NotFound);
    let direct = world.plain("via", &[&[1], &[1]]);
    let direct = Entity::TableEntry(entry(&world, 2, table_action::Type::Action(direct)));
    assert_eq!(world.code(Type::Insert, direct), Code::InvalidArgument);
    world.update(Type::Delete, by_group).unwrap();
    world.update(Type::Delete, written).unwrap();
}

#[test]
fn registers_by_index_and_as_a_whole() {
    let mut world = World::new();
    let totals = world.id("totals");
    let entry = |index: Option<i64>, value: &[u8]| {
        Entity::RegisterEntry(v1::RegisterEntry {
            register_id: totals,
            index: index.map(|index| v1::Index { index }),
            data: Some(v1::P4Data {
                data: Some(Data::Bitstring(value.to_vec())),
            }),
        })
    };
    world.update(Type::Modify, entry(Some(3), &[0xab])).unwrap();
    assert_eq!(world.read(entry(Some(3), &[0])), [entry(Some(3), &[0xab])]);
    let all = world.read(entry(None, &[0]));
    assert_eq!(all.len(), 16);
    assert_eq!(all[4], entry(Some(4), &[0]));
    world.update(Type::Modify, entry(None, &[9])).unwrap();
    assert!(
        world
            .read(entry(None, &[0]))
            .contains(&entry(Some(15), &[9]))
    );
    let code = |world: &mut World, entry| world.code(Type::Modify, entry);
    assert_eq!(code(&mut world, entry(Some(16), &[1])), Code::OutOfRange);
    assert_eq!(
        code(&mut world, entry(Some(-1), &[1])),
        Code::InvalidArgument
    );
    let wide = entry(Some(0), &[1, 0, 0, 0, 0]);
    assert_eq!(code(&mut world, wide), Code::InvalidArgument);
    // A register in view is read and not written.
    let seen = world.id("seen");
    let entry = |index: Option<i64>, value: &[u8]| match entry(index, value) {
        Entity::RegisterEntry(entry) => Entity::RegisterEntry(v1::RegisterEntry {
            register_id: seen,
            ..entry
        }),
        other => other,
    };
    assert_eq!(world.read(entry(None, &[0])).len(), 16);
    for index in [None, Some(3)] {
        let refused = code(&mut world, entry(index, &[1]));
        assert_eq!(refused, Code::FailedPrecondition);
    }
    assert_eq!(world.read(entry(Some(3), &[0])), [entry(Some(3), &[0])]);
    assert_eq!(
        world.code(Type::Insert, entry(Some(0), &[1])),
        Code::InvalidArgument
    );
    assert_eq!(
        world.try_read(entry(Some(16), &[0])).unwrap_err().code,
        Code::OutOfRange
    );
    let pair = |mac: &[u8], known| {
        let members = [Data::Bitstring(mac.to_vec()), Data::Bool(known)];
        Entity::RegisterEntry(v1::RegisterEntry {
            register_id: world.id("pairs"),
            index: Some(v1::Index { index: 1 }),
            data: Some(v1::P4Data {
                data: Some(Data::Struct(v1::P4StructLike {
                    members: members.map(|data| v1::P4Data { data: Some(data) }).to_vec(),
                })),
            }),
        })
    };
    let (written, asked) = (pair(&[1, 2], true), pair(&[0], false));
    world.update(Type::Modify, written.clone()).unwrap();
    assert_eq!(world.read(asked), [written]);
}

#[test]
fn counters_meters_and_value_sets() {
    let mut world = World::new();
    let counter = |world: &World, index: i64, packets| {
        Entity::CounterEntry(v1::CounterEntry {
            counter_id: world.id("per_port"),
            index: Some(v1::Index { index }),
            data: Some(v1::CounterData {
                byte_count: packets * 100,
                packet_count: packets,
            }),
        })
    };
    let written = counter(&world, 2, 7);
    world.update(Type::Modify, written.clone()).unwrap();
    assert_eq!(world.read(written.clone()), [written]);
    let past = counter(&world, 8, 1);
    assert_eq!(world.code(Type::Modify, past), Code::OutOfRange);
    let meter = Entity::MeterEntry(v1::MeterEntry {
        meter_id: world.id("limits"),
        index: Some(v1::Index { index: 3 }),
        config: Some(v1::MeterConfig {
            cir: 1,
            cburst: 2,
            pir: 3,
            pburst: 4,
            eburst: 0,
        }),
        counter_data: Some(v1::MeterCounterData {
            green: Some(v1::CounterData {
                byte_count: 100,
                packet_count: 1,
            }),
            yellow: Some(v1::CounterData::default()),
            red: Some(v1::CounterData {
                byte_count: 700,
                packet_count: 7,
            }),
        }),
    });
    world.update(Type::Modify, meter.clone()).unwrap();
    assert_eq!(world.read(meter.clone()), [meter]);
    let set = |world: &World, members: &[u8]| {
        Entity::ValueSetEntry(v1::ValueSetEntry {
            value_set_id: world.id("ip_types"),
            members: members
                .iter()
                .map(|member| v1::ValueSetMember {
                    r#match: vec![exact(1, &[*member])],
                })
                .collect(),
        })
    };
    let written = set(&world, &[1, 2]);
    world.update(Type::Modify, written.clone()).unwrap();
    assert_eq!(world.read(set(&world, &[])), std::slice::from_ref(&written));
    let five = set(&world, &[1, 2, 3, 4, 5]);
    assert_eq!(world.code(Type::Modify, five), Code::ResourceExhausted);
    let twice = set(&world, &[1, 1]);
    assert_eq!(world.code(Type::Modify, twice), Code::AlreadyExists);
    assert_eq!(world.code(Type::Insert, written), Code::InvalidArgument);
}

#[test]
fn direct_resources_belong_to_entries() {
    let mut world = World::new();
    let route = v1::TableEntry {
        table_id: world.id("routes"),
        r#match: vec![field(
            1,
            Match::Lpm(by::Lpm {
                value: vec![10, 0, 0, 0],
                prefix_len: 8,
            }),
        )],
        action: Some(world.action("send", &[&[1]])),
        counter_data: Some(v1::CounterData {
            byte_count: 10,
            packet_count: 1,
        }),
        ..v1::TableEntry::default()
    };
    let written = Entity::TableEntry(route.clone());
    world.update(Type::Insert, written.clone()).unwrap();
    assert_eq!(world.read(written), [Entity::TableEntry(route.clone())]);
    let key = v1::TableEntry {
        action: None,
        counter_data: None,
        ..route.clone()
    };
    let counter = |packets| {
        Entity::DirectCounterEntry(v1::DirectCounterEntry {
            table_entry: Some(key.clone()),
            data: Some(v1::CounterData {
                byte_count: packets,
                packet_count: packets,
            }),
        })
    };
    world.update(Type::Modify, counter(8)).unwrap();
    assert_eq!(world.read(counter(0)), [counter(8)]);
    let metered = Entity::TableEntry(v1::TableEntry {
        meter_config: Some(v1::MeterConfig::default()),
        ..route
    });
    assert_eq!(world.code(Type::Modify, metered), Code::InvalidArgument);
}

#[test]
fn multicast_groups_and_clone_sessions() {
    let mut world = World::new();
    let entity = |kind| {
        Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry {
            r#type: Some(kind),
        })
    };
    let replica = |port: u8, instance| v1::Replica {
        port_kind: Some(v1::replica::PortKind::Port(vec![port])),
        instance,
        backup_replicas: Vec::new(),
    };
    let group = |id| v1::MulticastGroupEntry {
        multicast_group_id: id,
        replicas: vec![replica(1, 1), replica(1, 2)],
        metadata: b"m".to_vec(),
    };
    let all = entity(replication::Type::MulticastGroupEntry(
        v1::MulticastGroupEntry::default(),
    ));
    let written = entity(replication::Type::MulticastGroupEntry(group(3)));
    keeps(&mut world, written, all);
    let zero = entity(replication::Type::MulticastGroupEntry(group(0)));
    assert_eq!(world.code(Type::Insert, zero), Code::InvalidArgument);
    let session = v1::CloneSessionEntry {
        session_id: 5,
        replicas: vec![replica(1, 0), replica(2, 9)],
        class_of_service: 2,
        packet_length_bytes: 64,
        hold_us: 5_000,
    };
    let all = entity(replication::Type::CloneSessionEntry(
        v1::CloneSessionEntry::default(),
    ));
    let written = entity(replication::Type::CloneSessionEntry(session));
    keeps(&mut world, written, all);
}

#[test]
fn batches_are_whole_or_not_at_all() {
    let mut world = World::new();
    let insert = |entry| update(Type::Insert, Entity::TableEntry(entry));
    let good = [1, 2, 3].map(|address| world.l2(address, 1));
    let twice = world.l2(2, 2);
    let updates: Vec<_> = good.iter().cloned().chain([twice]).map(insert).collect();
    let everything = Entity::TableEntry(v1::TableEntry::default());
    let start = world.read(everything.clone());
    use v1::write_request::Atomicity::{ContinueOnError, DataplaneAtomic, RollbackOnError};
    for atomicity in [RollbackOnError, DataplaneAtomic] {
        let request = v1::WriteRequest {
            atomicity: atomicity.into(),
            ..world.request(updates.clone())
        };
        let Err(WriteRefusal::Updates(outcomes)) = world.send(request) else {
            panic!("a batch with a duplicate was taken");
        };
        let codes = outcomes.iter().map(|it| it.as_ref().unwrap_err().code);
        assert_eq!(
            codes.collect::<Vec<_>>(),
            [
                Code::Aborted,
                Code::Aborted,
                Code::Aborted,
                Code::AlreadyExists
            ]
        );
        assert_eq!(world.read(everything.clone()), start);
    }
    let request = v1::WriteRequest {
        atomicity: ContinueOnError.into(),
        ..world.request(updates)
    };
    let Err(WriteRefusal::Updates(outcomes)) = world.send(request) else {
        panic!("a batch with a duplicate was taken");
    };
    assert_eq!(outcomes.iter().filter(|it| it.is_ok()).count(), 3);
    assert_eq!(world.read(everything).len(), start.len() + 3);
}

#[test]
fn what_a_batch_changed_of_every_kind_is_put_back() {
    let mut world = World::new();
    let hops = world.id("hops");
    let member = Entity::ActionProfileMember(v1::ActionProfileMember {
        action_profile_id: hops,
        member_id: 1,
        action: Some(world.plain("via", &[&[1], &[1]])),
    });
    world.update(Type::Insert, member.clone()).unwrap();
    let entry = v1::TableEntry {
        metadata: b"kept".to_vec(),
        ..world.l2(1, 1)
    };
    world
        .update(Type::Insert, Entity::TableEntry(entry.clone()))
        .unwrap();
    let register = Entity::RegisterEntry(v1::RegisterEntry {
        register_id: world.id("totals"),
        index: None,
        data: Some(v1::P4Data {
            data: Some(Data::Bitstring(vec![1])),
        }),
    });
    let digest = Entity::DigestEntry(v1::DigestEntry {
        digest_id: world.id("seen_t"),
        config: Some(v1::digest_entry::Config::default()),
    });
    let wrong = Entity::TableEntry(v1::TableEntry::default());
    let updates = vec![
        update(Type::Delete, member),
        update(Type::Delete, Entity::TableEntry(entry)),
        update(Type::Modify, register),
        update(Type::Insert, digest),
        update(Type::Insert, wrong),
    ];
    let everything = [
        Entity::TableEntry(v1::TableEntry::default()),
        Entity::ActionProfileMember(v1::ActionProfileMember::default()),
        Entity::RegisterEntry(v1::RegisterEntry::default()),
        Entity::DigestEntry(v1::DigestEntry::default()),
    ];
    let before = everything.clone().map(|entity| world.read(entity));
    let request = v1::WriteRequest {
        atomicity: v1::write_request::Atomicity::RollbackOnError.into(),
        ..world.request(updates)
    };
    world.send(request).unwrap_err();
    assert_eq!(everything.map(|entity| world.read(entity)), before);
}

#[test]
fn pipelines_are_set_and_read() {
    let mut world = World::new();
    let inserted = Entity::TableEntry(v1::TableEntry {
        r#match: vec![exact(1, &[1])],
        action: Some(world.action("send", &[&[1]])),
        ..world.l2(1, 1)
    });
    world.update(Type::Insert, inserted.clone()).unwrap();
    let request = |world: &World, action: PipelineAction, source: &str| {
        v1::SetForwardingPipelineConfigRequest {
            device_id: 1,
            election_id: Some(v1::Uint128 { high: 0, low: 1 }),
            action: action.into(),
            config: Some(v1::ForwardingPipelineConfig {
                p4info: Some(world.info.clone()),
                p4_device_config: source.as_bytes().to_vec(),
                cookie: Some(v1::forwarding_pipeline_config::Cookie { cookie: 42 }),
            }),
            ..v1::SetForwardingPipelineConfigRequest::default()
        }
    };
    let set = |world: &mut World, request, prepared| {
        world.core.set_pipeline(request, prepared);
        let outcomes = world.settle();
        match outcomes.into_iter().next() {
            Some(Outcome::PipelineSet(_, result)) => result.map_err(|refusal| refusal.code),
            other => panic!("{other:?}"),
        }
    };
    let all = Entity::TableEntry(v1::TableEntry {
        table_id: world.id("l2"),
        ..v1::TableEntry::default()
    });
    let commit = request(&world, PipelineAction::Commit, "");
    assert_eq!(set(&mut world, commit.clone(), None), Err(Code::NotFound));
    let verify = request(&world, PipelineAction::Verify, SOURCE);
    let prepared = support::prepare(SOURCE);
    assert_eq!(set(&mut world, verify, Some(prepared.clone())), Ok(()));
    assert_eq!(world.read(all.clone()), std::slice::from_ref(&inserted));
    let reconcile = request(&world, PipelineAction::ReconcileAndCommit, SOURCE);
    assert_eq!(set(&mut world, reconcile, Some(prepared.clone())), Ok(()));
    assert_eq!(world.read(all.clone()), [inserted], "what fits is kept");
    let save = request(&world, PipelineAction::VerifyAndSave, SOURCE);
    assert_eq!(set(&mut world, save, Some(prepared)), Ok(()));
    assert_eq!(set(&mut world, commit, None), Ok(()));
    assert_eq!(world.read(all), [], "a commit starts anew");
    world
        .core
        .get_pipeline(v1::GetForwardingPipelineConfigRequest {
            device_id: 1,
            ..v1::GetForwardingPipelineConfigRequest::default()
        });
    let Some(Outcome::PipelineRead(_, Ok(config))) = world.settle().pop() else {
        panic!("no pipeline");
    };
    assert_eq!(config.p4info.as_ref(), Some(&world.info));
    assert_eq!(config.p4_device_config, SOURCE.as_bytes());
    assert_eq!(config.cookie.map(|it| it.cookie), Some(42));
    let mut other = world.info.clone();
    other.tables[0].match_fields.clear();
    let mut wrong = request(&world, PipelineAction::VerifyAndCommit, "");
    wrong.config.as_mut().unwrap().p4info = Some(other);
    assert_eq!(set(&mut world, wrong, None), Err(Code::InvalidArgument));
}

fn frame(destination: u8, source: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[5] = destination;
    frame[11] = source;
    frame[12] = 0x12;
    frame
}

fn packet_out(port: u16, learn: u8, payload: Vec<u8>) -> v1::stream_message_request::Update {
    let metadata = |metadata_id, value: &[u8]| v1::PacketMetadata {
        metadata_id,
        value: value.to_vec(),
    };
    v1::stream_message_request::Update::Packet(v1::PacketOut {
        payload,
        metadata: vec![
            metadata(1, &port.to_be_bytes()),
            metadata(2, &[learn]),
            metadata(3, &[0]),
        ],
    })
}

#[test]
fn packets_pass_the_cpu_port_both_ways() {
    use v1::stream_message_response::Update as Told;
    let mut world = World::new();
    let to_controller = v1::TableEntry {
        action: Some(world.action("send_to_controller", &[])),
        ..world.l2(9, 0)
    };
    world
        .update(Type::Insert, Entity::TableEntry(to_controller))
        .unwrap();
    world.frame(2, &frame(9, 1));
    world.settle();
    let (stream, message) = world.told.pop().unwrap();
    assert_eq!(stream, world.primary);
    let Some(Told::Packet(packet)) = message.update else {
        panic!("{message:?}");
    };
    assert_eq!(packet.payload, frame(9, 1));
    assert_eq!(packet.metadata[0].value, [2], "the ingress port");
    let primary = world.primary;
    let before = world.sent(3);
    world.say(primary, packet_out(3, 0, frame(1, 1)));
    assert_eq!(world.sent(3), before + 1);
    let wrong = v1::stream_message_request::Update::Packet(v1::PacketOut::default());
    world.say(primary, wrong);
    let (_, message) = world.told.pop().unwrap();
    let Some(Told::Error(error)) = message.update else {
        panic!("{message:?}");
    };
    assert_eq!(error.canonical_code, Code::InvalidArgument as i32);
    assert!(world.switch.port_counters(CPU_PORT).is_some());
}

#[test]
fn frames_that_a_port_cannot_send_are_errors_of_the_stream() {
    use v1::stream_message_response::Update as Told;
    let mut world = World::new();
    world.on_all(|switch| switch.set_link_up(2, false).unwrap());
    world.on_all(|switch| switch.set_longest_frame(3, 100).unwrap());
    let primary = world.primary;
    let long = vec![0; 101];
    for (port, payload, code) in [
        (77, frame(1, 1), Code::InvalidArgument),
        (2, frame(1, 1), Code::Unavailable),
        (3, long.clone(), Code::InvalidArgument),
        (1, vec![0; 70_000], Code::InvalidArgument),
        (1, vec![0; 3], Code::InvalidArgument),
    ] {
        let message = packet_out(port, 0, payload);
        world.say(primary, message.clone());
        let (stream, told) = world.told.pop().expect("an error");
        let Some(Told::Error(error)) = told.update else {
            panic!("{told:?}");
        };
        let v1::stream_message_request::Update::Packet(packet) = message else {
            panic!("{message:?}");
        };
        let details = v1::stream_error::Details::PacketOut(v1::PacketOutError {
            packet_out: Some(packet),
        });
        assert_eq!(
            (stream, error.canonical_code),
            (primary, code as i32),
            "{port}"
        );
        assert_eq!(error.details, Some(details));
        assert!(!error.message.is_empty());
    }
    world.say(primary, packet_out(3, 0, long[..100].to_vec()));
    world.say(primary, packet_out(511, 0, frame(1, 1)));
    assert_eq!(world.told, [], "the program may drop a frame");
}

#[test]
fn digests_come_in_lists_and_are_acknowledged() {
    use v1::stream_message_response::Update as Told;
    let mut world = World::new();
    let digest = |world: &World| {
        Entity::DigestEntry(v1::DigestEntry {
            digest_id: world.id("seen_t"),
            config: Some(v1::digest_entry::Config {
                max_timeout_ns: 10_000_000,
                max_list_size: 2,
                ack_timeout_ns: 1_000_000_000,
            }),
        })
    };
    let primary = world.primary;
    world.say(primary, packet_out(1, 1, frame(1, 1)));
    assert!(world.told.is_empty(), "a digest that is not enabled");
    let written = digest(&world);
    keeps(
        &mut world,
        written.clone(),
        Entity::DigestEntry(v1::DigestEntry::default()),
    );
    world.update(Type::Insert, written).unwrap();
    let list = |world: &mut World| {
        let (_, message) = world.told.pop()?;
        match message.update {
            Some(Told::Digest(list)) => Some(list),
            other => panic!("{other:?}"),
        }
    };
    world.say(primary, packet_out(1, 1, frame(1, 1)));
    assert_eq!(list(&mut world), None, "the list is not full");
    world.say(primary, packet_out(1, 1, frame(1, 1)));
    world.say(primary, packet_out(1, 1, frame(1, 2)));
    let first = list(&mut world).unwrap();
    assert_eq!(first.data.len(), 2, "no message twice");
    world.say(primary, packet_out(1, 1, frame(1, 3)));
    world.now += 10_000;
    world.settle();
    assert_eq!(list(&mut world).unwrap().data.len(), 1, "after its time");
    world.say(primary, packet_out(1, 1, frame(1, 1)));
    world.now += 10_000;
    world.settle();
    assert_eq!(list(&mut world), None, "not acknowledged yet");
    let ack = v1::stream_message_request::Update::DigestAck(v1::DigestListAck {
        digest_id: first.digest_id,
        list_id: first.list_id,
    });
    world.say(primary, ack.clone());
    world.say(primary, packet_out(1, 1, frame(1, 1)));
    world.now += 10_000;
    world.settle();
    assert_eq!(list(&mut world).unwrap().data.len(), 1);
    world.say(primary, ack);
    let (_, message) = world.told.pop().unwrap();
    assert!(matches!(message.update, Some(Told::Error(_))), "twice");
}

#[test]
fn idle_entries_are_reported() {
    use v1::stream_message_response::Update as Told;
    let mut world = World::new();
    let entry = v1::TableEntry {
        idle_timeout_ns: 500_000_000,
        metadata: b"mine".to_vec(),
        ..world.l2(1, 1)
    };
    world
        .update(Type::Insert, Entity::TableEntry(entry.clone()))
        .unwrap();
    for _ in 0..3 {
        world.now += 1_000_000;
        world.switch.handle_timeout(world.now);
        world.settle();
    }
    let (_, message) = world.told.remove(0);
    let Some(Told::IdleTimeoutNotification(notice)) = message.update else {
        panic!("{message:?}");
    };
    assert_eq!(notice.table_entry[0].metadata, b"mine");
    assert_eq!(notice.table_entry[0].idle_timeout_ns, entry.idle_timeout_ns);
}

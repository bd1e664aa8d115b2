//! P4Info that another compiler made: its ids are used, and what does not fit is refused.

use crate::support::{SOURCE, World, exact, prepare};
use stateplane_rpc::proto::config::P4Info;
use stateplane_rpc::proto::v1::{self, entity::Entity, update::Type};
use stateplane_rpc::{Outcome, PipelineAction};
use tonic::Code;

/// Sets the pipeline of the world's program with this P4Info.
fn set(world: &mut World, action: PipelineAction, info: P4Info) -> Result<(), Code> {
    let request = v1::SetForwardingPipelineConfigRequest {
        device_id: 1,
        election_id: Some(v1::Uint128 { high: 0, low: 1 }),
        action: action.into(),
        config: Some(v1::ForwardingPipelineConfig {
            p4info: Some(info),
            p4_device_config: SOURCE.as_bytes().to_vec(),
            cookie: None,
        }),
        ..v1::SetForwardingPipelineConfigRequest::default()
    };
    let ticket = world.core.set_pipeline(request, Some(prepare(SOURCE)));
    for outcome in world.settle() {
        if let Outcome::PipelineSet(of, result) = outcome
            && of == ticket
        {
            return result.map_err(|refusal| refusal.code);
        }
    }
    panic!("no answer");
}

/// The P4Info with other ids, orders and names than here, the aliases as they are.
fn foreign(info: &P4Info) -> P4Info {
    let mut info = info.clone();
    let other = |id: u32| if id == 0 { 0 } else { id ^ 0x5555 };
    for action in &mut info.actions {
        let preamble = action.preamble.as_mut().unwrap();
        preamble.id = other(preamble.id);
        preamble.name = format!("older.{}", preamble.name);
        action.params.iter_mut().for_each(|param| param.id += 10);
        action.params.reverse();
    }
    for table in &mut info.tables {
        let preamble = table.preamble.as_mut().unwrap();
        preamble.id = other(preamble.id);
        table
            .match_fields
            .iter_mut()
            .for_each(|field| field.id += 20);
        table.match_fields.reverse();
        table
            .action_refs
            .iter_mut()
            .for_each(|it| it.id = other(it.id));
        table
            .direct_resource_ids
            .iter_mut()
            .for_each(|id| *id = other(*id));
        table.const_default_action_id = other(table.const_default_action_id);
        table.implementation_id = other(table.implementation_id);
    }
    for profile in &mut info.action_profiles {
        let preamble = profile.preamble.as_mut().unwrap();
        preamble.id = other(preamble.id);
    }
    for counter in &mut info.direct_counters {
        let preamble = counter.preamble.as_mut().unwrap();
        preamble.id = other(preamble.id);
        counter.direct_table_id = other(counter.direct_table_id);
    }
    for meter in &mut info.direct_meters {
        let preamble = meter.preamble.as_mut().unwrap();
        preamble.id = other(preamble.id);
        meter.direct_table_id = other(meter.direct_table_id);
    }
    for register in &mut info.registers {
        let preamble = register.preamble.as_mut().unwrap();
        preamble.id = other(preamble.id);
    }
    for header in &mut info.controller_packet_metadata {
        header.metadata.iter_mut().for_each(|field| field.id += 30);
    }
    info
}

#[test]
fn ids_of_another_compiler_are_those_of_the_wire() {
    let mut world = World::new();
    let info = foreign(&world.info);
    set(&mut world, PipelineAction::VerifyAndCommit, info.clone()).unwrap();
    world.info = info.clone();
    let send = |world: &World, port: u8| v1::TableAction {
        r#type: Some(v1::table_action::Type::Action(v1::Action {
            action_id: world.id("send"),
            params: vec![v1::action::Param {
                param_id: 11,
                value: vec![port],
            }],
        })),
    };
    let entry = v1::TableEntry {
        table_id: world.id("l2"),
        r#match: vec![exact(21, &[1])],
        action: Some(send(&world, 3)),
        ..v1::TableEntry::default()
    };
    let entry = Entity::TableEntry(entry);
    world.update(Type::Insert, entry.clone()).unwrap();
    let all = Entity::TableEntry(v1::TableEntry {
        table_id: world.id("l2"),
        ..v1::TableEntry::default()
    });
    assert_eq!(world.read(all), [entry]);
    let member = v1::ActionProfileMember {
        action_profile_id: world.id("hops"),
        member_id: 1,
        action: Some(v1::Action {
            action_id: world.id("via"),
            params: [(11, 2), (12, 0xee)]
                .map(|(param_id, value)| v1::action::Param {
                    param_id,
                    value: vec![value],
                })
                .to_vec(),
        }),
    };
    let member = Entity::ActionProfileMember(member);
    world.update(Type::Insert, member.clone()).unwrap();
    assert_eq!(world.read(member.clone()), [member]);
    let register = Entity::RegisterEntry(v1::RegisterEntry {
        register_id: world.id("totals"),
        index: Some(v1::Index { index: 0 }),
        data: None,
    });
    assert_eq!(world.read(register).len(), 1);
    let metadata = |metadata_id, value: &[u8]| v1::PacketMetadata {
        metadata_id,
        value: value.to_vec(),
    };
    let packet = v1::PacketOut {
        payload: vec![0; 60],
        metadata: vec![metadata(31, &[2]), metadata(32, &[0]), metadata(33, &[0])],
    };
    let primary = world.primary;
    let before = world.sent(2);
    let packet = v1::stream_message_request::Update::Packet(packet);
    world.say(primary, packet);
    assert_eq!(world.told, []);
    assert_eq!(world.sent(2), before + 1);
    world
        .core
        .get_pipeline(v1::GetForwardingPipelineConfigRequest {
            device_id: 1,
            ..v1::GetForwardingPipelineConfigRequest::default()
        });
    let Some(Outcome::PipelineRead(_, Ok(config))) = world.settle().pop() else {
        panic!("no pipeline");
    };
    assert_eq!(config.p4info, Some(info), "as it was given");
}

#[test]
fn state_is_not_kept_under_other_ids() {
    let mut world = World::new();
    let info = foreign(&world.info);
    let outcome = set(&mut world, PipelineAction::ReconcileAndCommit, info.clone());
    assert_eq!(outcome, Err(Code::FailedPrecondition));
    set(&mut world, PipelineAction::VerifyAndCommit, info.clone()).unwrap();
    set(&mut world, PipelineAction::ReconcileAndCommit, info).unwrap();
}

#[test]
fn a_p4info_that_does_not_fit_is_refused_when_it_is_verified() {
    let good = World::new().info;
    let mut wrong: Vec<(&str, P4Info)> = vec![("nothing", P4Info::default())];
    let mut damage = |what, change: fn(&mut P4Info)| {
        let mut info = good.clone();
        change(&mut info);
        wrong.push((what, info));
    };
    damage("a table less", |info| drop(info.tables.pop()));
    damage("a register less", |info| info.registers.clear());
    damage("a table more", |info| {
        let mut more = info.tables[0].clone();
        more.preamble.as_mut().unwrap().name = "other".to_owned();
        more.preamble.as_mut().unwrap().alias = "other".to_owned();
        info.tables.push(more);
    });
    damage("a table twice", |info| {
        info.tables.push(info.tables[0].clone())
    });
    damage("one id twice", |info| {
        let id = info.tables[0].preamble.as_ref().unwrap().id;
        info.tables[1].preamble.as_mut().unwrap().id = id;
    });
    damage("a larger table", |info| info.tables[0].size += 1);
    damage("no direct counter", |info| {
        info.tables
            .iter_mut()
            .for_each(|table| table.direct_resource_ids.clear());
    });
    damage("another kind of match", |info| {
        info.tables[0].match_fields[0].r#match =
            Some(stateplane_rpc::proto::config::match_field::Match::MatchType(4));
    });
    damage("another parameter", |info| {
        let action = info.actions.iter_mut().find(|it| !it.params.is_empty());
        action.unwrap().params[0].name = "other".to_owned();
    });
    damage("a wider parameter", |info| {
        let action = info.actions.iter_mut().find(|it| !it.params.is_empty());
        action.unwrap().params[0].bitwidth += 1;
    });
    damage("an action less", |info| {
        drop(info.tables[0].action_refs.pop())
    });
    damage("ages", |info| {
        let table = info
            .tables
            .iter_mut()
            .find(|it| it.idle_timeout_behavior == 0);
        table.unwrap().idle_timeout_behavior = 1;
    });
    damage("another unit", |info| {
        info.counters[0].spec.as_mut().unwrap().unit = 1;
    });
    damage("another field of a header", |info| {
        info.controller_packet_metadata[0].metadata[0].bitwidth = 8;
    });
    let mut world = World::new();
    assert_eq!(set(&mut world, PipelineAction::Verify, good), Ok(()));
    for (what, info) in wrong {
        let outcome = set(&mut world, PipelineAction::Verify, info);
        assert_eq!(outcome, Err(Code::InvalidArgument), "{what}");
    }
}

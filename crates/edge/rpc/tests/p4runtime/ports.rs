//! Reactions to the state of ports: members of groups and of one-shot sets that watch one, and
//! replicas with backups.

use crate::support::{World, exact};
use stateplane_rpc::proto::v1::{
    self, entity::Entity, packet_replication_engine_entry as replication, replica, table_action,
    update::Type,
};
use stateplane_runtime::{Engine, Runs};
use tonic::Code;

/// Sets a link up or down and lets the core see it.
fn link(world: &mut World, port: u16, up: bool) {
    world.on_all(|switch| switch.set_link_up(port, up).unwrap());
    world.settle();
}

/// Numbers of the members of group 7 that packets may get.
fn live_members(world: &World) -> Vec<u32> {
    let profiles = world.switch.engine().state().profiles();
    let group = profiles[0].groups().remove(&7).unwrap();
    group.members.iter().map(|(member, _)| *member).collect()
}

#[test]
fn members_whose_port_is_down_are_left_out() {
    use v1::action_profile_group::{Member, member::WatchKind};
    let mut world = World::new();
    link(&mut world, 2, false);
    let hops = world.id("hops");
    for id in [1, 2, 3] {
        let member = Entity::ActionProfileMember(v1::ActionProfileMember {
            action_profile_id: hops,
            member_id: id,
            action: Some(world.plain("via", &[&[id as u8], &[0xee]])),
        });
        world.update(Type::Insert, member).unwrap();
    }
    #[expect(deprecated, reason = "clients of P4Runtime 1.1 use it")]
    let watches = [
        Some(WatchKind::WatchPort(vec![0, 1])),
        Some(WatchKind::Watch(2)),
        None,
    ];
    let members = (1..).zip(watches).map(|(member_id, watch_kind)| Member {
        member_id,
        weight: 1,
        watch_kind,
    });
    let group = Entity::ActionProfileGroup(v1::ActionProfileGroup {
        action_profile_id: hops,
        group_id: 7,
        members: members.collect(),
        max_size: 8,
    });
    world.update(Type::Insert, group.clone()).unwrap();
    assert_eq!(live_members(&world), [1, 3]);
    link(&mut world, 2, true);
    assert_eq!(live_members(&world), [1, 2, 3]);
    link(&mut world, 1, false);
    assert_eq!(live_members(&world), [2, 3]);
    assert_eq!(world.read(group.clone()), [group], "as it was written");
}

#[test]
fn one_shot_actions_whose_port_is_down_are_left_out() {
    use v1::action_profile_action::WatchKind;
    let mut world = World::new();
    let actions = [1u8, 2].map(|port| v1::ActionProfileAction {
        action: Some(world.plain("via", &[&[port], &[0xee]])),
        weight: 1,
        watch_kind: Some(WatchKind::WatchPort(vec![port])),
    });
    let set = v1::ActionProfileActionSet {
        action_profile_actions: actions.to_vec(),
        ..v1::ActionProfileActionSet::default()
    };
    let balanced = world.id("balanced");
    let entry = Entity::TableEntry(v1::TableEntry {
        table_id: balanced,
        r#match: vec![exact(1, &[8, 0])],
        action: Some(v1::TableAction {
            r#type: Some(table_action::Type::ActionProfileActionSet(set)),
        }),
        ..v1::TableEntry::default()
    });
    world.update(Type::Insert, entry.clone()).unwrap();
    let live = |world: &World| {
        let state = world.switch.engine().state();
        let mut tables = state.tables().iter();
        let table = tables.find(|table| table.name().ends_with("balanced"));
        match &table.unwrap().entries()[0].runs {
            Some(Runs::Set(actions)) => actions.len(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(live(&world), 2);
    link(&mut world, 2, false);
    assert_eq!(live(&world), 1);
    assert_eq!(world.read(entry.clone()), [entry], "as it was written");
    link(&mut world, 2, true);
    assert_eq!(live(&world), 2);
}

fn multicast(replicas: Vec<v1::Replica>) -> Entity {
    let group = v1::MulticastGroupEntry {
        multicast_group_id: 3,
        replicas,
        metadata: Vec::new(),
    };
    Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry {
        r#type: Some(replication::Type::MulticastGroupEntry(group)),
    })
}

fn replicated(port: u8, instance: u32, backups: &[(u8, u32)]) -> v1::Replica {
    let backups = backups.iter().map(|(port, instance)| v1::BackupReplica {
        port: vec![*port],
        instance: *instance,
    });
    v1::Replica {
        port_kind: Some(replica::PortKind::Port(vec![port])),
        instance,
        backup_replicas: backups.collect(),
    }
}

#[test]
fn replicas_go_to_the_first_port_that_is_up() {
    let mut world = World::new();
    let written = multicast(vec![
        replicated(1, 1, &[(2, 5), (3, 6)]),
        replicated(0, 9, &[]),
    ]);
    world.update(Type::Insert, written.clone()).unwrap();
    let copies = |world: &World| {
        let group = world.switch.multicast_group(3).unwrap();
        group.iter().map(|it| (it.port, it.rid)).collect::<Vec<_>>()
    };
    assert_eq!(copies(&world), [(1, 1), (0, 9)]);
    link(&mut world, 1, false);
    assert_eq!(copies(&world), [(2, 5), (0, 9)]);
    link(&mut world, 2, false);
    assert_eq!(copies(&world), [(3, 6), (0, 9)]);
    link(&mut world, 3, false);
    assert_eq!(copies(&world), [(1, 1), (0, 9)], "it is dropped there");
    link(&mut world, 1, true);
    assert_eq!(copies(&world), [(1, 1), (0, 9)]);
    assert_eq!(world.read(written.clone()), [written], "as it was written");
}

#[test]
fn a_replica_without_port_is_one_to_port_0() {
    let mut world = World::new();
    // As a client older than 1.4 sends `egress_port: 0, instance: 4`.
    let old = v1::Replica {
        port_kind: None,
        instance: 4,
        backup_replicas: Vec::new(),
    };
    let written = multicast(vec![old, replicated(1, 1, &[])]);
    world.update(Type::Insert, written.clone()).unwrap();
    let group = world.switch.multicast_group(3).unwrap();
    assert_eq!((group[0].port, group[0].rid), (0, 4));
    assert_eq!(world.read(written.clone()), [written], "as it was written");
}

#[test]
fn wrong_backups_are_refused() {
    let mut world = World::new();
    for replicas in [
        vec![replicated(1, 1, &[(1, 2)])],
        vec![replicated(1, 1, &[(2, 1), (2, 2)])],
        vec![replicated(1, 1, &[(2, 1)]), replicated(2, 1, &[])],
        vec![replicated(1, 1, &[]), replicated(1, 1, &[])],
        vec![replicated(1, 70_000, &[])],
    ] {
        let code = world.code(Type::Insert, multicast(replicas.clone()));
        assert_eq!(code, Code::InvalidArgument, "{replicas:?}");
    }
}

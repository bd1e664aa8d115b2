//! Wrong requests, each with the code that the specification gives it.

use crate::support::{World, exact, field, update};
use stateplane_rpc::proto::v1::{
    self, entity::Entity, field_match as by, field_match::FieldMatchType as Match, update::Type,
};
use stateplane_rpc::{Outcome, WriteRefusal};
use tonic::Code;

#[test]
fn entries_that_are_wrong() {
    let mut world = World::new();
    let good = world.l2(1, 1);
    let table = |entry| Entity::TableEntry(entry);
    let code = |world: &mut World, entry| world.code(Type::Insert, table(entry));
    let unknown = v1::TableEntry {
        table_id: 0x0200_0001,
        ..good.clone()
    };
    assert_eq!(code(&mut world, unknown), Code::NotFound);
    let no_key = v1::TableEntry {
        r#match: Vec::new(),
        ..good.clone()
    };
    assert_eq!(code(&mut world, no_key), Code::InvalidArgument);
    let twice = v1::TableEntry {
        r#match: vec![exact(1, &[1]), exact(1, &[2])],
        ..good.clone()
    };
    assert_eq!(code(&mut world, twice), Code::InvalidArgument);
    let other_field = v1::TableEntry {
        r#match: vec![exact(9, &[1])],
        ..good.clone()
    };
    assert_eq!(code(&mut world, other_field), Code::InvalidArgument);
    let wide = v1::TableEntry {
        r#match: vec![exact(1, &[1, 0, 0, 0, 0, 0, 0])],
        ..good.clone()
    };
    assert_eq!(code(&mut world, wide), Code::OutOfRange);
    let empty = v1::TableEntry {
        r#match: vec![exact(1, &[])],
        ..good.clone()
    };
    assert_eq!(code(&mut world, empty), Code::InvalidArgument);
    let priority = v1::TableEntry {
        priority: 3,
        ..good.clone()
    };
    assert_eq!(code(&mut world, priority), Code::InvalidArgument);
    let no_action = v1::TableEntry {
        action: None,
        ..good.clone()
    };
    assert_eq!(code(&mut world, no_action), Code::InvalidArgument);
    for params in [vec![], vec![&[1u8][..], &[1]], vec![&[2, 0]]] {
        let expected = match params.len() {
            1 => Code::OutOfRange,
            _ => Code::InvalidArgument,
        };
        let wrong = v1::TableEntry {
            action: Some(world.action("send", &params)),
            ..good.clone()
        };
        assert_eq!(code(&mut world, wrong), expected, "{params:?}");
    }
    let not_listed = v1::TableEntry {
        action: Some(world.action("via", &[&[1], &[1]])),
        ..good.clone()
    };
    assert_eq!(code(&mut world, not_listed), Code::InvalidArgument);
    let member = v1::TableEntry {
        action: Some(v1::TableAction {
            r#type: Some(v1::table_action::Type::ActionProfileMemberId(1)),
        }),
        ..good.clone()
    };
    assert_eq!(code(&mut world, member), Code::InvalidArgument);
    let aging = v1::TableEntry {
        table_id: world.id("routes"),
        r#match: Vec::new(),
        idle_timeout_ns: 1,
        ..good.clone()
    };
    assert_eq!(code(&mut world, aging), Code::InvalidArgument);
    let constant = v1::TableEntry {
        is_const: true,
        ..good.clone()
    };
    let hit = v1::TableEntry {
        time_since_last_hit: Some(v1::table_entry::IdleTimeout::default()),
        ..good.clone()
    };
    for kind in [Type::Insert, Type::Modify] {
        for entry in [&constant, &hit] {
            let code = world.code(kind, table(entry.clone()));
            assert_eq!(code, Code::InvalidArgument, "{kind:?} {entry:?}");
        }
    }
    let missing = world.code(Type::Modify, table(good.clone()));
    assert_eq!(missing, Code::NotFound);
    assert_eq!(code(&mut world, good.clone()), Code::Ok);
    assert_eq!(
        world.code(Type::Delete, table(constant)),
        Code::InvalidArgument
    );
    let nonsense = v1::TableEntry {
        action: Some(world.action("via", &[])),
        metadata: vec![0; 5000],
        ..hit
    };
    let deleted = world.code(Type::Delete, table(nonsense));
    assert_eq!(deleted, Code::Ok, "its match alone counts");
    assert_eq!(code(&mut world, good), Code::Ok);
}

#[test]
fn matches_that_are_not_canonical() {
    let mut world = World::new();
    let lpm = |value: [u8; 4], prefix_len| {
        Match::Lpm(by::Lpm {
            value: value.to_vec(),
            prefix_len,
        })
    };
    let route = |world: &World, kind| {
        Entity::TableEntry(v1::TableEntry {
            table_id: world.id("routes"),
            r#match: vec![field(1, kind)],
            action: Some(world.action("drop", &[])),
            ..v1::TableEntry::default()
        })
    };
    for wrong in [
        lpm([10, 0, 0, 1], 8),
        lpm([0, 0, 0, 0], 0),
        lpm([1, 0, 0, 0], 33),
        lpm([1, 0, 0, 0], -1),
        Match::Exact(by::Exact { value: vec![1] }),
    ] {
        let entry = route(&world, wrong.clone());
        assert_eq!(
            world.code(Type::Insert, entry),
            Code::InvalidArgument,
            "{wrong:?}"
        );
    }
    let acl = |world: &World, kind, id, priority| {
        Entity::TableEntry(v1::TableEntry {
            table_id: world.id("acl"),
            r#match: vec![field(id, kind)],
            priority,
            action: Some(world.action("drop", &[])),
            ..v1::TableEntry::default()
        })
    };
    let ternary = |value: u8, mask: u8| {
        Match::Ternary(by::Ternary {
            value: vec![value],
            mask: vec![mask],
        })
    };
    let range = |low: u8, high: u8| {
        Match::Range(by::Range {
            low: vec![low],
            high: vec![high],
        })
    };
    for (kind, id, priority) in [
        (ternary(3, 1), 1, 1),
        (ternary(0, 0), 1, 1),
        (ternary(1, 1), 1, 0),
        (ternary(1, 1), 1, -1),
        (range(9, 3), 2, 1),
        (range(0, 255), 2, 1),
    ] {
        let entry = acl(&world, kind.clone(), id, priority);
        let code = world.code(Type::Insert, entry);
        assert_eq!(code, Code::InvalidArgument, "{kind:?} {priority}");
    }
    let good = acl(&world, ternary(1, 1), 1, 1);
    assert_eq!(world.code(Type::Insert, good), Code::Ok);
}

#[test]
fn a_full_table_says_so() {
    let mut world = World::new();
    let entry = |world: &World, address: u8| {
        Entity::TableEntry(v1::TableEntry {
            table_id: world.id("acl"),
            r#match: vec![field(
                3,
                Match::Optional(by::Optional {
                    value: vec![address],
                }),
            )],
            priority: 1,
            action: Some(world.action("drop", &[])),
            ..v1::TableEntry::default()
        })
    };
    for address in 0..4 {
        let entry = entry(&world, address);
        assert_eq!(world.code(Type::Insert, entry), Code::Ok);
    }
    let fifth = entry(&world, 4);
    assert_eq!(world.code(Type::Insert, fifth), Code::ResourceExhausted);
}

#[test]
fn updates_and_batches_that_are_wrong() {
    let mut world = World::new();
    let entry = Entity::TableEntry(world.l2(1, 1));
    assert_eq!(
        world.code(Type::Unspecified, entry.clone()),
        Code::InvalidArgument
    );
    let nothing = v1::Update {
        r#type: Type::Insert.into(),
        entity: None,
    };
    let outcome = world.write(vec![nothing]);
    let Err(WriteRefusal::Updates(outcomes)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(
        outcomes[0].as_ref().unwrap_err().code,
        Code::InvalidArgument
    );
    let whole = |outcome| match outcome {
        Err(WriteRefusal::Whole(refusal)) => refusal.code,
        other => panic!("{other:?}"),
    };
    let good = world.request(vec![update(Type::Insert, entry)]);
    let other_device = v1::WriteRequest {
        device_id: 2,
        ..good.clone()
    };
    assert_eq!(whole(world.send(other_device)), Code::NotFound);
    let not_primary = v1::WriteRequest {
        election_id: Some(v1::Uint128 { high: 1, low: 1 }),
        ..good.clone()
    };
    assert_eq!(whole(world.send(not_primary)), Code::PermissionDenied);
    let other_role = v1::WriteRequest {
        role: "r".to_owned(),
        ..good.clone()
    };
    assert_eq!(whole(world.send(other_role)), Code::PermissionDenied);
    let atomicity = v1::WriteRequest {
        atomicity: 9,
        ..good.clone()
    };
    assert_eq!(whole(world.send(atomicity)), Code::InvalidArgument);
    assert_eq!(world.send(good), Ok(()));
    let extern_entry = Entity::ExternEntry(v1::ExternEntry::default());
    assert_eq!(
        world.code(Type::Insert, extern_entry.clone()),
        Code::Unimplemented
    );
    assert_eq!(
        world.try_read(extern_entry).unwrap_err().code,
        Code::Unimplemented
    );
}

#[test]
fn failed_batches_carry_an_error_for_each_update() {
    use prost::Message;
    let mut world = World::new();
    let good = update(Type::Insert, Entity::TableEntry(world.l2(1, 1)));
    let refusal = world.write(vec![good.clone(), good]).unwrap_err();
    let status = tonic::Status::from(refusal);
    assert_eq!(status.code(), Code::Unknown);
    let details = stateplane_rpc::proto::rpc::Status::decode(status.details()).unwrap();
    assert_eq!(details.code, Code::Unknown as i32);
    let codes = details.details.iter().map(|any| {
        assert_eq!(any.type_url, "type.googleapis.com/p4.v1.Error");
        v1::Error::decode(&*any.value).unwrap().canonical_code
    });
    assert_eq!(codes.collect::<Vec<_>>(), [0, Code::AlreadyExists as i32]);
}

#[test]
fn too_many_requests_are_refused() {
    let mut world = World::new();
    let request = world.request(Vec::new());
    for _ in 0..2000 {
        world.core.write(request.clone());
    }
    let outcomes = world.settle();
    let refused = outcomes.iter().filter(|outcome| {
        matches!(outcome, Outcome::Written(_, Err(WriteRefusal::Whole(refusal)))
            if refusal.code == Code::ResourceExhausted)
    });
    assert_eq!(outcomes.len(), 2000);
    assert_eq!(refused.count(), 2000 - 1024);
}

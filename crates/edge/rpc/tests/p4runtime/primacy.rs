//! Controllers that fight for primacy.

use crate::support::{World, arbitration, update};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use stateplane_rpc::proto::v1::{self, entity::Entity, update::Type};
use stateplane_rpc::{Outcome, Refusal, WriteRefusal};
use tonic::Code;

const ENTRIES: u64 = 100;

/// One controller writes a mark into all entries.
fn batch(world: &World, kind: Type, mark: u16, election_id: u64) -> v1::WriteRequest {
    let entry = |address| Entity::TableEntry(world.l2(address, mark));
    v1::WriteRequest {
        device_id: 1,
        election_id: Some(v1::Uint128 {
            high: 0,
            low: election_id,
        }),
        updates: (1..=ENTRIES)
            .map(|address| update(kind, entry(address)))
            .collect(),
        ..v1::WriteRequest::default()
    }
}

/// The marks in a read: there is one if no batch was cut in two.
fn marks(entities: &[Entity]) -> Vec<Vec<u8>> {
    let mut marks: Vec<Vec<u8>> = entities
        .iter()
        .map(|entity| {
            let Entity::TableEntry(entry) = entity else {
                panic!("{entity:?}");
            };
            let action = entry.action.as_ref().and_then(|it| it.r#type.as_ref());
            let Some(v1::table_action::Type::Action(action)) = action else {
                panic!("{entry:?}");
            };
            action.params[0].value.clone()
        })
        .collect();
    marks.sort();
    marks.dedup();
    marks
}

#[test]
fn a_thousand_fights_leave_no_entry_half_written() {
    let mut world = World::new();
    let request = batch(&world, Type::Insert, 1, 1);
    world.send(request).unwrap();
    let rivals = [world.primary, world.core.open_stream()];
    let mut random = SmallRng::seed_from_u64(5);
    let all = v1::TableEntry {
        table_id: world.id("l2"),
        ..v1::TableEntry::default()
    };
    let (mut taken, mut denied) = (0, 0);
    let mut read = Vec::new();
    for fight in 2..1002u64 {
        let stream = rivals[fight as usize % 2];
        world.core.stream_message(
            stream,
            v1::StreamMessageRequest {
                update: Some(arbitration(fight)),
            },
        );
        // The old primary does not know yet.
        for id in [fight, fight - 1] {
            let mark = (id % 500) as u16;
            let request = batch(&world, Type::Modify, mark, id);
            world.core.write(request);
        }
        world.core.read(v1::ReadRequest {
            device_id: 1,
            entities: vec![v1::Entity {
                entity: Some(Entity::TableEntry(all.clone())),
            }],
            ..v1::ReadRequest::default()
        });
        for _ in 0..random.random_range(0..8) {
            world.work();
        }
        let mut check = |outcome: Outcome| match outcome {
            Outcome::Written(_, Ok(())) => taken += 1,
            Outcome::Written(
                _,
                Err(WriteRefusal::Whole(Refusal {
                    code: Code::PermissionDenied,
                    ..
                })),
            ) => denied += 1,
            Outcome::Written(_, Err(other)) => panic!("{other:?}"),
            Outcome::Read(_, response) => {
                read.extend(response.entities.into_iter().filter_map(|it| it.entity));
            }
            Outcome::ReadEnd(_, result) => {
                result.unwrap();
                assert_eq!(read.len() as u64, ENTRIES);
                assert_eq!(marks(&read).len(), 1, "a batch was seen in part");
                read.clear();
            }
            Outcome::Message(..) => {}
            other => panic!("{other:?}"),
        };
        while let Some(outcome) = world.core.poll() {
            check(outcome);
        }
        // The queue of requests is bounded: it is emptied from time to time.
        if fight % 50 == 0 || fight == 1001 {
            world.settle().into_iter().for_each(check);
        }
    }
    assert_eq!(taken, 1000, "each primary wrote once");
    assert_eq!(denied, 1000, "each that was beaten was refused");
    let end = world.read(Entity::TableEntry(all));
    assert_eq!(end.len() as u64, ENTRIES);
    assert_eq!(marks(&end), [vec![1]]);
}

//! The server over real connections: wrong requests with the codes that a client sees, and
//! what is no request at all.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::support;
use crate::support::server::{Running, l2};
use crate::support::{field, update};
use prost::Message;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use stateplane_rpc::proto::v1::{
    self, entity::Entity, field_match as by, field_match::FieldMatchType as Match, update::Type,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tonic::Code;

fn first(status: &tonic::Status) -> Code {
    let details = stateplane_rpc::proto::rpc::Status::decode(status.details()).unwrap();
    let errors = details.details.iter();
    let codes = errors.map(|any| v1::Error::decode(&*any.value).unwrap().canonical_code);
    codes
        .into_iter()
        .find(|code| *code != 0)
        .map_or(Code::Ok, Code::from_i32)
}

/// The code of the first update that failed, which a client finds in the details.
async fn written(running: &Running, kind: Type, entity: Entity) -> Code {
    let mut client = running.client().await;
    let request = running.request(1, vec![update(kind, entity)]);
    match client.write(request).await {
        Ok(_) => Code::Ok,
        Err(status) => {
            assert_eq!(status.code(), Code::Unknown, "{status}");
            first(&status)
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_updates_have_their_codes_in_the_details() {
    let running = Running::start();
    let _primary = running.primary(1).await;
    let good = l2(&running.info, 1, 1);
    let table = Entity::TableEntry;
    let with = |change: fn(&mut v1::TableEntry)| {
        let mut entry = good.clone();
        change(&mut entry);
        table(entry)
    };
    let insert = |entity| written(&running, Type::Insert, entity);
    let unknown = with(|entry| entry.table_id = 0x0200_0001);
    assert_eq!(insert(unknown).await, Code::NotFound);
    let unknown_action = with(|entry| {
        entry.action = Some(v1::TableAction {
            r#type: Some(v1::table_action::Type::Action(v1::Action {
                action_id: 0x0100_0001,
                params: Vec::new(),
            })),
        });
    });
    assert_eq!(insert(unknown_action).await, Code::InvalidArgument);
    let unknown_field = with(|entry| entry.r#match[0].field_id = 9);
    assert_eq!(insert(unknown_field).await, Code::InvalidArgument);
    let wide = with(|entry| entry.r#match = vec![support::exact(1, &[1; 7])]);
    assert_eq!(insert(wide).await, Code::OutOfRange);
    let huge = with(|entry| entry.r#match = vec![support::exact(1, &[1; 100_000])]);
    assert_eq!(insert(huge).await, Code::OutOfRange);
    assert_eq!(insert(table(good.clone())).await, Code::Ok);
    assert_eq!(insert(table(good.clone())).await, Code::AlreadyExists);
    let absent = table(l2(&running.info, 2, 1));
    assert_eq!(
        written(&running, Type::Delete, absent).await,
        Code::NotFound
    );
    let unspecified = written(&running, Type::Unspecified, table(good.clone())).await;
    assert_eq!(unspecified, Code::InvalidArgument);
    let acl = |ttl: u8, priority| {
        let value = vec![ttl];
        table(v1::TableEntry {
            table_id: support::id(&running.info, "acl"),
            r#match: vec![field(3, Match::Optional(by::Optional { value }))],
            priority,
            action: Some(support::action(&running.info, "drop", &[])),
            ..v1::TableEntry::default()
        })
    };
    assert_eq!(
        insert(acl(1, 0)).await,
        Code::InvalidArgument,
        "no priority"
    );
    for ttl in 0..4 {
        assert_eq!(insert(acl(ttl, 1)).await, Code::Ok);
    }
    assert_eq!(insert(acl(4, 1)).await, Code::ResourceExhausted, "full");
    let register = |index| {
        Entity::RegisterEntry(v1::RegisterEntry {
            register_id: support::id(&running.info, "totals"),
            index: Some(v1::Index { index }),
            data: Some(v1::P4Data {
                data: Some(v1::p4_data::Data::Bitstring(vec![1])),
            }),
        })
    };
    let modify = |entity| written(&running, Type::Modify, entity);
    assert_eq!(modify(register(15)).await, Code::Ok);
    assert_eq!(modify(register(16)).await, Code::OutOfRange);
    assert_eq!(modify(register(-1)).await, Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_requests_have_their_codes() {
    let running = Running::start();
    let mut client = running.client().await;
    let entry = update(Type::Insert, Entity::TableEntry(l2(&running.info, 1, 1)));
    let good = running.request(1, vec![entry]);
    let code = |outcome: Result<_, tonic::Status>| outcome.err().map(|status| status.code());
    assert_eq!(
        code(client.write(good.clone()).await),
        Some(Code::PermissionDenied),
        "nobody is primary"
    );
    let _primary = running.primary(1).await;
    let other_device = v1::WriteRequest {
        device_id: 7,
        ..good.clone()
    };
    assert_eq!(code(client.write(other_device).await), Some(Code::NotFound));
    let not_primary = running.request(2, good.updates.clone());
    assert_eq!(
        code(client.write(not_primary).await),
        Some(Code::PermissionDenied)
    );
    let config = v1::SetForwardingPipelineConfigRequest {
        device_id: 1,
        election_id: Some(v1::Uint128 { high: 0, low: 2 }),
        action: 3,
        config: Some(v1::ForwardingPipelineConfig {
            p4_device_config: b"no program".to_vec(),
            ..v1::ForwardingPipelineConfig::default()
        }),
        ..v1::SetForwardingPipelineConfigRequest::default()
    };
    let set = client.set_forwarding_pipeline_config(config.clone()).await;
    assert_eq!(set.unwrap_err().code(), Code::PermissionDenied);
    let set = client
        .set_forwarding_pipeline_config(v1::SetForwardingPipelineConfigRequest {
            election_id: Some(v1::Uint128 { high: 0, low: 1 }),
            ..config
        })
        .await;
    assert_eq!(set.unwrap_err().code(), Code::InvalidArgument);
    // 100 MB, which no client library refuses to send.
    let mut long = good.clone();
    for _ in 0..100 {
        let mut entry = l2(&running.info, 1, 1);
        entry.metadata = vec![0; 1_000_000];
        long.updates
            .push(update(Type::Insert, Entity::TableEntry(entry)));
    }
    let mut generous = running.client().await.max_encoding_message_size(usize::MAX);
    assert_eq!(
        code(generous.write(long.clone()).await),
        Some(Code::ResourceExhausted)
    );
    let long = v1::StreamMessageRequest {
        update: Some(v1::stream_message_request::Update::Packet(v1::PacketOut {
            payload: vec![0; 100_000_000],
            metadata: Vec::new(),
        })),
    };
    let mut stream = running.stream().await;
    let _ = stream.say.send(long).await;
    let end = tokio::time::timeout(Duration::from_secs(10), stream.told.message()).await;
    assert_eq!(end.unwrap().unwrap_err().code(), Code::ResourceExhausted);
    assert_eq!(code(client.write(good).await), None, "it goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_at_the_port_harms_nobody() {
    let running = Running::start();
    let _primary = running.primary(1).await;
    let address = running.server.address();
    tokio::task::spawn_blocking(move || {
        let mut random = SmallRng::seed_from_u64(3);
        for number in 0..200 {
            let mut stream = TcpStream::connect(address).unwrap();
            stream
                .set_read_timeout(Some(Duration::from_millis(5)))
                .unwrap();
            if number % 2 == 0 {
                // As a client begins; what follows are no frames.
                let _ = stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
            }
            let bytes: Vec<u8> = (0..random.random_range(1..2000))
                .map(|_| random.random())
                .collect();
            let _ = stream.write_all(&bytes);
            let mut answer = [0; 64];
            let _ = stream.read(&mut answer);
        }
    })
    .await
    .unwrap();
    let entry = Entity::TableEntry(l2(&running.info, 1, 1));
    assert_eq!(written(&running, Type::Insert, entry).await, Code::Ok);
}

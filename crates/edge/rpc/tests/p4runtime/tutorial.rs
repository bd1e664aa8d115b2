//! Messages of the controller of the P4 tutorials (`mycontroller.py` and its library), message
//! by message.

use crate::support;
use crate::support::server::Running;
use crate::support::{SOURCE, exact, field, update};
use prost::Message;
use stateplane_rpc::proto::v1::{
    self, entity::Entity, field_match as by, field_match::FieldMatchType as Match, update::Type,
};

/// `p4.tmp.P4DeviceConfig`.
#[derive(Clone, PartialEq, Message)]
struct P4DeviceConfig {
    #[prost(bool, tag = "1")]
    reassign: bool,
    #[prost(bytes = "vec", tag = "3")]
    device_data: Vec<u8>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_controller_of_the_tutorials_finds_what_it_expects() {
    let running = Running::start();
    let mut stream = running.stream().await;
    stream.become_primary(1).await;
    let mut client = running.client().await;
    let packed = P4DeviceConfig {
        reassign: true,
        device_data: SOURCE.as_bytes().to_vec(),
    };
    let election_id = Some(v1::Uint128 { high: 0, low: 1 });
    client
        .set_forwarding_pipeline_config(v1::SetForwardingPipelineConfigRequest {
            device_id: 1,
            election_id,
            action: v1::set_forwarding_pipeline_config_request::Action::VerifyAndCommit.into(),
            config: Some(v1::ForwardingPipelineConfig {
                p4info: Some(running.info.clone()),
                p4_device_config: packed.encode_to_vec(),
                cookie: None,
            }),
            ..v1::SetForwardingPipelineConfigRequest::default()
        })
        .await
        .expect("the program in its packing");
    // Its values have as many bytes as the field has, leading zeros included.
    let route = v1::TableEntry {
        table_id: support::id(&running.info, "routes"),
        r#match: vec![field(
            1,
            Match::Lpm(by::Lpm {
                value: vec![10, 0, 2, 2],
                prefix_len: 32,
            }),
        )],
        action: Some(support::action(&running.info, "send", &[&[0, 2]])),
        ..v1::TableEntry::default()
    };
    let station = v1::TableEntry {
        table_id: support::id(&running.info, "l2"),
        r#match: vec![exact(1, &[8, 0, 0, 0, 2, 0x22])],
        action: Some(support::action(&running.info, "send", &[&[0, 1]])),
        ..v1::TableEntry::default()
    };
    for entry in [route, station] {
        let entry = update(Type::Insert, Entity::TableEntry(entry));
        client.write(running.request(1, vec![entry])).await.unwrap();
    }
    // All entries of all tables, and one element of a counter.
    let all = Entity::TableEntry(v1::TableEntry::default());
    let mut read = async |entity: Entity| {
        let request = v1::ReadRequest {
            device_id: 1,
            entities: vec![v1::Entity {
                entity: Some(entity),
            }],
            ..v1::ReadRequest::default()
        };
        let mut parts = client.read(request).await.unwrap().into_inner();
        let mut entities = Vec::new();
        while let Some(part) = parts.message().await.unwrap() {
            entities.extend(part.entities.into_iter().filter_map(|it| it.entity));
        }
        entities
    };
    assert_eq!(read(all).await.len(), 3, "and the program's own");
    let counter = Entity::CounterEntry(v1::CounterEntry {
        counter_id: support::id(&running.info, "per_port"),
        index: Some(v1::Index { index: 4 }),
        data: None,
    });
    let read = read(counter).await;
    let [Entity::CounterEntry(counter)] = &read[..] else {
        panic!("{read:?}");
    };
    assert_eq!(counter.data, Some(v1::CounterData::default()));
}

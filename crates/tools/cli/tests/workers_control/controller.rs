//! A controller that hears what a switch tells.

use super::frames::{self, FLOWS, FRAMES};
use stateplane_rpc::client::names::{find, id, update};
use stateplane_rpc::proto::v1::{
    self, entity::Entity, p4_runtime_client::P4RuntimeClient,
    stream_message_request::Update as Say, stream_message_response::Update as Told, update::Type,
};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Number of a frame by which the controller listens.
pub const FROM: u32 = FRAMES / 2;

/// Packets that the controller sends.
pub const PACKETS_OUT: usize = 40;

/// All that the controller heard.
pub struct Heard {
    /// Numbers of the frames that came to it, ascending.
    pub packets: Vec<u32>,
    /// Numbers of the digests, ascending.
    pub digests: Vec<u32>,
    /// Source ports of the entries that were idle while frames passed, each once.
    pub idle: Vec<u16>,
}

/// Becomes primary, lets the entry of each flow age, asks for digests, sends packets, and hears what
/// comes until all packets and digests are there.
pub fn hear(address: &str) -> Heard {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(hear_all(format!("http://{address}")))
}

async fn hear_all(address: String) -> Heard {
    let mut client = P4RuntimeClient::connect(address).await.unwrap();
    let (say, said) = mpsc::channel(64);
    let message = |update| v1::StreamMessageRequest {
        update: Some(update),
    };
    let election_id = Some(v1::Uint128 { high: 0, low: 1 });
    let arbitration = Say::Arbitration(v1::MasterArbitrationUpdate {
        device_id: 1,
        election_id,
        ..v1::MasterArbitrationUpdate::default()
    });
    say.send(message(arbitration)).await.unwrap();
    let said = tokio_stream::wrappers::ReceiverStream::new(said);
    let mut told = client.stream_channel(said).await.unwrap().into_inner();
    let request = v1::GetForwardingPipelineConfigRequest {
        device_id: 1,
        response_type: 0,
    };
    let pipeline = client.get_forwarding_pipeline_config(request).await;
    let info = pipeline
        .unwrap()
        .into_inner()
        .config
        .unwrap()
        .p4info
        .unwrap();
    let none = find(&info.actions, "NoAction", "action").unwrap();
    let flow = |flow: u32| {
        let value = frames::source_port(flow).to_be_bytes().to_vec();
        let exact = v1::field_match::Exact { value };
        let action = v1::Action {
            action_id: id(none),
            params: Vec::new(),
        };
        Entity::TableEntry(v1::TableEntry {
            table_id: id(find(&info.tables, "flows", "table").unwrap()),
            r#match: vec![v1::FieldMatch {
                field_id: 1,
                field_match_type: Some(v1::field_match::FieldMatchType::Exact(exact)),
            }],
            action: Some(v1::TableAction {
                r#type: Some(v1::table_action::Type::Action(action)),
            }),
            idle_timeout_ns: 2_000_000_000,
            ..v1::TableEntry::default()
        })
    };
    let digest = Entity::DigestEntry(v1::DigestEntry {
        digest_id: id(find(&info.digests, "number_t", "digest").unwrap()),
        config: Some(v1::digest_entry::Config {
            max_timeout_ns: 5_000_000,
            max_list_size: 10,
            ack_timeout_ns: 0,
        }),
    });
    let entities = (0..=FLOWS).map(flow).chain([digest]);
    let request = v1::WriteRequest {
        device_id: 1,
        election_id,
        updates: entities
            .map(|entity| update(Type::Insert, entity))
            .collect(),
        ..v1::WriteRequest::default()
    };
    client.write(request).await.unwrap();
    for number in 0..PACKETS_OUT as u32 {
        let packet = Say::Packet(v1::PacketOut {
            // Neither to the controller nor a digest.
            payload: frames::frame(FRAMES + 10 + number % 10).to_vec(),
            metadata: Vec::new(),
        });
        say.send(message(packet)).await.unwrap();
    }
    let (mut packets, mut digests, mut idle) = (Vec::new(), Vec::new(), Vec::new());
    let wanted = |rest| {
        let numbers = frames::numbers(rest).into_iter();
        numbers.filter(|number| *number >= FROM).count()
    };
    let late = |heard: &[u32]| heard.iter().filter(|number| **number >= FROM).count();
    while late(&packets) < wanted(4) || late(&digests) < wanted(8) {
        let next = timeout(Duration::from_secs(20), told.message()).await;
        let next = next.expect("all packets and digests come").unwrap();
        match next.unwrap().update.unwrap() {
            Told::Packet(packet) => packets.push(frames::parse(&packet.payload).number),
            Told::Digest(list) => digests.extend(list.data.iter().map(number)),
            Told::IdleTimeoutNotification(notice) => {
                idle.extend(notice.table_entry.iter().map(port));
            }
            Told::Arbitration(_) => {}
            other => panic!("{other:?}"),
        }
    }
    packets.sort_unstable();
    digests.sort_unstable();
    idle.sort_unstable();
    idle.dedup();
    Heard {
        packets,
        digests,
        idle,
    }
}

fn value(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |value, byte| value << 8 | u32::from(*byte))
}

fn number(data: &v1::P4Data) -> u32 {
    use v1::p4_data::Data;
    match &data.data {
        Some(Data::Struct(members)) => number(&members.members[0]),
        Some(Data::Bitstring(bytes)) => value(bytes),
        other => panic!("{other:?}"),
    }
}

fn port(entry: &v1::TableEntry) -> u16 {
    use v1::field_match::FieldMatchType;
    match &entry.r#match[0].field_match_type {
        Some(FieldMatchType::Exact(exact)) => value(&exact.value) as u16,
        other => panic!("{other:?}"),
    }
}

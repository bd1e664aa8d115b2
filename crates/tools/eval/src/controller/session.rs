//! The controller's side of P4Runtime.

use super::mappings::Entry;
use crate::error::EvalError;
use stateplane_rpc::client::entry;
use stateplane_rpc::client::names::{self, find, update};
use stateplane_rpc::proto::{config, v1};
use std::net::SocketAddr;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};
use v1::p4_runtime_client::P4RuntimeClient;
use v1::stream_message_request::Update as Say;
use v1::stream_message_response::Update as Told;

/// Default device id of `stateplane run`.
const DEVICE: u64 = 1;
/// Election id; no other controller competes.
const ELECTION: v1::Uint128 = v1::Uint128 { high: 0, low: 1 };
/// Messages to the switch that may wait.
const WAITING: usize = 64;

/// A stream whose controller is primary, and the table of mappings of the program.
pub struct Session {
    client: P4RuntimeClient<Channel>,
    say: mpsc::Sender<v1::StreamMessageRequest>,
    told: Streaming<v1::StreamMessageResponse>,
    mappings: Mappings,
}

/// The table of mappings, and the program's objects by which its entries are read.
struct Mappings {
    info: config::P4Info,
    table: config::Table,
}

fn failed(error: impl ToString) -> EvalError {
    EvalError::Controller {
        whom: "the switch".to_owned(),
        reason: error.to_string(),
    }
}

impl Session {
    /// Connects, becomes primary, and looks the table up.
    ///
    /// # Errors
    /// `EV006` if the switch refuses, or runs another program.
    pub async fn open(switch: SocketAddr) -> Result<Self, EvalError> {
        let endpoint = Endpoint::from_shared(format!("http://{switch}")).map_err(failed)?;
        let channel = endpoint.tcp_nodelay(true).connect().await;
        let mut client = P4RuntimeClient::new(channel.map_err(failed)?);
        let (say, said) = mpsc::channel(WAITING);
        let arbitration = v1::MasterArbitrationUpdate {
            device_id: DEVICE,
            role: None,
            election_id: Some(ELECTION),
            status: None,
        };
        say.send(message(Say::Arbitration(arbitration)))
            .await
            .map_err(failed)?;
        let told = client.stream_channel(ReceiverStream::new(said)).await;
        let mut told = told.map_err(failed)?.into_inner();
        loop {
            let answer = told.message().await.map_err(failed)?;
            let answer = answer.ok_or_else(|| failed("it closed the stream"))?;
            if let Some(Told::Arbitration(answer)) = answer.update {
                match answer.status {
                    Some(status) if status.code != 0 => return Err(failed(status.message)),
                    _ => break,
                }
            }
        }
        let request = v1::GetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            response_type: 0,
        };
        let pipeline = client.get_forwarding_pipeline_config(request).await;
        let pipeline = pipeline.map_err(failed)?.into_inner().config;
        let info = pipeline.and_then(|pipeline| pipeline.p4info);
        let mappings = Mappings::of(info.unwrap_or_default()).map_err(failed)?;
        Ok(Self {
            client,
            say,
            told,
            mappings,
        })
    }

    /// The next packet; `None` when the switch goes away.
    ///
    /// # Errors
    /// `EV006` if the connection fails.
    pub async fn packet_in(&mut self) -> Result<Option<v1::PacketIn>, EvalError> {
        while let Some(message) = self.told.message().await.map_err(failed)? {
            match message.update {
                Some(Told::Packet(packet)) => return Ok(Some(packet)),
                Some(Told::Error(error)) => return Err(failed(error.message)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// The key that a packet found no mapping for: the only field of its header.
    pub fn wanted(&self, packet: &v1::PacketIn) -> Option<u128> {
        let value = &packet.metadata.first()?.value;
        (value.len() <= size_of::<u128>()).then(|| {
            let digits = value.iter();
            digits.fold(0, |key, byte| (key << 8) | u128::from(*byte))
        })
    }

    /// Writes entries, and returns when packets meet them.
    ///
    /// # Errors
    /// `EV006` if the switch refuses one.
    pub async fn write(&mut self, entries: &[Entry]) -> Result<(), EvalError> {
        let insert = |entry: &Entry| {
            let entry = v1::entity::Entity::TableEntry(self.mappings.entry(entry)?);
            Ok(update(v1::update::Type::Insert, entry))
        };
        let updates: Result<_, names::Wrong> = entries.iter().map(insert).collect();
        let request = v1::WriteRequest {
            device_id: DEVICE,
            election_id: Some(ELECTION),
            updates: updates.map_err(failed)?,
            ..v1::WriteRequest::default()
        };
        let written = self.client.write(request).await;
        written.map(drop).map_err(failed)
    }

    /// Gives a packet back.
    ///
    /// # Errors
    /// `EV006` if the connection fails.
    pub async fn packet_out(&mut self, payload: Vec<u8>) -> Result<(), EvalError> {
        let metadata = Vec::new();
        let packet = v1::PacketOut { payload, metadata };
        self.say
            .send(message(Say::Packet(packet)))
            .await
            .map_err(failed)
    }
}

fn message(update: Say) -> v1::StreamMessageRequest {
    let update = Some(update);
    v1::StreamMessageRequest { update }
}

impl Mappings {
    fn of(info: config::P4Info) -> Result<Self, names::Wrong> {
        let table = find(&info.tables, "mappings", "table")?.clone();
        Ok(Self { info, table })
    }

    fn entry(&self, entry: &Entry) -> Result<v1::TableEntry, names::Wrong> {
        let words = [
            format!("mapping={:#x}", entry.key),
            "translate_to".to_owned(),
            format!("address={}", entry.address),
            format!("port={}", entry.port),
        ];
        entry::read(&self.info, &self.table, &words, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(program: &str) -> config::P4Info {
        let compiled = stateplane_compile::shipped(program).program_and_interface();
        let (program, interface) = compiled.expect("a program of the library");
        stateplane_p4info::generate(&program, &interface).expect("names without clashes")
    }

    #[test]
    fn the_program_takes_mappings() {
        let mappings = Mappings::of(info("apps/nat/controlled.p4")).unwrap();
        let entry = mappings.entry(&Entry {
            key: 0x0306_cb00_7101_0400 << 64,
            address: [10, 0, 0, 1].into(),
            port: 1024,
        });
        let entry = entry.unwrap();
        let [matched] = &entry.r#match[..] else {
            panic!("{entry:?}");
        };
        let exact = match &matched.field_match_type {
            Some(v1::field_match::FieldMatchType::Exact(exact)) => &exact.value,
            other => panic!("{other:?}"),
        };
        // Numbers are in as few bytes as they need.
        assert_eq!(exact[..8], [3, 6, 0xcb, 0, 0x71, 1, 4, 0]);
        let action = entry.action.and_then(|action| action.r#type);
        let Some(v1::table_action::Type::Action(action)) = action else {
            panic!("{action:?}");
        };
        let values: Vec<_> = action.params.iter().map(|it| &it.value[..]).collect();
        assert_eq!(values, [&[10, 0, 0, 1][..], &[4, 0]]);
    }

    #[test]
    fn another_program_is_refused() {
        let error = Mappings::of(info("apps/nat/unprotected.p4")).err();
        assert!(error.is_some_and(|error| error.contains("no table `mappings`")));
    }
}

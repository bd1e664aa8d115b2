//! The controller's side of P4Runtime.

use super::mappings::Entry;
use crate::error::EvalError;
use stateplane_rpc::client::names::{self, find, update};
use stateplane_rpc::proto::{config, v1};
use std::net::SocketAddr;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};
use v1::field_match::{Exact, FieldMatchType};
use v1::p4_runtime_client::P4RuntimeClient;
use v1::stream_message_request::Update as Say;
use v1::stream_message_response::Update as Told;

/// The device id that `stateplane run` has unless told otherwise.
const DEVICE: u64 = 1;
/// No other controller competes.
const ELECTION: v1::Uint128 = v1::Uint128 { high: 0, low: 1 };
/// Messages to the switch that may wait.
const WAITING: usize = 64;

/// A stream whose controller is primary, and what the program calls its table.
pub struct Session {
    client: P4RuntimeClient<Channel>,
    say: mpsc::Sender<v1::StreamMessageRequest>,
    told: Streaming<v1::StreamMessageResponse>,
    mappings: Table,
}

/// Ids of the table of mappings.
#[derive(Clone, Copy, Debug)]
struct Table {
    table: u32,
    key: u32,
    action: u32,
    address: u32,
    port: u32,
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
        let mappings = Table::of(&info.unwrap_or_default()).map_err(failed)?;
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
            let entry = v1::entity::Entity::TableEntry(self.mappings.entry(entry));
            update(v1::update::Type::Insert, entry)
        };
        let request = v1::WriteRequest {
            device_id: DEVICE,
            election_id: Some(ELECTION),
            updates: entries.iter().map(insert).collect(),
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

impl Table {
    fn of(info: &config::P4Info) -> Result<Self, String> {
        let table = find(&info.tables, "mappings", "table")?;
        let action = find(&info.actions, "translate_to", "action")?;
        let parameter = |wanted: &str| {
            let mut all = action.params.iter();
            let found = all.find(|parameter| parameter.name == wanted);
            let missing = || format!("translate_to has no parameter `{wanted}`");
            found.map(|found| found.id).ok_or_else(missing)
        };
        let key = table.match_fields.first();
        Ok(Self {
            table: names::id(table),
            key: key.map_or(0, |field| field.id),
            action: names::id(action),
            address: parameter("address")?,
            port: parameter("port")?,
        })
    }

    fn entry(&self, entry: &Entry) -> v1::TableEntry {
        let parameter = |param_id, value: &[u8]| v1::action::Param {
            param_id,
            value: digits(value),
        };
        let key = Exact {
            value: digits(&entry.key.to_be_bytes()),
        };
        let action = v1::Action {
            action_id: self.action,
            params: vec![
                parameter(self.address, &entry.address.octets()),
                parameter(self.port, &entry.port.to_be_bytes()),
            ],
        };
        v1::TableEntry {
            table_id: self.table,
            r#match: vec![v1::FieldMatch {
                field_id: self.key,
                field_match_type: Some(FieldMatchType::Exact(key)),
            }],
            action: Some(v1::TableAction {
                r#type: Some(v1::table_action::Type::Action(action)),
            }),
            ..v1::TableEntry::default()
        }
    }
}

/// A number in as few bytes as it needs (P4Runtime, "Bytestrings").
fn digits(value: &[u8]) -> Vec<u8> {
    let zeros = value.iter().take_while(|byte| **byte == 0).count();
    value[zeros.min(value.len().saturating_sub(1))..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_zeros_in_front() {
        assert_eq!(digits(&[0, 0, 4, 0]), [4, 0]);
        assert_eq!(digits(&[0, 0]), [0]);
        assert_eq!(digits(&[]), Vec::<u8>::new());
    }
}

//! A client for people: what a command line needs of the same calls that controllers use.

pub mod data;
pub mod entry;
pub mod names;
pub mod value;

use crate::proto::stateplane::v1 as own;
use crate::proto::stateplane::v1::switch_client::SwitchClient;
use crate::proto::v1::{self, p4_runtime_client::P4RuntimeClient};
use crate::service::MAX_MESSAGE;
use prost::Message;
use std::time::Duration;
use thiserror::Error;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Status, Streaming};
use v1::stream_message_request::Update as Say;
use v1::stream_message_response::Update as Told;

/// Longest time to wait for a connection, and for the answer to an arbitration.
const PATIENCE: Duration = Duration::from_secs(5);

/// Times to try for primacy of a role that others want too.
const TRIES: u32 = 20;

/// The role in which people write: controllers, which use another, stay primary.
pub const ROLE: &str = "stateplane";

/// Address and device id of a switch.
#[derive(Clone, Debug)]
pub struct Target {
    /// `HOST:PORT`.
    pub address: String,
    /// Its device id.
    pub device_id: u64,
    /// Keys to speak TLS.
    pub tls: Option<ClientTls>,
}

/// Keys of a client, in PEM.
#[derive(Clone, Debug)]
pub struct ClientTls {
    /// Roots of the switch's certificate.
    pub roots: Vec<u8>,
    /// The client's certificate and key, for mutual TLS.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Why a request was not served.
#[derive(Debug, Error)]
pub enum ClientError {
    /// There is no connection.
    #[error("no switch at {0} answers: {1}")]
    Unreachable(String, String),
    /// The switch refuses.
    #[error("{0}")]
    Refused(String),
}

impl From<Status> for ClientError {
    /// With the errors of the updates, where there are any.
    fn from(status: Status) -> ClientError {
        let details = crate::proto::rpc::Status::decode(status.details()).unwrap_or_default();
        let errors = details.details.iter();
        let errors = errors.filter_map(|any| v1::Error::decode(any.value.as_slice()).ok());
        let said: Vec<String> = errors
            .filter(|error| error.canonical_code != 0)
            .map(|error| {
                let code = Code::from_i32(error.canonical_code);
                format!("{} ({code:?})", error.message)
            })
            .collect();
        ClientError::Refused(if said.is_empty() {
            format!("{} ({:?})", status.message(), status.code())
        } else {
            said.join("; ")
        })
    }
}

/// A connection to a switch; each call waits for its answer.
pub struct Connection {
    runtime: Runtime,
    target: Target,
    client: P4RuntimeClient<Channel>,
    switch: SwitchClient<Channel>,
    /// The election id of the stream, once something was written.
    primary: Option<(v1::Uint128, Open)>,
}

/// A stream that stays open while the client is primary.
struct Open {
    _say: mpsc::Sender<v1::StreamMessageRequest>,
    _told: Streaming<v1::StreamMessageResponse>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    ///
    /// [`ClientError::Unreachable`].
    pub fn open(target: Target) -> Result<Connection, ClientError> {
        let unreachable = |cause: String| ClientError::Unreachable(target.address.clone(), cause);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| unreachable(error.to_string()))?;
        let scheme = if target.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{}", target.address));
        let mut endpoint = endpoint
            .map_err(|error| unreachable(error.to_string()))?
            .connect_timeout(PATIENCE)
            .tcp_nodelay(true);
        if let Some(tls) = &target.tls {
            let mut config =
                ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.roots));
            if let Some((certificate, key)) = &tls.identity {
                config = config.identity(Identity::from_pem(certificate, key));
            }
            endpoint = endpoint
                .tls_config(config)
                .map_err(|error| unreachable(error.to_string()))?;
        }
        let channel = runtime.block_on(endpoint.connect()).map_err(|error| {
            let cause = std::error::Error::source(&error);
            unreachable(cause.map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        Ok(Connection {
            runtime,
            client: P4RuntimeClient::new(channel.clone())
                .max_decoding_message_size(MAX_MESSAGE)
                .max_encoding_message_size(MAX_MESSAGE),
            switch: SwitchClient::new(channel),
            target,
            primary: None,
        })
    }

    /// The pipeline, with its P4Info and source.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`].
    pub fn pipeline(&mut self) -> Result<v1::ForwardingPipelineConfig, ClientError> {
        let request = v1::GetForwardingPipelineConfigRequest {
            device_id: self.target.device_id,
            response_type: 0,
        };
        let answer = self.client.get_forwarding_pipeline_config(request);
        let answer = self.runtime.block_on(answer)?;
        Ok(answer.into_inner().config.unwrap_or_default())
    }

    /// Entities that those given name.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`].
    pub fn read(
        &mut self,
        wanted: Vec<v1::entity::Entity>,
    ) -> Result<Vec<v1::entity::Entity>, ClientError> {
        let request = v1::ReadRequest {
            device_id: self.target.device_id,
            entities: wanted
                .into_iter()
                .map(|entity| v1::Entity {
                    entity: Some(entity),
                })
                .collect(),
            role: String::new(),
        };
        let client = &mut self.client;
        self.runtime.block_on(async {
            let mut parts = client.read(request).await?.into_inner();
            let mut entities = Vec::new();
            while let Some(part) = parts.message().await? {
                entities.extend(part.entities.into_iter().filter_map(|it| it.entity));
            }
            Ok(entities)
        })
    }

    /// Writes updates, all or nothing, as primary of the role [`ROLE`].
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] with what is wrong with each update.
    pub fn write(&mut self, updates: Vec<v1::Update>) -> Result<(), ClientError> {
        let election_id = self.become_primary()?;
        let request = v1::WriteRequest {
            device_id: self.target.device_id,
            election_id: Some(election_id),
            updates,
            atomicity: v1::write_request::Atomicity::RollbackOnError.into(),
            role: ROLE.to_owned(),
            ..v1::WriteRequest::default()
        };
        self.runtime.block_on(self.client.write(request))?;
        Ok(())
    }

    /// Lets packets run another program; what fits it of entries and state stays if `keep`.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`], with the diagnostics of a program that has errors.
    pub fn set_program(&mut self, source: Vec<u8>, keep: bool) -> Result<(), ClientError> {
        use v1::set_forwarding_pipeline_config_request::Action;
        let action = if keep {
            Action::ReconcileAndCommit
        } else {
            Action::VerifyAndCommit
        };
        let request = v1::SetForwardingPipelineConfigRequest {
            device_id: self.target.device_id,
            election_id: Some(self.become_primary()?),
            action: action.into(),
            role: ROLE.to_owned(),
            config: Some(v1::ForwardingPipelineConfig {
                p4_device_config: source,
                ..v1::ForwardingPipelineConfig::default()
            }),
            ..v1::SetForwardingPipelineConfigRequest::default()
        };
        let answer = self.client.set_forwarding_pipeline_config(request);
        self.runtime.block_on(answer)?;
        Ok(())
    }

    /// The ports of the switch.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`].
    pub fn ports(&mut self) -> Result<Vec<own::Port>, ClientError> {
        let request = own::PortsRequest {
            device_id: self.target.device_id,
        };
        let answer = self.runtime.block_on(self.switch.ports(request))?;
        Ok(answer.into_inner().ports)
    }

    fn become_primary(&mut self) -> Result<v1::Uint128, ClientError> {
        if let Some((id, _)) = &self.primary {
            return Ok(*id);
        }
        let mut last = None;
        for _ in 0..TRIES {
            let (device_id, client) = (self.target.device_id, &mut self.client);
            match self.runtime.block_on(arbitrate(client, device_id)) {
                Ok((id, open)) => {
                    self.primary = Some((id, open));
                    return Ok(id);
                }
                // Another took the same election id in between.
                Err(status) if status.code() == Code::InvalidArgument => last = Some(status),
                Err(status) => return Err(status.into()),
            }
        }
        Err(last.map_or_else(
            || ClientError::Refused("no answer".to_owned()),
            ClientError::from,
        ))
    }
}

/// Asks for the greatest election id of the role, and takes the next one.
async fn arbitrate(
    client: &mut P4RuntimeClient<Channel>,
    device_id: u64,
) -> Result<(v1::Uint128, Open), Status> {
    let message = |election_id| v1::StreamMessageRequest {
        update: Some(Say::Arbitration(v1::MasterArbitrationUpdate {
            device_id,
            role: Some(v1::Role {
                name: ROLE.to_owned(),
                ..v1::Role::default()
            }),
            election_id,
            status: None,
        })),
    };
    let (say, said) = mpsc::channel(4);
    let gone = |_| Status::unavailable("the connection is closed");
    say.send(message(None)).await.map_err(gone)?;
    let told = client.stream_channel(ReceiverStream::new(said)).await?;
    let mut told = told.into_inner();
    let mut wanted: Option<v1::Uint128> = None;
    loop {
        let next = tokio::time::timeout(PATIENCE, told.message()).await;
        let next = next.map_err(|_| Status::deadline_exceeded("no answer to an arbitration"))??;
        let Some(next) = next else {
            return Err(Status::unavailable("the switch closed the stream"));
        };
        let Some(Told::Arbitration(update)) = next.update else {
            continue;
        };
        let is_primary = update
            .status
            .as_ref()
            .is_some_and(|status| status.code == 0);
        if let (true, Some(id)) = (is_primary, wanted) {
            let open = Open {
                _say: say,
                _told: told,
            };
            return Ok((id, open));
        }
        let highest = update.election_id.unwrap_or_default();
        let highest = (u128::from(highest.high) << 64) | u128::from(highest.low);
        let next = highest.saturating_add(1);
        let next = v1::Uint128 {
            high: (next >> 64) as u64,
            low: next as u64,
        };
        if wanted != Some(next) {
            wanted = Some(next);
            say.send(message(wanted)).await.map_err(gone)?;
        }
    }
}

//! A plain gRPC server: it takes bytes and says nothing, or gives bytes.

use stateplane_rpc::MAX_MESSAGE;
use stateplane_rpc::proto::v1::{self, entity::Entity, p4_runtime_server as server};
use std::pin::Pin;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt};
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};
use v1::p4_runtime_client::P4RuntimeClient;

/// A server at a port of its own, until the runtime ends.
pub struct Echo(String);

struct Plain;

/// A request of about `length` bytes.
pub fn taking(length: usize) -> v1::SetForwardingPipelineConfigRequest {
    v1::SetForwardingPipelineConfigRequest {
        config: Some(v1::ForwardingPipelineConfig {
            p4_device_config: vec![0x55; length],
            ..v1::ForwardingPipelineConfig::default()
        }),
        ..v1::SetForwardingPipelineConfigRequest::default()
    }
}

fn blob(length: usize) -> v1::Entity {
    v1::Entity {
        entity: Some(Entity::TableEntry(v1::TableEntry {
            metadata: vec![0x55; length],
            ..v1::TableEntry::default()
        })),
    }
}

/// A request for messages of about these lengths.
pub fn giving(lengths: &[usize]) -> v1::ReadRequest {
    let priced = lengths.iter().map(|length| v1::Entity {
        entity: Some(Entity::TableEntry(v1::TableEntry {
            priority: i32::try_from(*length).expect("messages are short"),
            ..v1::TableEntry::default()
        })),
    });
    v1::ReadRequest {
        entities: priced.collect(),
        ..v1::ReadRequest::default()
    }
}

impl Echo {
    /// Starts it.
    pub fn start(runtime: &Runtime) -> Echo {
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("its address");
        let service = server::P4RuntimeServer::new(Plain).max_decoding_message_size(MAX_MESSAGE);
        let incoming = TcpListenerStream::new(listener).map(|stream| {
            let stream = stream?;
            stream.set_nodelay(true)?;
            Ok::<_, std::io::Error>(stream)
        });
        runtime.spawn(
            tonic::transport::Server::builder()
                .add_service(service)
                .serve_with_incoming(incoming),
        );
        Echo(format!("http://{address}"))
    }

    /// A client of it.
    pub fn client(&self, runtime: &Runtime) -> P4RuntimeClient<Channel> {
        let endpoint = Channel::from_shared(self.0.clone()).expect("an address");
        let channel = runtime.block_on(endpoint.tcp_nodelay(true).connect());
        P4RuntimeClient::new(channel.expect("a connection"))
            .max_encoding_message_size(MAX_MESSAGE)
            .max_decoding_message_size(MAX_MESSAGE)
    }
}

type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn unused<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("a plain server"))
}

#[tonic::async_trait]
impl server::P4Runtime for Plain {
    type ReadStream = Messages<v1::ReadResponse>;
    type StreamChannelStream = Messages<v1::StreamMessageResponse>;

    async fn set_forwarding_pipeline_config(
        &self,
        _request: Request<v1::SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<v1::SetForwardingPipelineConfigResponse>, Status> {
        Ok(Response::new(v1::SetForwardingPipelineConfigResponse {}))
    }

    async fn read(
        &self,
        request: Request<v1::ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        let wanted = request.into_inner().entities.into_iter();
        let lengths = wanted.filter_map(|entity| match entity.entity {
            Some(Entity::TableEntry(entry)) => usize::try_from(entry.priority).ok(),
            _ => None,
        });
        let parts = lengths.map(|length| {
            Ok(v1::ReadResponse {
                entities: vec![blob(length)],
            })
        });
        Ok(Response::new(Box::pin(tokio_stream::iter(parts))))
    }

    async fn write(
        &self,
        _request: Request<v1::WriteRequest>,
    ) -> Result<Response<v1::WriteResponse>, Status> {
        unused()
    }

    async fn get_forwarding_pipeline_config(
        &self,
        _request: Request<v1::GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<v1::GetForwardingPipelineConfigResponse>, Status> {
        unused()
    }

    async fn stream_channel(
        &self,
        _request: Request<Streaming<v1::StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        unused()
    }

    async fn capabilities(
        &self,
        _request: Request<v1::CapabilitiesRequest>,
    ) -> Result<Response<v1::CapabilitiesResponse>, Status> {
        unused()
    }
}

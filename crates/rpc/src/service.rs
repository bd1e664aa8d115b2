//! The gRPC server.

use crate::core::{Prepared, VERSION};
use crate::driver::{Command, Requests, STREAM, unanswered};
use crate::proto::v1::{self, p4_runtime_server as generated};
use crate::refusal::Refusal;
use stateplane_target::Engine;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream, UnboundedReceiverStream};
use tokio_stream::{Stream, StreamExt};
use tonic::transport::{Certificate, Identity, ServerTlsConfig};
use tonic::{Request, Response, Status, Streaming};

/// Bytes of the longest message that is read.
const MAX_MESSAGE: usize = 64 << 20;

/// Threads of the server; the switch has one of its own.
const THREADS: usize = 2;

/// Compiles the program of a pipeline, the text of a P4 program.
pub type Compile<E> = Arc<dyn Fn(&[u8]) -> Result<Prepared<E>, Refusal> + Send + Sync>;

/// The server's end of the channel to the switch.
pub struct Client<E> {
    pub(crate) requests: Requests<E>,
}

/// Keys of a server that speaks TLS, in PEM.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Its certificate, and those between it and its root.
    pub certificate: Vec<u8>,
    /// Its private key.
    pub key: Vec<u8>,
    /// Roots of the clients' certificates; without it any client is served.
    pub client_roots: Option<Vec<u8>>,
}

/// Why a server cannot start.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The address is taken, or not one of this machine.
    #[error("cannot listen at {address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        cause: io::Error,
    },
    /// The certificate or key is wrong.
    #[error("cannot use TLS: {0}")]
    Tls(String),
    /// No threads are left.
    #[error("cannot start the server: {0}")]
    Start(io::Error),
}

/// A server that runs until it is dropped.
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Serves P4Runtime at `address`, on threads of its own.
///
/// # Errors
///
/// [`ServerError`].
pub fn serve<E: Engine + Send + 'static>(
    client: Client<E>,
    compile: Compile<E>,
    address: SocketAddr,
    tls: Option<&Tls>,
) -> Result<Server, ServerError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("p4runtime")
        .enable_all()
        .build()
        .map_err(ServerError::Start)?;
    let listener = runtime
        .block_on(tokio::net::TcpListener::bind(address))
        .map_err(|cause| ServerError::Listen { address, cause })?;
    let address = listener
        .local_addr()
        .map_err(|cause| ServerError::Listen { address, cause })?;
    let mut builder = tonic::transport::Server::builder();
    if let Some(tls) = tls {
        let identity = Identity::from_pem(&tls.certificate, &tls.key);
        let mut config = ServerTlsConfig::new().identity(identity);
        if let Some(roots) = &tls.client_roots {
            config = config.client_ca_root(Certificate::from_pem(roots));
        }
        builder = builder
            .tls_config(config)
            .map_err(|error| ServerError::Tls(error.to_string()))?;
    }
    let service = Service {
        requests: client.requests,
        compile,
    };
    let service = generated::P4RuntimeServer::new(service)
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(usize::MAX);
    let router = builder.add_service(service);
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("p4runtime".to_owned())
        .spawn(move || {
            let incoming = TcpListenerStream::new(listener);
            runtime.block_on(async {
                tokio::select! {
                    // A server whose listener fails has nobody to tell.
                    _ = router.serve_with_incoming(incoming) => {}
                    _ = stopped => {}
                }
            });
            runtime.shutdown_background();
        })
        .map_err(ServerError::Start)?;
    Ok(Server {
        address,
        stop: Some(stop),
        thread: Some(thread),
    })
}

struct Service<E> {
    requests: Requests<E>,
    compile: Compile<E>,
}

/// A stream of messages to a client.
type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl<E: Engine + Send + 'static> Service<E> {
    /// Compiles and loads a program, away from the switch; an empty source is the program
    /// that runs.
    async fn prepare(&self, source: Vec<u8>) -> Result<Prepared<E>, Status> {
        let mut prepared = if source.is_empty() {
            let (reply, answer) = oneshot::channel();
            self.requests.send(Command::Program(reply)).await?;
            answer.await.map_err(unanswered)?
        } else {
            let compile = self.compile.clone();
            let compiled = tokio::task::spawn_blocking(move || compile(&source)).await;
            compiled.map_err(unanswered)??
        };
        if prepared.engine.is_none() {
            let load = prepared.load.clone();
            let loaded = tokio::task::spawn_blocking(move || load()).await;
            prepared.engine = Some(loaded.map_err(unanswered)??);
        }
        Ok(prepared)
    }
}

#[tonic::async_trait]
impl<E: Engine + Send + 'static> generated::P4Runtime for Service<E> {
    type ReadStream = Messages<v1::ReadResponse>;
    type StreamChannelStream = Messages<v1::StreamMessageResponse>;

    async fn write(
        &self,
        request: Request<v1::WriteRequest>,
    ) -> Result<Response<v1::WriteResponse>, Status> {
        let (reply, answer) = oneshot::channel();
        self.requests
            .send(Command::Write(request.into_inner(), reply))
            .await?;
        answer.await.map_err(unanswered)??;
        Ok(Response::new(v1::WriteResponse {}))
    }

    async fn read(
        &self,
        request: Request<v1::ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        let (reply, answers) = mpsc::unbounded_channel();
        self.requests
            .send(Command::Read(request.into_inner(), reply))
            .await?;
        Ok(Response::new(Box::pin(UnboundedReceiverStream::new(
            answers,
        ))))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<v1::SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<v1::SetForwardingPipelineConfigResponse>, Status> {
        let request = request.into_inner();
        let source = request
            .config
            .as_ref()
            .map(|it| it.p4_device_config.clone());
        let prepared = match source {
            Some(source) => Some(Box::new(self.prepare(source).await?)),
            None => None,
        };
        let (reply, answer) = oneshot::channel();
        self.requests
            .send(Command::SetPipeline(Box::new(request), prepared, reply))
            .await?;
        answer.await.map_err(unanswered)??;
        Ok(Response::new(v1::SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<v1::GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<v1::GetForwardingPipelineConfigResponse>, Status> {
        let (reply, answer) = oneshot::channel();
        self.requests
            .send(Command::GetPipeline(request.into_inner(), reply))
            .await?;
        let config = answer.await.map_err(unanswered)??;
        Ok(Response::new(v1::GetForwardingPipelineConfigResponse {
            config: Some(config),
        }))
    }

    async fn stream_channel(
        &self,
        request: Request<Streaming<v1::StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let mut messages = request.into_inner();
        let (sender, answers) = mpsc::channel(STREAM);
        let (reply, opened) = oneshot::channel();
        self.requests
            .send(Command::Open(sender.clone(), reply))
            .await?;
        let stream = opened.await.map_err(unanswered)?;
        let requests = self.requests.clone();
        tokio::spawn(async move {
            // It ends when the client goes, or when the core has ended it.
            loop {
                let message = tokio::select! {
                    message = messages.next() => message,
                    () = sender.closed() => None,
                };
                let Some(Ok(message)) = message else { break };
                if requests
                    .send(Command::Stream(stream, message))
                    .await
                    .is_err()
                {
                    break;
                }
            }
            // A switch that has stopped has no streams.
            let _ = requests.send(Command::Close(stream)).await;
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(answers))))
    }

    async fn capabilities(
        &self,
        _request: Request<v1::CapabilitiesRequest>,
    ) -> Result<Response<v1::CapabilitiesResponse>, Status> {
        Ok(Response::new(v1::CapabilitiesResponse {
            p4runtime_api_version: VERSION.to_owned(),
            experimental: None,
        }))
    }
}

//! The gRPC server.

use crate::connection::{Call, Connection, ConnectionCounts, Limits, Pool};
use crate::core::{Prepared, VERSION};
use crate::device_config;
use crate::driver::{Claim, Command, Requests, STREAM, Unread, unanswered};
use crate::proto::stateplane::v1::{self as own, switch_server::SwitchServer};
use crate::proto::v1::{self, p4_runtime_server as generated};
use crate::refusal::Refusal;
use stateplane_runtime::Engine;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::Instant;
use tokio_stream::wrappers::{ReceiverStream, UnboundedReceiverStream};
use tokio_stream::{Stream, StreamExt};
use tonic::codegen::http;
use tonic::service::Routes;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};
use tonic::{Code, Request, Response, Status, Streaming};
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::util::{MapRequestLayer, MapResponseLayer};

/// Bytes of the longest message that is read.
pub const MAX_MESSAGE: usize = 32 << 20;

/// Limits of connections.
const LIMITS: Limits = Limits {
    total: 256,
    per_address: 64,
    handshake: Duration::from_secs(10),
};

/// Time between two looks at connections whose handshake may be late.
const LOOK: Duration = Duration::from_secs(1);

/// Maximum number of calls whose messages are in memory at one time, streams and reads in progress
/// not counted; more wait in their connections.
const MAX_CALLS: usize = 32;

/// Calls of one connection.
const MAX_STREAMS: u32 = 256;

/// A client that does not answer for as long as both together is gone: its streams end.
const KEEPALIVE: Duration = Duration::from_secs(10);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time without a call to accept after the system refused one, for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

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
        /// Error of the operating system.
        cause: io::Error,
    },
    /// The certificate or key is wrong.
    #[error("cannot use TLS: {0}")]
    Tls(String),
    /// The threads of the server cannot be started.
    #[error("cannot start the server: {0}")]
    Start(io::Error),
}

/// A server that runs until it is dropped.
pub struct Server {
    address: SocketAddr,
    pool: Arc<Pool>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Address at which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Counts of its connections.
    #[must_use]
    pub fn connections(&self) -> ConnectionCounts {
        self.pool.counts()
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
    let ports = SwitchServer::new(PortService {
        requests: client.requests.clone(),
    });
    let service = Service {
        requests: client.requests,
        compile,
        compiling: Semaphore::new(1),
    };
    let service = generated::P4RuntimeServer::new(service)
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(usize::MAX);
    let routes = Routes::new(service).add_service(ports);
    serve_routes(routes, "p4runtime", address, tls)
}

/// Serves `routes` at `address`, on threads that bear `name`, with the limits of this crate:
/// connections, calls, handshakes, silent clients.
///
/// # Errors
///
/// [`ServerError`].
pub fn serve_routes(
    routes: Routes,
    name: &str,
    address: SocketAddr,
    tls: Option<&Tls>,
) -> Result<Server, ServerError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name(name)
        .enable_all()
        .build()
        .map_err(ServerError::Start)?;
    let listener = runtime
        .block_on(TcpListener::bind(address))
        .map_err(|cause| ServerError::Listen { address, cause })?;
    let address = listener
        .local_addr()
        .map_err(|cause| ServerError::Listen { address, cause })?;
    let mut builder = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .max_concurrent_streams(MAX_STREAMS);
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
    let router = builder
        .layer(MapRequestLayer::new(Call::mark))
        .layer(MapResponseLayer::new(too_long))
        .layer(GlobalConcurrencyLimitLayer::new(MAX_CALLS))
        .add_routes(routes);
    let (stop, stopped) = oneshot::channel();
    let pool = Arc::new(Pool::new(LIMITS));
    let admitting = pool.clone();
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            runtime.block_on(async {
                let incoming = connections(listener, admitting);
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
        pool,
        stop: Some(stop),
        thread: Some(thread),
    })
}

/// Connections of a listener that get a place in the pool; others are closed.
fn connections(listener: TcpListener, pool: Arc<Pool>) -> ReceiverStream<io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut look = tokio::time::interval(LOOK);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                now = look.tick() => {
                    pool.expire(now);
                    continue;
                }
            };
            let Ok((stream, peer)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let Some(admission) = pool.admit(peer.ip(), Instant::now()) else {
                continue;
            };
            // Answers are short and waited for; without the option they are late.
            let _ = stream.set_nodelay(true);
            let connection = Connection { stream, admission };
            if sender.send(Ok(connection)).await.is_err() {
                return;
            }
        }
    });
    ReceiverStream::new(receiver)
}

/// The response to a call whose message is too long, with the code that gRPC gives it.
fn too_long<B>(mut response: http::Response<B>) -> http::Response<B> {
    let headers = response.headers_mut();
    let out_of_range = http::HeaderValue::from(Code::OutOfRange as i32);
    let too_long = headers.get("grpc-status") == Some(&out_of_range)
        && headers.get("grpc-message").is_some_and(|text| {
            let text = String::from_utf8_lossy(text.as_bytes());
            text.contains("message") && text.contains("too%20large")
        });
    if too_long {
        let code = http::HeaderValue::from(Code::ResourceExhausted as i32);
        headers.insert("grpc-status", code);
    }
    response
}

struct Service<E> {
    requests: Requests<E>,
    compile: Compile<E>,
    /// One program is compiled at a time.
    compiling: Semaphore,
}

struct PortService<E> {
    requests: Requests<E>,
}

#[tonic::async_trait]
impl<E: Engine + Send + 'static> own::switch_server::Switch for PortService<E> {
    async fn ports(
        &self,
        request: Request<own::PortsRequest>,
    ) -> Result<Response<own::PortsResponse>, Status> {
        let _call = Call::of(&request);
        let (reply, answer) = oneshot::channel();
        self.requests
            .send(Command::Ports(request.into_inner(), reply))
            .await?;
        let ports = answer.await.map_err(unanswered)??;
        Ok(Response::new(own::PortsResponse { ports }))
    }
}

/// A stream of messages to a client.
type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl<E: Engine + Send + 'static> Service<E> {
    /// Compiles and loads a program for the primary, away from the switch; an empty source
    /// is the program that runs.
    async fn prepare(
        &self,
        request: &v1::SetForwardingPipelineConfigRequest,
        source: Vec<u8>,
    ) -> Result<Prepared<E>, Status> {
        let claim = Claim {
            device_id: request.device_id,
            role: request.role.clone(),
            election_id: request.election_id,
        };
        let (reply, answer) = oneshot::channel();
        self.requests.send(Command::Program(claim, reply)).await?;
        let running = answer.await.map_err(unanswered)??;
        let _permit = self.compiling.acquire().await.map_err(unanswered)?;
        let mut prepared = if source.is_empty() {
            running
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
        let _call = Call::of(&request);
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
        let call = Call::of(&request);
        let (reply, answers) = mpsc::unbounded_channel();
        self.requests
            .send(Command::Read(request.into_inner(), reply))
            .await?;
        let answers = UnboundedReceiverStream::new(answers);
        Ok(Response::new(Box::pin(answers.map(move |part| {
            let _reading = &call;
            part.map(Unread::take)
        }))))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<v1::SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<v1::SetForwardingPipelineConfigResponse>, Status> {
        let _call = Call::of(&request);
        let request = request.into_inner();
        let source = request
            .config
            .as_ref()
            .map(|it| device_config::program(&it.p4_device_config).into_owned());
        let prepared = match source {
            Some(source) => Some(Box::new(self.prepare(&request, source).await?)),
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
        let _call = Call::of(&request);
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
        let call = Call::of(&request);
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
                let message = match message {
                    Some(Ok(message)) => message,
                    Some(Err(status)) => {
                        let code = match status.code() {
                            Code::OutOfRange => Code::ResourceExhausted,
                            code => code,
                        };
                        // A client that has gone is told nothing.
                        let _ = sender.try_send(Err(Status::new(code, status.message())));
                        break;
                    }
                    None => break,
                };
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
        let answers = ReceiverStream::new(answers).map(move |message| {
            let _open = &call;
            message
        });
        Ok(Response::new(Box::pin(answers)))
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

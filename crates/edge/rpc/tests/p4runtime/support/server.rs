//! A server with a switch that forwards nothing, and clients of it.

#![allow(clippy::disallowed_methods)]

use super::{CPU_PORT, SOURCE, exact, prepare};
use stateplane_rpc::proto::{config, v1};
use stateplane_rpc::{Core, Driver, Options, Refusal, Server, Tls, channel, serve};
use stateplane_switch::{Switch, SwitchConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;
use v1::p4_runtime_client::P4RuntimeClient;
use v1::stream_message_response::Update as Told;

/// A server at a port of its own, and the thread that runs its switch.
pub struct Running {
    pub server: Server,
    pub info: config::P4Info,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub fn start() -> Running {
        Running::start_with(None)
    }

    /// A server that speaks TLS if keys are given.
    pub fn start_with(tls: Option<Tls>) -> Running {
        let prepared = prepare(SOURCE);
        let info = prepared.info.clone();
        let load = prepared.load.clone();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let (give, take) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let config = SwitchConfig {
                ports: vec![0, 1, 2, 3, CPU_PORT],
                ..SwitchConfig::default()
            };
            let mut switch = Switch::new(load().unwrap(), config).unwrap();
            let options = Options {
                device_id: 1,
                cpu_port: Some(CPU_PORT),
                epoch_ns: 0,
                port_names: Default::default(),
            };
            let core = Core::new(options, prepared, &switch).unwrap();
            let (mut driver, client): (Driver<_>, _) = channel(core).unwrap();
            give.send(client).unwrap();
            let start = std::time::Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                let now = start.elapsed().as_micros() as u64;
                if driver.serve(&mut switch, now) != Some(0) {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
        });
        let client = take.recv().unwrap();
        let compile = Arc::new(|source: &[u8]| match std::str::from_utf8(source) {
            Ok(SOURCE) => Ok(prepare(SOURCE)),
            _ => Err(Refusal::invalid("not the program")),
        });
        let address = "127.0.0.1:0".parse().unwrap();
        // It has a runtime of its own, which cannot start within the test's.
        let server = std::thread::spawn(move || serve(client, compile, address, tls.as_ref()));
        Running {
            server: server.join().unwrap().unwrap(),
            info,
            stop,
            thread: Some(thread),
        }
    }

    async fn channel(&self) -> Channel {
        let address = format!("http://{}", self.server.address());
        let endpoint = Channel::from_shared(address).unwrap().tcp_nodelay(true);
        endpoint.connect().await.unwrap()
    }

    pub async fn client(&self) -> P4RuntimeClient<Channel> {
        P4RuntimeClient::new(self.channel().await)
    }

    pub async fn raw(&self) -> Raw {
        Raw(tonic::client::Grpc::new(self.channel().await))
    }

    pub async fn stream(&self) -> Stream {
        let (say, said) = mpsc::channel(16);
        let mut client = self.client().await.max_encoding_message_size(usize::MAX);
        let told = client.stream_channel(ReceiverStream::new(said)).await;
        Stream {
            say,
            told: told.unwrap().into_inner(),
        }
    }

    /// A stream that is primary.
    pub async fn primary(&self, id: u64) -> Stream {
        let mut stream = self.stream().await;
        stream.become_primary(id).await;
        stream
    }

    pub fn request(&self, id: u64, updates: Vec<v1::Update>) -> v1::WriteRequest {
        v1::WriteRequest {
            device_id: 1,
            election_id: Some(v1::Uint128 { high: 0, low: id }),
            updates,
            ..v1::WriteRequest::default()
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

pub struct Stream {
    pub say: mpsc::Sender<v1::StreamMessageRequest>,
    pub told: Streaming<v1::StreamMessageResponse>,
}

impl Stream {
    /// Claims primacy and waits until it is granted.
    pub async fn become_primary(&mut self, id: u64) {
        let message = v1::StreamMessageRequest {
            update: Some(super::arbitration(id)),
        };
        self.say.send(message).await.unwrap();
        loop {
            let message = self.told.message().await.unwrap().unwrap();
            let Some(Told::Arbitration(update)) = message.update else {
                continue;
            };
            if update.status.unwrap().code == 0 && update.election_id.unwrap().low == id {
                return;
            }
        }
    }
}

/// A client that sends any bytes as a message.
#[derive(Clone)]
pub struct Raw(tonic::client::Grpc<Channel>);

impl Raw {
    pub async fn call(&mut self, path: &'static str, bytes: Vec<u8>) -> Result<(), tonic::Status> {
        self.0.ready().await.unwrap();
        let path = tonic::codegen::http::uri::PathAndQuery::from_static(path);
        let request = tonic::Request::new(bytes);
        self.0.unary(request, path, Bytes).await.map(|_| ())
    }
}

#[derive(Clone, Copy, Default)]
struct Bytes;

impl tonic::codec::Codec for Bytes {
    type Encode = Vec<u8>;
    type Decode = ();
    type Encoder = Bytes;
    type Decoder = Bytes;

    fn encoder(&mut self) -> Bytes {
        Bytes
    }

    fn decoder(&mut self) -> Bytes {
        Bytes
    }
}

impl tonic::codec::Encoder for Bytes {
    type Item = Vec<u8>;
    type Error = tonic::Status;

    fn encode(
        &mut self,
        item: Vec<u8>,
        buffer: &mut tonic::codec::EncodeBuf<'_>,
    ) -> Result<(), tonic::Status> {
        prost::bytes::BufMut::put_slice(buffer, &item);
        Ok(())
    }
}

impl tonic::codec::Decoder for Bytes {
    type Item = ();
    type Error = tonic::Status;

    fn decode(
        &mut self,
        buffer: &mut tonic::codec::DecodeBuf<'_>,
    ) -> Result<Option<()>, tonic::Status> {
        let length = prost::bytes::Buf::remaining(buffer);
        prost::bytes::Buf::advance(buffer, length);
        Ok(Some(()))
    }
}

/// An entry of `l2`.
pub fn l2(info: &config::P4Info, address: u64, port: u16) -> v1::TableEntry {
    v1::TableEntry {
        table_id: super::id(info, "l2"),
        r#match: vec![exact(1, &address.to_be_bytes()[2..])],
        action: Some(super::action(info, "send", &[&port.to_be_bytes()])),
        ..v1::TableEntry::default()
    }
}

/// Ports or values to which the entries of a table send.
pub async fn marks(
    client: &mut P4RuntimeClient<Channel>,
    table: v1::entity::Entity,
) -> Vec<Vec<u8>> {
    let request = v1::ReadRequest {
        device_id: 1,
        entities: vec![v1::Entity {
            entity: Some(table),
        }],
        ..v1::ReadRequest::default()
    };
    let mut parts = client.read(request).await.unwrap().into_inner();
    let mut marks = Vec::new();
    while let Some(part) = parts.message().await.unwrap() {
        for entity in part.entities {
            let Some(v1::entity::Entity::TableEntry(entry)) = entity.entity else {
                continue;
            };
            let action = entry.action.and_then(|action| action.r#type);
            if let Some(v1::table_action::Type::Action(action)) = action {
                marks.extend(action.params.into_iter().map(|param| param.value));
            }
        }
    }
    marks
}

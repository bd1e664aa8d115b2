//! etcd as a log: each message is put under a key of its own, and watchers get all of them in the
//! order in which the members agreed on them.
//!
//! Requests and streams are served by a thread beside the caller's, so that a caller can wait for less
//! than the thousandth of a second that the runtime's timers count.

use super::{Empty, PutRequest, ask, program};
use crate::process::{BEGIN, data};
use crate::service::runtime;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_stream::StreamExt;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

/// UDP and TCP ports of members: for clients, and for each other.
const CLIENTS: u16 = 2379;
const PEERS: u16 = 2380;

/// Beginning of the keys of messages, and the first key behind all of them.
const PREFIX: &[u8] = b"m";
const BEHIND: &[u8] = b"n";

/// Time between two attempts to reach a member.
const AGAIN: Duration = Duration::from_millis(50);

/// `etcdserverpb.WatchCreateRequest`, as far as it is used.
#[derive(Clone, PartialEq, prost::Message)]
struct WatchCreateRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    range_end: Vec<u8>,
}

/// `etcdserverpb.WatchRequest`, as far as it is used.
#[derive(Clone, PartialEq, prost::Message)]
struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    create: Option<WatchCreateRequest>,
}

/// `etcdserverpb.WatchResponse`, as far as it is used.
#[derive(Clone, PartialEq, prost::Message)]
struct WatchResponse {
    #[prost(bool, tag = "3")]
    created: bool,
    #[prost(message, repeated, tag = "11")]
    events: Vec<WatchEvent>,
}

/// `mvccpb.Event`, as far as it is used.
#[derive(Clone, PartialEq, prost::Message)]
struct WatchEvent {
    #[prost(message, optional, tag = "2")]
    record: Option<Record>,
}

/// `mvccpb.KeyValue`, as far as it is used.
#[derive(Clone, PartialEq, prost::Message)]
struct Record {
    #[prost(bytes = "vec", tag = "5")]
    value: Vec<u8>,
}

/// The address at which the member at `address` serves clients.
pub const fn etcd_clients(address: Ipv4Addr) -> SocketAddrV4 {
    SocketAddrV4::new(address, CLIENTS)
}

/// A member's command, and the folder of its files in memory.
#[derive(Debug)]
pub struct EtcdMember {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Its files, removed with it.
    pub folder: TempDir,
}

/// Members of one log at these addresses, one each, which keep their files in memory. The caller
/// starts the commands where the addresses are.
///
/// # Errors
///
/// Why there is no etcd, or no folder.
pub fn etcd_members(addresses: &[Ipv4Addr]) -> Result<Vec<EtcdMember>, String> {
    let program = program()?;
    let peer = |address: &Ipv4Addr| format!("http://{address}:{PEERS}");
    let all = addresses.iter().enumerate();
    let all = all.map(|(at, address)| format!("m{at}={}", peer(address)));
    let cluster = all.collect::<Vec<_>>().join(",");
    let member = |(at, address): (usize, &Ipv4Addr)| {
        let folder = data(false)?;
        let clients = etcd_clients(*address);
        let mut command = vec![program.display().to_string()];
        for (option, value) in [
            ("--data-dir", folder.path().display().to_string()),
            ("--name", format!("m{at}")),
            ("--initial-cluster", cluster.clone()),
            ("--listen-client-urls", format!("http://{clients}")),
            ("--advertise-client-urls", format!("http://{clients}")),
            ("--listen-peer-urls", peer(address)),
            ("--initial-advertise-peer-urls", peer(address)),
        ] {
            command.extend([option.to_owned(), value]);
        }
        command.push("--unsafe-no-fsync".to_owned());
        Ok(EtcdMember { command, folder })
    };
    addresses.iter().enumerate().map(member).collect()
}

fn channel(member: SocketAddrV4) -> Result<Channel, String> {
    let endpoint = Endpoint::from_shared(format!("http://{member}"));
    let endpoint = endpoint.map_err(|error| error.to_string())?;
    Ok(endpoint.connect_timeout(BEGIN).connect_lazy())
}

/// Runs `serve` in a thread with a runtime of its own.
fn serve<F: Future<Output = ()>>(serve: impl FnOnce() -> F + Send + 'static) -> Result<(), String> {
    let runtime = runtime()?;
    let thread = std::thread::Builder::new().spawn(move || runtime.block_on(serve()));
    thread.map(drop).map_err(|error| error.to_string())
}

/// A writer of the log.
#[derive(Debug)]
pub struct EtcdLog {
    puts: UnboundedSender<PutRequest>,
    done: Receiver<Result<(), String>>,
    under_way: usize,
}

impl EtcdLog {
    /// Opens `connections` to the member that leads, and waits until it takes messages.
    ///
    /// # Errors
    ///
    /// No member leads, or takes a message.
    pub fn open(members: &[SocketAddrV4], connections: usize) -> Result<EtcdLog, String> {
        let end = Instant::now() + BEGIN;
        let leader = loop {
            match super::leader(members) {
                Ok(leader) => break members[leader],
                Err(error) if Instant::now() > end => return Err(error),
                Err(_) => std::thread::sleep(AGAIN),
            }
        };
        let (puts, taken) = unbounded_channel();
        let (tell, done) = mpsc::channel();
        serve(move || put_all(leader, connections.max(1), taken, tell))?;
        Ok(EtcdLog {
            puts,
            done,
            under_way: 0,
        })
    }

    /// Messages that are not answered.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// Puts a message under a key that no other message has.
    ///
    /// # Errors
    ///
    /// The thread ended.
    pub fn put(&mut self, key: u64, value: Vec<u8>) -> Result<(), String> {
        let mut name = PREFIX.to_vec();
        name.extend(format!("{key:016x}").bytes());
        let request = PutRequest {
            key: name,
            value,
            lease: 0,
        };
        self.under_way += 1;
        self.puts.send(request).map_err(|error| error.to_string())
    }

    /// Waits for an answer, at most for `limit`, and takes those that are there; gives their number.
    ///
    /// # Errors
    ///
    /// A message was refused.
    pub fn wait(&mut self, limit: Duration) -> Result<usize, String> {
        let first = match self.done.recv_timeout(limit) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => return Ok(0),
            Err(RecvTimeoutError::Disconnected) => return Err("the connection ended".to_owned()),
        };
        first?;
        let mut count = 1;
        while let Ok(next) = self.done.try_recv() {
            next?;
            count += 1;
        }
        self.under_way -= count;
        Ok(count)
    }
}

async fn put_all(
    leader: SocketAddrV4,
    connections: usize,
    mut taken: UnboundedReceiver<PutRequest>,
    tell: Sender<Result<(), String>>,
) {
    let opened: Result<Vec<Channel>, String> = (0..connections).map(|_| channel(leader)).collect();
    let channels = match opened {
        Ok(channels) => channels,
        Err(error) => return drop(tell.send(Err(error))),
    };
    let mut turn = channels.iter().cycle();
    while let Some(request) = taken.recv().await {
        let Some(channel) = turn.next().cloned() else {
            return;
        };
        let tell = tell.clone();
        tokio::spawn(async move {
            let put = ask::<_, Empty>(channel, "/etcdserverpb.KV/Put", request);
            // Nobody listens any more at the end.
            let _ = tell.send(put.await.map(drop));
        });
    }
}

/// A reader of the log.
#[derive(Debug)]
pub struct EtcdWatch {
    values: Receiver<(u64, Vec<u8>)>,
}

impl EtcdWatch {
    /// Watches all messages from here on at `member`; `now` is the clock by which they are stamped
    /// when they come.
    ///
    /// # Errors
    ///
    /// The member does not answer.
    pub fn open(member: SocketAddrV4, now: fn() -> u64) -> Result<EtcdWatch, String> {
        let (tell, values) = mpsc::channel();
        let (begun, begins) = mpsc::channel();
        serve(move || async move {
            let end = Instant::now() + BEGIN;
            loop {
                match watch(member, now, &tell, &begun).await {
                    Err(error) if Instant::now() > end => {
                        let _ = begun.send(Err(error));
                        return;
                    }
                    Err(_) => tokio::time::sleep(AGAIN).await,
                    Ok(()) => return,
                }
            }
        })?;
        let began = begins.recv_timeout(BEGIN + BEGIN);
        began.map_err(|_| format!("{member} does not answer"))??;
        Ok(EtcdWatch { values })
    }

    /// Waits for a message, at most for `limit`, and gives those that are there to `take`, each with
    /// the time at which it came.
    ///
    /// # Errors
    ///
    /// The stream ended.
    pub fn wait(
        &mut self,
        limit: Duration,
        mut take: impl FnMut(u64, &[u8]),
    ) -> Result<(), String> {
        let (at, value) = match self.values.recv_timeout(limit) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err("the stream ended".to_owned()),
        };
        take(at, &value);
        while let Ok((at, value)) = self.values.try_recv() {
            take(at, &value);
        }
        Ok(())
    }
}

/// Watches until the stream or the listener ends.
async fn watch(
    member: SocketAddrV4,
    now: fn() -> u64,
    tell: &Sender<(u64, Vec<u8>)>,
    begun: &Sender<Result<(), String>>,
) -> Result<(), String> {
    let mut client = Grpc::new(channel(member)?);
    let ready = client.ready().await;
    ready.map_err(|error| error.to_string())?;
    let create = WatchRequest {
        create: Some(WatchCreateRequest {
            key: PREFIX.to_vec(),
            range_end: BEHIND.to_vec(),
        }),
    };
    // The end of the requests would end the stream.
    let requests = tokio_stream::once(create).chain(tokio_stream::pending());
    let codec: ProstCodec<WatchRequest, WatchResponse> = ProstCodec::default();
    let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
    let request = tonic::Request::new(requests);
    let response = client.streaming(request, path, codec).await;
    let mut stream = response.map_err(|status| status.to_string())?.into_inner();
    while let Some(response) = stream.message().await.map_err(|error| error.to_string())? {
        if response.created {
            let _ = begun.send(Ok(()));
        }
        let at = now();
        for record in response.events.into_iter().filter_map(|event| event.record) {
            if tell.send((at, record.value)).is_err() {
                return Ok(());
            }
        }
    }
    Err(format!("{member} ended the stream"))
}

//! etcd with three members.

use super::process::{BEGIN, Peer, folder, free_port, wait};
use super::{Asked, Latencies};
use crate::Sample;
use crate::loopback::ROUND;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

/// Go module that is built where no `etcd` is installed.
const MODULE: &str = "go.etcd.io/etcd/server/v3";
const VERSION: &str = "v3.5.21";

/// The command around the module.
const MAIN: &str = "package main

import (
\t\"os\"

\t\"go.etcd.io/etcd/server/v3/etcdmain\"
)

func main() { etcdmain.Main(os.Args) }
";

/// `etcdserverpb.PutRequest`, as far as it is used.
#[derive(Clone, PartialEq, prost::Message)]
struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// `etcdserverpb.PutResponse`, of which nothing is read.
#[derive(Clone, PartialEq, prost::Message)]
struct PutResponse {}

/// `etcdserverpb.RangeRequest`, as far as it is used: a linearizable read of one key.
#[derive(Clone, PartialEq, prost::Message)]
struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

/// `etcdserverpb.RangeResponse`, of which only the count is read.
#[derive(Clone, PartialEq, prost::Message)]
struct RangeResponse {
    #[prost(int64, tag = "4")]
    count: i64,
}

/// Three members, and a connection for each client, spread over them.
pub struct Etcd {
    channels: Vec<Channel>,
    value: usize,
    latencies: Latencies,
    runtime: Runtime,
    _members: Vec<Peer>,
    _data: Vec<tempfile::TempDir>,
}

impl Etcd {
    /// Starts the members, which write their log through to the disk if `sync`, and opens
    /// `concurrency` connections. Values have `value` bytes.
    ///
    /// # Errors
    ///
    /// Why there are none.
    pub fn start(concurrency: usize, sync: bool, value: usize) -> Result<Etcd, String> {
        let program = program()?;
        let ports: Vec<[u16; 2]> = (0..3).map(|_| [free_port(), free_port()]).collect();
        let peers = ports.iter().enumerate();
        let peers = peers.map(|(at, [_, peer])| format!("m{at}=http://127.0.0.1:{peer}"));
        let cluster = peers.collect::<Vec<_>>().join(",");
        let mut members = Vec::new();
        let mut data = Vec::new();
        for (at, [client, peer]) in ports.iter().enumerate() {
            let folder = tempfile::tempdir_in(folder()).map_err(|error| error.to_string())?;
            let (client, peer) = (
                format!("http://127.0.0.1:{client}"),
                format!("http://127.0.0.1:{peer}"),
            );
            let mut command = Command::new(&program);
            command.arg("--data-dir").arg(folder.path());
            command.args(["--name", &format!("m{at}"), "--initial-cluster", &cluster]);
            command.args([
                "--listen-client-urls",
                &client,
                "--advertise-client-urls",
                &client,
            ]);
            command.args([
                "--listen-peer-urls",
                &peer,
                "--initial-advertise-peer-urls",
                &peer,
            ]);
            if !sync {
                command.arg("--unsafe-no-fsync");
            }
            members.push(Peer::start(&mut command)?);
            data.push(folder);
        }
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let _within = runtime.enter();
        let mut channels = Vec::new();
        for at in 0..concurrency {
            let [client, _] = ports[at % ports.len()];
            let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{client}"));
            let endpoint = endpoint.map_err(|error| error.to_string())?;
            channels.push(endpoint.connect_timeout(BEGIN).connect_lazy());
        }
        drop(_within);
        let etcd = Etcd {
            channels,
            value,
            latencies: Latencies::default(),
            runtime,
            _members: members,
            _data: data,
        };
        wait("etcd with three members", || {
            let first = etcd.channels[0].clone();
            etcd.runtime.block_on(put(first, 0, value)).is_ok()
        })?;
        Ok(etcd)
    }

    /// Asks on all connections for half a second; each has a key of its own, which a read finds
    /// once a round of writes was made.
    pub fn round(&mut self, asked: Asked) -> Sample {
        let start = Instant::now();
        let channels = self.channels.clone();
        let value = self.value;
        let (items, latencies) = self.runtime.block_on(async move {
            let mut tasks = JoinSet::new();
            for (at, channel) in channels.into_iter().enumerate() {
                tasks.spawn(async move {
                    let mut latencies = Latencies::default();
                    let mut answers = 0;
                    while start.elapsed() < ROUND {
                        let sent = Instant::now();
                        let channel = channel.clone();
                        match asked {
                            Asked::Write => put(channel, at, value).await.expect("etcd answers"),
                            Asked::Read => {
                                let found = range(channel, at).await.expect("etcd answers");
                                assert_eq!(found, 1, "the key was written");
                            }
                        }
                        latencies.add(sent.elapsed());
                        answers += 1;
                    }
                    (answers, latencies)
                });
            }
            let mut all = Latencies::default();
            let mut items = 0;
            for (answers, latencies) in tasks.join_all().await {
                items += answers;
                all.append(latencies);
            }
            (items, all)
        });
        self.latencies = latencies;
        Sample {
            items,
            spent: start.elapsed(),
        }
    }

    /// Times of the answers in the last round.
    pub fn latencies(&mut self) -> &mut Latencies {
        &mut self.latencies
    }
}

fn key(at: usize) -> Vec<u8> {
    format!("{at:016}").into_bytes()
}

async fn put(channel: Channel, at: usize, value: usize) -> Result<(), tonic::Status> {
    let request = PutRequest {
        key: key(at),
        value: vec![b'v'; value],
    };
    let _: PutResponse = unary(channel, "/etcdserverpb.KV/Put", request).await?;
    Ok(())
}

/// Number of records that the key has, read at a linearizable point.
async fn range(channel: Channel, at: usize) -> Result<i64, tonic::Status> {
    let request = RangeRequest { key: key(at) };
    let response: RangeResponse = unary(channel, "/etcdserverpb.KV/Range", request).await?;
    Ok(response.count)
}

async fn unary<Q, A>(channel: Channel, path: &'static str, request: Q) -> Result<A, tonic::Status>
where
    Q: prost::Message + Send + Sync + 'static,
    A: prost::Message + Default + Send + Sync + 'static,
{
    let mut client = Grpc::new(channel);
    let ready = client.ready().await;
    ready.map_err(|error| tonic::Status::unavailable(error.to_string()))?;
    let codec: ProstCodec<Q, A> = ProstCodec::default();
    let path = PathAndQuery::from_static(path);
    let response = client
        .unary(tonic::Request::new(request), path, codec)
        .await?;
    Ok(response.into_inner())
}

/// etcd 3.5 or newer: the one installed, or one that Go builds into the target folder.
fn program() -> Result<PathBuf, String> {
    let installed = Command::new("etcd").arg("--version").output();
    if let Ok(output) = installed
        && is_new(&String::from_utf8_lossy(&output.stdout))
    {
        return Ok("etcd".into());
    }
    let folder = folder().join("etcd");
    let built = folder.join("etcd");
    if built.exists() {
        return Ok(built);
    }
    println!("building etcd {VERSION} with Go (once)");
    let wrong = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(&folder).map_err(wrong)?;
    std::fs::write(
        folder.join("go.mod"),
        format!("module peer\n\ngo 1.23\n\nrequire {MODULE} {VERSION}\n"),
    )
    .map_err(wrong)?;
    std::fs::write(folder.join("main.go"), MAIN).map_err(wrong)?;
    for arguments in [["mod", "tidy"].as_slice(), &["build", "-o", "etcd", "."]] {
        let output = Command::new("go")
            .args(arguments)
            .current_dir(&folder)
            .output()
            .map_err(|_| "neither etcd 3.5 or newer nor Go is installed".to_owned())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("Go cannot build {MODULE}: {}", said.trim()));
        }
    }
    Ok(built)
}

/// True if `etcd --version` names 3.5 or a newer one.
fn is_new(said: &str) -> bool {
    let version = said
        .lines()
        .find_map(|line| line.strip_prefix("etcd Version: "));
    let mut numbers = version
        .unwrap_or_default()
        .split('.')
        .map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (3, 5),
        _ => false,
    }
}

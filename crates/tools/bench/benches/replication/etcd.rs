//! Writes to etcd with three members.

use crate::ROUND;
use crate::peer::{BEGIN, Peer, folder, free_port, wait};
use stateplane_bench::Sample;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

/// Bytes of a value: those of a flow's write.
const VALUE: usize = 8 + 64;

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

/// Three members, and a connection for each writer, spread over them.
pub struct Etcd {
    channels: Vec<Channel>,
    runtime: Runtime,
    _members: Vec<Peer>,
    _data: Vec<tempfile::TempDir>,
}

impl Etcd {
    /// Starts the members, which write their log through to the disk if `sync`, and opens
    /// `concurrency` connections.
    ///
    /// # Errors
    ///
    /// Why there are none.
    pub fn start(concurrency: usize, sync: bool) -> Result<Etcd, String> {
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
            runtime,
            _members: members,
            _data: data,
        };
        wait("etcd with three members", || {
            let first = etcd.channels[0].clone();
            etcd.runtime.block_on(put(first, 0)).is_ok()
        })?;
        Ok(etcd)
    }

    /// Writes on all connections for half a second.
    pub fn round(&mut self) -> Sample {
        let start = Instant::now();
        let channels = self.channels.clone();
        let items = self.runtime.block_on(async move {
            let mut tasks = JoinSet::new();
            for (at, channel) in channels.into_iter().enumerate() {
                tasks.spawn(async move {
                    let mut written = 0;
                    while start.elapsed() < ROUND {
                        put(channel.clone(), at).await.expect("etcd answers");
                        written += 1;
                    }
                    written
                });
            }
            tasks.join_all().await.into_iter().sum()
        });
        Sample {
            items,
            spent: start.elapsed(),
        }
    }
}

async fn put(channel: Channel, at: usize) -> Result<(), tonic::Status> {
    let mut client = Grpc::new(channel);
    let ready = client.ready().await;
    ready.map_err(|error| tonic::Status::unavailable(error.to_string()))?;
    let request = PutRequest {
        key: format!("{at:016}").into_bytes(),
        value: vec![b'v'; VALUE],
    };
    let codec: ProstCodec<PutRequest, PutResponse> = ProstCodec::default();
    let path = PathAndQuery::from_static("/etcdserverpb.KV/Put");
    client
        .unary(tonic::Request::new(request), path, codec)
        .await?;
    Ok(())
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
    println!("replication: building etcd {VERSION} with Go (once)");
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

//! etcd with three members.

mod lock;
mod log;

pub use lock::{EtcdLock, leader};
pub use log::{EtcdLog, EtcdMember, EtcdWatch, etcd_clients, etcd_members};

use lock::{Empty, GrantRequest, GrantResponse};

use crate::locks::Locks;
use crate::process::{BEGIN, Server, data, folder, free_port, wait};
use crate::service::{Connection, Service, name, runtime};
use std::path::PathBuf;
use std::process::Command;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

/// Go module that is built where no new `etcd` is installed.
const MODULE: &str = "go.etcd.io/etcd/server/v3";
const VERSION: &str = "v3.7.3";

/// Seconds until the locks of a client that ended are free.
const LEASE_S: i64 = 600;

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
    #[prost(int64, tag = "3")]
    lease: i64,
}

/// `etcdserverpb.RangeRequest`, as far as it is used: a linearizable read of one key.
#[derive(Clone, PartialEq, prost::Message)]
struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

/// `mvccpb.KeyValue`, as far as it is used.
#[derive(Clone, PartialEq, prost::Message)]
struct KeyValue {
    #[prost(bytes = "vec", tag = "5")]
    value: Vec<u8>,
}

/// `etcdserverpb.RangeResponse`, as far as it is used.
#[derive(Clone, PartialEq, prost::Message)]
struct RangeResponse {
    #[prost(message, repeated, tag = "2")]
    records: Vec<KeyValue>,
}

/// `etcdserverpb.DeleteRangeRequest`, as far as it is used.
#[derive(Clone, PartialEq, prost::Message)]
struct DeleteRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

/// `etcdserverpb.Compare`: true while `key` has no record, with the values that are left out.
#[derive(Clone, PartialEq, prost::Message)]
struct Compare {
    /// 1: the revision at which the record was made.
    #[prost(int32, tag = "2")]
    target: i32,
    #[prost(bytes = "vec", tag = "3")]
    key: Vec<u8>,
    #[prost(int64, optional, tag = "5")]
    create_revision: Option<i64>,
}

/// `etcdserverpb.RequestOp`, of which one field is set.
#[derive(Clone, PartialEq, prost::Message)]
struct RequestOp {
    #[prost(message, optional, tag = "2")]
    put: Option<PutRequest>,
    #[prost(message, optional, tag = "3")]
    delete: Option<DeleteRequest>,
}

/// `etcdserverpb.TxnRequest`, without what happens otherwise.
#[derive(Clone, PartialEq, prost::Message)]
struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    success: Vec<RequestOp>,
}

/// `etcdserverpb.TxnResponse`, as far as it is used.
#[derive(Clone, PartialEq, prost::Message)]
struct TxnResponse {
    #[prost(bool, tag = "2")]
    succeeded: bool,
}

/// A client's connection to one of the members.
#[derive(Clone)]
pub struct EtcdConnection {
    channel: Channel,
    lease: i64,
}

/// Three members, and a connection for each client, spread over them.
pub type Etcd = Service<EtcdConnection>;

impl Etcd {
    /// Starts the members and opens `concurrency` connections. The members write their log through
    /// to a disk if `sync`, else to files in memory. Values have `value` bytes.
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
        let mut servers = Vec::new();
        let mut folders = Vec::new();
        for (at, [client, peer]) in ports.iter().enumerate() {
            let folder = data(sync)?;
            let client = format!("http://127.0.0.1:{client}");
            let peer = format!("http://127.0.0.1:{peer}");
            let mut command = Command::new(&program);
            command.arg("--data-dir").arg(folder.path());
            command.args(["--name", &format!("m{at}"), "--initial-cluster", &cluster]);
            for (option, address) in [
                ("--listen-client-urls", &client),
                ("--advertise-client-urls", &client),
                ("--listen-peer-urls", &peer),
                ("--initial-advertise-peer-urls", &peer),
            ] {
                command.args([option, address]);
            }
            if !sync {
                command.arg("--unsafe-no-fsync");
            }
            servers.push(Server::start(&mut command)?);
            folders.push(folder);
        }
        let runtime = runtime()?;
        let within = runtime.enter();
        let mut connections = Vec::new();
        for at in 0..concurrency {
            let [client, _] = ports[at % ports.len()];
            let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{client}"));
            let endpoint = endpoint.map_err(|error| error.to_string())?;
            let channel = endpoint.connect_timeout(BEGIN).connect_lazy();
            connections.push(EtcdConnection { channel, lease: 0 });
        }
        drop(within);
        wait("etcd with three members", || {
            // One connection to each member: the others may begin to listen later than the first.
            let mut each = connections.iter().take(ports.len()).cloned();
            each.all(|mut member| runtime.block_on(member.put(0, value)).is_ok())
        })?;
        for connection in &mut connections {
            let grant = GrantRequest { seconds: LEASE_S };
            let granted = connection.ask("/etcdserverpb.Lease/LeaseGrant", grant);
            let granted: GrantResponse = runtime.block_on(granted)?;
            connection.lease = granted.lease;
        }
        Ok(Service::new(connections, runtime, value, servers, folders))
    }
}

impl EtcdConnection {
    async fn ask<Q, A>(&self, path: &'static str, request: Q) -> Result<A, String>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        ask(self.channel.clone(), path, request).await
    }
}

/// The response to one request.
async fn ask<Q, A>(channel: Channel, path: &'static str, request: Q) -> Result<A, String>
where
    Q: prost::Message + Send + Sync + 'static,
    A: prost::Message + Default + Send + Sync + 'static,
{
    let mut client = Grpc::new(channel);
    let ready = client.ready().await;
    ready.map_err(|error| error.to_string())?;
    let codec: ProstCodec<Q, A> = ProstCodec::default();
    let path = PathAndQuery::from_static(path);
    let response = client
        .unary(tonic::Request::new(request), path, codec)
        .await;
    let response = response.map_err(|status| status.to_string())?;
    Ok(response.into_inner())
}

fn key(at: u64) -> Vec<u8> {
    name(at).into_bytes()
}

/// Name of the record that is a lock.
fn lock(at: u64) -> Vec<u8> {
    format!("lock{at:012}").into_bytes()
}

impl Connection for EtcdConnection {
    async fn put(&mut self, at: u64, length: usize) -> Result<(), String> {
        let request = PutRequest {
            key: key(at),
            value: vec![b'v'; length],
            lease: 0,
        };
        let _: Empty = self.ask("/etcdserverpb.KV/Put", request).await?;
        Ok(())
    }

    async fn get(&mut self, at: u64) -> Result<usize, String> {
        let request = RangeRequest { key: key(at) };
        let response: RangeResponse = self.ask("/etcdserverpb.KV/Range", request).await?;
        let record = response.records.first();
        record
            .map(|record| record.value.len())
            .ok_or_else(|| format!("no record {at}"))
    }
}

impl Locks for EtcdConnection {
    const TOGETHER: bool = true;

    async fn try_lock(&self, locks: &[u64]) -> Result<bool, String> {
        let absent = |at: &u64| Compare {
            target: 1,
            key: lock(*at),
            create_revision: Some(0),
        };
        let made = |at: &u64| RequestOp {
            put: Some(PutRequest {
                key: lock(*at),
                value: Vec::new(),
                lease: self.lease,
            }),
            delete: None,
        };
        let request = TxnRequest {
            compare: locks.iter().map(absent).collect(),
            success: locks.iter().map(made).collect(),
        };
        let response: TxnResponse = self.ask("/etcdserverpb.KV/Txn", request).await?;
        Ok(response.succeeded)
    }

    async fn unlock(&self, locks: &[u64]) -> Result<(), String> {
        let deleted = |at: &u64| RequestOp {
            put: None,
            delete: Some(DeleteRequest { key: lock(*at) }),
        };
        let request = TxnRequest {
            compare: Vec::new(),
            success: locks.iter().map(deleted).collect(),
        };
        let _: TxnResponse = self.ask("/etcdserverpb.KV/Txn", request).await?;
        Ok(())
    }
}

/// etcd 3.5 or newer: the one installed, or one that Go builds into the target folder.
///
/// # Errors
///
/// Why there is none.
pub fn program() -> Result<PathBuf, String> {
    let installed = Command::new("etcd").arg("--version").output();
    if let Ok(output) = installed
        && is_new(&String::from_utf8_lossy(&output.stdout))
    {
        return Ok("etcd".into());
    }
    let folder = folder().join(format!("etcd-{VERSION}"));
    let built = folder.join("etcd");
    if built.exists() {
        return Ok(built);
    }
    eprintln!("building etcd {VERSION} with Go (once)");
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

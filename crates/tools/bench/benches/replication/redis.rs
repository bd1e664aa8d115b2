//! Writes to Redis that wait for both replicas.

use crate::ROUND;
use crate::peer::{BEGIN, Peer, folder, free_port, wait};
use stateplane_bench::Sample;
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// Bytes of key and value, those of a flow's write.
const KEY: usize = 16;
const VALUE: usize = 8 + 64;

/// A master with two replicas, and connections to it.
pub struct Redis {
    connections: Vec<TcpStream>,
    runtime: Runtime,
    _peers: Vec<Peer>,
}

impl Redis {
    /// Starts the servers and opens `concurrency` connections.
    ///
    /// # Errors
    ///
    /// Why there are none.
    pub fn start(concurrency: usize) -> Result<Redis, String> {
        let master = free_port();
        let mut peers = vec![Peer::start(&mut server(master))?];
        for _ in 0..2 {
            let mut replica = server(free_port());
            replica.args(["--replicaof", "127.0.0.1", &master.to_string()]);
            peers.push(Peer::start(&mut replica)?);
        }
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let connections = runtime.block_on(async {
            let mut connections = Vec::new();
            let deadline = Instant::now() + BEGIN;
            while connections.len() < concurrency {
                match TcpStream::connect(("127.0.0.1", master)).await {
                    Ok(stream) => {
                        let _ = stream.set_nodelay(true);
                        connections.push(stream);
                    }
                    Err(error) if Instant::now() > deadline => return Err(error.to_string()),
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
            Ok(connections)
        })?;
        let mut redis = Redis {
            connections,
            runtime,
            _peers: peers,
        };
        wait("Redis with two replicas", || redis.replicas() == Some(2))?;
        Ok(redis)
    }

    /// Number of replicas that have a write.
    fn replicas(&mut self) -> Option<u64> {
        let connection = &mut self.connections[0];
        self.runtime.block_on(write(connection, 0, 100)).ok()
    }

    /// Writes on all connections for half a second.
    pub fn round(&mut self) -> Sample {
        let start = Instant::now();
        let connections = std::mem::take(&mut self.connections);
        let (items, connections) = self.runtime.block_on(async move {
            let mut tasks = JoinSet::new();
            for (at, mut stream) in connections.into_iter().enumerate() {
                tasks.spawn(async move {
                    let mut written = 0;
                    while start.elapsed() < ROUND {
                        let kept = write(&mut stream, at, 0).await.expect("Redis answers");
                        assert_eq!(kept, 2, "both replicas have the write");
                        written += 1;
                    }
                    (written, stream)
                });
            }
            let ended = tasks.join_all().await;
            let items = ended.iter().map(|(written, _)| written).sum();
            (items, ended.into_iter().map(|(_, stream)| stream).collect())
        });
        self.connections = connections;
        Sample {
            items,
            spent: start.elapsed(),
        }
    }
}

/// A server at `port` that keeps nothing on disk.
fn server(port: u16) -> Command {
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
    command.args([
        "--port",
        &port.to_string(),
        "--repl-diskless-sync-delay",
        "0",
    ]);
    command.current_dir(folder());
    command
}

/// Sets a value and waits, at most `patience` ms or for ever if that is 0, for two replicas;
/// gives how many have it.
async fn write(stream: &mut TcpStream, at: usize, patience: u64) -> std::io::Result<u64> {
    let value = "v".repeat(VALUE);
    let patience = patience.to_string();
    let commands = format!(
        "*3\r\n$3\r\nSET\r\n${KEY}\r\n{at:0KEY$}\r\n${VALUE}\r\n{value}\r\n\
         *3\r\n$4\r\nWAIT\r\n$1\r\n2\r\n${}\r\n{patience}\r\n",
        patience.len()
    );
    stream.write_all(commands.as_bytes()).await?;
    let mut answer = Vec::new();
    while answer.iter().filter(|byte| **byte == b'\n').count() < 2 {
        if stream.read_buf(&mut answer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    let answer = String::from_utf8_lossy(&answer);
    let kept = answer
        .lines()
        .nth(1)
        .and_then(|line| line.strip_prefix(':'));
    kept.and_then(|kept| kept.parse().ok())
        .ok_or_else(|| std::io::Error::other(answer.into_owned()))
}

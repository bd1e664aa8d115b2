//! Redis with two replicas, for whose acknowledgement writes wait.

use super::process::{BEGIN, Peer, folder, free_port, wait};
use super::{Asked, Latencies};
use crate::Sample;
use crate::loopback::ROUND;
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// Bytes of a key.
const KEY: usize = 16;

/// A master with two replicas, and connections to it.
pub struct Redis {
    connections: Vec<TcpStream>,
    value: usize,
    latencies: Latencies,
    runtime: Runtime,
    _peers: Vec<Peer>,
}

impl Redis {
    /// Starts the servers and opens `concurrency` connections. Values have `value` bytes.
    ///
    /// # Errors
    ///
    /// Why there are none.
    pub fn start(concurrency: usize, value: usize) -> Result<Redis, String> {
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
            value,
            latencies: Latencies::default(),
            runtime,
            _peers: peers,
        };
        wait("Redis with two replicas", || redis.replicas() == Some(2))?;
        Ok(redis)
    }

    /// Number of replicas that have a write.
    fn replicas(&mut self) -> Option<u64> {
        let connection = &mut self.connections[0];
        let written = write(connection, 0, self.value, 100);
        self.runtime.block_on(written).ok()
    }

    /// Asks on all connections for half a second; each has a key of its own, which a read finds
    /// once a round of writes was made. Reads ask the master.
    pub fn round(&mut self, asked: Asked) -> Sample {
        let start = Instant::now();
        let connections = std::mem::take(&mut self.connections);
        let value = self.value;
        let (items, connections, latencies) = self.runtime.block_on(async move {
            let mut tasks = JoinSet::new();
            for (at, mut stream) in connections.into_iter().enumerate() {
                tasks.spawn(async move {
                    let mut latencies = Latencies::default();
                    let mut answers = 0;
                    while start.elapsed() < ROUND {
                        let sent = Instant::now();
                        match asked {
                            Asked::Write => {
                                let kept = write(&mut stream, at, value, 0).await;
                                let kept = kept.expect("Redis answers");
                                assert_eq!(kept, 2, "both replicas have the write");
                            }
                            Asked::Read => {
                                let length = read(&mut stream, at).await.expect("Redis answers");
                                assert_eq!(length, value, "the key was written");
                            }
                        }
                        latencies.add(sent.elapsed());
                        answers += 1;
                    }
                    (answers, stream, latencies)
                });
            }
            let mut all = Latencies::default();
            let mut items = 0;
            let mut streams = Vec::new();
            for (answers, stream, latencies) in tasks.join_all().await {
                items += answers;
                streams.push(stream);
                all.append(latencies);
            }
            (items, streams, all)
        });
        self.connections = connections;
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
async fn write(
    stream: &mut TcpStream,
    at: usize,
    value: usize,
    patience: u64,
) -> std::io::Result<u64> {
    let text = "v".repeat(value);
    let patience = patience.to_string();
    let commands = format!(
        "*3\r\n$3\r\nSET\r\n${KEY}\r\n{at:0KEY$}\r\n${value}\r\n{text}\r\n\
         *3\r\n$4\r\nWAIT\r\n$1\r\n2\r\n${}\r\n{patience}\r\n",
        patience.len()
    );
    let answer = ask(stream, &commands).await?;
    let kept = answer
        .lines()
        .nth(1)
        .and_then(|line| line.strip_prefix(':'));
    kept.and_then(|kept| kept.parse().ok())
        .ok_or_else(|| std::io::Error::other(answer.clone()))
}

/// Reads a value; gives its length.
async fn read(stream: &mut TcpStream, at: usize) -> std::io::Result<usize> {
    let command = format!("*2\r\n$3\r\nGET\r\n${KEY}\r\n{at:0KEY$}\r\n");
    let answer = ask(stream, &command).await?;
    Ok(answer.lines().nth(1).unwrap_or_default().len())
}

/// Sends commands whose answers have two lines together.
async fn ask(stream: &mut TcpStream, commands: &str) -> std::io::Result<String> {
    stream.write_all(commands.as_bytes()).await?;
    let mut answer = Vec::new();
    while answer.iter().filter(|byte| **byte == b'\n').count() < 2 {
        if stream.read_buf(&mut answer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

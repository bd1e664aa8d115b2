//! Redis with two replicas, for whose acknowledgement writes wait.

use crate::process::{BEGIN, Server, folder, free_port, wait};
use crate::service::{Connection, Service, runtime};
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes of a key.
const KEY: usize = 16;

/// A client's connection to the master, which reads ask.
pub struct RedisConnection(TcpStream);

/// A master with two replicas, and connections to it.
pub type Redis = Service<RedisConnection>;

impl Redis {
    /// Starts the servers and opens `concurrency` connections. Values have `value` bytes.
    ///
    /// # Errors
    ///
    /// Why there are none.
    pub fn start(concurrency: usize, value: usize) -> Result<Redis, String> {
        let master = free_port();
        let mut servers = vec![Server::start(&mut server(master))?];
        for _ in 0..2 {
            let mut replica = server(free_port());
            replica.args(["--replicaof", "127.0.0.1", &master.to_string()]);
            servers.push(Server::start(&mut replica)?);
        }
        let runtime = runtime()?;
        let mut connections = runtime.block_on(async {
            let mut connections = Vec::new();
            let deadline = Instant::now() + BEGIN;
            while connections.len() < concurrency {
                match TcpStream::connect(("127.0.0.1", master)).await {
                    Ok(stream) => {
                        let _ = stream.set_nodelay(true);
                        connections.push(RedisConnection(stream));
                    }
                    Err(error) if Instant::now() > deadline => return Err(error.to_string()),
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
            Ok(connections)
        })?;
        wait("Redis with two replicas", || {
            let written = write(&mut connections[0].0, 0, value, 100);
            runtime.block_on(written).ok() == Some(2)
        })?;
        Ok(Service::new(
            connections,
            runtime,
            value,
            servers,
            Vec::new(),
        ))
    }
}

impl Connection for RedisConnection {
    async fn put(&mut self, key: u64, length: usize) -> Result<(), String> {
        match write(&mut self.0, key, length, 0).await {
            Ok(2) => Ok(()),
            Ok(kept) => Err(format!("{kept} replicas have the write")),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn get(&mut self, key: u64) -> Result<usize, String> {
        let read = read(&mut self.0, key).await;
        read.map_err(|error| error.to_string())
    }
}

/// A server at `port` that keeps nothing on disk.
fn server(port: u16) -> Command {
    let programs = ["redis-server", "valkey-server"];
    let runs = |program: &&&str| Command::new(program).arg("--version").output().is_ok();
    let mut command = Command::new(programs.iter().find(runs).unwrap_or(&programs[0]));
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
    at: u64,
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
async fn read(stream: &mut TcpStream, at: u64) -> std::io::Result<usize> {
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

//! ZooKeeper with three servers.

use crate::locks::Locks;
use crate::process::{Server, data, free_port, wait};
use crate::service::{Connection, Service, name, runtime};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use zookeeper_client::{Acls, Client, CreateMode, Error};

/// The archive of Debian's package, whose manifest names all others.
const ARCHIVE: &str = "/usr/share/java/zookeeper.jar";
/// The class whose argument is a configuration file.
const MAIN: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
/// Time in which a client that is silent loses its locks: more than the turns of all other services
/// take, as nothing drives the sessions meanwhile.
const SESSION: Duration = Duration::from_secs(600);

/// A client's session with one of the servers. Its reads are answered by that server alone, and may
/// be older than writes that others have seen.
#[derive(Clone)]
pub struct ZooKeeperConnection(Client);

/// Three servers, and a session for each client, spread over them.
pub type ZooKeeper = Service<ZooKeeperConnection>;

impl ZooKeeper {
    /// Starts the servers and opens `concurrency` sessions. The servers write their log through to
    /// a disk if `sync`, else to files in memory. Values have `value` bytes.
    ///
    /// # Errors
    ///
    /// Why there are none.
    pub fn start(concurrency: usize, sync: bool, value: usize) -> Result<ZooKeeper, String> {
        if !Path::new(ARCHIVE).exists() {
            return Err("ZooKeeper is not installed (Debian: zookeeper)".to_owned());
        }
        let ports: Vec<[u16; 3]> = (0..3)
            .map(|_| [free_port(), free_port(), free_port()])
            .collect();
        let mut servers = Vec::new();
        let mut folders = Vec::new();
        for (at, [client, _, _]) in ports.iter().enumerate() {
            let folder = data(sync)?;
            let file = folder.path().join("zoo.cfg");
            let mut text = format!(
                "tickTime=2000\ninitLimit=10\nsyncLimit=5\nadmin.enableServer=false\n\
                 maxClientCnxns=0\nclientPortAddress=127.0.0.1\nclientPort={client}\n\
                 maxSessionTimeout={}\nforceSync={}\ndataDir={}\n",
                SESSION.as_millis(),
                if sync { "yes" } else { "no" },
                folder.path().display()
            );
            for (number, [_, peers, election]) in ports.iter().enumerate() {
                let _ = writeln!(text, "server.{number}=127.0.0.1:{peers}:{election}");
            }
            let written = std::fs::write(&file, text)
                .and_then(|()| std::fs::write(folder.path().join("myid"), format!("{at}\n")));
            written.map_err(|error| error.to_string())?;
            let mut command = Command::new("java");
            command.args(["-Xms256m", "-Xmx1g", "-cp", ARCHIVE, MAIN]);
            command.arg(&file).current_dir(folder.path());
            servers.push(Server::start(&mut command)?);
            folders.push(folder);
        }
        let runtime = runtime()?;
        let connect = |at: usize| {
            let [client, _, _] = ports[at % ports.len()];
            let cluster = format!("127.0.0.1:{client}");
            runtime.block_on(async move {
                let connector = Client::connector().with_session_timeout(SESSION);
                connector.connect(&cluster).await.map(ZooKeeperConnection)
            })
        };
        let mut first = None;
        wait("ZooKeeper with three servers", || {
            first = connect(0).ok();
            first.as_mut().is_some_and(|first| {
                let written = first.put(0, value);
                runtime.block_on(written).is_ok()
            })
        })?;
        let mut connections: Vec<_> = first.into_iter().collect();
        while connections.len() < concurrency {
            let connected = connect(connections.len());
            connections.push(connected.map_err(|error| error.to_string())?);
        }
        Ok(Service::new(connections, runtime, value, servers, folders))
    }
}

fn path(key: u64) -> String {
    format!("/{}", name(key))
}

/// Name of the node that is a lock.
fn lock(at: u64) -> String {
    format!("/lock{at:012}")
}

fn told<T>(answer: Result<T, Error>) -> Result<T, String> {
    answer.map_err(|error| error.to_string())
}

impl Connection for ZooKeeperConnection {
    async fn put(&mut self, key: u64, length: usize) -> Result<(), String> {
        let value = vec![b'v'; length];
        match self.0.set_data(&path(key), &value, None).await {
            Err(Error::NoNode) => {
                let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
                match self.0.create(&path(key), &value, &options).await {
                    Ok(_) | Err(Error::NodeExists) => Ok(()),
                    Err(error) => Err(error.to_string()),
                }
            }
            answer => told(answer.map(|_| ())),
        }
    }

    async fn get(&mut self, key: u64) -> Result<usize, String> {
        let (value, _) = told(self.0.get_data(&path(key)).await)?;
        Ok(value.len())
    }
}

impl Locks for ZooKeeperConnection {
    const TOGETHER: bool = false;

    async fn try_lock(&self, locks: &[u64]) -> Result<bool, String> {
        let options = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
        for (at, item) in locks.iter().enumerate() {
            match self.0.create(&lock(*item), &[], &options).await {
                Ok(_) => {}
                Err(Error::NodeExists) => {
                    self.unlock(&locks[..at]).await?;
                    return Ok(false);
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(true)
    }

    async fn unlock(&self, locks: &[u64]) -> Result<(), String> {
        for item in locks {
            told(self.0.delete(&lock(*item), None).await)?;
        }
        Ok(())
    }
}

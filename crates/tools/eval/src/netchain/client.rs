//! `stateplane eval client`: a client in its node, which does what its input says, a line each.

use super::chains::Chains;
use super::contest;
use super::order::{Order, Told};
use crate::nodes::processor_s;
use clap::{Args, ValueEnum};
use stateplane_peers::{Answers, Etcd, Load, Redis, Transactions, ZooKeeper};
use stateplane_wire::control::PORT;
use std::io::{BufRead, Write};
use std::net::{Ipv4Addr, SocketAddrV4};

/// A service, and where it keeps what it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum System {
    /// The service that is evaluated.
    Stateplane,
    /// etcd with its log on a disk.
    Etcd,
    /// etcd with its log in memory.
    EtcdMemory,
    /// ZooKeeper with its log on a disk.
    Zookeeper,
    /// ZooKeeper with its log in memory.
    ZookeeperMemory,
    /// Redis, whose writes wait for two replicas.
    Redis,
}

impl System {
    /// All of them, in the order of tables.
    pub const ALL: [System; 6] = [
        System::Stateplane,
        System::Etcd,
        System::EtcdMemory,
        System::Zookeeper,
        System::ZookeeperMemory,
        System::Redis,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            System::Stateplane => "stateplane",
            System::Etcd => "etcd",
            System::EtcdMemory => "etcd, no fsync",
            System::Zookeeper => "ZooKeeper",
            System::ZookeeperMemory => "ZooKeeper, no fsync",
            System::Redis => "Redis, WAIT 2",
        }
    }

    /// Place that holds a write when it is answered.
    pub const fn kept(self) -> &'static str {
        match self {
            System::Stateplane => "memory of 3 switches",
            System::Etcd | System::Zookeeper => "disks of 2 of 3 servers",
            System::EtcdMemory | System::ZookeeperMemory => "memory of 2 of 3 servers",
            System::Redis => "memory of 3 servers",
        }
    }

    /// Its name on the command line and of its node.
    pub const fn node(self) -> &'static str {
        match self {
            System::Stateplane => "host",
            System::Etcd => "etcd",
            System::EtcdMemory => "etcd_m",
            System::Zookeeper => "zk",
            System::ZookeeperMemory => "zk_m",
            System::Redis => "redis",
        }
    }
}

/// Arguments of the client.
#[derive(Clone, Debug, Args)]
pub struct ClientArguments {
    /// The service.
    #[arg(value_enum)]
    system: System,
    /// Connections, or lanes.
    #[arg(long)]
    clients: u16,
    /// The controller of the service that is evaluated.
    #[arg(long, default_value = "10.20.0.20")]
    controller: Ipv4Addr,
}

/// A service with a client.
enum Served {
    Stateplane(Box<Chains>),
    Etcd(Etcd),
    ZooKeeper(ZooKeeper),
    Redis(Redis),
}

/// Bytes of the values with which services begin.
const FIRST_VALUE: usize = 64;

/// Starts the service, if it is another's, says `ready` or why it cannot be had, and does what its
/// input says until that ends.
pub fn run(arguments: &ClientArguments) {
    let mut served = match arguments.open() {
        Ok(served) => served,
        Err(reason) => return say(&reason),
    };
    say("ready");
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        let Ok(line) = line else {
            break;
        };
        let before = processor_s();
        let told = serde_json::from_str(&line)
            .map_err(|error| error.to_string())
            .and_then(|order| served.carry_out(order, number as u64 + 1));
        let mut told = told.unwrap_or_else(|error| Told {
            error: Some(error),
            ..Told::default()
        });
        told.processor_s = processor_s() - before;
        say(&serde_json::to_string(&told).unwrap_or_default());
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

impl ClientArguments {
    fn open(&self) -> Result<Served, String> {
        let clients = usize::from(self.clients);
        let on_disk = matches!(self.system, System::Etcd | System::Zookeeper);
        Ok(match self.system {
            System::Stateplane => {
                let controller = SocketAddrV4::new(self.controller, PORT);
                Served::Stateplane(Box::new(Chains::open(controller, self.clients)?))
            }
            System::Etcd | System::EtcdMemory => {
                Served::Etcd(Etcd::start(clients, on_disk, FIRST_VALUE)?)
            }
            System::Zookeeper | System::ZookeeperMemory => {
                Served::ZooKeeper(ZooKeeper::start(clients, on_disk, FIRST_VALUE)?)
            }
            System::Redis => Served::Redis(Redis::start(clients, FIRST_VALUE)?),
        })
    }
}

impl Served {
    fn carry_out(&mut self, order: Order, seed: u64) -> Result<Told, String> {
        match (self, order) {
            (Self::Stateplane(chains), Order::Fill { keys, value }) => chains.fill(keys, value),
            (Self::Etcd(service), Order::Fill { keys, value }) => {
                service.fill(keys, value).map(|()| Told::default())
            }
            (Self::ZooKeeper(service), Order::Fill { keys, value }) => {
                service.fill(keys, value).map(|()| Told::default())
            }
            (Self::Redis(service), Order::Fill { keys, value }) => {
                service.fill(keys, value).map(|()| Told::default())
            }
            (_, Order::Load(Load { keys: 0, .. })) => Err("a load has keys".to_owned()),
            (Self::Stateplane(chains), Order::Load(load)) => chains.load(&load, seed),
            (Self::Etcd(service), Order::Load(load)) => Ok(answered(service.load(&load, seed))),
            (Self::ZooKeeper(service), Order::Load(load)) => {
                Ok(answered(service.load(&load, seed)))
            }
            (Self::Redis(service), Order::Load(load)) => Ok(answered(service.load(&load, seed))),
            (Self::Stateplane(chains), Order::Transactions(of)) => contest::run(chains, &of, seed),
            (Self::Etcd(service), Order::Transactions(of)) => {
                Ok(transacted(service.transactions(&of, seed)))
            }
            (Self::ZooKeeper(service), Order::Transactions(of)) => {
                Ok(transacted(service.transactions(&of, seed)))
            }
            (Self::Stateplane(chains), Order::Series(series)) => chains.series(&series, seed),
            (Self::Stateplane(chains), Order::Chain { group }) => Ok(Told {
                chain: chains.chain(group),
                ..Told::default()
            }),
            (_, order) => Err(format!("the service does not take {order:?}")),
        }
    }
}

fn answered(mut answers: Answers) -> Told {
    Told {
        done: answers.answered,
        failed: answers.failed,
        seconds: answers.spent.as_secs_f64(),
        within_us: [0.5, 0.99, 0.999].map(|share| answers.latencies.within(share)),
        ..Told::default()
    }
}

fn transacted(mut transactions: Transactions) -> Told {
    Told {
        done: transactions.done,
        refused: transactions.refused,
        failed: transactions.failed,
        seconds: transactions.spent.as_secs_f64(),
        within_us: [0.5, 0.99, 0.999].map(|share| transactions.latencies.within(share)),
        ..Told::default()
    }
}

//! Services of others that replicate what they are told, each with clients that keep a number of
//! requests in flight: what the project's services are compared with.
//!
//! An answered write is in, of Redis, the memory of the master and of both replicas (`WAIT 2`),
//! nothing on disk; etcd and ZooKeeper, the log of two of three members, on disk, or in memory
//! (a file system of the kernel's, without fsync).
//!
//! Redis is `redis-server` or `valkey-server` (Debian's packages of these names); etcd 3.5 or newer
//! is `etcd`, or is built once with Go from its module `go.etcd.io/etcd/server/v3`; ZooKeeper is
//! Debian's package `zookeeper`. Servers and clients share a host and its loopback interface.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod etcd;
mod locks;
mod measure;
mod process;
mod redis;
mod service;
mod zookeeper;

pub use etcd::{
    Etcd, EtcdLock, EtcdLog, EtcdMember, EtcdWatch, etcd_clients, etcd_members,
    leader as etcd_leader, program as etcd_program,
};
pub use locks::{Contest, Transactions};
pub use measure::{Answers, Asked, Latencies, Load, ROUND, Sample};
pub use redis::Redis;
pub use zookeeper::ZooKeeper;

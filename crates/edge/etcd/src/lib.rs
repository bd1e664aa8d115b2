//! Several controllers of one store, of which one leads: their decisions and their
//! election lie in [etcd](https://etcd.io).
//!
//! Keys, below a prefix:
//!
//! | key | value |
//! |---|---|
//! | `leader` | the name of the controller that leads; bound to a lease of etcd, so that it goes with the controller |
//! | `chains/NUMBER` | the newest configuration of a chain |
//! | `coordination/NUMBER` | the newest decision about a group of coordination, or about its lanes |
//! | `multicast/NUMBER` | the newest decision about a group of multicast, or about its sessions |
//! | `drained/NUMBER` | there if the server with that number is to lose its shards |
//!
//! Every write is a transaction that requires the lease at `leader` to be the writer's,
//! and each decision's key to be as the writer last saw it. So a controller that leads no
//! more, and does not know it, changes nothing, and no chain gets two configurations of
//! one number.
//!
//! Engines of sync have a storage of their own, [`EtcdSyncStore`].

#![allow(clippy::disallowed_methods)]

mod backend;
mod channel;
mod error;
mod lease;
mod sync;
mod transaction;

pub use backend::EtcdBackend;
pub use error::EtcdError;
pub use sync::EtcdSyncStore;

/// Maximum time for an answer of etcd. Meanwhile the controller hears nothing, so it is short
/// beside what a controller's absence costs.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// Result of a call of etcd, if it comes in time: of several members, none may answer.
async fn answer<T>(
    call: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
) -> Result<T, EtcdError> {
    match tokio::time::timeout(PATIENCE, call).await {
        Ok(answered) => Ok(answered?.into_inner()),
        Err(_) => Err(tonic::Status::deadline_exceeded("no answer in time").into()),
    }
}

#[allow(missing_docs, clippy::all)]
mod proto {
    tonic::include_proto!("etcdserverpb");
}

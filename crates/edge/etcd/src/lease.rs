//! A lease of etcd, kept alive until it is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stateplane_host::clock::boot_time_us;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tonic::transport::Channel;

use crate::proto::lease_client::LeaseClient;
use crate::proto::{LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest};
use crate::{EtcdError, PATIENCE, answer};

const SECOND: u64 = 1_000_000;

/// A lease that is renewed in the background.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) id: i64,
    /// Time until which etcd surely counts the lease, in µs since boot.
    until: Arc<AtomicU64>,
    renewal: JoinHandle<()>,
}

impl Lease {
    /// Asks for a lease of `seconds`.
    pub(crate) async fn grant(
        mut client: LeaseClient<Channel>,
        seconds: u16,
    ) -> Result<Lease, EtcdError> {
        let asked = boot_time_us();
        let request = LeaseGrantRequest {
            ttl: seconds.into(),
            id: 0,
        };
        let granted = answer(client.lease_grant(request)).await?;
        let (id, length) = (granted.id, length(granted.ttl));
        let until = Arc::new(AtomicU64::new(asked + length));
        let renewal = tokio::spawn(renew(client, id, length, until.clone()));
        Ok(Lease { id, until, renewal })
    }

    /// True if etcd surely counts it still.
    pub(crate) fn is_valid(&self) -> bool {
        boot_time_us() < self.until.load(Ordering::Relaxed)
    }

    /// Returns the lease, so that no controller waits for its end.
    pub(crate) fn revoke(self, runtime: &Handle, mut client: LeaseClient<Channel>) {
        self.renewal.abort();
        let request = LeaseRevokeRequest { id: self.id };
        // It ends by itself if etcd does not answer.
        let _ = runtime.block_on(answer(client.lease_revoke(request)));
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

fn length(seconds: i64) -> u64 {
    u64::try_from(seconds).unwrap_or(0).saturating_mul(SECOND)
}

/// Renews the lease three times in its `length` until etcd has forgotten it.
async fn renew(mut client: LeaseClient<Channel>, id: i64, length_us: u64, until: Arc<AtomicU64>) {
    loop {
        tokio::time::sleep(Duration::from_micros(length_us / 3)).await;
        let asked = boot_time_us();
        let question = tokio_stream::once(LeaseKeepAliveRequest { id });
        let Ok(mut answers) = answer(client.lease_keep_alive(question)).await else {
            continue;
        };
        match tokio::time::timeout(PATIENCE, answers.message()).await {
            Ok(Ok(Some(renewed))) if renewed.ttl > 0 => {
                until.store(asked + length(renewed.ttl), Ordering::Relaxed);
            }
            // Etcd has forgotten it.
            Ok(Ok(Some(_))) => return until.store(0, Ordering::Relaxed),
            _ => {}
        }
    }
}

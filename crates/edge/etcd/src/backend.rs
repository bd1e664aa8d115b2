//! The back end of a controller.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stateplane_groups::Decision;
use stateplane_host::controller::{
    Backend, ControllerError, Decided, EtcdFile, Kept, Record, Stored,
};
use stateplane_membership::Version as _;
use stateplane_multicast_groups as multicast;
use stateplane_wire::control::ChainConfig;
use tokio::runtime::Runtime;
use tonic::transport::Channel;

use crate::channel::{LONGEST_ANSWER, TlsFiles, channel, runtime};
use crate::lease::Lease;
use crate::proto::kv_client::KvClient;
use crate::proto::lease_client::LeaseClient;
use crate::proto::{RequestOp, TxnRequest, TxnResponse};
use crate::transaction::{delete, get, get_all, has_lease, is_absent, is_of, put, read};
use crate::{EtcdError, answer};

/// Time between two attempts to lead.
const RETRY: Duration = Duration::from_millis(100);

/// Decisions in etcd, for one of several controllers.
pub struct EtcdBackend {
    runtime: Runtime,
    kv: KvClient<Channel>,
    leases: LeaseClient<Channel>,
    prefix: String,
    lease_s: u16,
    name: String,
    lease: Option<Lease>,
    /// True if the key of the leader bore the lease when it was last seen.
    leads: bool,
    /// When the key of each decision was last written.
    revisions: BTreeMap<String, i64>,
    told: Box<dyn FnMut(&EtcdError) + Send>,
}

impl EtcdBackend {
    /// A back end for the controller called `name`. `told` gets the error while etcd cannot be
    /// used; the controller keeps trying.
    ///
    /// # Errors
    ///
    /// [`EtcdError`] if `file` is wrong, or the system has no threads left. Whether etcd
    /// answers is not known yet.
    pub fn new(
        file: &EtcdFile,
        name: &str,
        told: impl FnMut(&EtcdError) + Send + 'static,
    ) -> Result<EtcdBackend, EtcdError> {
        let runtime = runtime()?;
        let tls = TlsFiles {
            roots: file.tls_roots.as_deref(),
            certificate: file.tls_certificate.as_deref(),
            key: file.tls_key.as_deref(),
        };
        let channel = channel(&runtime, &file.endpoints, &tls)?;
        Ok(EtcdBackend {
            runtime,
            kv: KvClient::new(channel.clone()).max_decoding_message_size(LONGEST_ANSWER),
            leases: LeaseClient::new(channel),
            prefix: file.prefix.trim_end_matches('/').to_owned(),
            lease_s: file.lease_s.max(1),
            name: name.to_owned(),
            lease: None,
            leads: false,
            revisions: BTreeMap::new(),
            told: Box::new(told),
        })
    }

    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }

    fn leader_key(&self) -> String {
        self.key("leader")
    }

    fn transact(&self, request: TxnRequest) -> Result<TxnResponse, EtcdError> {
        let mut kv = self.kv.clone();
        self.runtime.block_on(answer(kv.txn(request)))
    }

    /// Number of a lease that etcd counts.
    fn hold_lease(&mut self) -> Result<i64, EtcdError> {
        if let Some(lease) = self.lease.as_ref().filter(|lease| lease.is_valid()) {
            return Ok(lease.id);
        }
        let grant = Lease::grant(self.leases.clone(), self.lease_s);
        let lease = self.runtime.block_on(grant)?;
        let id = lease.id;
        self.lease = Some(lease);
        Ok(id)
    }

    /// Stored decisions, if this controller leads or nobody does.
    fn try_to_lead(&mut self) -> Result<Option<Kept>, EtcdError> {
        let leader = self.leader_key();
        let present = self.transact(TxnRequest {
            success: vec![get(&leader)],
            ..TxnRequest::default()
        })?;
        let holder = read(&present, 0).first().map(|key| key.lease);
        let own = self.lease.as_ref().map(|lease| lease.id);
        if holder.is_some() && holder != own {
            return Ok(None);
        }
        let lease = self.hold_lease()?;
        if holder != Some(lease) {
            let name = self.name.as_bytes().to_vec();
            self.transact(TxnRequest {
                compare: vec![is_absent(&leader)],
                success: vec![put(&leader, name, lease)],
                failure: Vec::new(),
            })?;
        }
        let all = self.transact(TxnRequest {
            compare: vec![has_lease(&leader, lease)],
            success: vec![
                get_all(&self.key("chains/")),
                get_all(&self.key("drained/")),
                get_all(&self.key("coordination/")),
                get_all(&self.key("multicast/")),
            ],
            failure: Vec::new(),
        })?;
        if all.succeeded {
            self.take(&all).map(Some)
        } else {
            Ok(None)
        }
    }

    fn take(&mut self, all: &TxnResponse) -> Result<Kept, EtcdError> {
        let mut kept = Kept::default();
        self.revisions.clear();
        for value in read(all, 0) {
            let key = String::from_utf8_lossy(&value.key).into_owned();
            let Ok(config) = ChainConfig::parse(&value.value) else {
                return Err(EtcdError::Foreign { key });
            };
            self.revisions.insert(key, value.mod_revision);
            kept.add(Record::Config(Decided::Chain(config)));
        }
        for value in read(all, 2) {
            let key = String::from_utf8_lossy(&value.key).into_owned();
            let Some(decision) = Decision::parse(&value.value) else {
                return Err(EtcdError::Foreign { key });
            };
            self.revisions.insert(key, value.mod_revision);
            kept.add(Record::Config(Decided::Coordination(decision)));
        }
        for value in read(all, 3) {
            let key = String::from_utf8_lossy(&value.key).into_owned();
            let Some(decision) = multicast::Decision::parse(&value.value) else {
                return Err(EtcdError::Foreign { key });
            };
            self.revisions.insert(key, value.mod_revision);
            kept.add(Record::Config(Decided::Multicast(decision)));
        }
        for value in read(all, 1) {
            let key = String::from_utf8_lossy(&value.key).into_owned();
            let number = key.rsplit('/').next().map(str::parse);
            let Some(Ok(server)) = number else {
                return Err(EtcdError::Foreign { key });
            };
            let drained = true;
            kept.add(Record::Drained { server, drained });
        }
        Ok(kept)
    }

    /// Key and value of a decision.
    fn entry(&self, decided: &Decided) -> (String, Vec<u8>) {
        match decided {
            Decided::Chain(config) => {
                let mut value = Vec::new();
                config.append(&mut value);
                (self.key(&format!("chains/{}", config.chain)), value)
            }
            Decided::Coordination(decision) => {
                let key = format!("coordination/{}", decision.number());
                (self.key(&key), decision.to_vec())
            }
            Decided::Multicast(decision) => {
                let key = format!("multicast/{}", decision.number());
                (self.key(&key), decision.to_vec())
            }
        }
    }

    fn write(&mut self, lease: i64, records: &[Record]) -> Result<Stored, EtcdError> {
        let mut compare = vec![has_lease(&self.leader_key(), lease)];
        let mut success: Vec<RequestOp> = Vec::new();
        let mut keys = Vec::new();
        for record in records {
            match record {
                Record::Config(decided) => {
                    let (key, value) = self.entry(decided);
                    let revision = self.revisions.get(&key).copied().unwrap_or(0);
                    compare.push(is_of(&key, revision));
                    success.push(put(&key, value, 0));
                    keys.push(key);
                }
                Record::Drained { server, drained } => {
                    let key = self.key(&format!("drained/{server}"));
                    success.push(if *drained {
                        put(&key, Vec::new(), 0)
                    } else {
                        delete(&key)
                    });
                }
            }
        }
        let failure = Vec::new();
        let written = self.transact(TxnRequest {
            compare,
            success,
            failure,
        })?;
        if !written.succeeded {
            return Ok(Stored::LeadAnew);
        }
        let revision = written.header.map_or(0, |header| header.revision);
        for key in keys {
            self.revisions.insert(key, revision);
        }
        Ok(Stored::Kept)
    }
}

impl Backend for EtcdBackend {
    type Version = Decided;
    type Error = ControllerError;

    fn lead(&mut self, stop: &AtomicBool) -> Result<Option<Kept>, ControllerError> {
        while !stop.load(Ordering::Relaxed) {
            self.leads = false;
            match self.try_to_lead() {
                Ok(Some(kept)) => {
                    self.leads = true;
                    return Ok(Some(kept));
                }
                Ok(None) => {}
                Err(error) => (self.told)(&error),
            }
            std::thread::sleep(RETRY);
        }
        Ok(None)
    }

    fn leads(&self) -> bool {
        self.leads && self.lease.as_ref().is_some_and(Lease::is_valid)
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn store(&mut self, records: &[Record]) -> Result<Stored, ControllerError> {
        let Some(lease) = self.lease.as_ref().map(|lease| lease.id) else {
            return Ok(Stored::LeadAnew);
        };
        // Without an answer nobody knows: what is there is read anew.
        Ok(self.write(lease, records).unwrap_or_else(|error| {
            (self.told)(&error);
            Stored::LeadAnew
        }))
    }
}

impl Drop for EtcdBackend {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.revoke(self.runtime.handle(), self.leases.clone());
        }
    }
}

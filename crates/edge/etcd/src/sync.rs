//! The store that engines of sync share: election, and facts that outlive an engine.
//!
//! Keys, below a prefix:
//!
//! | key | value |
//! |---|---|
//! | `leader` | the engine that leads, which writes it anew several times in the detection time |
//! | `term` | the greatest term, and how many transactions its engine has made |
//! | `windows/GROUP/NUMBER` | start of the switch, cut, bytes and pieces of a window that is kept |
//! | `pieces/GROUP/NUMBER/PIECE` | a piece of the window's values |
//! | `epochs/GROUP` | the last window of each start of the switch |
//! | `writes/SLOT` | a write with an id, and how far it has come |
//!
//! GROUP is the group's name in hexadecimal digits. Every transaction of an engine that leads requires
//! `term` to be as its last one left it, and counts it on. So an engine whose place another has taken
//! changes nothing, and a transaction whose answer was lost is not made twice, nor after a later one.
//! A window is there when its entry in `windows` is, which is written behind its pieces.

mod batch;
mod encoding;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stateplane_host::remote::Remote;
use stateplane_host::sync::{Ask, Fact, Outcomes, SharedStore, SyncEtcdFile, Told, Window, tell};
use stateplane_sync::election::{Answer, Request};
use tokio::runtime::Runtime;
use tonic::transport::Channel;

use crate::channel::{LONGEST_ANSWER, TlsFiles, channel, runtime};
use crate::proto::kv_client::KvClient;
use crate::proto::{KeyValue, TxnRequest, TxnResponse};
use crate::transaction::{get, get_some, is_of, is_value, put, read};
use crate::{EtcdError, answer};
use batch::Batches;

/// Keys of one answer, of those whose values are short.
const PAGE: i64 = 2_000;

/// Time before what had no answer is asked again.
const RETRY: Duration = Duration::from_millis(50);

/// Time before facts that could not be read are read again.
const PAUSE: Duration = Duration::from_millis(200);

/// Gets errors.
type Tell = Arc<Mutex<dyn FnMut(&EtcdError) + Send>>;

/// A store in etcd that engines of sync share.
pub struct EtcdSyncStore {
    runtime: Option<Runtime>,
    /// For the election, so that its steps do not wait for windows.
    votes: Client,
    facts: Client,
    /// Longest time for a step of the election.
    patience: Duration,
    outcomes: Arc<Remote<Outcomes>>,
    /// A term, and how many transactions were made under it.
    count: Arc<Mutex<(u64, u64)>>,
}

#[derive(Clone)]
struct Client {
    kv: KvClient<Channel>,
    prefix: Arc<str>,
    errors: Tell,
}

impl EtcdSyncStore {
    /// The store that `file` names. `outcomes` gets what was done, and `told` the error while etcd
    /// cannot be used; what is asked is tried again.
    ///
    /// # Errors
    ///
    /// [`EtcdError`] if `file` is wrong, or the system has no threads left. Whether etcd answers is
    /// not known yet.
    pub fn new(
        file: &SyncEtcdFile,
        outcomes: Remote<Outcomes>,
        told: impl FnMut(&EtcdError) + Send + 'static,
    ) -> Result<EtcdSyncStore, EtcdError> {
        let runtime = runtime()?;
        let tls = TlsFiles {
            roots: file.tls_roots.as_deref(),
            certificate: file.tls_certificate.as_deref(),
            key: file.tls_key.as_deref(),
        };
        let prefix: Arc<str> = file.prefix.trim_end_matches('/').into();
        let errors: Tell = Arc::new(Mutex::new(told));
        let client = || -> Result<Client, EtcdError> {
            let channel = channel(&runtime, &file.endpoints, &tls)?;
            Ok(Client {
                kv: KvClient::new(channel).max_decoding_message_size(LONGEST_ANSWER),
                prefix: prefix.clone(),
                errors: errors.clone(),
            })
        };
        let (votes, facts) = (client()?, client()?);
        let patience = Duration::from_millis(file.detection_ms / 4);
        Ok(EtcdSyncStore {
            votes,
            facts,
            runtime: Some(runtime),
            patience: patience.min(crate::PATIENCE),
            outcomes: Arc::new(outcomes),
            count: Arc::default(),
        })
    }
}

impl SharedStore for EtcdSyncStore {
    fn ask(&mut self, ask: Ask) {
        let Some(runtime) = &self.runtime else {
            return;
        };
        let outcomes = self.outcomes.clone();
        match ask {
            Ask::Elect(request) => {
                let (votes, patience) = (self.votes.clone(), self.patience);
                runtime.spawn(async move {
                    let step = tokio::time::timeout(patience, votes.elect(&request)).await;
                    let late = || tonic::Status::deadline_exceeded("no answer in time").into();
                    let said = step.unwrap_or_else(|_| Err(late()));
                    let said = said.unwrap_or_else(|error| {
                        votes.tell(&error);
                        Answer::Failed
                    });
                    tell(&outcomes, Told::Elected(said));
                });
            }
            Ask::Load { term } => {
                let client = self.facts.clone();
                runtime.spawn(async move {
                    let facts = client.load(term).await;
                    if let Err(error) = &facts {
                        client.tell(error);
                        tokio::time::sleep(PAUSE).await;
                    }
                    let facts = facts.ok().flatten();
                    tell(&outcomes, Told::Loaded { term, facts });
                });
            }
            Ask::Store { term, facts } => {
                let (client, count) = (self.facts.clone(), self.count.clone());
                runtime.spawn(async move {
                    let kept = client.store(term, &facts, &count).await;
                    tell(&outcomes, Told::Stored { term, kept });
                });
            }
        }
    }
}

impl Drop for EtcdSyncStore {
    fn drop(&mut self) {
        // Nobody waits for what is under way.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Client {
    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }

    fn tell(&self, error: &EtcdError) {
        let mut told = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        told(error);
    }

    async fn transact(&self, request: TxnRequest) -> Result<TxnResponse, EtcdError> {
        answer(self.kv.clone().txn(request)).await
    }

    fn foreign(&self, key: &[u8]) -> EtcdError {
        let key = String::from_utf8_lossy(key).into_owned();
        EtcdError::Foreign { key }
    }

    /// A step of the election.
    async fn elect(&self, request: &Request) -> Result<Answer, EtcdError> {
        let leader = self.key("leader");
        let (condition, next) = match request {
            Request::Look => return self.look(&leader).await,
            Request::Take { revision, holder } => {
                (is_of(&leader, *revision as i64), holder.clone())
            }
            Request::Renew { holder } => {
                let own = is_value(&leader, encoding::holder(holder));
                (own, holder.clone())
            }
            Request::Leave { holder } => {
                let own = is_value(&leader, encoding::holder(holder));
                let mut left = holder.clone();
                left.left = true;
                (own, left)
            }
        };
        let mut success = vec![put(&leader, encoding::holder(&next), 0)];
        if matches!(request, Request::Take { .. }) {
            success.push(put(&self.key("term"), encoding::count(next.term, 0), 0));
        }
        let written = self.transact(TxnRequest {
            compare: vec![condition],
            success,
            failure: Vec::new(),
        });
        let is_done = written.await?.succeeded;
        Ok(if is_done {
            Answer::Done
        } else {
            Answer::Refused
        })
    }

    async fn look(&self, leader: &str) -> Result<Answer, EtcdError> {
        let seen = self.transact(TxnRequest {
            success: vec![get(leader), get(&self.key("term"))],
            ..TxnRequest::default()
        });
        let seen = seen.await?;
        let holder = read(&seen, 0).first();
        let revision = holder.map_or(0, |entry| entry.mod_revision as u64);
        let holder = holder.map(|entry| {
            let holder = encoding::parse_holder(&entry.value);
            holder.ok_or_else(|| self.foreign(&entry.key))
        });
        let term = read(&seen, 1).first().map(|entry| {
            let count = encoding::parse_count(&entry.value);
            count.ok_or_else(|| self.foreign(&entry.key))
        });
        Ok(Answer::Seen {
            revision,
            holder: holder.transpose()?,
            term: term.transpose()?.map_or(0, |(term, _)| term),
        })
    }

    /// Keys and values below `folder`, under the condition that `term` has just been taken; `None`
    /// if it is not so.
    async fn entries(
        &self,
        term: u64,
        folder: &str,
        page: i64,
    ) -> Result<Option<Vec<KeyValue>>, EtcdError> {
        let (mut entries, mut first) = (Vec::new(), folder.as_bytes().to_vec());
        loop {
            let some = self.transact(TxnRequest {
                compare: vec![is_value(&self.key("term"), encoding::count(term, 0))],
                success: vec![get_some(first, folder, page)],
                failure: Vec::new(),
            });
            let some = some.await?;
            if !some.succeeded {
                return Ok(None);
            }
            let found = read(&some, 0);
            entries.extend_from_slice(found);
            let last = found.last().map(|entry| entry.key.clone());
            match last.filter(|_| found.len() as i64 == page) {
                Some(mut last) => {
                    last.push(0);
                    first = last;
                }
                None => return Ok(Some(entries)),
            }
        }
    }

    /// Of each head below `folder` the group, the head, and the pieces that it names, which lie in the
    /// folder that `pieces` tells, one behind the other.
    async fn joined(
        &self,
        term: u64,
        folder: &str,
        pieces: fn(&str, u64) -> String,
    ) -> Result<Option<Vec<(String, encoding::Head, Vec<u8>)>>, EtcdError> {
        let folder = self.key(folder);
        let Some(heads) = self.entries(term, &folder, PAGE).await? else {
            return Ok(None);
        };
        let mut all = Vec::new();
        for entry in heads {
            let group = encoding::group_of(&entry.key, folder.as_bytes());
            let said = group.zip(encoding::Head::parse(&entry.value));
            let (group, head) = said.ok_or_else(|| self.foreign(&entry.key))?;
            let place = self.key(&pieces(&group, head.number));
            let Some(found) = self.entries(term, &place, head.pieces.into()).await? else {
                return Ok(None);
            };
            // An engine that ended midway may have left more pieces of another.
            let found = found.into_iter().take(head.pieces as usize);
            let bytes: Vec<u8> = found.flat_map(|piece| piece.value).collect();
            if bytes.len() as u64 != head.bytes {
                return Err(self.foreign(&entry.key));
            }
            all.push((group, head, bytes));
        }
        Ok(Some(all))
    }

    /// All facts, if `term` has just been taken.
    async fn load(&self, term: u64) -> Result<Option<Vec<Fact>>, EtcdError> {
        let mut facts = Vec::new();
        let writes = self.entries(term, &self.key("writes/"), PAGE).await?;
        let epochs = self.entries(term, &self.key("epochs/"), PAGE).await?;
        let windows = self.joined(term, "windows/", encoding::pieces).await?;
        let totals = self
            .joined(term, "totals/", encoding::totals_pieces)
            .await?;
        let (Some(writes), Some(epochs), Some(windows), Some(totals)) =
            (writes, epochs, windows, totals)
        else {
            return Ok(None);
        };
        for entry in writes {
            let fact = encoding::parse_write(&entry.value);
            facts.push(fact.ok_or_else(|| self.foreign(&entry.key))?);
        }
        for entry in epochs {
            let group = encoding::group_of(&entry.key, self.key("epochs/").as_bytes());
            let said = group.zip(encoding::parse_epochs(&entry.value));
            let (group, epochs) = said.ok_or_else(|| self.foreign(&entry.key))?;
            facts.push(Fact::Epochs { group, epochs });
        }
        for (group, head, bytes) in totals {
            facts.push(Fact::Totals {
                group,
                number: head.number,
                bytes: Arc::new(bytes),
            });
        }
        for (group, head, values) in windows {
            facts.push(Fact::Window {
                group,
                window: Window {
                    number: head.number,
                    incarnation: head.incarnation,
                    epoch: head.epoch,
                    values: Arc::new(values),
                },
                oldest: 0,
            });
        }
        Ok(Some(facts))
    }

    /// Keeps facts; false if another term is the greatest one.
    async fn store(&self, term: u64, facts: &[Fact], count: &Mutex<(u64, u64)>) -> bool {
        let lock = || count.lock().unwrap_or_else(PoisonError::into_inner);
        let known = *lock();
        let mut made = if known.0 == term { known.1 } else { 0 };
        for batch in Batches::of(&self.prefix, facts) {
            if !self.write(term, made, batch).await {
                return false;
            }
            made += 1;
            *lock() = (term, made);
        }
        true
    }

    /// Makes transaction number `made` of a term, until etcd has answered.
    async fn write(&self, term: u64, made: u64, batch: Vec<crate::proto::RequestOp>) -> bool {
        let key = self.key("term");
        let next = encoding::count(term, made + 1);
        let mut success = batch;
        success.push(put(&key, next.clone(), 0));
        let request = TxnRequest {
            compare: vec![is_value(&key, encoding::count(term, made))],
            success,
            failure: vec![get(&key)],
        };
        loop {
            match self.transact(request.clone()).await {
                Ok(written) if written.succeeded => return true,
                // It was made, and the answer was lost.
                Ok(written) => {
                    let found = read(&written, 0).first();
                    return found.is_some_and(|entry| entry.value == next);
                }
                Err(error) => self.tell(&error),
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

//! A lock of etcd's own lock service (`v3lockpb`), whose holders wait in a queue.

use super::ask;
use std::net::SocketAddrV4;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

/// Time after which a member that cannot be reached is left, and between signs of life of a
/// connection.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between a failed request and the next, to another member.
const AGAIN: Duration = Duration::from_millis(20);
/// Time between two looks at whether to go on.
const LOOK: Duration = Duration::from_millis(50);

/// `etcdserverpb.ResponseHeader`, as far as it is used.
#[derive(Clone, PartialEq, prost::Message)]
struct Header {
    #[prost(uint64, tag = "2")]
    member: u64,
    #[prost(int64, tag = "3")]
    revision: i64,
}

/// `etcdserverpb.LeaseGrantRequest`, whose number the service chooses.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GrantRequest {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
}

/// `etcdserverpb.LeaseGrantResponse`, as far as it is used.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GrantResponse {
    #[prost(int64, tag = "2")]
    pub(super) lease: i64,
}

/// `etcdserverpb.LeaseKeepAliveRequest`.
#[derive(Clone, PartialEq, prost::Message)]
struct KeepAliveRequest {
    #[prost(int64, tag = "1")]
    lease: i64,
}

/// `etcdserverpb.LeaseKeepAliveResponse`, as far as it is used.
#[derive(Clone, PartialEq, prost::Message)]
struct KeepAliveResponse {
    #[prost(int64, tag = "3")]
    seconds: i64,
}

/// `v3lockpb.LockRequest`.
#[derive(Clone, PartialEq, prost::Message)]
struct LockRequest {
    #[prost(bytes = "vec", tag = "1")]
    name: Vec<u8>,
    #[prost(int64, tag = "2")]
    lease: i64,
}

/// `v3lockpb.LockResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct LockResponse {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
}

/// `v3lockpb.UnlockRequest`.
#[derive(Clone, PartialEq, prost::Message)]
struct UnlockRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

/// `etcdserverpb.StatusRequest`, or a response of which nothing is read.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Empty {}

/// `etcdserverpb.StatusResponse`, as far as it is used.
#[derive(Clone, PartialEq, prost::Message)]
struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
    #[prost(uint64, tag = "4")]
    leader: u64,
}

fn channel(member: SocketAddrV4) -> Result<Channel, String> {
    let endpoint = Endpoint::from_shared(format!("http://{member}"));
    let endpoint = endpoint.map_err(|error| error.to_string())?;
    Ok(endpoint
        .connect_timeout(PATIENCE)
        .http2_keep_alive_interval(PATIENCE)
        .keep_alive_timeout(PATIENCE)
        .keep_alive_while_idle(true)
        .connect_lazy())
}

fn channels(members: &[SocketAddrV4]) -> Result<Vec<Channel>, String> {
    members.iter().map(|member| channel(*member)).collect()
}

/// Place among `members` of the one that leads, by the first that answers.
///
/// # Errors
///
/// No member answers, or none leads.
pub fn leader(members: &[SocketAddrV4]) -> Result<usize, String> {
    crate::service::runtime()?.block_on(async {
        let mut numbers = Vec::new();
        let mut leader = 0;
        for channel in channels(members)? {
            let status = ask(channel, "/etcdserverpb.Maintenance/Status", Empty {});
            let status = tokio::time::timeout(PATIENCE, status).await;
            let status: Option<StatusResponse> = status.ok().and_then(Result::ok);
            let status = status.unwrap_or_default();
            numbers.push(status.header.unwrap_or_default().member);
            if status.leader != 0 {
                leader = status.leader;
            }
        }
        let place = numbers.iter().position(|number| *number == leader);
        place
            .filter(|_| leader != 0)
            .ok_or_else(|| "no member of etcd leads".to_owned())
    })
}

/// A lock, as one of its would-be holders sees it, with a lease that it keeps alive while one of its
/// methods runs. What does not answer is asked again at the next member.
pub struct EtcdLock {
    runtime: Runtime,
    members: Vec<Channel>,
    at: usize,
    name: Vec<u8>,
    lease: i64,
    /// Time until which the lease surely counts.
    until: Arc<Mutex<Instant>>,
    renewal: JoinHandle<()>,
    key: Option<Vec<u8>>,
}

impl EtcdLock {
    /// A lease of `seconds` for the lock `name`, by the member at place `first` of `members` or
    /// those after it.
    ///
    /// # Errors
    ///
    /// No member grants a lease.
    pub fn open(
        members: &[SocketAddrV4],
        first: usize,
        name: &str,
        seconds: u32,
    ) -> Result<EtcdLock, String> {
        let runtime = crate::service::runtime()?;
        let within = runtime.enter();
        let members = channels(members)?;
        drop(within);
        let mut last = "there are no members".to_owned();
        for at in (first..).take(members.len()) {
            let at = at % members.len();
            let request = GrantRequest {
                seconds: seconds.into(),
            };
            let asked = Instant::now();
            let grant = ask(
                members[at].clone(),
                "/etcdserverpb.Lease/LeaseGrant",
                request,
            );
            let granted = runtime.block_on(async { tokio::time::timeout(PATIENCE, grant).await });
            let granted: Result<GrantResponse, String> =
                granted.unwrap_or_else(|_| Err("no answer".to_owned()));
            let lease = match granted {
                Ok(granted) => granted.lease,
                Err(error) => {
                    last = error;
                    continue;
                }
            };
            let length = Duration::from_secs(seconds.into());
            let until = Arc::new(Mutex::new(asked + length));
            let renewal = runtime.spawn(renew(members.clone(), at, lease, length, until.clone()));
            return Ok(EtcdLock {
                runtime,
                members,
                at,
                name: name.as_bytes().to_vec(),
                lease,
                until,
                renewal,
                key: None,
            });
        }
        Err(last)
    }

    /// True if the lease may have ended, and the lock with it.
    pub fn is_lost(&self) -> bool {
        Instant::now() >= *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the lock until `stop` is true or the lease is lost. The token grows with each holder:
    /// the revision of etcd's records at which the lock was seen to be held.
    pub fn acquire(&mut self, stop: impl Fn() -> bool) -> Option<u64> {
        loop {
            let request = LockRequest {
                name: self.name.clone(),
                lease: self.lease,
            };
            let member = self.members[self.at].clone();
            let (until, stop) = (self.until.clone(), &stop);
            let over = move || {
                stop() || Instant::now() >= *until.lock().unwrap_or_else(PoisonError::into_inner)
            };
            let answer: Option<Result<LockResponse, String>> = self.runtime.block_on(async {
                let mut asked = std::pin::pin!(ask(member, "/v3lockpb.Lock/Lock", request));
                loop {
                    match tokio::time::timeout(LOOK, &mut asked).await {
                        Ok(answer) => return Some(answer),
                        Err(_) if over() => return None,
                        Err(_) => {}
                    }
                }
            });
            match answer? {
                Ok(locked) => {
                    self.key = Some(locked.key);
                    let revision = locked.header.unwrap_or_default().revision;
                    return u64::try_from(revision).ok();
                }
                Err(_) if over() => return None,
                Err(_) => self.turn(),
            }
        }
    }

    /// Lets time pass.
    pub fn pause(&mut self, time: Duration) {
        self.runtime
            .block_on(async { tokio::time::sleep(time).await });
    }

    /// Gives the lock back, unless the lease is lost before a member answers.
    pub fn release(&mut self) {
        while let Some(key) = self.key.clone().filter(|_| !self.is_lost()) {
            let member = self.members[self.at].clone();
            let request = UnlockRequest { key };
            let answer: Result<Empty, String> = self.runtime.block_on(async {
                let unlock = ask(member, "/v3lockpb.Lock/Unlock", request);
                let answer = tokio::time::timeout(PATIENCE, unlock).await;
                answer.unwrap_or_else(|_| Err("no answer".to_owned()))
            });
            match answer {
                Ok(Empty {}) => self.key = None,
                Err(_) => self.turn(),
            }
        }
    }

    /// Goes on with the next member after a while.
    fn turn(&mut self) {
        self.at = (self.at + 1) % self.members.len();
        self.pause(AGAIN);
    }
}

impl Drop for EtcdLock {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

/// Renews the lease three times in its `length` until etcd has forgotten it.
async fn renew(
    members: Vec<Channel>,
    mut at: usize,
    lease: i64,
    length: Duration,
    until: Arc<Mutex<Instant>>,
) {
    let set = |time: Instant| *until.lock().unwrap_or_else(PoisonError::into_inner) = time;
    loop {
        tokio::time::sleep(length / 3).await;
        loop {
            let asked = Instant::now();
            let answer = tokio::time::timeout(PATIENCE, keep_alive(members[at].clone(), lease));
            match answer.await {
                Ok(Ok(seconds)) if seconds > 0 => {
                    set(asked + Duration::from_secs(seconds.unsigned_abs()));
                    break;
                }
                // Etcd has forgotten it.
                Ok(Ok(_)) => return set(asked),
                _ => {
                    at = (at + 1) % members.len();
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }
}

/// Seconds that the lease has left after it was renewed.
async fn keep_alive(channel: Channel, lease: i64) -> Result<i64, String> {
    let mut client = Grpc::new(channel);
    let wrong = |error: tonic::Status| error.to_string();
    let ready = client.ready().await;
    ready.map_err(|error| error.to_string())?;
    let codec: ProstCodec<KeepAliveRequest, KeepAliveResponse> = ProstCodec::default();
    let path = PathAndQuery::from_static("/etcdserverpb.Lease/LeaseKeepAlive");
    let question = tokio_stream::once(KeepAliveRequest { lease });
    let answers = client.streaming(tonic::Request::new(question), path, codec);
    let mut answers = answers.await.map_err(wrong)?.into_inner();
    let answer = answers.message().await.map_err(wrong)?;
    Ok(answer.unwrap_or_default().seconds)
}

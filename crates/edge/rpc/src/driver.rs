//! The channel between the server's threads and the thread that runs the switch.

use crate::core::{Core, Outcome, Prepared, StreamId, Ticket};
use crate::proto::stateplane::v1 as own;
use crate::proto::v1;
use crate::refusal::{Refusal, WriteRefusal};
use stateplane_runtime::{Digest, Engine, Port};
use stateplane_switch::{Alone, Fellows, Switch};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tonic::{Code, Status};

/// Requests that wait between the server and the switch.
const CHANNEL: usize = 1024;

/// Messages that wait for a controller that reads slowly; more are dropped and counted.
pub(crate) const STREAM: usize = 4096;

/// Time between two bursts of packets after which they go on, although more waits.
const BURST: Duration = Duration::from_micros(200);

/// Entities read that may wait for clients to take them.
const MAX_UNREAD: usize = 1 << 18;

/// Time in µs after which a client has to be as fast as [`LEAST_RATE`].
const READ_PATIENCE: u64 = 1_000_000;

/// Entities each second that a client takes for which everyone else waits.
const LEAST_RATE: u64 = 16_384;

/// Time in µs after which a client that reads slowly is looked at again.
const READ_PAUSE: u64 = 1_000;

/// Sender of a stream's messages.
pub(crate) type StreamSender = mpsc::Sender<Result<v1::StreamMessageResponse, Status>>;

/// Sender of a read's results; [`MAX_UNREAD`] bounds the waiting ones.
pub(crate) type ReadSender = mpsc::UnboundedSender<Result<Unread, Status>>;

/// A part of a read that the client has not taken.
pub(crate) struct Unread {
    response: v1::ReadResponse,
    /// Entities of all parts that wait.
    waiting: Arc<AtomicUsize>,
    entities: usize,
}

impl Unread {
    fn new(response: v1::ReadResponse, waiting: &Arc<AtomicUsize>) -> Unread {
        let entities = response.entities.len();
        waiting.fetch_add(entities, Ordering::Relaxed);
        Unread {
            response,
            waiting: waiting.clone(),
            entities,
        }
    }

    /// The part, which waits no longer.
    pub(crate) fn take(mut self) -> v1::ReadResponse {
        std::mem::take(&mut self.response)
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.entities, Ordering::Relaxed);
    }
}

/// A read whose client takes more time than the switch.
#[derive(Clone, Copy)]
struct Stall {
    ticket: Ticket,
    /// When the switch first waited for it, in µs.
    since: u64,
    /// Entities read until then.
    read: u64,
}

/// Claim of a client that wants to replace the program.
pub(crate) struct Claim {
    pub(crate) device_id: u64,
    pub(crate) role: String,
    pub(crate) election_id: Option<v1::Uint128>,
}

pub(crate) enum Command<E> {
    Write(v1::WriteRequest, oneshot::Sender<Result<(), WriteRefusal>>),
    Read(v1::ReadRequest, ReadSender),
    SetPipeline(
        Box<v1::SetForwardingPipelineConfigRequest>,
        Option<Box<Prepared<E>>>,
        oneshot::Sender<Result<(), Refusal>>,
    ),
    GetPipeline(
        v1::GetForwardingPipelineConfigRequest,
        oneshot::Sender<Result<v1::ForwardingPipelineConfig, Refusal>>,
    ),
    Ports(
        own::PortsRequest,
        oneshot::Sender<Result<Vec<own::Port>, Refusal>>,
    ),
    Program(Claim, oneshot::Sender<Result<Prepared<E>, Refusal>>),
    Open(StreamSender, oneshot::Sender<StreamId>),
    Stream(StreamId, v1::StreamMessageRequest),
    Close(StreamId),
}

/// The server's end.
pub(crate) struct Requests<E> {
    commands: mpsc::Sender<Command<E>>,
    wake: Arc<Wake>,
}

impl<E> Clone for Requests<E> {
    fn clone(&self) -> Self {
        Requests {
            commands: self.commands.clone(),
            wake: self.wake.clone(),
        }
    }
}

/// Makes the switch's descriptor readable.
struct Wake {
    stream: UnixStream,
    /// True if a wake-up byte is in flight already.
    pending: Arc<AtomicBool>,
}

impl<E> Requests<E> {
    /// Sends a command and wakes the switch.
    pub(crate) async fn send(&self, command: Command<E>) -> Result<(), Status> {
        let gone = || Status::unavailable("the switch has stopped");
        self.commands.send(command).await.map_err(|_| gone())?;
        if !self.wake.pending.swap(true, Ordering::AcqRel) {
            // A full socket is readable all the same.
            let _ = (&self.wake.stream).write(&[1]);
        }
        Ok(())
    }
}

/// The switch's end: the core, and where its answers go.
pub struct Driver<E> {
    core: Core<E>,
    commands: mpsc::Receiver<Command<E>>,
    woken: UnixStream,
    pending: Arc<AtomicBool>,
    /// Messages that a controller was too slow to take.
    dropped: u64,
    writes: BTreeMap<Ticket, oneshot::Sender<Result<(), WriteRefusal>>>,
    reads: BTreeMap<Ticket, ReadSender>,
    /// Entities read that clients have not taken.
    unread: Arc<AtomicUsize>,
    /// Entities read so far.
    read: u64,
    /// A read that had to wait for its client.
    stalled: Option<Stall>,
    sets: BTreeMap<Ticket, oneshot::Sender<Result<(), Refusal>>>,
    gets: BTreeMap<Ticket, oneshot::Sender<Result<v1::ForwardingPipelineConfig, Refusal>>>,
    ports: BTreeMap<Ticket, oneshot::Sender<Result<Vec<own::Port>, Refusal>>>,
    streams: BTreeMap<StreamId, StreamSender>,
}

/// The two ends of a core.
///
/// # Errors
///
/// Returns an error if the system has no sockets left.
pub fn channel<E: Engine>(core: Core<E>) -> io::Result<(Driver<E>, super::service::Client<E>)> {
    let (sender, receiver) = mpsc::channel(CHANNEL);
    let (woken, waker) = UnixStream::pair()?;
    woken.set_nonblocking(true)?;
    waker.set_nonblocking(true)?;
    let pending = Arc::new(AtomicBool::new(false));
    let driver = Driver {
        core,
        commands: receiver,
        woken,
        pending: pending.clone(),
        dropped: 0,
        writes: BTreeMap::new(),
        reads: BTreeMap::new(),
        unread: Arc::default(),
        read: 0,
        stalled: None,
        sets: BTreeMap::new(),
        gets: BTreeMap::new(),
        ports: BTreeMap::new(),
        streams: BTreeMap::new(),
    };
    let requests = Requests {
        commands: sender,
        wake: Arc::new(Wake {
            stream: waker,
            pending,
        }),
    };
    Ok((driver, super::service::Client { requests }))
}

impl<E: Engine> Driver<E> {
    /// Readable when [`Driver::serve`] has something to do.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// The port whose frames go to [`Driver::packet_in`].
    pub fn cpu_port(&self) -> Option<Port> {
        self.core.cpu_port()
    }

    /// Takes a frame for controllers.
    pub fn packet_in(&mut self, frame: &[u8]) {
        self.core.packet_in(frame);
        self.answer();
    }

    /// Takes a digest of the program at `now` in µs.
    pub fn digest(&mut self, digest: &Digest, now: u64) {
        self.core.digest(digest, now);
        self.core.send_digests(now);
        self.answer();
    }

    /// Hears what there is to do, and returns when [`Driver::serve`] should do it, at `now` in µs;
    /// 0 means at once.
    pub fn due(&mut self, now: u64) -> Option<u64> {
        self.hear();
        if let Some(later) = self.await_reader(now) {
            return Some(later);
        }
        self.core.send_digests(now);
        self.answer();
        self.core.due()
    }

    /// Messages dropped because a controller did not read them in time.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Does a bounded part of what waits, at `now` in µs, and returns when there is more to
    /// do; 0 means at once.
    pub fn serve(&mut self, switch: &mut Switch<E>, now: u64) -> Option<u64> {
        self.serve_with(switch, &mut Alone, now)
    }

    /// Like [`serve`](Driver::serve), for several switches that run the program, of which `switch`
    /// is the first.
    pub fn serve_with(
        &mut self,
        switch: &mut Switch<E>,
        fellows: &mut dyn Fellows<E>,
        now: u64,
    ) -> Option<u64> {
        let start = Instant::now();
        loop {
            self.hear();
            if let Some(later) = self.await_reader(now) {
                return Some(later);
            }
            self.core.work_with(switch, fellows, now);
            self.answer();
            if self.core.due().is_none_or(|due| due > now) || start.elapsed() >= BURST {
                return self.core.due();
            }
        }
    }

    /// When to look again whether a client takes what it reads; `None` if there is room for
    /// more, or nothing is read.
    fn await_reader(&mut self, now: u64) -> Option<u64> {
        let ticket = self.core.reading()?;
        if self.reads.get(&ticket).is_none_or(ReadSender::is_closed) {
            self.core.cancel_read();
            self.reads.remove(&ticket);
            return None;
        }
        let unread = self.unread.load(Ordering::Relaxed);
        if unread < MAX_UNREAD {
            return None;
        }
        let stall = match &self.stalled {
            Some(stall) if stall.ticket == ticket => *stall,
            _ => Stall {
                ticket,
                since: now,
                read: self.read,
            },
        };
        self.stalled = Some(stall);
        let waited = now.saturating_sub(stall.since);
        let expected = waited.saturating_mul(LEAST_RATE) / 1_000_000;
        if waited > READ_PATIENCE && self.read - stall.read < expected {
            self.core.cancel_read();
            if let Some(reply) = self.reads.remove(&ticket) {
                let text = format!(
                    "{unread} entities wait for clients that take them slowly: read less at once"
                );
                let refusal = Refusal::new(Code::ResourceExhausted, text);
                let _ = reply.send(Err(refusal.into()));
            }
            return None;
        }
        Some(now + READ_PAUSE)
    }

    fn hear(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.woken.read(&mut bytes), Ok(count) if count > 0) {}
        self.pending.store(false, Ordering::Release);
        // Requests without room wait in the channel, and then in the connections.
        while self.core.has_room()
            && let Ok(command) = self.commands.try_recv()
        {
            self.take(command);
        }
    }

    fn take(&mut self, command: Command<E>) {
        match command {
            Command::Write(request, reply) => {
                let ticket = self.core.write(request);
                self.writes.insert(ticket, reply);
            }
            Command::Read(request, reply) => {
                let ticket = self.core.read(request);
                self.reads.insert(ticket, reply);
            }
            Command::SetPipeline(request, prepared, reply) => {
                let ticket = self.core.set_pipeline(*request, prepared.map(|it| *it));
                self.sets.insert(ticket, reply);
            }
            Command::GetPipeline(request, reply) => {
                let ticket = self.core.get_pipeline(request);
                self.gets.insert(ticket, reply);
            }
            Command::Ports(request, reply) => {
                let ticket = self.core.ports(request);
                self.ports.insert(ticket, reply);
            }
            Command::Program(claim, reply) => {
                let election_id = claim.election_id.as_ref();
                let program = self
                    .core
                    .program_for(claim.device_id, &claim.role, election_id);
                let _ = reply.send(program);
            }
            Command::Open(sender, reply) => {
                let stream = self.core.open_stream();
                self.streams.insert(stream, sender);
                if reply.send(stream).is_err() {
                    self.streams.remove(&stream);
                }
            }
            Command::Stream(stream, message) => self.core.stream_message(stream, message),
            Command::Close(stream) => {
                self.streams.remove(&stream);
                self.core.close_stream(stream);
            }
        }
    }

    /// Delivers the core's messages. Those to closed channels are dropped.
    fn answer(&mut self) {
        while let Some(outcome) = self.core.poll() {
            match outcome {
                Outcome::Written(ticket, result) => {
                    if let Some(reply) = self.writes.remove(&ticket) {
                        let _ = reply.send(result);
                    }
                }
                Outcome::Read(ticket, response) => {
                    if let Some(reply) = self.reads.get(&ticket) {
                        self.read += response.entities.len() as u64;
                        let _ = reply.send(Ok(Unread::new(response, &self.unread)));
                    }
                }
                Outcome::ReadEnd(ticket, result) => {
                    if let Some(reply) = self.reads.remove(&ticket)
                        && let Err(refusal) = result
                    {
                        let _ = reply.send(Err(refusal.into()));
                    }
                }
                Outcome::PipelineSet(ticket, result) => {
                    if let Some(reply) = self.sets.remove(&ticket) {
                        let _ = reply.send(result);
                    }
                }
                Outcome::PipelineRead(ticket, result) => {
                    if let Some(reply) = self.gets.remove(&ticket) {
                        let _ = reply.send(result.map(|config| *config));
                    }
                }
                Outcome::Ports(ticket, result) => {
                    if let Some(reply) = self.ports.remove(&ticket) {
                        let _ = reply.send(result);
                    }
                }
                Outcome::Message(stream, message) => {
                    let full = self
                        .streams
                        .get(&stream)
                        .is_some_and(|sender| sender.try_send(Ok(message)).is_err());
                    self.dropped += u64::from(full);
                }
                Outcome::StreamEnd(stream, refusal) => {
                    if let Some(sender) = self.streams.remove(&stream) {
                        let _ = sender.try_send(Err(refusal.into()));
                    }
                    self.core.close_stream(stream);
                }
            }
        }
    }
}

/// Status for a request that the switch did not answer before it stopped.
pub(crate) fn unanswered<T>(_: T) -> Status {
    Status::new(Code::Unavailable, "the switch has stopped")
}

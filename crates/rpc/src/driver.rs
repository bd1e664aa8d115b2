//! The channel between the server's threads and whoever runs the switch.

use crate::core::{Core, Outcome, Prepared, StreamId, Ticket};
use crate::proto::v1;
use crate::refusal::{Refusal, WriteRefusal};
use stateplane_switch::Switch;
use stateplane_target::{Engine, Port};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{mpsc, oneshot};
use tonic::{Code, Status};

/// Requests that wait between the server and the switch.
const CHANNEL: usize = 1024;

/// Messages that wait for a controller that reads slowly; more are dropped and counted.
pub(crate) const STREAM: usize = 4096;

/// Steps of the core between two bursts of packets.
const STEPS: usize = 16;

/// What becomes of a stream's messages.
pub(crate) type StreamSender = mpsc::Sender<Result<v1::StreamMessageResponse, Status>>;

/// What becomes of a read.
pub(crate) type ReadSender = mpsc::UnboundedSender<Result<v1::ReadResponse, Status>>;

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
    Program(oneshot::Sender<Prepared<E>>),
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
    /// Whether a byte is on its way already.
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
    sets: BTreeMap<Ticket, oneshot::Sender<Result<(), Refusal>>>,
    gets: BTreeMap<Ticket, oneshot::Sender<Result<v1::ForwardingPipelineConfig, Refusal>>>,
    streams: BTreeMap<StreamId, StreamSender>,
}

/// The two ends of a core.
///
/// # Errors
///
/// If the system has no sockets left.
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
        sets: BTreeMap::new(),
        gets: BTreeMap::new(),
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

    /// Messages dropped because a controller did not read them in time.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Does a bounded part of what waits, at `now` in µs, and returns when there is more to
    /// do; 0 means at once.
    pub fn serve(&mut self, switch: &mut Switch<E>, now: u64) -> Option<u64> {
        self.hear();
        for _ in 0..STEPS {
            self.core.work(switch, now);
            self.answer();
            if self.core.due().is_none_or(|due| due > now) {
                break;
            }
        }
        self.core.due()
    }

    fn hear(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.woken.read(&mut bytes), Ok(count) if count > 0) {}
        self.pending.store(false, Ordering::Release);
        for _ in 0..CHANNEL {
            let Ok(command) = self.commands.try_recv() else {
                return;
            };
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
            Command::Program(reply) => {
                let _ = reply.send(self.core.program());
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

    /// Hands over what the core tells. Whoever has gone away is told nothing.
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
                        let _ = reply.send(Ok(response));
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

/// That the switch has stopped before it answered.
pub(crate) fn unanswered<T>(_: T) -> Status {
    Status::new(Code::Unavailable, "the switch has stopped")
}

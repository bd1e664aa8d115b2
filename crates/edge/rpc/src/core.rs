//! The protocol without IO.

mod pipeline;
mod stream;

use crate::digest::Digests;
use crate::entity::{Context, Shadow};
use crate::gather::Gatherer;
use crate::packet::PacketHeader;
use crate::pipeline::Pipeline;
use crate::proto::stateplane::v1 as own;
use crate::proto::{config, v1};
use crate::read::{Reading, Source};
use crate::refusal::{Refusal, WriteRefusal};
use crate::session::Sessions;
use crate::write::{Batch, Progress};
use stateplane_runtime::{Engine, Port};
use stateplane_switch::{Alone, Fellows, Switch};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tonic::Code;
use v1::stream_message_response::Update as Told;

pub use v1::set_forwarding_pipeline_config_request::Action as PipelineAction;

/// The version of the protocol that is spoken.
pub const VERSION: &str = "1.4.1";

/// Updates of a batch that are applied between two bursts of packets.
const SLICE: usize = 64;

/// Requests that may wait; more are refused.
const MAX_WAITING: usize = 1024;

/// A stream of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(pub u64);

/// A request that will be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Options that stay the same for the life of the core.
#[derive(Clone, Debug)]
pub struct Options {
    /// The device's number.
    pub device_id: u64,
    /// The port at which packets to and from controllers pass the switch.
    pub cpu_port: Option<Port>,
    /// Nanoseconds since the epoch at time 0 of the switch.
    pub epoch_ns: i64,
    /// Names of the ports' interfaces.
    pub port_names: BTreeMap<Port, String>,
}

/// Loads a program anew, with all its state as at first.
pub type Loader<E> = Arc<dyn Fn() -> Result<E, Refusal> + Send + Sync>;

/// A program that was compiled for a pipeline.
pub struct Prepared<E> {
    /// Engine with the program loaded, if that was done already.
    pub engine: Option<E>,
    /// Loads the program.
    pub load: Loader<E>,
    /// Its P4Info by the compiler.
    pub info: config::P4Info,
    /// Its controller headers.
    pub headers: Vec<PacketHeader>,
}

impl<E> Clone for Prepared<E> {
    fn clone(&self) -> Self {
        Prepared {
            engine: None,
            load: self.load.clone(),
            info: self.info.clone(),
            headers: self.headers.clone(),
        }
    }
}

/// Message to a client, with its receiver.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A write is done.
    Written(Ticket, Result<(), WriteRefusal>),
    /// A part of what a read asked for.
    Read(Ticket, v1::ReadResponse),
    /// A read is done.
    ReadEnd(Ticket, Result<(), Refusal>),
    /// A pipeline is set, or is not.
    PipelineSet(Ticket, Result<(), Refusal>),
    /// The answer to a request for the pipeline.
    PipelineRead(Ticket, Result<Box<v1::ForwardingPipelineConfig>, Refusal>),
    /// The ports of the switch.
    Ports(Ticket, Result<Vec<own::Port>, Refusal>),
    /// A message for a stream.
    Message(StreamId, v1::StreamMessageResponse),
    /// A stream ends.
    StreamEnd(StreamId, Refusal),
}

enum Job<E> {
    Write(Ticket, v1::WriteRequest),
    Writing(Ticket, Batch),
    Read(Ticket, v1::ReadRequest),
    Reading(Ticket, Reading),
    SetPipeline(
        Ticket,
        Box<v1::SetForwardingPipelineConfigRequest>,
        Option<Box<Prepared<E>>>,
    ),
    GetPipeline(Ticket, v1::GetForwardingPipelineConfigRequest),
    Ports(Ticket, own::PortsRequest),
    Stream(StreamId, v1::StreamMessageRequest),
    Close(StreamId),
}

struct Saved<E> {
    pipeline: Pipeline,
    engine: E,
    load: Loader<E>,
    headers: Vec<PacketHeader>,
    info: config::P4Info,
}

/// A P4Runtime server without IO. It makes a time of its own of none: times are
/// arguments, in µs of the switch's clock.
pub struct Core<E> {
    options: Options,
    sessions: Sessions,
    pipeline: Option<Pipeline>,
    /// Compiled form of the running program.
    program: Prepared<E>,
    saved: Option<Saved<E>>,
    shadow: Shadow,
    digests: Digests,
    jobs: VecDeque<Job<E>>,
    outcomes: VecDeque<Outcome>,
    next_ticket: u64,
    next_stream: u64,
    /// Packets for controllers that no header of the program fits.
    unreadable: u64,
}

impl<E: Engine> Core<E> {
    /// A core for the program that runs in `switch`.
    ///
    /// # Errors
    ///
    /// Returns an error if the P4Info is not that of the program.
    pub fn new(
        options: Options,
        program: Prepared<E>,
        switch: &Switch<E>,
    ) -> Result<Core<E>, Refusal> {
        let state = switch.engine().state();
        let pipeline = Pipeline::new(
            program.info.clone(),
            &program.headers,
            state,
            &options.port_names,
        )?;
        Ok(Core {
            sessions: Sessions::new(options.device_id),
            options,
            pipeline: Some(pipeline),
            program,
            saved: None,
            shadow: Shadow::default(),
            digests: Digests::default(),
            jobs: VecDeque::new(),
            outcomes: VecDeque::new(),
            next_ticket: 0,
            next_stream: 0,
            unreadable: 0,
        })
    }

    /// The port at which packets to and from controllers pass the switch.
    #[must_use]
    pub fn cpu_port(&self) -> Option<Port> {
        self.options.cpu_port
    }

    /// Frames for controllers that were shorter than the program's header.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }

    /// True if another request may wait; without room requests are refused.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.jobs.len() < MAX_WAITING
    }

    fn busy() -> Refusal {
        Refusal::new(
            Code::ResourceExhausted,
            format!("{MAX_WAITING} requests wait already"),
        )
    }

    /// Takes a write.
    pub fn write(&mut self, request: v1::WriteRequest) -> Ticket {
        let ticket = self.ticket();
        if self.has_room() {
            self.jobs.push_back(Job::Write(ticket, request))
        } else {
            self.outcomes
                .push_back(Outcome::Written(ticket, Err(Self::busy().into())))
        }
        ticket
    }

    /// Takes a read.
    pub fn read(&mut self, request: v1::ReadRequest) -> Ticket {
        let ticket = self.ticket();
        if self.has_room() {
            self.jobs.push_back(Job::Read(ticket, request))
        } else {
            self.outcomes
                .push_back(Outcome::ReadEnd(ticket, Err(Self::busy())))
        }
        ticket
    }

    /// Takes a pipeline; `prepared` is what its program compiled to, where it has one.
    pub fn set_pipeline(
        &mut self,
        request: v1::SetForwardingPipelineConfigRequest,
        prepared: Option<Prepared<E>>,
    ) -> Ticket {
        let ticket = self.ticket();
        self.jobs.push_back(Job::SetPipeline(
            ticket,
            Box::new(request),
            prepared.map(Box::new),
        ));
        ticket
    }

    /// Takes a request for the pipeline.
    pub fn get_pipeline(&mut self, request: v1::GetForwardingPipelineConfigRequest) -> Ticket {
        let ticket = self.ticket();
        self.jobs.push_back(Job::GetPipeline(ticket, request));
        ticket
    }

    /// Takes a request for the ports.
    pub fn ports(&mut self, request: own::PortsRequest) -> Ticket {
        let ticket = self.ticket();
        self.jobs.push_back(Job::Ports(ticket, request));
        ticket
    }

    fn shown_ports(&self, switch: &Switch<E>, fellows: &mut dyn Fellows<E>) -> Vec<own::Port> {
        let ports = switch.ports().iter();
        ports
            .map(|port| {
                let mut counters = switch.port_counters(*port).unwrap_or_default();
                fellows.each(&mut |fellow| {
                    counters += fellow.port_counters(*port).unwrap_or_default();
                });
                let name = match self.options.port_names.get(port) {
                    Some(name) => name.clone(),
                    None if self.options.cpu_port == Some(*port) => "controller".to_owned(),
                    None => String::new(),
                };
                own::Port {
                    number: u32::from(*port),
                    name,
                    up: switch.port_is_up(*port),
                    rx_packets: counters.rx_packets,
                    rx_bytes: counters.rx_bytes,
                    tx_packets: counters.tx_packets,
                    tx_bytes: counters.tx_bytes,
                }
            })
            .collect()
    }

    /// The program that runs, for a client that may replace it.
    ///
    /// # Errors
    ///
    /// Returns `NOT_FOUND` for another device, `PERMISSION_DENIED` for a client that is not
    /// primary.
    pub fn program_for(
        &self,
        device_id: u64,
        role: &str,
        election_id: Option<&v1::Uint128>,
    ) -> Result<Prepared<E>, Refusal> {
        self.sessions.check_writer(device_id, role, election_id)?;
        Ok(self.program.clone())
    }

    /// The read in progress: it continues before anything else.
    #[must_use]
    pub fn reading(&self) -> Option<Ticket> {
        match self.jobs.front() {
            Some(Job::Reading(ticket, _)) => Some(*ticket),
            _ => None,
        }
    }

    /// Ends the read in progress, without an answer.
    pub fn cancel_read(&mut self) {
        if self.reading().is_some() {
            self.jobs.pop_front();
        }
    }

    /// A new stream.
    pub fn open_stream(&mut self) -> StreamId {
        self.next_stream += 1;
        StreamId(self.next_stream)
    }

    /// Takes a message of a stream.
    pub fn stream_message(&mut self, stream: StreamId, message: v1::StreamMessageRequest) {
        if self.has_room() {
            self.jobs.push_back(Job::Stream(stream, message))
        } else {
            self.outcomes
                .push_back(Outcome::StreamEnd(stream, Self::busy()))
        }
    }

    /// Takes the end of a stream.
    pub fn close_stream(&mut self, stream: StreamId) {
        self.jobs.push_back(Job::Close(stream));
    }

    /// Takes a frame that left the switch by the CPU port.
    pub fn packet_in(&mut self, frame: &[u8]) {
        let header = self.pipeline.as_ref().and_then(|it| it.packet_in.as_ref());
        let packet = match header {
            Some(header) => header.packet(frame),
            None => Some(v1::PacketIn {
                payload: frame.to_vec(),
                metadata: Vec::new(),
            }),
        };
        match packet {
            Some(packet) => self.tell_primaries(Told::Packet(packet)),
            None => self.unreadable += 1,
        }
    }

    /// The next thing to tell.
    pub fn poll(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// When [`Core::work`] has something to do next, in µs; 0 means at once.
    #[must_use]
    pub fn due(&self) -> Option<u64> {
        if self.jobs.is_empty() {
            self.digests.due()
        } else {
            Some(0)
        }
    }

    /// Does a bounded part of what waits, at `now` in µs.
    pub fn work(&mut self, switch: &mut Switch<E>, now: u64) {
        self.work_with(switch, &mut Alone, now);
    }

    /// Like [`work`](Core::work), for several switches that run the program, of which `switch` is
    /// the first.
    pub fn work_with(&mut self, switch: &mut Switch<E>, fellows: &mut dyn Fellows<E>, now: u64) {
        if let Some(job) = self.jobs.pop_front() {
            self.step(switch, fellows, now, job);
            // A batch that is all or nothing may put back what it took away.
            if !matches!(self.jobs.front(), Some(Job::Writing(..)))
                && let Some(pipeline) = &self.pipeline
            {
                pipeline.forget_unused_names();
            }
        }
        self.collect(switch, now);
        fellows.follow(switch);
    }

    fn step(
        &mut self,
        switch: &mut Switch<E>,
        fellows: &mut dyn Fellows<E>,
        now: u64,
        job: Job<E>,
    ) {
        match job {
            Job::Write(ticket, request) => match self.begin_write(request) {
                Ok(batch) => self.go_on_writing(switch, fellows, now, ticket, batch),
                Err(refusal) => self
                    .outcomes
                    .push_back(Outcome::Written(ticket, Err(refusal.into()))),
            },
            Job::Writing(ticket, batch) => self.go_on_writing(switch, fellows, now, ticket, batch),
            Job::Read(ticket, request) => {
                let device = self.sessions.check_reader(request.device_id);
                let ready = device.and_then(|()| self.ready().map(|_| ()));
                match ready.and_then(|()| Reading::new(request)) {
                    Ok(reading) => self.go_on_reading(switch, fellows, now, ticket, reading),
                    Err(refusal) => self
                        .outcomes
                        .push_back(Outcome::ReadEnd(ticket, Err(refusal))),
                }
            }
            Job::Reading(ticket, reading) => {
                self.go_on_reading(switch, fellows, now, ticket, reading)
            }
            Job::SetPipeline(ticket, request, prepared) => {
                let prepared = prepared.map(|it| *it);
                let outcome = self.change_pipeline(switch, fellows, now, *request, prepared);
                self.outcomes
                    .push_back(Outcome::PipelineSet(ticket, outcome));
            }
            Job::GetPipeline(ticket, request) => {
                let outcome = self.shown_pipeline(&request).map(Box::new);
                self.outcomes
                    .push_back(Outcome::PipelineRead(ticket, outcome));
            }
            Job::Ports(ticket, request) => {
                let device = self.sessions.check_reader(request.device_id);
                let ports = device.map(|()| self.shown_ports(switch, fellows));
                self.outcomes.push_back(Outcome::Ports(ticket, ports));
            }
            Job::Stream(stream, message) => self.said(switch, now, stream, message),
            Job::Close(stream) => {
                let notices = self.sessions.close(stream);
                self.notify(notices);
            }
        }
    }

    fn ready(&self) -> Result<&Pipeline, Refusal> {
        self.pipeline.as_ref().ok_or_else(|| {
            Refusal::new(
                Code::FailedPrecondition,
                "no pipeline is set: call SetForwardingPipelineConfig first",
            )
        })
    }

    fn begin_write(&self, request: v1::WriteRequest) -> Result<Batch, Refusal> {
        self.sessions.check_writer(
            request.device_id,
            &request.role,
            request.election_id.as_ref(),
        )?;
        self.ready()?;
        Batch::new(request)
    }

    fn go_on_writing(
        &mut self,
        switch: &mut Switch<E>,
        fellows: &mut dyn Fellows<E>,
        now: u64,
        ticket: Ticket,
        mut batch: Batch,
    ) {
        let Some(pipeline) = &self.pipeline else {
            return;
        };
        let mut context = Context {
            switch,
            fellows,
            pipeline,
            shadow: &mut self.shadow,
            digests: &mut self.digests,
            now,
        };
        match batch.work(&mut context, SLICE) {
            Progress::More => self.jobs.push_front(Job::Writing(ticket, batch)),
            Progress::Done(outcome) => self.outcomes.push_back(Outcome::Written(
                ticket,
                outcome.map_err(WriteRefusal::Updates),
            )),
        }
    }

    fn go_on_reading(
        &mut self,
        switch: &mut Switch<E>,
        fellows: &mut dyn Fellows<E>,
        now: u64,
        ticket: Ticket,
        mut reading: Reading,
    ) {
        let Some(pipeline) = &self.pipeline else {
            return;
        };
        reading.gather(&mut Gatherer {
            pipeline,
            switch,
            fellows,
        });
        let source = Source {
            pipeline,
            state: switch.engine().state(),
            shadow: &self.shadow,
            digests: &self.digests,
            now,
        };
        match reading.next(&source) {
            Ok(Some(entities)) => {
                if !entities.is_empty() {
                    let response = v1::ReadResponse { entities };
                    self.outcomes.push_back(Outcome::Read(ticket, response));
                }
                self.jobs.push_front(Job::Reading(ticket, reading));
            }
            Ok(None) => self.outcomes.push_back(Outcome::ReadEnd(ticket, Ok(()))),
            Err(refusal) => self
                .outcomes
                .push_back(Outcome::ReadEnd(ticket, Err(refusal))),
        }
    }
}

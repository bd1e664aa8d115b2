//! Messages of streams, and what the data plane tells controllers.

use super::{Core, Outcome, StreamId, Told};
use crate::data;
use crate::digest::Digests;
use crate::entity::{action_set, group, keys, replication};
use crate::pipeline::Pipeline;
use crate::proto::v1::{self, stream_message_request::Update as Said};
use crate::refusal::Refusal;
use crate::session::Notice;
use stateplane_runtime::{Digest, Engine, Port};
use stateplane_switch::{DropReason, Switch};
use tonic::Code;

impl<E: Engine> Core<E> {
    pub(super) fn said(
        &mut self,
        switch: &mut Switch<E>,
        now: u64,
        stream: StreamId,
        message: v1::StreamMessageRequest,
    ) {
        match message.update {
            Some(Said::Arbitration(update)) => match self.sessions.arbitrate(stream, &update) {
                Ok(notices) => self.notify(notices),
                Err(refusal) => self.outcomes.push_back(Outcome::StreamEnd(stream, refusal)),
            },
            Some(Said::Packet(packet)) => {
                if let Err(refusal) = self.packet_out(switch, now, stream, &packet) {
                    let details = v1::stream_error::Details::PacketOut(v1::PacketOutError {
                        packet_out: Some(packet),
                    });
                    self.tell_error(stream, refusal, details);
                }
            }
            Some(Said::DigestAck(ack)) => {
                let outcome = if self.sessions.is_primary(stream) {
                    self.digests.acknowledge(&ack)
                } else {
                    Err(not_primary())
                };
                if let Err(refusal) = outcome {
                    let ack = v1::DigestListAckError {
                        digest_list_ack: Some(ack),
                    };
                    let details = v1::stream_error::Details::DigestListAck(ack);
                    self.tell_error(stream, refusal, details);
                }
            }
            Some(Said::Other(other)) => {
                let details =
                    v1::stream_error::Details::Other(v1::StreamOtherError { other: Some(other) });
                let refusal = Refusal::unimplemented("this message is not known here");
                self.tell_error(stream, refusal, details);
            }
            None => {
                let refusal = Refusal::invalid("the message of the stream is empty");
                self.outcomes.push_back(Outcome::StreamEnd(stream, refusal));
            }
        }
    }

    fn packet_out(
        &mut self,
        switch: &mut Switch<E>,
        now: u64,
        stream: StreamId,
        packet: &v1::PacketOut,
    ) -> Result<(), Refusal> {
        if !self.sessions.is_primary(stream) {
            return Err(not_primary());
        }
        let port = self.options.cpu_port.ok_or_else(|| {
            Refusal::new(
                Code::FailedPrecondition,
                "the switch has no port for packets of controllers: start it with --cpu-port",
            )
        })?;
        let frame = match &self.ready()?.packet_out {
            Some(header) => header.frame(packet)?,
            None if packet.metadata.is_empty() => packet.payload.clone(),
            None => {
                return Err(Refusal::invalid(
                    "the program has no header with @controller_header(\"packet_out\")",
                ));
            }
        };
        send(switch, now, port, &frame)
    }

    /// Takes what the data plane says: digests, entries that were idle, ports that changed.
    pub(super) fn collect(&mut self, switch: &mut Switch<E>, now: u64) {
        let Some(pipeline) = &self.pipeline else {
            return;
        };
        let ports = switch.ports().iter().copied();
        let down = ports.filter(|port| !switch.port_is_up(*port)).collect();
        if self.shadow.down != down {
            self.shadow.down = down;
            group::follow_ports(switch, pipeline, &self.shadow);
            action_set::follow_ports(switch, pipeline, &self.shadow);
            replication::follow_ports(switch, &self.shadow);
        }
        let state = switch.engine().state();
        if state.digests.is_empty() && state.idle.is_empty() {
            return self.send_digests(now);
        }
        let state = switch.engine_mut().state_mut();
        while let Some(digest) = state.digests.poll() {
            add_digest(&mut self.digests, pipeline, &digest, now);
        }
        let mut idle = Vec::new();
        while let Some(entry) = state.idle.poll() {
            let Some(table) = pipeline.table_named(&entry.table) else {
                continue;
            };
            let matches = keys::write(&table.fields, &entry.keys);
            let key = (table.id, keys::canonical(&matches), entry.priority);
            let metadata = self.shadow.entries.get(&key).cloned().unwrap_or_default();
            let target = &state.tables()[table.at.index()];
            let timeout = target.get(&entry.keys, entry.priority).ok();
            #[expect(deprecated, reason = "clients of P4Runtime 1.0 use it")]
            idle.push(v1::TableEntry {
                table_id: table.id,
                r#match: matches,
                priority: i32::try_from(entry.priority).unwrap_or(i32::MAX),
                controller_metadata: metadata.0,
                metadata: metadata.1,
                idle_timeout_ns: timeout
                    .and_then(|listed| listed.idle_timeout)
                    .map_or(0, crate::entity::table::nanoseconds),
                ..v1::TableEntry::default()
            });
        }
        let timestamp = self.timestamp(now);
        if !idle.is_empty() {
            self.tell_primaries(Told::IdleTimeoutNotification(v1::IdleTimeoutNotification {
                table_entry: idle,
                timestamp,
            }));
        }
        self.send_digests(now);
    }

    /// Takes a digest of the program at `now` in µs.
    pub fn digest(&mut self, digest: &Digest, now: u64) {
        if let Some(pipeline) = &self.pipeline {
            add_digest(&mut self.digests, pipeline, digest, now);
        }
    }

    /// Tells controllers of digests whose time has come at `now` in µs.
    pub fn send_digests(&mut self, now: u64) {
        let timestamp = self.timestamp(now);
        while let Some(list) = self.digests.poll(now) {
            self.tell_primaries(Told::Digest(v1::DigestList { timestamp, ..list }));
        }
    }

    /// Nanoseconds since the epoch at `now` in µs.
    fn timestamp(&self, now: u64) -> i64 {
        let since_start = crate::entity::table::nanoseconds(now);
        self.options.epoch_ns.saturating_add(since_start)
    }

    pub(super) fn notify(&mut self, notices: Vec<Notice>) {
        for (stream, update) in notices {
            self.tell(stream, Told::Arbitration(update));
        }
    }

    fn tell(&mut self, stream: StreamId, update: Told) {
        let message = v1::StreamMessageResponse {
            update: Some(update),
        };
        self.outcomes.push_back(Outcome::Message(stream, message));
    }

    pub(super) fn tell_primaries(&mut self, update: Told) {
        let primaries: Vec<StreamId> = self.sessions.primaries().collect();
        for stream in primaries {
            self.tell(stream, update.clone());
        }
    }

    fn tell_error(
        &mut self,
        stream: StreamId,
        refusal: Refusal,
        details: v1::stream_error::Details,
    ) {
        let error = v1::StreamError {
            canonical_code: refusal.code.into(),
            message: refusal.message,
            details: Some(details),
            ..v1::StreamError::default()
        };
        self.tell(stream, Told::Error(error));
    }
}

fn add_digest(digests: &mut Digests, pipeline: &Pipeline, digest: &Digest, now: u64) {
    if let Some(index) = pipeline.digest_named(&digest.name) {
        let data = data::write(&digest.data, &index.spec, pipeline.types());
        digests.add(index.id, data, now);
    }
}

/// Reasons for which a frame cannot be sent, other than that the program drops it.
const UNSENT: [DropReason; 8] = [
    DropReason::Runt,
    DropReason::Oversize,
    DropReason::UnknownPort,
    DropReason::PortDown,
    DropReason::QueueFull,
    DropReason::EgressRunt,
    DropReason::EgressOversize,
    DropReason::TransmitFull,
];

/// Lets the program take a frame from the CPU port.
///
/// # Errors
///
/// If a copy of it cannot be sent by the port that the program chose.
fn send<E: Engine>(
    switch: &mut Switch<E>,
    now: u64,
    port: Port,
    frame: &[u8],
) -> Result<(), Refusal> {
    // Work that is left of earlier packets is done first, so that new drops are this frame's.
    switch.handle_timeout(now);
    let dropped = |switch: &Switch<E>| UNSENT.map(|reason| switch.counters().dropped(reason));
    let before = dropped(switch);
    let waiting = usize::try_from(switch.occupancy().transmit).unwrap_or(usize::MAX);
    switch.handle_frame(now, port, frame);
    let changes = before.into_iter().zip(dropped(switch)).zip(UNSENT);
    let mut reasons = changes.filter(|((before, after), _)| before < after);
    if let Some((_, reason)) = reasons.next() {
        return Err(unsent(reason));
    }
    match switch.too_long_for_port(waiting) {
        Some((port, length, longest)) => Err(Refusal::invalid(format!(
            "the frame has {length} bytes where it leaves, port {port} sends at most {longest}: \
             raise its MTU"
        ))),
        None => Ok(()),
    }
}

fn unsent(reason: DropReason) -> Refusal {
    let (code, text) = match reason {
        DropReason::UnknownPort => (
            Code::InvalidArgument,
            "the switch does not have the port that the program chose",
        ),
        DropReason::PortDown => (Code::Unavailable, "the port that the program chose is down"),
        DropReason::Runt | DropReason::EgressRunt => (
            Code::InvalidArgument,
            "the frame is shorter than an Ethernet header",
        ),
        DropReason::Oversize | DropReason::EgressOversize => (
            Code::InvalidArgument,
            "the frame is longer than any port sends",
        ),
        _ => (Code::ResourceExhausted, "the port's queue is full"),
    };
    Refusal::new(code, format!("{text} ({reason})"))
}

fn not_primary() -> Refusal {
    Refusal::new(Code::PermissionDenied, "only the primary sends this")
}

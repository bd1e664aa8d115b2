//! Hosts that send and receive: agents that print the events of a history
//! (`stateplane_history::multicast`), one a line. An event is printed before what it tells can have
//! an effect elsewhere, so that the lines of a host that is killed tell all that it did.

use crate::agent::stop_at_end_of_input;
use crate::error::LabError;
use clap::Args;
use stateplane_apps::Random;
use stateplane_history::multicast::{Event, EventKind, Filled, Final, MulticastEvent};
use stateplane_host::clock::boot_time_us;
use stateplane_host::multicast_receiver::{MulticastReceiver, MulticastReceiverConfig, Received};
use stateplane_host::multicast_sender::{MulticastSender, MulticastSenderConfig};
use stateplane_multicast::{Call, Event as SenderEvent};
use stateplane_wire::control::PORT;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Time in µs for which a host waits for the controller before it gives up.
pub(super) const PATIENCE_US: u64 = 30_000_000;
/// Time in µs for which messages that are under way in the end are waited for.
pub(super) const DRAIN_US: u64 = 10_000_000;
/// Longest time in µs for which a host waits before it looks whether it is to stop.
pub(super) const LOOK_US: u64 = 5_000;
/// Bytes of the shortest payload: the message's number.
const SHORTEST: u64 = 8;
/// Bytes of the longest payload.
const LONGEST: u64 = 600;
/// Messages in a receiver's queue at most.
pub(super) const QUEUE: u16 = 256;

/// Line of a receiver that is listed: a comment among events.
pub(super) const LISTED: &str = "# listed";

/// Arguments of a sender.
#[derive(Clone, Debug, Args)]
pub struct SenderArguments {
    /// Address of the controller.
    #[arg(long)]
    pub controller: Ipv4Addr,
    /// Number of the host in histories.
    #[arg(long)]
    pub node: u32,
    /// Groups of the deployment.
    #[arg(long)]
    pub groups: u8,
    /// Messages that it has under way together.
    #[arg(long)]
    pub lanes: u8,
    /// Microseconds between two messages of a lane.
    #[arg(long)]
    pub interval_us: u64,
    /// Chance that a message addresses all groups, in thousandths.
    #[arg(long)]
    pub several: u32,
    /// Seed of its choices.
    #[arg(long)]
    pub seed: u64,
}

/// Arguments of a receiver.
#[derive(Clone, Debug, Args)]
pub struct ReceiverArguments {
    /// Address of the controller.
    #[arg(long)]
    pub controller: Ipv4Addr,
    /// Number of the host in histories; it has the next one when it joins again.
    #[arg(long)]
    pub node: u32,
    /// The group.
    #[arg(long)]
    pub group: u8,
}

/// Digest of a payload: FNV-1a with 64 bits.
fn digest(payload: &[u8]) -> u64 {
    payload.iter().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Number of the message that a payload begins with; 0, which none has, of one that is too short.
fn message_of(payload: &[u8]) -> u64 {
    let number = payload.first_chunk::<8>();
    number.map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// Lines on the standard output.
pub(super) struct Lines {
    pub(super) out: io::BufWriter<io::Stdout>,
}

impl Lines {
    pub(super) fn open() -> Self {
        Self {
            out: io::BufWriter::new(io::stdout()),
        }
    }

    pub(super) fn tell(&mut self, at: u64, event: MulticastEvent) -> io::Result<()> {
        self.write(at, EventKind::Of(event))
    }

    pub(super) fn write(&mut self, at: u64, kind: EventKind) -> io::Result<()> {
        writeln!(self.out, "{}", Event { at, kind })
    }
}

pub(super) fn failed(reason: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(reason)
}

/// Runs a sender until its standard input ends and what it has under way came to an end.
///
/// # Errors
/// `LAB003` if the controller does not answer, or the system refuses.
pub fn sender(arguments: &SenderArguments) -> Result<(), LabError> {
    let sent = stop_at_end_of_input().and_then(|stop| Sending::open(arguments)?.run(&stop));
    sent.map_err(|reason| LabError::file("sender", reason))
}

/// Runs a receiver until its standard input ends.
///
/// # Errors
/// `LAB003` if the controller does not answer, or the system refuses.
pub fn receiver(arguments: &ReceiverArguments) -> Result<(), LabError> {
    let received = stop_at_end_of_input().and_then(|stop| {
        let mut lines = Lines::open();
        let mut node = arguments.node;
        while !stop.load(Ordering::Relaxed) {
            receive(arguments, node, &mut lines, &stop)?;
            node += 1;
        }
        Ok(())
    });
    received.map_err(|reason| LabError::file("receiver", reason))
}

pub(super) fn controllers(address: Ipv4Addr) -> Vec<SocketAddrV4> {
    vec![SocketAddrV4::new(address, PORT)]
}

struct Sending<'a> {
    arguments: &'a SenderArguments,
    sender: MulticastSender,
    lines: Lines,
    random: Random,
    /// Numbers of the messages that are under way.
    under_way: BTreeMap<Call, u64>,
    /// Times at which lanes are due.
    due: Vec<u64>,
    sent: u64,
}

impl<'a> Sending<'a> {
    fn open(arguments: &'a SenderArguments) -> io::Result<Self> {
        let config = MulticastSenderConfig {
            lanes: arguments.lanes,
            ..MulticastSenderConfig::new(controllers(arguments.controller))
        };
        let end = boot_time_us() + PATIENCE_US;
        let sender = MulticastSender::connect(config, None, end).map_err(failed)?;
        let now = sender.now();
        let mut random = Random::new(arguments.seed);
        // Lanes do not send in step.
        let interval = arguments.interval_us;
        let due = (0..arguments.lanes).map(|_| now + random.between(0, interval));
        let due = due.collect();
        Ok(Self {
            arguments,
            sender,
            lines: Lines::open(),
            random,
            under_way: BTreeMap::new(),
            due,
            sent: 0,
        })
    }

    fn run(mut self, stop: &Arc<AtomicBool>) -> io::Result<()> {
        let mut end = None;
        loop {
            let now = self.sender.now();
            let mut until = now + LOOK_US;
            if stop.load(Ordering::Relaxed) {
                let end = *end.get_or_insert(now + DRAIN_US);
                if self.under_way.is_empty() || now >= end {
                    break;
                }
            } else {
                self.send(now)?;
                until = self.due.iter().fold(until, |until, due| until.min(*due));
            }
            self.lines.out.flush()?;
            // What is due and finds no lane waits for an answer.
            self.sender.step(until.max(now + 200))?;
            self.listen()?;
        }
        self.lines.out.flush()?;
        let end = self.sender.now() + LOOK_US;
        self.sender.close(end);
        Ok(())
    }

    fn send(&mut self, now: u64) -> io::Result<()> {
        for at in 0..self.due.len() {
            if self.due[at] > now || self.under_way.len() >= self.due.len() {
                continue;
            }
            self.due[at] = now + self.arguments.interval_us;
            let all = (1u32 << self.arguments.groups) - 1;
            let to = if self.random.permille(self.arguments.several) {
                all
            } else {
                1 << self.random.place(self.arguments.groups.into())
            };
            let number = (u64::from(self.arguments.node) << 32) | (self.sent + 1);
            let mut payload = number.to_be_bytes().to_vec();
            let longer = self.random.between(SHORTEST, LONGEST) as usize;
            payload.resize(longer, number as u8);
            let event = MulticastEvent::Sent {
                node: self.arguments.node,
                message: number,
                to,
                digest: digest(&payload),
            };
            let at = self.sender.now();
            // No lane is granted while a session is being opened.
            let Ok(call) = self.sender.send(to, payload) else {
                continue;
            };
            self.sent += 1;
            self.lines.tell(at, event)?;
            self.under_way.insert(call, number);
        }
        Ok(())
    }

    fn listen(&mut self) -> io::Result<()> {
        let node = self.arguments.node;
        while let Some(event) = self.sender.poll_event() {
            let (call, refused) = match event {
                SenderEvent::Complete { call, .. } => (call, false),
                SenderEvent::Refused { call, .. } => (call, true),
                // It stays under way.
                SenderEvent::Unknown { .. } => continue,
            };
            let Some(message) = self.under_way.remove(&call) else {
                continue;
            };
            let event = if refused {
                MulticastEvent::Refused { node, message }
            } else {
                MulticastEvent::Completed { node, message }
            };
            self.lines.tell(self.sender.now(), event)?;
        }
        Ok(())
    }
}

/// Receives until the receiver is taken off its list or is to stop.
fn receive(
    arguments: &ReceiverArguments,
    node: u32,
    lines: &mut Lines,
    stop: &Arc<AtomicBool>,
) -> io::Result<()> {
    let group = arguments.group;
    let config = MulticastReceiverConfig {
        controllers: controllers(arguments.controller),
        address: None,
        group,
        queue: QUEUE.into(),
    };
    let end = boot_time_us() + PATIENCE_US;
    let mut receiver = MulticastReceiver::connect(config, None, end).map_err(failed)?;
    let joined = MulticastEvent::Joined {
        node,
        group,
        peer: None,
        after: Some(receiver.after()),
    };
    lines.tell(receiver.now(), joined)?;
    writeln!(lines.out, "{LISTED}")?;
    let mut longest = 0;
    while !stop.load(Ordering::Relaxed) {
        let queued = receiver.queued() as u64;
        if queued > longest {
            longest = queued;
            let fills = MulticastEvent::Fills {
                node,
                group,
                what: Filled::Queue,
                count: queued,
            };
            lines.tell(receiver.now(), fills)?;
        }
        while let Some(received) = receiver.poll() {
            let at = receiver.now();
            let Received::Message {
                at: place, payload, ..
            } = received
            else {
                lines.tell(at, MulticastEvent::Left { node, group })?;
                return lines.out.flush();
            };
            let delivered = MulticastEvent::Delivered {
                node,
                group,
                message: message_of(&payload),
                at: Final {
                    time: place.time,
                    group: place.group,
                },
                digest: digest(&payload),
            };
            lines.tell(at, delivered)?;
        }
        lines.out.flush()?;
        receiver.step(receiver.now() + LOOK_US)?;
    }
    lines.out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_tells_its_message_and_has_a_digest_of_its_own() {
        let number = (7u64 << 32) | 9;
        let mut payload = number.to_be_bytes().to_vec();
        payload.push(1);
        assert_eq!(message_of(&payload), number);
        assert_eq!(message_of(&payload[..7]), 0);
        // The published value of FNV-1a for "foobar".
        assert_eq!(digest(b"foobar"), 0x8594_4171_f739_67e8);
        let before = digest(&payload);
        payload[8] = 2;
        assert_ne!(digest(&payload), before);
    }
}

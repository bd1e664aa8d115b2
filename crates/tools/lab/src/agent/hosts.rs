//! All hosts of an application, on both sides of the switches, in one process: they send packets,
//! receive the answers, and record both by one clock.
//!
//! The process stands in a node with a link to the routers on each side. It speaks for
//! every address behind them by raw sockets, and reads every frame that reaches it.

use super::{now_us, raw, stop_at_end_of_input};
use crate::error::LabError;
use clap::Args;
use serde::{Deserialize, Serialize};
use stateplane_apps::{
    APPS, AppId, Asked, Hosts, INSIDE_PORT, OUTSIDE_PORT, Random, Segment, app, number_in,
};
use stateplane_history::replication::{
    Direction, Document, Event, EventKind, Flow, History, Released, Replication, StateEvent,
};
use stateplane_wire::{ethernet, ipv4};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const LONGEST_FRAME: usize = 65_536;
/// Bytes of an Ethernet header in front of its type.
const ADDRESSES: usize = 12;
/// Time for which packets may still arrive after the last was sent.
const LATE: Duration = Duration::from_millis(500);
/// Most strange frames that are told in words.
const MOST_STRANGE: usize = 20;

/// Arguments of the hosts.
#[derive(Clone, Debug, Args)]
pub struct HostsArguments {
    /// Name of the application.
    pub application: String,
    /// Interface to the side inside.
    #[arg(long, default_value = "inside")]
    pub inside: String,
    /// Interface to the side outside.
    #[arg(long, default_value = "outside")]
    pub outside: String,
    /// Flows that take turns.
    #[arg(long)]
    pub flows: usize,
    /// Milliseconds between two packets of a flow.
    #[arg(long)]
    pub interval_ms: u64,
    /// Seed of the packets' random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Switches say who they are in the DSCP of the packets that they let through.
    #[arg(long)]
    pub marked: bool,
    /// Maximum duration in seconds, if standard input does not end before.
    #[arg(long, default_value_t = 300)]
    pub seconds: u64,
}

/// Report of the hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostsReport {
    /// Packets sent and received, as a [`Document`]. The number of the switch that they crossed is
    /// 0 unless switches say who they are.
    pub history: String,
    /// Descriptions of the first frames that no host would take.
    pub strange: Vec<String>,
    /// Number of such frames.
    pub strange_frames: u64,
    /// ICMP errors from routers, for packets that then count as lost.
    pub unreachable: u64,
}

struct Notes {
    app: Box<dyn Hosts>,
    random: Random,
    /// Packets sent, with their flows.
    sent: Vec<(usize, Asked)>,
    /// Names of flows in the history.
    names: Vec<Flow>,
    /// Flows whose hosts outside answer next.
    owed: BTreeSet<usize>,
    /// Switches say who they are.
    marked: bool,
    history: History,
    report: HostsReport,
}

impl Notes {
    fn note(&mut self, kind: EventKind) {
        // Two threads write in turn; the clock of the system may be set back.
        let last = self.history.events.last().map_or(0, |event| event.at);
        let at = now_us().max(last);
        self.history.events.push(Event { at, kind });
    }

    /// The next packet of a flow, noted as sent.
    fn send(&mut self, flow: usize) -> (Direction, Vec<u8>) {
        let number = self.sent.len() as u64;
        let owed = self.owed.remove(&flow);
        let reply = owed.then(|| self.app.reply(flow, number, &mut self.random));
        let asked = reply
            .flatten()
            .unwrap_or_else(|| self.app.send(flow, number, &mut self.random));
        let object = self.name(flow, &asked);
        self.note(EventKind::Call {
            node: 0,
            object,
            operation: number,
            request: self.history.system.application.map(|_| asked.request),
        });
        let ready = (asked.direction, asked.datagram.clone());
        self.sent.push((flow, asked));
        ready
    }

    /// Name of a flow: the key of its first packet, which flows take turns to send.
    fn name(&mut self, flow: usize, asked: &Asked) -> Flow {
        if flow >= self.names.len() {
            let key = asked.key.to_string();
            let name = Flow::new(&key);
            let name = if self.names.contains(&name) {
                Flow::new(&format!("{key}#{flow}"))
            } else {
                name
            };
            self.names.push(name);
        }
        self.names[flow].clone()
    }

    fn receive(&mut self, port: u16, frame: &[u8]) {
        let Some(datagram) = datagram_in(frame) else {
            return;
        };
        let is_icmp = |d: ipv4::Packet<'_>| d.protocol() == ipv4::PROTOCOL_ICMP;
        // Of ICMP, hosts read echoes alone.
        if ipv4::Packet::new_checked(datagram).is_ok_and(is_icmp)
            && Segment::read_datagram(datagram).is_none()
        {
            self.report.unreachable += 1;
            return;
        }
        let asked = number_in(datagram)
            .and_then(|number| usize::try_from(number).ok())
            .and_then(|number| self.sent.get(number));
        let Some(asked) = asked else {
            return self.strange("nobody sent it".to_owned(), frame);
        };
        let (flow, asked) = asked.clone();
        let frame = tagged(frame, &asked.tag);
        let switch = if self.marked { mark(datagram) } else { 0 };
        match self.app.observe(&asked, port, &frame) {
            Ok(value) => {
                let translation = self.app.translated(&asked, &frame);
                if let Some(translation) = translation {
                    self.note(EventKind::Of(StateEvent::Translated {
                        switch: 0,
                        direction: translation.direction,
                        inside: translation.inside,
                        public: translation.public,
                        remote: translation.remote,
                    }));
                }
                if port == OUTSIDE_PORT && self.app.arrived(flow, &asked, &frame, &mut self.random)
                {
                    self.owed.insert(flow);
                }
                let output = EventKind::Return {
                    node: switch,
                    object: self.names[flow].clone(),
                    operation: asked.number,
                    response: Released {
                        value: translation.is_none().then_some(value),
                        durability: None,
                    },
                };
                self.note(output);
            }
            Err(because) => self.strange(because, &frame),
        }
    }

    fn strange(&mut self, because: String, frame: &[u8]) {
        self.report.strange_frames += 1;
        if self.report.strange.len() < MOST_STRANGE {
            self.report.strange.push(format!("{because}: {frame:02x?}"));
        }
    }
}

/// The frame with the tag that the application was to see: routers know no VLANs, and
/// switches have the tag from the port.
fn tagged(frame: &[u8], tag: &[u8]) -> Vec<u8> {
    let (addresses, rest) = frame.split_at(frame.len().min(ADDRESSES));
    [addresses, tag, rest].concat()
}

/// Number of the switch that a datagram crossed: its DSCP.
fn mark(datagram: &[u8]) -> u32 {
    datagram.get(1).map_or(0, |byte| u32::from(byte >> 2))
}

/// The IPv4 datagram in a frame, without padding behind it.
fn datagram_in(frame: &[u8]) -> Option<&[u8]> {
    let frame = ethernet::Packet::new_checked(frame).ok()?;
    (frame.ethertype() == ethernet::TYPE_IPV4).then(|| frame.payload())
}

fn lock(notes: &Mutex<Notes>) -> MutexGuard<'_, Notes> {
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}

fn send_all(
    arguments: &HostsArguments,
    notes: &Mutex<Notes>,
    stopped: impl Fn() -> bool,
) -> io::Result<()> {
    let inside = raw::sender(&arguments.inside)?;
    let outside = raw::sender(&arguments.outside)?;
    let gap = Duration::from_millis(arguments.interval_ms) / arguments.flows as u32;
    let mut next = Instant::now();
    for number in 0usize.. {
        if stopped() {
            break;
        }
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        next += gap;
        let (direction, datagram) = lock(notes).send(number % arguments.flows);
        let socket = match direction {
            Direction::Outbound => &inside,
            Direction::Inbound => &outside,
        };
        raw::send(socket, &datagram)?;
    }
    Ok(())
}

fn receive_all(
    arguments: &HostsArguments,
    notes: &Mutex<Notes>,
    stopped: impl Fn() -> bool,
) -> io::Result<()> {
    let sides = [
        (raw::mac_of(&arguments.inside)?, INSIDE_PORT),
        (raw::mac_of(&arguments.outside)?, OUTSIDE_PORT),
    ];
    let mut socket = raw::receiver()?;
    let mut buffer = vec![0; LONGEST_FRAME];
    while !stopped() {
        let length = match socket.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            // A process that was stopped and goes on is told so.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::NetworkDown => continue,
            Err(error) => return Err(error),
        };
        let frame = &buffer[..length];
        // Packets that the hosts send pass here too, to other addresses.
        if let Some((_, port)) = sides.iter().find(|(mac, _)| frame.starts_with(mac)) {
            lock(notes).receive(*port, frame);
        }
    }
    Ok(())
}

/// Sends and receives until standard input ends, then prints a [`HostsReport`] as one line of JSON.
///
/// # Errors
/// `LAB009` for an unknown application, `LAB013` for options out of range, `LAB016` if a
/// socket fails.
pub fn hosts(arguments: &HostsArguments) -> Result<(), LabError> {
    let failed = |reason| LabError::Socket {
        what: "the hosts' raw sockets, standard input and output".to_owned(),
        reason,
    };
    if arguments.flows == 0 || arguments.interval_ms == 0 {
        let problem = "--flows and --interval-ms must be at least 1".to_owned();
        return Err(LabError::Options(problem));
    }
    let app = app(&arguments.application).ok_or_else(|| LabError::Unknown {
        kind: "application",
        name: arguments.application.clone(),
        known: APPS.map(AppId::name).join(", "),
    })?;
    let stop = stop_at_end_of_input().map_err(failed)?;
    let notes = Mutex::new(Notes {
        history: History {
            system: Replication {
                application: app.judge().machine(),
                ..Replication::default()
            },
            events: Vec::new(),
        },
        app: app.hosts(),
        random: Random::new(arguments.seed),
        sent: Vec::new(),
        names: Vec::new(),
        owed: BTreeSet::new(),
        marked: arguments.marked,
        report: HostsReport::default(),
    });
    let until = Instant::now() + Duration::from_secs(arguments.seconds);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiver =
            scope.spawn(|| receive_all(arguments, &notes, || ended.load(Ordering::Relaxed)));
        let sent = send_all(arguments, &notes, || {
            stop.load(Ordering::Relaxed) || Instant::now() > until || receiver.is_finished()
        });
        std::thread::sleep(LATE);
        ended.store(true, Ordering::Relaxed);
        let received = receiver
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sent.and(received)
    })
    .map_err(failed)?;
    let notes = notes.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut report = notes.report;
    let document = Document {
        expectation: None,
        history: notes.history,
    };
    report.history = document.to_string();
    let text = serde_json::to_string(&report).map_err(|error| failed(io::Error::other(error)))?;
    writeln!(io::stdout(), "{text}").map_err(failed)
}

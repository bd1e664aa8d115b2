//! The measuring host: sends frames through the switch and takes the time until each comes
//! out at the other side, or back; or sends as many as it can, and counts those. A process of
//! its own in the node `hosts`.

#![allow(
    clippy::disallowed_methods,
    reason = "a probe keeps a pace and takes times"
)]

pub mod stream;
pub mod traffic;

use crate::error::EvalError;
use crate::processors::Worked;
use clap::Args;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use stateplane_apps::number_in;
use stateplane_host::ports::{Access, Port, PortSpec};
use stateplane_lab::LabError;
use stateplane_lab::agent::{raw, stop_at_end_of_input};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use stream::Stream;
use traffic::Application;

const LONGEST_FRAME: usize = 65_536;
/// Time for which packets may still arrive after the last was sent.
const LATE: Duration = Duration::from_millis(700);
/// Seed of the gaps between frames: equal in all trials.
const SPACING: u64 = 1;
/// Frames that are sent at once where the rate is not bounded.
const BURST: usize = 32;
/// Frames that are made before a flood begins, and sent over and over.
const PREPARED: u64 = 8192;
/// Duration of a flood before it counts: until queues are full.
const FLOOD_RISES: Duration = Duration::from_millis(300);
/// The host's interfaces, inside first.
const INTERFACES: [&str; 2] = ["inside", "outside"];

/// Arguments of the probe.
#[derive(Clone, Debug, Args)]
pub struct ProbeArguments {
    /// The application.
    #[arg(value_parser = Application::of)]
    pub application: Application,
    /// Frames to send that count.
    #[arg(long)]
    pub frames: u64,
    /// Frames to send before them.
    #[arg(long, default_value_t = 0)]
    pub warm_up: u64,
    /// Frames per second, on average: gaps differ by up to a half.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub rate: u64,
    /// For how many ms to send as many frames as possible, over and over, taking no times; 0:
    /// each once, at the rate.
    #[arg(long, default_value_t = 0)]
    pub flood_ms: u64,
    /// Flows that take turns.
    #[arg(long, default_value_t = 64)]
    pub window: u64,
    /// Packets of a flow, after which another takes its place.
    #[arg(long, default_value_t = 64)]
    pub flow_packets: u64,
    /// Take flows and lengths of packets from this capture.
    #[arg(long)]
    pub capture: Option<PathBuf>,
    /// Bytes that lengthen each packet.
    #[arg(long, default_value_t = 0)]
    pub padding: usize,
    /// Of a hundred packets to the key-value store, such as write.
    #[arg(long, default_value_t = 0)]
    pub updates: u32,
}

impl ProbeArguments {
    fn stream(&self) -> Result<Stream, EvalError> {
        match &self.capture {
            Some(path) => Stream::read(path),
            None => Ok(Stream::Turns {
                window: self.window,
                flow_packets: self.flow_packets,
            }),
        }
    }

    /// True if it sends without a pause, at any configured rate.
    pub fn floods(&self) -> bool {
        self.flood_ms != 0
    }

    /// Duration of sending, without the wait for late packets.
    pub fn duration(&self) -> Duration {
        if self.floods() {
            FLOOD_RISES + Duration::from_millis(self.flood_ms)
        } else {
            Duration::from_secs((self.warm_up + self.frames) / self.rate.max(1))
        }
    }
}

/// Observed frames that count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Frames sent.
    pub sent: u64,
    /// Bytes in them.
    pub sent_bytes: u64,
    /// Seconds from the first to the last.
    pub seconds: f64,
    /// Frames that came through; of a flood, while it was counted.
    pub received: u64,
    /// Flows whose first packet is among those sent.
    pub new_flows: u64,
    /// Times of the first packets of flows, in µs.
    pub first_us: Vec<f64>,
    /// Times of later packets, in µs.
    pub later_us: Vec<f64>,
    /// Packets sent that were to write their flow's state.
    pub writes: u64,
    /// Times of those among the later packets, in µs.
    pub written_us: Vec<f64>,
    /// Of a flood: which share of the time that counts each processor worked.
    #[serde(default)]
    pub busy: BTreeMap<u32, f64>,
}

/// Sends and listens, then prints a [`ProbeReport`] as one line of JSON.
///
/// # Errors
/// `LAB016` if a socket fails.
pub fn run(arguments: &ProbeArguments) -> Result<(), EvalError> {
    let failed = |reason| LabError::Socket {
        what: "the probe's sockets, standard input and output".to_owned(),
        reason,
    };
    let stop = stop_at_end_of_input().map_err(failed)?;
    let mut ports = Vec::new();
    for name in INTERFACES {
        let spec = PortSpec::Interface {
            name: name.to_owned(),
            access: Access::Packet,
        };
        ports.push(
            Port::open(&spec)
                .map_err(io::Error::other)
                .map_err(failed)?,
        );
    }
    let stream = arguments.stream()?;
    let stopped = || stop.load(Ordering::Relaxed);
    let report = if arguments.floods() {
        flood(arguments, &stream, &mut ports, stopped)?
    } else {
        paced(arguments, &stream, &mut ports, stopped).map_err(failed)?
    };
    let text = serde_json::to_string(&report).map_err(|error| failed(io::Error::other(error)))?;
    writeln!(io::stdout(), "{text}").map_err(failed)?;
    Ok(())
}

fn frame_of(arguments: &ProbeArguments, stream: &Stream, number: u64) -> (usize, Vec<u8>) {
    let packet = stream.packet(number);
    let of = |padding| {
        let (application, updates) = (arguments.application, arguments.updates);
        traffic::frame(application, packet.place, number, padding, updates)
    };
    let (side, frame) = of(arguments.padding);
    let short = packet.length.map_or(0, |length| {
        let headers = arguments.application.link_header_length();
        (headers + length).saturating_sub(frame.len())
    });
    match short {
        0 => (side, frame),
        _ => of(arguments.padding + short),
    }
}

/// When a frame was sent and when it came, in ns; 0 for never.
#[derive(Default)]
struct Times {
    sent: AtomicU64,
    came: AtomicU64,
}

fn paced(
    arguments: &ProbeArguments,
    stream: &Stream,
    ports: &mut [Port],
    stopped: impl Fn() -> bool,
) -> io::Result<ProbeReport> {
    let all = arguments.warm_up.saturating_add(arguments.frames);
    let times: Vec<Times> = (0..all).map(|_| Times::default()).collect();
    let ended = AtomicBool::new(false);
    let mut listens = raw::receiver()?;
    // Times are from here, and never 0.
    let base = Instant::now();
    let since = || base.elapsed().as_nanos() as u64 + 1;
    let mut report = ProbeReport::default();
    std::thread::scope(|scope| -> io::Result<()> {
        let receiver = scope.spawn(|| receive(&mut listens, &times, &ended, since));
        let gap = Duration::from_secs(1) / arguments.rate.clamp(1, 1_000_000) as u32;
        // Evenly spaced packets would meet what a switch does each millisecond in every trial
        // at another moment, and in all of a trial at the same.
        let mut random = SmallRng::seed_from_u64(SPACING);
        let mut begun = Instant::now();
        let mut next = begun;
        for (number, times) in (0..).zip(&times) {
            if stopped() || receiver.is_finished() {
                break;
            }
            let (side, frame) = frame_of(arguments, stream, number);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            next += gap.mul_f64(random.random_range(0.5..1.5));
            if number == arguments.warm_up {
                begun = Instant::now();
            }
            if number >= arguments.warm_up {
                report.sent += 1;
                report.sent_bytes += frame.len() as u64;
            }
            times.sent.store(since(), Ordering::Release);
            ports[side].send(&[frame], 0);
        }
        report.seconds = begun.elapsed().as_secs_f64();
        std::thread::sleep(LATE);
        ended.store(true, Ordering::Relaxed);
        receiver
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    for (number, times) in (arguments.warm_up..).zip(&times[arguments.warm_up as usize..]) {
        let left = times.sent.load(Ordering::Acquire);
        if left == 0 {
            break;
        }
        let came = times.came.load(Ordering::Acquire);
        let place = stream.packet(number).place;
        let writes = arguments
            .application
            .writes(place, number, arguments.updates);
        report.writes += u64::from(writes);
        report.new_flows += u64::from(place.packet == 0);
        if came == 0 {
            continue;
        }
        let us = came.saturating_sub(left) as f64 / 1000.0;
        report.received += 1;
        match place.packet {
            0 => report.first_us.push(us),
            _ => report.later_us.push(us),
        }
        if writes && place.packet > 0 {
            report.written_us.push(us);
        }
    }
    Ok(report)
}

fn receive(
    socket: &mut impl Read,
    times: &[Times],
    ended: &AtomicBool,
    since: impl Fn() -> u64,
) -> io::Result<()> {
    let mut buffer = vec![0; LONGEST_FRAME];
    while !ended.load(Ordering::Relaxed) {
        let length = match socket.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) if error.kind() == io::ErrorKind::NetworkDown => continue,
            Err(error) => return Err(error),
        };
        let at = since();
        let frame = &buffer[..length];
        // Packets that the host sends pass here too, to other addresses.
        if !traffic::HOST.iter().any(|mac| frame.starts_with(mac)) {
            continue;
        }
        let number = number_in(frame).and_then(|number| usize::try_from(number).ok());
        if let Some(times) = number.and_then(|number| times.get(number)) {
            // A packet that comes twice counts when it came first.
            let came = &times.came;
            let _ = came.compare_exchange(0, at, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Sends without a pause, and counts what the interfaces receive meanwhile.
fn flood(
    arguments: &ProbeArguments,
    stream: &Stream,
    ports: &mut [Port],
    stopped: impl Fn() -> bool,
) -> Result<ProbeReport, EvalError> {
    let mut sides: [Vec<Vec<u8>>; 2] = Default::default();
    for number in 0..PREPARED {
        let (side, frame) = frame_of(arguments, stream, number);
        sides[side].push(frame);
    }
    let mut report = ProbeReport::default();
    let begun = Instant::now();
    let mut counted: Option<(Instant, u64, BTreeMap<u32, Worked>)> = None;
    'all: loop {
        for (port, frames) in ports.iter_mut().zip(&sides) {
            for burst in frames.chunks(BURST) {
                match &counted {
                    None if begun.elapsed() >= FLOOD_RISES => {
                        counted = Some((Instant::now(), received()?, Worked::so_far()));
                    }
                    Some((since, ..))
                        if since.elapsed().as_millis() >= arguments.flood_ms.into() =>
                    {
                        break 'all;
                    }
                    _ => {}
                }
                if stopped() {
                    break 'all;
                }
                port.send(burst, 0);
                if counted.is_some() {
                    report.sent += burst.len() as u64;
                    report.sent_bytes += burst.iter().map(|frame| frame.len() as u64).sum::<u64>();
                }
            }
        }
    }
    if let Some((since, before, worked)) = counted {
        report.received = received()?.saturating_sub(before);
        report.seconds = since.elapsed().as_secs_f64();
        let shares = Worked::so_far().into_iter().filter_map(|(number, so_far)| {
            let share = so_far.share_since(*worked.get(&number)?)?;
            Some((number, share))
        });
        report.busy = shares.collect();
    }
    Ok(report)
}

/// Frames that the host's interfaces have received so far.
fn received() -> Result<u64, EvalError> {
    let mut frames = 0;
    for name in INTERFACES {
        let path = format!("/sys/class/net/{name}/statistics/rx_packets");
        let text = std::fs::read_to_string(&path).map_err(|error| EvalError::file(&path, error))?;
        frames += text.trim().parse::<u64>().unwrap_or(0);
    }
    Ok(frames)
}

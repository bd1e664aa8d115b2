//! The measuring host: sends frames through the switch and takes the time until each comes
//! out at the other side, or back. A process of its own in the node `hosts`.

#![allow(
    clippy::disallowed_methods,
    reason = "a probe keeps a pace and takes times"
)]

pub mod traffic;

use crate::error::EvalError;
use clap::Args;
use serde::{Deserialize, Serialize};
use stateplane_host::ports::{Access, Port, PortSpec};
use stateplane_hosts::number_in;
use stateplane_lab::LabError;
use stateplane_lab::agent::{raw, stop_at_end_of_input};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use traffic::Application;

const LONGEST_FRAME: usize = 65_536;
/// For how long what was sent last may still arrive.
const LATE: Duration = Duration::from_millis(700);
/// Frames that are sent at once where the rate is not bounded.
const BURST: usize = 32;
/// Frames that are made before a flood begins, and sent over and over.
const PREPARED: u64 = 8192;

/// What the probe is told.
#[derive(Clone, Debug, Args)]
pub struct ProbeArguments {
    /// The application.
    pub application: Application,
    /// Frames to send.
    #[arg(long)]
    pub frames: u64,
    /// Frames per second; 0: as many as possible, and no times are taken.
    #[arg(long)]
    pub rate: u64,
    /// Flows that take turns.
    #[arg(long, default_value_t = 64)]
    pub window: u64,
    /// Packets of a flow, after which another takes its place.
    #[arg(long, default_value_t = 64)]
    pub flow_packets: u64,
    /// Bytes that lengthen each packet.
    #[arg(long, default_value_t = 0)]
    pub padding: usize,
    /// Of a hundred packets to the key-value store, such as write.
    #[arg(long, default_value_t = 0)]
    pub updates: u32,
}

/// What the probe saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Frames sent.
    pub sent: u64,
    /// Bytes in them.
    pub sent_bytes: u64,
    /// Seconds from the first to the last.
    pub seconds: f64,
    /// Frames that came through.
    pub received: u64,
    /// Times of the first packets of flows, in µs.
    pub first_us: Vec<f64>,
    /// Times of later packets, in µs.
    pub later_us: Vec<f64>,
    /// Packets sent that were to write their flow's state.
    pub writes: u64,
    /// Times of those among the later packets, in µs.
    pub written_us: Vec<f64>,
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
    for name in ["inside", "outside"] {
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
    let stopped = || stop.load(Ordering::Relaxed);
    let report = match arguments.rate {
        0 => flood(arguments, &mut ports, stopped),
        _ => paced(arguments, &mut ports, stopped).map_err(failed)?,
    };
    let text = serde_json::to_string(&report).map_err(|error| failed(io::Error::other(error)))?;
    writeln!(io::stdout(), "{text}").map_err(failed)?;
    Ok(())
}

fn frame_of(arguments: &ProbeArguments, number: u64) -> (usize, Vec<u8>) {
    let place = traffic::place(number, arguments.window, arguments.flow_packets);
    traffic::frame(
        arguments.application,
        place,
        number,
        arguments.padding,
        arguments.updates,
    )
}

/// When a frame was sent and when it came, in ns; 0 for never.
#[derive(Default)]
struct Times {
    sent: AtomicU64,
    came: AtomicU64,
}

fn paced(
    arguments: &ProbeArguments,
    ports: &mut [Port],
    stopped: impl Fn() -> bool,
) -> io::Result<ProbeReport> {
    let times: Vec<Times> = (0..arguments.frames).map(|_| Times::default()).collect();
    let ended = AtomicBool::new(false);
    let mut listens = raw::receiver()?;
    // Times are from here, and never 0.
    let base = Instant::now();
    let since = || base.elapsed().as_nanos() as u64 + 1;
    let mut report = ProbeReport::default();
    std::thread::scope(|scope| -> io::Result<()> {
        let receiver = scope.spawn(|| receive(&mut listens, &times, &ended, since));
        let gap = Duration::from_secs(1) / arguments.rate.clamp(1, 1_000_000) as u32;
        let begun = Instant::now();
        let mut next = begun;
        for (number, times) in (0..).zip(&times) {
            if stopped() || receiver.is_finished() {
                break;
            }
            let (side, frame) = frame_of(arguments, number);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            next += gap;
            report.sent += 1;
            report.sent_bytes += frame.len() as u64;
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
    for (number, times) in (0..report.sent).zip(&times) {
        let came = times.came.load(Ordering::Acquire);
        let place = traffic::place(number, arguments.window, arguments.flow_packets);
        let writes = arguments
            .application
            .writes(place, number, arguments.updates);
        report.writes += u64::from(writes);
        if came == 0 {
            continue;
        }
        let us = came.saturating_sub(times.sent.load(Ordering::Acquire)) as f64 / 1000.0;
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
        // What the host itself sends goes by here too, to other addresses.
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

/// Sends without a pause. What came through is read off the interfaces by who asked for it.
fn flood(
    arguments: &ProbeArguments,
    ports: &mut [Port],
    stopped: impl Fn() -> bool,
) -> ProbeReport {
    let prepared = arguments.frames.min(PREPARED);
    let mut sides: [Vec<Vec<u8>>; 2] = Default::default();
    for number in 0..prepared {
        let (side, frame) = frame_of(arguments, number);
        sides[side].push(frame);
    }
    let mut report = ProbeReport::default();
    let begun = Instant::now();
    'all: while report.sent < arguments.frames {
        for (port, frames) in ports.iter_mut().zip(&sides) {
            for burst in frames.chunks(BURST) {
                if stopped() || report.sent >= arguments.frames {
                    break 'all;
                }
                port.send(burst, 0);
                report.sent += burst.len() as u64;
                report.sent_bytes += burst.iter().map(|frame| frame.len() as u64).sum::<u64>();
            }
        }
        if prepared == 0 {
            break;
        }
    }
    report.seconds = begun.elapsed().as_secs_f64();
    report
}

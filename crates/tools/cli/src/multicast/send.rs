//! `stateplane multicast send`.

use super::{ServiceArguments, numbers};
use crate::exit::{CommandError, Failure};
use crate::kv::system;
use crate::signal::stop_flag;
use clap::Args;
use serde_json::json;
use stateplane_host::multicast_sender::{MulticastSender, MulticastSenderConfig, SenderError};
use stateplane_multicast::{Call, Event, SendError};
use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

/// Lines that are read ahead.
const AHEAD: usize = 64;

/// µs for which a look at the input waits while messages are under way.
const GLANCE_US: u64 = 2_000;

/// Time for which a look at the input waits while none is.
const PAUSE: Duration = Duration::from_millis(50);

/// Send each line of the standard input to the receivers of groups.
///
/// A line is done when all receivers of all groups have it. Lines that are under way together
/// (--lanes) have no promised order; with --lanes 1 they are delivered in the order of the input.
#[derive(Args)]
pub struct SendArguments {
    /// Groups to which each line goes
    #[arg(long, value_name = "GROUP", value_delimiter = ',', required = true, value_parser = clap::value_parser!(u8).range(0..32))]
    groups: Vec<u8>,
    /// Lines that may be under way together; the controller may grant fewer
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..))]
    lanes: u8,
    /// Print each line's place in the order when it is done
    #[arg(long)]
    tell: bool,
}

/// Reads lines in a thread of its own: at the end of the input the channel ends.
fn lines() -> Receiver<io::Result<Vec<u8>>> {
    let (sender, lines) = mpsc::sync_channel(AHEAD);
    std::thread::spawn(move || {
        for line in io::stdin().lock().split(b'\n') {
            let failed = line.is_err();
            if sender.send(line).is_err() || failed {
                return;
            }
        }
    });
    lines
}

/// A sender and what became of its lines.
struct Sending<'a> {
    sender: MulticastSender,
    arguments: &'a SendArguments,
    json: bool,
    destinations: u32,
    /// Numbers of the lines that are under way.
    under_way: BTreeMap<Call, u64>,
    unknown: u64,
    refused: Option<String>,
}

impl Sending<'_> {
    fn tell(&mut self) {
        while let Some(event) = self.sender.poll_event() {
            let (call, outcome, at) = match event {
                Event::Complete { call, at } => (call, "done", Some(at)),
                Event::Refused { call, code } => {
                    let line = self.under_way.get(&call).copied().unwrap_or(0);
                    let code = stateplane_wire::numbers::in_capitals(&code);
                    self.refused = Some(format!("line {line} was refused: {code}"));
                    (call, "refused", None)
                }
                Event::Unknown { call } => {
                    self.unknown += 1;
                    if let Some(line) = self.under_way.get(&call) {
                        eprintln!("line {line}: no answer of every group yet");
                    }
                    continue;
                }
            };
            let Some(line) = self.under_way.remove(&call) else {
                continue;
            };
            if !self.arguments.tell {
                continue;
            }
            if self.json {
                let place = at.map(|at| json!({"time": at.time, "group": at.group}));
                println!("{}", json!({"line": line, "outcome": outcome, "at": place}));
            } else if let Some(at) = at {
                println!("{line} {outcome} {}.{}", at.time, at.group);
            }
        }
    }
}

fn begin<'a>(
    service: &ServiceArguments,
    arguments: &'a SendArguments,
) -> Result<Sending<'a>, CommandError> {
    let timeout = service.timeout_us()?;
    let config = MulticastSenderConfig {
        address: service.address,
        lanes: arguments.lanes,
        give_up_us: timeout,
        ..MulticastSenderConfig::new(service.controller.clone())
    };
    let end = stateplane_host::clock::boot_time_us() + timeout;
    let sender = MulticastSender::connect(config, service.guard()?, end);
    let sender = sender.map_err(|error: SenderError| CommandError::new(Failure::System, error))?;
    let groups = arguments.groups.iter();
    let destinations = groups.fold(0, |map, group| map | (1u32 << group));
    let unknown = numbers(destinations & !sender.groups());
    if let Some(group) = unknown.first() {
        let message = format!("there is no group {group}");
        return Err(CommandError::new(Failure::Input, message));
    }
    Ok(Sending {
        sender,
        arguments,
        json: service.json,
        destinations,
        under_way: BTreeMap::new(),
        unknown: 0,
        refused: None,
    })
}

/// Runs the command.
pub fn run(service: &ServiceArguments, arguments: &SendArguments) -> Result<(), CommandError> {
    let mut sending = begin(service, arguments)?;
    let stop = stop_flag()?;
    let lines = lines();
    let (mut waiting, mut number, mut ended) = (None::<Vec<u8>>, 0u64, false);
    while !stop.load(Ordering::Relaxed) && sending.refused.is_none() {
        if waiting.is_none() && !ended {
            match lines.try_recv() {
                Ok(line) => {
                    number += 1;
                    waiting = Some(line.map_err(system)?);
                }
                Err(TryRecvError::Disconnected) => ended = true,
                Err(TryRecvError::Empty) => {}
            }
        }
        if let Some(line) = waiting.take() {
            match sending.sender.send(sending.destinations, line.clone()) {
                Ok(call) => {
                    sending.under_way.insert(call, number);
                    continue;
                }
                Err(SendError::NoLane) => waiting = Some(line),
                Err(error) => {
                    let message = format!("line {number}: {error}");
                    return Err(CommandError::new(Failure::Input, message));
                }
            }
        }
        if ended && waiting.is_none() && sending.under_way.is_empty() {
            break;
        }
        if !ended && waiting.is_none() && sending.under_way.is_empty() {
            // Nothing happens before the next line but signs of life.
            match lines.recv_timeout(PAUSE) {
                Ok(line) => {
                    number += 1;
                    waiting = Some(line.map_err(system)?);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => ended = true,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let until = sending.sender.now() + GLANCE_US;
        sending.sender.step(until).map_err(system)?;
        if let Err(error) = sending.sender.look() {
            eprintln!("error[{}]: {error}; the keys so far stay", error.code());
        }
        sending.tell();
        if sending.unknown > 0 && ended && waiting.is_none() {
            break;
        }
    }
    end(sending, service)
}

fn end(sending: Sending<'_>, service: &ServiceArguments) -> Result<(), CommandError> {
    let under_way = sending.under_way.len();
    if under_way == 0 {
        let end = sending.sender.now() + service.timeout_us()?.min(1_000_000);
        sending.sender.close(end);
    }
    if let Some(refused) = sending.refused {
        return Err(CommandError::new(Failure::Input, refused));
    }
    if under_way > 0 {
        let message = format!("it is not known whether {under_way} lines were delivered");
        return Err(CommandError::coded(Failure::Unknown, "unknown", message));
    }
    Ok(())
}

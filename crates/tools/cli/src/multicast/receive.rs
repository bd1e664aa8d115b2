//! `stateplane multicast receive`.

use super::{ServiceArguments, numbers};
use crate::exit::{CommandError, Failure};
use crate::kv::system;
use crate::signal::stop_flag;
use clap::Args;
use serde_json::json;
use stateplane_host::multicast_receiver::{
    MulticastReceiver, MulticastReceiverConfig, Received, ReceiverError,
};
use std::io::{self, Write};
use std::sync::atomic::Ordering;

/// µs for which a wait lasts, so that a request to stop is seen.
const WAIT_US: u64 = 50_000;

/// Print the messages of a group, in the order that all receivers have.
///
/// Begins behind what was sent before. Prints `listed` to standard error when the group's leader
/// keeps all messages for it; a message is a line. One receiver runs at an address.
#[derive(Args)]
pub struct ReceiveArguments {
    /// The group
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..32))]
    group: u8,
    /// Exit after so many messages
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Most messages that wait to be printed: then senders wait
    #[arg(long, value_name = "N", default_value_t = 1024)]
    queue: usize,
}

/// Prints a message.
fn print(out: &mut impl Write, json: bool, received: &Received) -> io::Result<()> {
    let Received::Message {
        id,
        at,
        destinations,
        payload,
    } = received
    else {
        return Ok(());
    };
    if json {
        let message = json!({
            "at": {"time": at.time, "group": at.group},
            "id": {"session": id.session, "lane": id.lane, "number": id.number},
            "groups": numbers(*destinations),
            "text": String::from_utf8_lossy(payload),
        });
        writeln!(out, "{message}")
    } else {
        out.write_all(payload)?;
        out.write_all(b"\n")
    }
}

/// Runs the command.
pub fn run(service: &ServiceArguments, arguments: &ReceiveArguments) -> Result<(), CommandError> {
    let timeout = service.timeout_us()?;
    let config = MulticastReceiverConfig {
        controllers: service.controller.clone(),
        address: service.address,
        group: arguments.group,
        queue: arguments.queue,
    };
    let end = stateplane_host::clock::boot_time_us() + timeout;
    let receiver = MulticastReceiver::connect(config, service.guard()?, end);
    let mut receiver = receiver.map_err(|error| {
        let failure = match error {
            ReceiverError::NoGroup(_) => Failure::Input,
            _ => Failure::System,
        };
        CommandError::new(failure, error)
    })?;
    let stop = stop_flag()?;
    eprintln!("listed");
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut count = 0;
    let done = |count: u64| arguments.count.is_some_and(|most| count >= most);
    while !stop.load(Ordering::Relaxed) && !done(count) {
        while let Some(received) = receiver.poll() {
            if received == Received::TakenOff {
                out.flush().map_err(system)?;
                let message = "the receiver was taken off the group's list: it was silent or too \
                               slow, and what followed is lost to it";
                return Err(CommandError::coded(
                    Failure::Expectation,
                    "taken-off",
                    message,
                ));
            }
            print(&mut out, service.json, &received).map_err(system)?;
            count += 1;
            if done(count) {
                break;
            }
        }
        out.flush().map_err(system)?;
        if done(count) {
            break;
        }
        let until = receiver.now() + WAIT_US;
        receiver.step(until).map_err(system)?;
        if let Err(error) = receiver.look() {
            eprintln!("error[{}]: {error}; the keys so far stay", error.code());
        }
    }
    let end = receiver.now() + timeout.min(1_000_000);
    receiver.leave(end);
    Ok(())
}

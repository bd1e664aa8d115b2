//! Sends lines to groups, or prints a group's messages in the order that all receivers have:
//!
//! ```text
//! multicast_lines CONTROLLER send GROUPS < FILE        GROUPS is a list like 0,1
//! multicast_lines CONTROLLER receive GROUP COUNT       COUNT messages, then it ends
//! ```
//!
//! With `--keys FILE` before the rest messages are sealed.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::net::SocketAddrV4;
use std::path::Path;

use stateplane_host::clock::boot_time_us;
use stateplane_host::multicast_receiver::{MulticastReceiver, MulticastReceiverConfig, Received};
use stateplane_host::multicast_sender::{MulticastSender, MulticastSenderConfig};
use stateplane_host::sealing::Guard;
use stateplane_multicast::{Event, SendError};

const SECOND: u64 = 1_000_000;

/// Waits for events, and fails if a message did not arrive.
fn step(sender: &mut MulticastSender) -> Result<(), Box<dyn Error>> {
    sender.step(boot_time_us() + SECOND / 10)?;
    while let Some(event) = sender.poll_event() {
        match event {
            Event::Complete { .. } => {}
            Event::Refused { code, .. } => return Err(format!("refused: {code:?}").into()),
            Event::Unknown { .. } => eprintln!("no answer of every group yet"),
        }
    }
    Ok(())
}

fn send(
    controllers: Vec<SocketAddrV4>,
    guard: Option<Guard>,
    list: &str,
) -> Result<(), Box<dyn Error>> {
    let config = MulticastSenderConfig::new(controllers);
    let mut sender = MulticastSender::connect(config, guard, boot_time_us() + 10 * SECOND)?;
    let mut groups = 0;
    for group in list.split(',') {
        groups |= 1u32 << (group.parse::<u32>()? & 31);
    }
    for line in io::stdin().lock().lines() {
        let line = line?;
        while let Err(error) = sender.send(groups, line.clone().into_bytes()) {
            match error {
                SendError::NoLane => step(&mut sender)?,
                error => return Err(error.into()),
            }
        }
    }
    while sender.under_way() > 0 {
        step(&mut sender)?;
    }
    sender.close(boot_time_us() + SECOND);
    Ok(())
}

fn receive(
    controllers: Vec<SocketAddrV4>,
    guard: Option<Guard>,
    group: u8,
    mut count: u64,
) -> Result<(), Box<dyn Error>> {
    let config = MulticastReceiverConfig {
        controllers,
        address: None,
        group,
        queue: 1024,
    };
    let mut receiver = MulticastReceiver::connect(config, guard, boot_time_us() + 10 * SECOND)?;
    eprintln!("listed");
    let mut out = io::stdout().lock();
    while count > 0 {
        match receiver.poll() {
            Some(Received::Message { at, payload, .. }) => {
                write!(out, "{}.{} ", at.time, at.group)?;
                out.write_all(&payload)?;
                out.write_all(b"\n")?;
                count -= 1;
            }
            Some(Received::TakenOff) => return Err("the receiver was taken off the list".into()),
            None => receiver.step(boot_time_us() + SECOND)?,
        }
    }
    out.flush()?;
    receiver.leave(boot_time_us() + SECOND);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let usage = "usage: multicast_lines [--keys FILE] CONTROLLER send GROUPS | receive GROUP COUNT";
    let (guard, words) = match words.as_slice() {
        ["--keys", keys, rest @ ..] => (Some(Guard::read(Path::new(keys))?), rest),
        rest => (None, rest),
    };
    let controllers = |address: &str| -> Result<Vec<SocketAddrV4>, Box<dyn Error>> {
        let port = stateplane_wire::control::PORT;
        Ok(vec![SocketAddrV4::new(address.parse()?, port)])
    };
    match words {
        [controller, "send", groups] => send(controllers(controller)?, guard, groups),
        [controller, "receive", group, count] => receive(
            controllers(controller)?,
            guard,
            group.parse()?,
            count.parse()?,
        ),
        _ => Err(usage.into()),
    }
}

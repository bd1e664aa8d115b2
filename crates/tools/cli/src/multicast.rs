//! `stateplane multicast`: lines in, and out in one order at all receivers.

mod kv;
mod receive;
mod send;
mod status;
mod store;

use crate::exit::{CommandError, Failure};
use crate::kv::controller;
use crate::store::read_keys;
use clap::{Args, Subcommand};
use stateplane_host::sealing::Guard;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

/// Send lines to groups of receivers, receive them in one order, see how the groups are.
///
/// All receivers of all groups that a line addresses get it, and all get lines in the same order;
/// docs/multicast.md tells how.
///
/// Exit codes: 0 done; 1 the receiver was taken off the list, a group takes no messages, or there is
/// no such record; 2 wrong option or line; 4 the service does not answer, or the system refuses; 5 the
/// condition of a change does not hold; 7 it is not known whether a line was delivered, or a change
/// made.
#[derive(Args)]
#[command(after_help = "Examples:
  stateplane multicast --controller 10.30.0.20 receive --group 0
  tail -f orders.log | stateplane multicast --controller 10.30.0.20 send --groups 0,1
  stateplane multicast status --config deployment.toml")]
pub struct MulticastArguments {
    #[command(subcommand)]
    command: MulticastCommand,
    #[command(flatten)]
    service: ServiceArguments,
}

#[derive(Subcommand)]
enum MulticastCommand {
    Send(send::SendArguments),
    Receive(receive::ReceiveArguments),
    Status(status::StatusArguments),
    /// Drain a switch: move its groups to others, so that it can be stopped
    Drain(status::DrainArguments),
    /// Return a drained switch to service
    Undrain(status::DrainArguments),
    Refound(status::RefoundArguments),
    Store(store::StoreArguments),
    Kv(kv::KvArguments),
}

#[derive(Args)]
struct ServiceArguments {
    /// The controllers: addresses, with a port unless it is 4795
    #[arg(
        long,
        value_name = "ADDRESS",
        value_delimiter = ',',
        default_value = "127.0.0.1",
        value_parser = controller,
        global = true
    )]
    controller: Vec<SocketAddrV4>,
    /// This machine's address, to which switches answer; else that towards the controller
    #[arg(long, value_name = "ADDRESS", global = true)]
    address: Option<Ipv4Addr>,
    /// Seconds until the command gives up to begin, and the outcome of a line is unknown
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, global = true)]
    timeout: f64,
    /// Accept and send sealed messages only, with the keys of this file (TOML); see
    /// docs/message-authentication.md
    #[arg(long, value_name = "FILE", global = true)]
    keys: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

impl ServiceArguments {
    fn timeout_us(&self) -> Result<u64, CommandError> {
        if !(0.001..=86_400.0).contains(&self.timeout) {
            let message = "--timeout is between 0.001 and 86400 seconds";
            return Err(CommandError::new(Failure::Input, message));
        }
        Ok((self.timeout * 1e6) as u64)
    }

    fn guard(&self) -> Result<Option<Guard>, CommandError> {
        self.keys.as_deref().map(read_keys).transpose()
    }
}

/// Numbers of the groups in a map.
fn numbers(map: u32) -> Vec<u8> {
    (0..32).filter(|group| map & (1 << group) != 0).collect()
}

/// Runs the command.
pub fn run(arguments: &MulticastArguments) -> Result<(), CommandError> {
    let service = &arguments.service;
    match &arguments.command {
        MulticastCommand::Send(send) => send::run(service, send),
        MulticastCommand::Receive(receive) => receive::run(service, receive),
        MulticastCommand::Status(status) => status::run(service.json, status),
        MulticastCommand::Drain(drain) => status::drain(drain, true),
        MulticastCommand::Undrain(drain) => status::drain(drain, false),
        MulticastCommand::Refound(refound) => status::refound(refound),
        MulticastCommand::Store(store) => store::run(service, store),
        MulticastCommand::Kv(kv) => kv::run(service, kv),
    }
}

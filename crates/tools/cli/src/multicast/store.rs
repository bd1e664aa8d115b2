//! `stateplane multicast store`: a replica of a shard of the key-value store.

use super::ServiceArguments;
use crate::exit::{CommandError, Failure};
use crate::kv::system;
use crate::signal::stop_flag;
use crate::store::refused;
use clap::Args;
use stateplane_host::clock::boot_time_us;
use stateplane_host::multicast_receiver::ReceiverError;
use stateplane_host::multicast_store::{
    STORE_PORT, StoreReplica, StoreReplicaConfig, StoreReplicaError,
};
use stateplane_multicast_store::MAX_SHARDS;
use std::io::{self, Write};
use std::net::SocketAddrV4;
use std::sync::atomic::Ordering;

/// µs for which a wait for messages lasts, so that a request to stop is seen.
const WAIT_US: u64 = 20_000;

/// Run a replica of a shard of the key-value store.
///
/// It is a receiver of the group of the shard's number. Prints `ready` when it executes commands: at
/// once with --empty, else when it has the state of a peer of its shard. One replica runs at an
/// address. Clients are `stateplane multicast kv`.
#[derive(Args)]
pub struct StoreArguments {
    /// The shard
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..i64::from(MAX_SHARDS)))]
    shard: u8,
    /// Shards of the store; their groups are those of the lowest numbers
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_SHARDS)))]
    shards: u8,
    /// Another replica, by its shard and its address, with a port unless it is 4801; all have to be
    /// named, in any number of options
    #[arg(long = "peer", value_name = "SHARD=ADDRESS", value_parser = peer)]
    peers: Vec<(u8, SocketAddrV4)>,
    /// UDP and TCP port for other replicas
    #[arg(long, default_value_t = STORE_PORT)]
    port: u16,
    /// Begin with an empty shard: no replica of it was there before
    #[arg(long)]
    empty: bool,
    /// Most records of the shard; the same for all replicas
    #[arg(long, value_name = "N", default_value_t = 1 << 20)]
    records: usize,
}

fn peer(text: &str) -> Result<(u8, SocketAddrV4), String> {
    let parsed = text.split_once('=').and_then(|(shard, address)| {
        let shard = shard.parse().ok().filter(|shard| *shard < MAX_SHARDS)?;
        let alone = address
            .parse()
            .map(|address| SocketAddrV4::new(address, STORE_PORT));
        Some((shard, alone.or_else(|_| address.parse()).ok()?))
    });
    parsed.ok_or_else(|| format!("{text} is not of the form SHARD=ADDRESS"))
}

/// The exit code and message that a replica's error gives.
fn failed(error: StoreReplicaError) -> CommandError {
    match error {
        StoreReplicaError::TakenOff => {
            CommandError::coded(Failure::Expectation, "taken-off", error)
        }
        StoreReplicaError::Stuck(_) => CommandError::coded(Failure::Expectation, "stuck", error),
        StoreReplicaError::Keys(error) => refused(error),
        StoreReplicaError::NoShard { .. }
        | StoreReplicaError::Receiver(ReceiverError::NoGroup(_)) => {
            CommandError::new(Failure::Input, error)
        }
        _ => CommandError::new(Failure::System, error),
    }
}

/// Runs the command.
pub fn run(service: &ServiceArguments, arguments: &StoreArguments) -> Result<(), CommandError> {
    let stop = stop_flag()?;
    let config = StoreReplicaConfig {
        address: service.address,
        port: arguments.port,
        records: arguments.records,
        peers: arguments.peers.clone(),
        empty: arguments.empty,
        ..StoreReplicaConfig::new(
            service.controller.clone(),
            arguments.shard,
            arguments.shards,
        )
    };
    let end = boot_time_us() + service.timeout_us()?;
    let opened = StoreReplica::open(config, service.keys.as_deref(), end, |_, _| ());
    let mut replica = opened.map_err(failed)?;
    let mut ready = false;
    let mut outcome = Ok(());
    while outcome.is_ok() && !stop.load(Ordering::Relaxed) {
        outcome = replica.step(boot_time_us() + WAIT_US).map_err(failed);
        if !ready && replica.is_ready() {
            ready = true;
            println!("ready");
            outcome = outcome.and(io::stdout().flush().map_err(system));
        }
        if let Err(error) = replica.look() {
            eprintln!("error[{}]: {error}; the keys so far stay", error.code());
        }
    }
    replica.close(boot_time_us() + 1_000_000);
    outcome
}

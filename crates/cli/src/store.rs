//! `stateplane store`: one replica of the state store.

use crate::exit::{CommandError, Failure};
use clap::Args;
use stateplane_host::store::{StoreError, StoreFile, StoreServer};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Run one replica of the state store until it is interrupted.
///
/// The configuration names the chain, head first, and what the flow classes mean;
/// `lab/nat/store.toml` is an example. On exit the counters go to standard error as
/// JSON.
#[derive(Args)]
pub struct StoreArguments {
    /// The store's configuration (TOML)
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Listen on this address rather than the one in the file
    #[arg(long, value_name = "IPV4")]
    listen: Option<std::net::Ipv4Addr>,
}

/// A flag that SIGINT and SIGTERM set.
pub fn stop_on_signal() -> Result<Arc<AtomicBool>, CommandError> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .map_err(|error| CommandError::from_error(Failure::System, &error))?;
    Ok(stop)
}

/// Runs the command.
pub fn run(arguments: &StoreArguments) -> Result<(), CommandError> {
    let mut file = StoreFile::read(&arguments.config).map_err(|error| failed(&error))?;
    if let Some(address) = arguments.listen {
        file.listen = address;
    }
    let stop = stop_on_signal()?;
    let server = StoreServer::bind(&file).map_err(|error| failed(&error))?;
    println!("ready");
    let report = server.run(&stop).map_err(|error| failed(&error))?;
    if let Ok(text) = serde_json::to_string(&report) {
        eprintln!("{text}");
    }
    Ok(())
}

fn failed(error: &StoreError) -> CommandError {
    let failure = match error {
        StoreError::AddressInUse { .. }
        | StoreError::AddressNotAvailable { .. }
        | StoreError::Bind { .. }
        | StoreError::Random { .. }
        | StoreError::Receive { .. } => Failure::System,
        _ => Failure::Input,
    };
    CommandError::from_error(failure, error)
}

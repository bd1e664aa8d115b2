//! `stateplane store`: one replica of the state store.

use crate::exit::{CommandError, Failure};
use crate::metrics;
use crate::signal::stop_flag;
use clap::Args;
use stateplane_host::metrics::store_metrics;
use stateplane_host::store::{StoreError, StoreFile, StoreServer};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

/// Run one replica of the state store until it is interrupted.
///
/// The configuration names the chain, head first, and what the flow classes mean;
/// `lab/nat/store.toml` is an example. Prints `ready` when requests are taken; on exit
/// the counts go to standard error as JSON.
#[derive(Args)]
pub struct StoreArguments {
    /// The store's configuration (TOML)
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Listen on this address rather than the one in the file
    #[arg(long, value_name = "IPV4")]
    listen: Option<Ipv4Addr>,
    /// Serve metrics for Prometheus at this address, path /metrics
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
}

/// Runs the command.
pub fn run(arguments: &StoreArguments) -> Result<(), CommandError> {
    let mut file = StoreFile::read(&arguments.config).map_err(|error| failed(&error))?;
    if let Some(address) = arguments.listen {
        file.listen = address;
    }
    let stop = stop_flag()?;
    let mut server = StoreServer::bind(&file).map_err(|error| failed(&error))?;
    let report = server.publish();
    let scrape = Arc::new(move || {
        let report = report.upgrade()?;
        let report = *report.lock().unwrap_or_else(PoisonError::into_inner);
        Some(store_metrics(&report))
    });
    let _metrics = metrics::serve(arguments.metrics, scrape)?;
    println!("ready");
    // A supervisor waits for the line; without it there is nothing to tell.
    let _ = std::io::stdout().flush();
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
    CommandError::coded(failure, error.code(), error)
}

//! `stateplane engine`: follows register groups of switches.

use crate::exit::{CommandError, Failure};
use crate::metrics;
use crate::signal::stop_flag;
use crate::store::{ready, show};
use clap::Args;
use stateplane_host::metrics::sync_metrics;
use stateplane_host::remote::{Remote, remote};
use stateplane_host::sync::{SyncEngineFile, SyncError, SyncServer};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time for the engine to answer a scrape.
const PATIENCE: Duration = Duration::from_secs(2);

/// Run the engine of sync until it is interrupted: it keeps a view of register groups of switches,
/// and says how far the view is off.
///
/// The switches run programs with the sync library, as apps/packet-counter, and their files have a
/// section `[sync]`; docs/sync-engine.md describes both files. Prints `ready` when it polls; on exit,
/// prints its counters to standard error as JSON.
#[derive(Args)]
pub struct SyncEngineArguments {
    /// Groups, log and address for clients (TOML)
    #[arg(value_name = "FILE")]
    config: PathBuf,
    /// Keep terms, windows and outcomes of writes in this folder; overrides the file's `data`
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Serve Prometheus metrics at this address, paths /metrics and /healthz
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
}

/// Runs the command.
pub fn run(arguments: &SyncEngineArguments) -> Result<(), CommandError> {
    let file = SyncEngineFile::read(&arguments.config).map_err(|error| failed(&error))?;
    let file = match &arguments.data {
        Some(folder) => SyncEngineFile {
            data: folder.clone(),
            ..file
        },
        None => file,
    };
    let stop = stop_flag()?;
    let mut server = SyncServer::bind(&file).map_err(|error| failed(&error))?;
    let (remote, calls) = remote().map_err(|error| CommandError::new(Failure::System, error))?;
    server.set_remote(calls);
    let remote = Arc::new(remote);
    let _metrics = metrics::serve(arguments.metrics, scrape(remote.clone()))?;
    ready();
    let report = server.run(&stop).map_err(|error| failed(&error))?;
    show(&report);
    Ok(())
}

fn scrape(remote: Arc<Remote<SyncServer>>) -> stateplane_http::Scrape {
    Arc::new(move || {
        let report = remote.call_within(PATIENCE, |server| server.report())?;
        Some(sync_metrics(&report))
    })
}

fn failed(error: &SyncError) -> CommandError {
    let failure = match error {
        SyncError::Bind { .. }
        | SyncError::Receive(_)
        | SyncError::Random(_)
        | SyncError::Log(_) => Failure::System,
        _ => Failure::Input,
    };
    CommandError::coded(failure, error.code(), error)
}

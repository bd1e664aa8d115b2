//! `stateplane store`: one server of the state store.

use crate::exit::{CommandError, Failure};
use crate::log::LogArguments;
use crate::metrics;
use crate::operator;
use crate::signal::stop_flag;
use clap::Args;
use serde::Serialize;
use stateplane_host::deployment::Deployment;
use stateplane_host::remote::remote;
use stateplane_host::sealing::{Guard, KeysError};
use stateplane_host::store::{DiskError, StoreError, StoreServer};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Run one server of the state store until it is interrupted.
///
/// The file names the chain, head first, or the controller that makes the chains, and the settings
/// of the flow classes; `lab/apps/store.toml` and `lab/deployment.toml` are examples.
/// Prints `ready` when it accepts requests; on exit, prints its counters to standard error as JSON.
#[derive(Args)]
pub struct StoreArguments {
    /// Deployment file (TOML) with a section `[replication]`
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Listen on this address instead of the one in the file
    #[arg(long, value_name = "IPV4")]
    listen: Option<Ipv4Addr>,
    /// Serve Prometheus metrics at this address, path /metrics
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// Keep the state in this folder, and restore it from there at the start; overrides the file's
    /// `data`. Each server needs its own folder
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Accept and send sealed messages only, with the keys of this file (TOML), which is read again
    /// when it changes; see docs/message-authentication.md
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    #[command(flatten)]
    log: LogArguments,
}

/// Runs the command.
pub fn run(arguments: &StoreArguments) -> Result<(), CommandError> {
    arguments.log.start();
    let deployment = deployment(arguments).map_err(|error| failed(&error))?;
    let stop = stop_flag()?;
    let guard = arguments.keys.as_deref().map(read_keys).transpose()?;
    let server = StoreServer::bind(&deployment, guard);
    let mut server = server.map_err(|error| failed(&error))?;
    let (remote, calls) = remote().map_err(|error| CommandError::new(Failure::System, error))?;
    server.set_remote(calls);
    let remote = Arc::new(remote);
    let scrape = operator::store_scrape(remote.clone());
    let _metrics = metrics::serve(arguments.metrics, scrape.clone())?;
    let operators = deployment.operator_port;
    let own = operators.map(|port| SocketAddr::from((deployment.listen, port)));
    let _answers = operator::serve(own, &scrape, &operator::store_answers(remote))?;
    ready();
    let report = server.run(&stop, &mut refused_keys);
    show(&report.map_err(|error| failed(&error))?);
    Ok(())
}

/// The deployment's file, with what the command line says instead.
fn deployment(arguments: &StoreArguments) -> Result<Deployment, StoreError> {
    let mut deployment = Deployment::read(&arguments.config)?;
    if let Some(address) = arguments.listen {
        deployment.listen = address;
    }
    if let Some(folder) = &arguments.data {
        deployment.replication_mut()?.data = Some(folder.clone());
    }
    Ok(deployment)
}

/// Prints that requests are accepted. A supervisor waits for the line.
pub fn ready() {
    println!("ready");
    let _ = std::io::stdout().flush();
}

/// Prints counters to standard error, as JSON.
pub fn show(report: &impl Serialize) {
    if let Ok(text) = serde_json::to_string(report) {
        eprintln!("{text}");
    }
}

/// Reports why a changed key file is refused.
pub fn refused_keys(error: &KeysError) {
    tracing::error!(code = error.code(), "{error}; the keys so far stay");
}

/// The keys of the file at `path`.
pub fn read_keys(path: &Path) -> Result<Guard, CommandError> {
    Guard::read(path).map_err(refused)
}

/// The exit code and message that a refused file of keys gives.
pub fn refused(error: KeysError) -> CommandError {
    let failure = match error {
        KeysError::Random(_) => Failure::System,
        _ => Failure::Input,
    };
    CommandError::coded(failure, error.code(), error)
}

fn failed(error: &StoreError) -> CommandError {
    let failure = match error {
        StoreError::AddressInUse { .. }
        | StoreError::AddressNotAvailable { .. }
        | StoreError::Bind { .. }
        | StoreError::Random { .. }
        | StoreError::Receive { .. }
        | StoreError::LostEntries { .. } => Failure::System,
        StoreError::Disk(DiskError::Config(_)) => Failure::Input,
        StoreError::Disk(_) => Failure::System,
        _ => Failure::Input,
    };
    CommandError::coded(failure, error.code(), error)
}

//! `stateplane engine`: follows register groups of switches.

use crate::exit::{CommandError, Failure};
use crate::log::LogArguments;
use crate::metrics;
use crate::p4runtime::read_tls;
use crate::signal::stop_flag;
use crate::store::{read_keys, ready, show};
use clap::Args;
use stateplane_etcd::{EtcdError, EtcdSyncStore};
use stateplane_host::metrics::sync_metrics;
use stateplane_host::remote::{Remote, remote};
use stateplane_host::sync::{SyncEngineFile, SyncError, SyncReport, SyncServer};
use stateplane_view::RedisCopies;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tonic::service::Routes;

/// Maximum time for the engine to answer a scrape.
const PATIENCE: Duration = Duration::from_secs(2);

/// Run the engine of sync until it is interrupted: it keeps a view of register groups of switches,
/// and says how far the view is off, and a view of flows that a store has, which is exact.
///
/// The switches run programs with the sync library, as apps/packet-counter, and their files have a
/// section `[sync]`; docs/sync-engine.md describes both files. Several engines with one etcd elect one
/// of them, and the others stand by. Prints `ready` when it polls or stands by; on exit, prints its
/// counters to standard error as JSON.
#[derive(Args)]
pub struct SyncEngineArguments {
    /// Groups, flows, log and address for clients (TOML)
    #[arg(value_name = "FILE")]
    config: PathBuf,
    /// Keep terms, windows and outcomes of writes in this folder; overrides the file's `data`
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Serve Prometheus metrics at this address, paths /metrics and /healthz
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// Exchange sealed messages alone with the switches, with the keys of this file (TOML), which is
    /// read again when it changes; see docs/message-authentication.md
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// Serve clients with this certificate (PEM); without it `rpc` must be a loopback address
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Serve only clients with a certificate signed by these roots (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_client_roots: Option<PathBuf>,
    #[command(flatten)]
    log: LogArguments,
}

/// Runs the command.
pub fn run(arguments: &SyncEngineArguments) -> Result<(), CommandError> {
    arguments.log.start();
    let file = SyncEngineFile::read(&arguments.config).map_err(|error| failed(&error))?;
    let file = match &arguments.data {
        Some(folder) => SyncEngineFile {
            data: Some(folder.clone()),
            ..file
        },
        None => file,
    };
    file.check_place().map_err(|error| failed(&error))?;
    let tls = read_tls(
        arguments.tls_certificate.as_deref(),
        arguments.tls_key.as_deref(),
        arguments.tls_client_roots.as_deref(),
    )?;
    if let Some(address) = file
        .rpc
        .filter(|it| tls.is_none() && !it.ip().is_loopback())
    {
        let message = format!(
            "clients at {address} would let anyone change the switches' state: give \
             --tls-certificate and --tls-key, or set `rpc` to an address at 127.0.0.1"
        );
        return Err(CommandError::new(Failure::Input, message));
    }
    let guard = arguments.keys.as_deref().map(read_keys).transpose()?;
    let stop = stop_flag()?;
    let mut server = bind(&file)?;
    if let Some(guard) = guard {
        server.set_guard(guard);
    }
    let (remote, calls) = remote().map_err(|error| CommandError::new(Failure::System, error))?;
    server.set_remote(calls);
    let (remote, local) = (Arc::new(remote), server.views());
    let copies = |redis| {
        let groups = file.groups.iter().map(|group| group.name.clone()).collect();
        let copies = RedisCopies::begin(remote.clone(), redis, groups);
        copies.map_err(|error| CommandError::coded(Failure::Input, error.code(), error))
    };
    let copies = file.redis.as_ref().map(copies).transpose()?.map(Arc::new);
    let _metrics = metrics::serve(arguments.metrics, scrape(remote.clone(), copies.clone()))?;
    let serve = |address| {
        let views = stateplane_view::Service::new(remote.clone(), local.clone());
        let gnmi = stateplane_gnmi::service(views.clone());
        let more = |routes: Routes| routes.add_service(gnmi);
        let server = stateplane_view::serve(views, more, address, tls.as_ref());
        server.map_err(|error| CommandError::new(Failure::System, error))
    };
    let clients = file.rpc.map(serve).transpose()?;
    if let Some(clients) = &clients {
        eprintln!("views: {}", clients.address());
    }
    ready();
    let report = server.run(&stop).map_err(|error| failed(&error))?;
    show(&with_copies(report, copies.as_deref()));
    Ok(())
}

/// An engine with a log in a folder, or one of several that share an etcd.
fn bind(file: &SyncEngineFile) -> Result<SyncServer, CommandError> {
    let Some(etcd) = &file.etcd else {
        return SyncServer::bind(file).map_err(|error| failed(&error));
    };
    let (outcomes, calls) = remote().map_err(|error| CommandError::new(Failure::System, error))?;
    let store = EtcdSyncStore::new(etcd, outcomes, told()).map_err(|error| {
        let failure = match error {
            EtcdError::System(_) => Failure::System,
            _ => Failure::Input,
        };
        CommandError::coded(failure, error.code(), error)
    })?;
    SyncServer::bind_shared(file, Box::new(store), calls).map_err(|error| failed(&error))
}

/// Says what is wrong with etcd, once for each change.
fn told() -> impl FnMut(&EtcdError) + Send + 'static {
    let mut last = String::new();
    move |error| {
        let text = error.to_string();
        if text != last {
            tracing::error!(code = error.code(), "{text}; the engine goes on trying");
            last = text;
        }
    }
}

fn scrape(
    remote: Arc<Remote<SyncServer>>,
    copies: Option<Arc<RedisCopies>>,
) -> stateplane_http::Scrape {
    Arc::new(move || {
        let report = remote.call_within(PATIENCE, |server| server.report())?;
        Some(sync_metrics(&with_copies(report, copies.as_deref())))
    })
}

fn with_copies(report: SyncReport, copies: Option<&RedisCopies>) -> SyncReport {
    SyncReport {
        redis: copies.map(RedisCopies::report),
        ..report
    }
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

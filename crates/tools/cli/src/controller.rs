//! `stateplane controller`: makes the chains of the store and of coordination, and multicast's groups.

use crate::exit::{CommandError, Failure};
use crate::log::LogArguments;
use crate::operator::{self, Candidate};
use crate::signal::stop_flag;
use crate::store::{read_keys, ready, refused_keys, show};
use clap::Args;
use stateplane_etcd::{EtcdBackend, EtcdError};
use stateplane_host::controller::{
    ControllerError, ControllerServer, DecisionBackend, FileBackend, Systems,
};
use stateplane_host::deployment::{Deployment, DeploymentError};
use stateplane_host::remote::remote;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::Arc;

/// Run the controller of a deployment until it is interrupted.
///
/// The controller makes a chain of store servers for each shard, and of coordination's switches for
/// each group, removes those that fail, and adds those that return; `lab/deployment.toml` is an
/// example. Of multicast's switches it makes groups, appoints their leaders, and keeps the lists of
/// receivers and the sessions of senders. Prints `ready` when it receives messages; on exit, prints its counters to standard error
/// as JSON.
#[derive(Args)]
pub struct ControllerArguments {
    /// Deployment file (TOML) with the section `[controller]`, and `[replication]`,
    /// `[coordination]`, `[multicast]` or several of them
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Address of this controller, if the deployment names several
    #[arg(long, value_name = "IPV4")]
    listen: Option<Ipv4Addr>,
    /// Serve Prometheus metrics at this address too, paths /metrics and /healthz
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// Accept and send sealed messages only, with the keys of this file (TOML), which is read again
    /// when it changes; see docs/message-authentication.md
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    #[command(flatten)]
    log: LogArguments,
}

/// Runs the command.
pub fn run(arguments: &ControllerArguments) -> Result<(), CommandError> {
    arguments.log.start();
    let path = &arguments.config;
    let refused =
        |error: DeploymentError| CommandError::coded(Failure::Input, error.code(), &error);
    let deployment = Deployment::read(path).map_err(refused)?;
    let Some(controller) = &deployment.controller else {
        return Err(failed(&ControllerError::NoController {
            path: path.clone(),
        }));
    };
    let address = controller.socket(arguments.listen);
    let address = address.map_err(|error| failed(&error))?;
    let replication = deployment.replication.as_ref();
    let chains = replication.map(|it| it.settings(controller)).transpose();
    let coordination = deployment.coordination.as_ref();
    let groups = coordination.map(|it| it.settings(address)).transpose();
    let multicast = deployment.multicast.as_ref();
    let sealed = arguments.keys.is_some();
    let multicast = multicast.map(|it| it.settings(address, sealed)).transpose();
    let systems = Systems {
        chains: chains.map_err(|error| failed(&error))?,
        groups: groups.map_err(|error| failed(&error))?,
        multicast: multicast.map_err(|error| failed(&error))?,
    };
    if systems.is_empty() {
        return Err(failed(&ControllerError::NoSystem { path: path.clone() }));
    }
    let operators = deployment.operator_port;
    let own = operators.map(|port| SocketAddr::from((*address.ip(), port)));
    match &controller.etcd {
        Some(etcd) => {
            let name = address.to_string();
            let backend = EtcdBackend::new(etcd, &name, told()).map_err(|error| {
                let failure = match error {
                    EtcdError::System(_) => Failure::System,
                    _ => Failure::Input,
                };
                CommandError::coded(failure, error.code(), error)
            })?;
            serve(arguments, systems, address, own, backend)
        }
        None => {
            let backend = FileBackend::open(&controller.log);
            let backend = backend.map_err(|error| failed(&error))?;
            serve(arguments, systems, address, own, backend)
        }
    }
}

/// Says what is wrong with etcd, once for each change.
fn told() -> impl FnMut(&EtcdError) + Send + 'static {
    let mut last = String::new();
    move |error| {
        let text = error.to_string();
        if text != last {
            tracing::error!(code = error.code(), "{text}; the controller goes on trying");
            last = text;
        }
    }
}

fn serve<B: DecisionBackend + Send + 'static>(
    arguments: &ControllerArguments,
    systems: Systems,
    address: SocketAddrV4,
    operators: Option<SocketAddr>,
    backend: B,
) -> Result<(), CommandError> {
    let stop = stop_flag()?;
    let guard = arguments.keys.as_deref().map(read_keys).transpose()?;
    let server = ControllerServer::bind(systems, address, backend, guard);
    let mut server = server.map_err(|error| failed(&error))?;
    let (remote, calls) = remote().map_err(|error| CommandError::new(Failure::System, error))?;
    server.set_remote(calls);
    let candidate = Candidate {
        remote: Arc::new(remote),
        leads: server.leading(),
    };
    let addresses = operators.into_iter().chain(arguments.metrics);
    let _servers = operator::serve(addresses, &candidate.scrape(), &candidate.answers())?;
    ready();
    let report = server
        .run(&stop, &mut refused_keys)
        .map_err(|error| failed(&error))?;
    show(&report);
    Ok(())
}

fn failed(error: &ControllerError) -> CommandError {
    let failure = match error {
        ControllerError::Bind { .. }
        | ControllerError::Random(_)
        | ControllerError::Receive(_)
        | ControllerError::Log { .. } => Failure::System,
        _ => Failure::Input,
    };
    CommandError::coded(failure, error.code(), error)
}

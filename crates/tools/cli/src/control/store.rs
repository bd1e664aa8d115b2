//! `stateplane ctl store`: the servers of a deployment, its chains, flows and pools.

mod digests;
mod sketch;

use super::ask::Deployment;
use super::waiting::{degraded_lines, wait_until};
use super::{SwitchArguments, columns, row, wrong};
use crate::exit::{CommandError, Failure};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use stateplane_host::controller::ControllerView;
use stateplane_host::store::view::{
    FlowView, ReplicaView, ServiceServerView, StoreView, parse_key,
};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Inspect the store of a deployment, and drain servers.
///
/// Asks the controller and the servers at the deployment's `operator_port`.
#[derive(Args)]
#[command(after_help = "Examples:
  stateplane ctl store --config deployment.toml servers
  stateplane ctl store --config deployment.toml can-stop 10.10.0.12
  stateplane ctl store --config deployment.toml drain 10.10.0.12 --wait 60")]
pub struct StoreArguments {
    /// Deployment file (TOML)
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Subcommand)]
enum StoreCommand {
    /// Show the servers: state, replicas, flows
    Servers,
    /// Show the chains: epochs, members, joining replicas, entries by which replicas lag
    Chains,
    /// Show the lease holder and the state of a flow
    Flow {
        /// Key of the flow: 32 hexadecimal digits
        key: String,
    },
    /// Show services: flows and health of their servers
    Services,
    /// Show pools of ports: number of free ports
    Pools,
    /// Show arrays of switches in bounded-inconsistency mode: their newest snapshots, merged
    Sketch(sketch::SketchArguments),
    /// Compare the replicas of each chain by their digests; exit code 1 if they differ
    Digests,
    /// Check whether a server can be stopped at this moment; exit code 1 if not
    CanStop {
        /// Address of the server
        server: Ipv4Addr,
    },
    /// Drain a server: move its shards to others, so that it can be stopped
    Drain {
        /// Address of the server
        server: Ipv4Addr,
        /// Wait at most this many seconds until no chain contains the server
        #[arg(long, value_name = "SECONDS")]
        wait: Option<u64>,
    },
    /// Return a drained server to service
    Undrain {
        /// Address of the server
        server: Ipv4Addr,
        /// Wait at most this many seconds until every chain has all its replicas
        #[arg(long, value_name = "SECONDS")]
        wait: Option<u64>,
    },
    /// Wait until every chain has all its replicas; exit code 1 on a timeout
    Wait {
        /// Timeout in seconds
        seconds: u64,
        /// Accept chains that lack replicas because too few servers are alive or not drained
        #[arg(long)]
        degraded: bool,
    },
}

/// Runs the command.
pub fn run(switch: &SwitchArguments, arguments: &StoreArguments) -> Result<(), CommandError> {
    let deployment = Deployment::read(&arguments.config)?;
    match &arguments.command {
        StoreCommand::Servers => servers(switch, &deployment),
        StoreCommand::Chains => chains(switch, &deployment),
        StoreCommand::Flow { key } => flow(switch, &deployment, key),
        StoreCommand::Services => services(switch, &deployment),
        StoreCommand::Pools => pools(switch, &deployment),
        StoreCommand::Sketch(arguments) => sketch::show(switch, &deployment, arguments),
        StoreCommand::Digests => digests::compare(switch, &deployment),
        StoreCommand::CanStop { server } => can_stop(switch, &deployment, *server),
        StoreCommand::Drain { server, wait } => {
            deployment.drain(*server, true)?;
            let gone = |view: &ControllerView| matches!(view.left_without(*server), Ok(None));
            wait_for(&deployment, *wait, "chains still have the server", gone)
        }
        StoreCommand::Undrain { server, wait } => {
            deployment.drain(*server, false)?;
            wait_whole(&deployment, *wait)
        }
        StoreCommand::Wait {
            seconds,
            degraded: false,
        } => wait_whole(&deployment, Some(*seconds)),
        StoreCommand::Wait {
            seconds,
            degraded: true,
        } => wait_for(&deployment, Some(*seconds), "chains change", |view| {
            view.settled
        }),
    }
}

fn wait_whole(deployment: &Deployment, wait: Option<u64>) -> Result<(), CommandError> {
    let late = "chains change or lack replicas";
    wait_for(deployment, wait, late, ControllerView::is_whole)
}

/// Waits until the controller's view is `reached`, if there is a time to wait.
fn wait_for(
    deployment: &Deployment,
    seconds: Option<u64>,
    late: &str,
    reached: impl Fn(&ControllerView) -> bool,
) -> Result<(), CommandError> {
    wait_until("store", seconds, late, || {
        Ok(reached(&deployment.leader()?.1))
    })
}

/// Views of all servers that are alive, and the servers that do not answer.
fn stores(
    deployment: &Deployment,
    view: &ControllerView,
) -> (BTreeMap<Ipv4Addr, StoreView>, Vec<String>) {
    let mut stores = BTreeMap::new();
    let mut silent = Vec::new();
    for server in view.servers.iter().filter(|server| server.alive) {
        match deployment.store(server.address) {
            Ok(store) => drop(stores.insert(server.address, store)),
            Err(error) => silent.push(format!("{}: {error}", server.address)),
        }
    }
    (stores, silent)
}

fn report_silent(silent: &[String]) {
    for server in silent {
        eprintln!("warning: {server}");
    }
}

/// The replica of `chain` at `address` that follows configuration `epoch`.
fn replica(
    stores: &BTreeMap<Ipv4Addr, StoreView>,
    address: Ipv4Addr,
    chain: u16,
) -> Option<&ReplicaView> {
    let replicas = &stores.get(&address)?.replicas;
    replicas.iter().find(|replica| replica.chain == chain)
}

fn servers(switch: &SwitchArguments, deployment: &Deployment) -> Result<(), CommandError> {
    let (leader, view) = deployment.leader()?;
    let (stores, silent) = stores(deployment, &view);
    report_silent(&silent);
    let mut rows = vec![row(&[
        &"server",
        &"state",
        &"replicas",
        &"heads",
        &"flows",
        &"unacknowledged",
    ])];
    let mut values = Vec::new();
    let mut all_silenced = Vec::new();
    for server in &view.servers {
        let state = match (server.alive, server.drained) {
            (false, _) => "dead",
            (true, true) => "drained",
            (true, false) => "alive",
        };
        let replicas = stores
            .get(&server.address)
            .map(|store| store.replicas.as_slice());
        let replicas = replicas.unwrap_or_default();
        let heads = replicas
            .iter()
            .filter(|replica| replica.position == 0)
            .count();
        let silenced = replicas.iter().filter_map(|replica| {
            let code = replica.silenced.clone()?;
            Some((replica.chain, server.address, code))
        });
        let silenced: Vec<(u16, Ipv4Addr, String)> = silenced.collect();
        let broken: BTreeMap<u16, &str> = silenced
            .iter()
            .map(|(chain, _, code)| (*chain, code.as_str()))
            .collect();
        let flows: usize = replicas.iter().map(|replica| replica.records).sum();
        let unacknowledged: u64 = replicas.iter().map(|it| it.applied - it.base).sum();
        let count = replicas.len();
        rows.push(row(&[
            &server.address,
            &state,
            &count,
            &heads,
            &flows,
            &unacknowledged,
        ]));
        values.push(json!({
            "server": server.address, "incarnation": server.incarnation, "state": state,
            "replicas": count, "heads": heads, "flows": flows,
            "unacknowledged": unacknowledged, "silenced": broken,
        }));
        all_silenced.extend(silenced);
    }
    let mut lines = columns(&rows);
    let degraded = view.degraded();
    let state = match (&degraded, view.settled) {
        (_, false) => "chains change",
        (Some(_), true) => "chains lack replicas",
        (None, true) => "every chain has all its replicas",
    };
    lines.push(format!("controller {leader} leads; {state}"));
    if let Some(degraded) = &degraded {
        let counts = [view.chains.len(), view.replicas];
        lines.extend(degraded_lines(degraded, counts, ["chains", "replicas"]));
    }
    lines.extend(all_silenced.iter().map(|(chain, address, code)| {
        format!(
            "the replica of chain {chain} at {address} is silenced by a broken invariant: `stateplane explain {code}`"
        )
    }));
    if view.behind {
        lines.push(
            "servers follow configurations that the controller does not know: it makes none".into(),
        );
    }
    let value = json!({
        "leader": leader, "settled": view.settled, "behind": view.behind, "servers": values,
        "replicas": view.replicas, "degraded": degraded,
    });
    switch.print(&value, &lines);
    Ok(())
}

fn chains(switch: &SwitchArguments, deployment: &Deployment) -> Result<(), CommandError> {
    let (_, view) = deployment.leader()?;
    let (stores, silent) = stores(deployment, &view);
    report_silent(&silent);
    let mut rows = vec![row(&[
        &"shard",
        &"epoch",
        &"members, head first",
        &"joining",
        &"entries",
        &"behind",
    ])];
    let mut values = Vec::new();
    for chain in &view.chains {
        let of = |address| replica(&stores, address, chain.chain);
        let head = chain.members.first().and_then(|member| of(member.address));
        let entries = head.map(|head| head.applied);
        let all = chain
            .members
            .iter()
            .map(|member| member.address)
            .chain(chain.joining);
        let applied: Vec<u64> = all
            .filter_map(|address| Some(of(address)?.applied))
            .collect();
        let behind = entries.map(|entries| {
            let least = applied.iter().min().copied().unwrap_or(0);
            entries.saturating_sub(least)
        });
        let members = chain.members.iter().map(|member| {
            let mark = match (member.alive, member.follows) {
                (false, _) => " (dead)",
                (true, false) => " (not yet)",
                (true, true) => "",
            };
            format!("{}{mark}", member.address)
        });
        let members: Vec<String> = members.collect();
        let joining = chain
            .joining
            .map(|address| address.to_string())
            .unwrap_or_default();
        let number = |value: Option<u64>| value.map_or("?".to_owned(), |value| value.to_string());
        rows.push(row(&[
            &chain.chain,
            &chain.epoch,
            &members.join(" "),
            &joining,
            &number(entries),
            &number(behind),
        ]));
        values.push(json!({
            "shard": chain.chain, "epoch": chain.epoch, "members": chain.members,
            "joining": chain.joining, "entries": entries, "behind": behind,
        }));
    }
    switch.print(&Value::from(values), &columns(&rows));
    Ok(())
}

fn flow(switch: &SwitchArguments, deployment: &Deployment, key: &str) -> Result<(), CommandError> {
    if parse_key(key).is_none() {
        return Err(wrong(format!(
            "{key:?} is no key: write its 16 bytes as 32 hexadecimal digits"
        )));
    }
    let (_, view) = deployment.leader()?;
    let mut found: BTreeMap<u16, (Ipv4Addr, FlowView)> = BTreeMap::new();
    for chain in &view.chains {
        // The head knows first; of a chain without one, whoever follows.
        let members = chain.members.iter().filter(|member| member.alive);
        for member in members {
            let Ok(flows) = deployment.flows(member.address, key) else {
                continue;
            };
            if let Some(flow) = flows.into_iter().find(|flow| flow.shard == chain.chain) {
                found.insert(chain.chain, (member.address, flow));
            }
            break;
        }
    }
    let mut lines = Vec::new();
    for (shard, (server, flow)) in &found {
        lines.push(format!(
            "shard {shard}, as {server} has it: sequence {}, epoch {}, state {}",
            flow.sequence, flow.epoch, flow.state
        ));
        if let Some(other) = &flow.mapped_to {
            lines.push(format!("  mapped to {other}"));
        }
        for holder in &flow.holders {
            let left = match holder.left_ms {
                0 => "without a promise".to_owned(),
                left => format!("promised for {left} ms"),
            };
            lines.push(format!(
                "  {} lease of switch {} (incarnation {}, claim {}), epoch {}, {left}",
                flow.lease, holder.switch, holder.incarnation, holder.claim, holder.epoch
            ));
        }
        if flow.holders.is_empty() {
            lines.push("  nobody has a lease".to_owned());
        }
    }
    if found.is_empty() {
        lines.push("no shard has this flow".to_owned());
    }
    let values = found
        .values()
        .map(|(server, flow)| json!({ "server": server, "flow": flow }));
    switch.print(&values.collect(), &lines);
    Ok(())
}

fn services(switch: &SwitchArguments, deployment: &Deployment) -> Result<(), CommandError> {
    let (_, view) = deployment.leader()?;
    let (stores, silent) = stores(deployment, &view);
    report_silent(&silent);
    let mut servers: BTreeMap<_, ServiceServerView> = BTreeMap::new();
    for chain in &view.chains {
        let mut members = chain.members.iter();
        let shown = members.find_map(|member| replica(&stores, member.address, chain.chain));
        for server in shown.into_iter().flat_map(|replica| &replica.servers) {
            let key = (server.service, server.protocol, server.server);
            match servers.get_mut(&key) {
                Some(sum) => {
                    sum.flows += server.flows;
                    sum.healthy &= server.healthy;
                }
                None => {
                    servers.insert(key, server.clone());
                }
            }
        }
    }
    let mut rows = vec![row(&[
        &"service",
        &"protocol",
        &"server",
        &"weight",
        &"flows",
        &"health",
    ])];
    for server in servers.values() {
        let health = if server.healthy {
            "healthy"
        } else {
            "unhealthy"
        };
        rows.push(row(&[
            &server.service,
            &server.protocol,
            &server.server,
            &server.weight,
            &server.flows,
            &health,
        ]));
    }
    let values: Vec<_> = servers.into_values().collect();
    switch.print(&json!(values), &columns(&rows));
    Ok(())
}

fn pools(switch: &SwitchArguments, deployment: &Deployment) -> Result<(), CommandError> {
    let (_, view) = deployment.leader()?;
    let (stores, silent) = stores(deployment, &view);
    report_silent(&silent);
    let mut rows = vec![row(&[&"address", &"protocol", &"shard", &"ports", &"free"])];
    let mut values = Vec::new();
    for chain in &view.chains {
        let mut members = chain.members.iter();
        let shown = members.find_map(|member| replica(&stores, member.address, chain.chain));
        for pool in shown.into_iter().flat_map(|replica| &replica.pools) {
            rows.push(row(&[
                &pool.address,
                &pool.protocol,
                &chain.chain,
                &pool.size,
                &pool.free,
            ]));
            values.push(json!({ "shard": chain.chain, "pool": pool }));
        }
    }
    switch.print(&Value::from(values), &columns(&rows));
    Ok(())
}

fn can_stop(
    switch: &SwitchArguments,
    deployment: &Deployment,
    server: Ipv4Addr,
) -> Result<(), CommandError> {
    let (_, view) = deployment.leader()?;
    if view.server(server).is_none() {
        return Err(wrong(format!("the controller knows no server {server}")));
    }
    let left = view.left_without(server);
    let (can, line) = match &left {
        Ok(None) => (true, format!("yes: no chain has {server}")),
        Ok(Some(left)) => (
            true,
            format!("yes: each of its chains has {left} whole replicas or more besides"),
        ),
        Err(chains) => (
            false,
            format!(
                "no: it has the only whole replica of the shards {chains:?}; wait until others have joined"
            ),
        ),
    };
    let lost = left.as_ref().err();
    let value = json!({
        "server": server, "can_stop": can, "replicas_left": left.as_ref().ok(), "lost": lost,
    });
    switch.print(&value, &[line]);
    if can {
        Ok(())
    } else {
        Err(CommandError::explained(Failure::Expectation))
    }
}

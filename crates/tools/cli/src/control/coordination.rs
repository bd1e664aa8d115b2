//! `stateplane ctl coordination`: the switches and groups of the coordination service.

mod survey;

use super::ask::Deployment;
use super::waiting::{degraded_lines, wait_until};
use super::{SwitchArguments, columns, row, wrong};
use crate::exit::{CommandError, Failure};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use stateplane_host::controller::CoordinationView;
use stateplane_host::controller::view::SwitchView;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Bits of an entry's number below the generation.
const COUNT: u64 = (1 << stateplane_wire::coordination::COUNT_BITS) - 1;

/// Inspect the coordination service of a deployment, drain switches, found lost groups anew.
///
/// Asks the controllers at the deployment's `operator_port`. A switch is named by its address.
#[derive(Args)]
#[command(after_help = "Examples:
  stateplane ctl coordination --config deployment.toml groups
  stateplane ctl coordination --config deployment.toml digests
  stateplane ctl coordination --config deployment.toml can-stop 10.0.0.2
  stateplane ctl coordination --config deployment.toml drain 10.0.0.2 --wait 60
  stateplane ctl coordination --config deployment.toml refound 7 --members-are-stopped")]
pub struct CoordinationArguments {
    /// Deployment file (TOML)
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Ask the switches by sealed messages, with the keys of this file (TOML), where they take no
    /// others; see docs/message-authentication.md
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    #[command(subcommand)]
    command: CoordinationCommand,
}

#[derive(Subcommand)]
enum CoordinationCommand {
    /// Show the switches: state, groups, members left if one stops
    Groups,
    /// Show the chain of each group: generation, epoch, members, joining switch, newest entry
    Chains,
    /// Show the places of each group that have a record: values, locks, and those that are empty and
    /// kept for their token
    Fill,
    /// Show the sessions that are open, their state, lanes, records and locks
    Sessions,
    /// Compare the records of each group's members; exit code 1 if they differ
    ///
    /// Each member is read by itself while others write. A record that an entry in between changed
    /// is read again, so that a difference which is told is one.
    Digests,
    /// Check whether a switch can be stopped at this moment; exit code 1 if not
    CanStop {
        /// Address of the switch
        switch: Ipv4Addr,
    },
    /// Drain a switch: move its groups to others, so that it can be stopped
    Drain {
        /// Address of the switch
        switch: Ipv4Addr,
        /// Wait at most this many seconds until no group has the switch
        #[arg(long, value_name = "SECONDS")]
        wait: Option<u64>,
    },
    /// Return a drained switch to service
    Undrain {
        /// Address of the switch
        switch: Ipv4Addr,
        /// Wait at most this many seconds until every group has all its members
        #[arg(long, value_name = "SECONDS")]
        wait: Option<u64>,
    },
    /// Begin a group anew, empty, whose members are all lost; their state is given up
    Refound {
        /// Number of the group
        group: u16,
        /// Says that the members that the group last had are stopped, and not only cut off
        #[arg(long, required = true)]
        members_are_stopped: bool,
    },
    /// Wait until every group has all its members; exit code 1 on a timeout
    Wait {
        /// Timeout in seconds
        seconds: u64,
        /// Accept groups that lack members because too few switches are alive or not drained
        #[arg(long)]
        degraded: bool,
    },
}

/// Runs the command.
pub fn run(
    switch: &SwitchArguments,
    arguments: &CoordinationArguments,
) -> Result<(), CommandError> {
    let deployment = Deployment::read(&arguments.config)?;
    let keys = arguments.keys.as_deref();
    match &arguments.command {
        CoordinationCommand::Groups => groups(switch, &deployment),
        CoordinationCommand::Chains => chains(switch, &deployment),
        CoordinationCommand::Fill => survey::fill(switch, &deployment, keys),
        CoordinationCommand::Sessions => survey::sessions(switch, &deployment, keys),
        CoordinationCommand::Digests => survey::digests(switch, &deployment, keys),
        CoordinationCommand::CanStop { switch: at } => can_stop(switch, &deployment, *at),
        CoordinationCommand::Drain { switch: at, wait } => {
            drain(&deployment, *at, true)?;
            let gone = |view: &CoordinationView| view.groups_of(*at) == 0;
            wait_for(&deployment, *wait, "groups still have the switch", gone)
        }
        CoordinationCommand::Undrain { switch: at, wait } => {
            drain(&deployment, *at, false)?;
            wait_whole(&deployment, *wait)
        }
        CoordinationCommand::Refound {
            group,
            members_are_stopped: _,
        } => deployment.refound(*group),
        CoordinationCommand::Wait {
            seconds,
            degraded: false,
        } => wait_whole(&deployment, Some(*seconds)),
        CoordinationCommand::Wait {
            seconds,
            degraded: true,
        } => wait_for(&deployment, Some(*seconds), "groups change", |view| {
            view.settled
        }),
    }
}

fn drain(deployment: &Deployment, switch: Ipv4Addr, drained: bool) -> Result<(), CommandError> {
    let (_, view) = deployment.coordination()?;
    deployment.drain_switch(named(&view, switch)?.number, drained)
}

fn named(view: &CoordinationView, switch: Ipv4Addr) -> Result<&SwitchView, CommandError> {
    let known = view.switch(switch);
    known.ok_or_else(|| wrong(format!("[coordination] names no switch {switch}")))
}

fn wait_whole(deployment: &Deployment, wait: Option<u64>) -> Result<(), CommandError> {
    let late = "groups change or lack members";
    wait_for(deployment, wait, late, CoordinationView::is_whole)
}

/// Waits until the controller's view is `reached`, if there is a time to wait.
fn wait_for(
    deployment: &Deployment,
    seconds: Option<u64>,
    late: &str,
    reached: impl Fn(&CoordinationView) -> bool,
) -> Result<(), CommandError> {
    wait_until("coordination", seconds, late, || {
        Ok(reached(&deployment.coordination()?.1))
    })
}

fn groups(switch: &SwitchArguments, deployment: &Deployment) -> Result<(), CommandError> {
    let (leader, view) = deployment.coordination()?;
    let mut rows = vec![row(&[
        &"switch", &"number", &"state", &"groups", &"heads", &"left",
    ])];
    let mut values = Vec::new();
    for it in &view.switches {
        let state = match (it.alive, it.drained) {
            (false, _) => "dead",
            (true, true) => "drained",
            (true, false) => "alive",
        };
        let count = view.groups_of(it.address);
        let is_head = |head: Option<&Ipv4Addr>| head == Some(&it.address);
        let heads = view.groups.iter();
        let heads = heads.filter(|group| is_head(group.members.first().map(|it| &it.address)));
        let heads = heads.count();
        let left = match (it.lost.len(), it.left) {
            (0, Some(left)) => left.to_string(),
            (0, None) => String::new(),
            _ => "0".to_owned(),
        };
        rows.push(row(&[
            &it.address,
            &it.number,
            &state,
            &count,
            &heads,
            &left,
        ]));
        values.push(json!({
            "switch": it.address, "number": it.number, "incarnation": it.incarnation,
            "state": state, "groups": count, "heads": heads, "left": it.left, "lost": it.lost,
        }));
    }
    let mut lines = columns(&rows);
    let degraded = view.degraded();
    let state = match (&degraded, view.settled) {
        (_, false) => "groups change",
        (Some(_), true) => "groups lack members",
        (None, true) => "every group has all its members",
    };
    lines.push(format!(
        "controller {leader} leads; {state}; {} sessions",
        view.sessions
    ));
    if let Some(degraded) = &degraded {
        let counts = [view.groups.len(), view.replicas];
        lines.extend(degraded_lines(degraded, counts, ["groups", "members"]));
    }
    if view.behind {
        lines.push(
            "switches follow configurations that the controller does not know: it makes none"
                .into(),
        );
    }
    let value = json!({
        "leader": leader, "settled": view.settled, "behind": view.behind,
        "sessions": view.sessions, "redirected": view.redirected, "switches": values,
        "replicas": view.replicas, "degraded": degraded,
    });
    switch.print(&value, &lines);
    Ok(())
}

fn chains(switch: &SwitchArguments, deployment: &Deployment) -> Result<(), CommandError> {
    let (_, view) = deployment.coordination()?;
    let mut rows = vec![row(&[
        &"group",
        &"generation",
        &"epoch",
        &"members, head first",
        &"joining",
        &"entries",
    ])];
    let mut values = Vec::new();
    for group in &view.groups {
        let members = group.members.iter().map(|member| {
            let mark = match (member.alive, member.follows) {
                (false, _) => " (dead)",
                (true, false) => " (not yet)",
                (true, true) => "",
            };
            format!("{}{mark}", member.address)
        });
        let members: Vec<String> = members.collect();
        let joining = group.joining.map(|address| address.to_string());
        let entries = group.newest.map(|newest| newest & COUNT);
        let known = entries.map_or("?".to_owned(), |entries| entries.to_string());
        rows.push(row(&[
            &group.group,
            &group.generation,
            &group.epoch,
            &members.join(" "),
            &joining.unwrap_or_default(),
            &known,
        ]));
        values.push(json!({
            "group": group.group, "generation": group.generation, "epoch": group.epoch,
            "members": group.members, "joining": group.joining, "entries": entries,
        }));
    }
    switch.print(&Value::from(values), &columns(&rows));
    Ok(())
}

fn can_stop(
    switch: &SwitchArguments,
    deployment: &Deployment,
    address: Ipv4Addr,
) -> Result<(), CommandError> {
    let (_, view) = deployment.coordination()?;
    let known = named(&view, address)?;
    let (can, line) = match (known.left, known.lost.is_empty()) {
        (None, true) => (true, format!("yes: no group has {address}")),
        (Some(left), true) => (
            true,
            format!("yes: each of its groups has {left} whole members or more besides"),
        ),
        (_, false) => (
            false,
            format!(
                "no: it has the only whole copy of the groups {:?}; wait until others have joined",
                known.lost
            ),
        ),
    };
    let value = json!({
        "switch": address, "can_stop": can, "members_left": known.left, "lost": known.lost,
    });
    switch.print(&value, &[line]);
    if can {
        Ok(())
    } else {
        Err(CommandError::explained(Failure::Expectation))
    }
}

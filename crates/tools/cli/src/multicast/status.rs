//! `stateplane multicast status`, and what operators change.

use super::super::control::ask::Deployment;
use super::super::control::{columns, row};
use crate::exit::{CommandError, Failure};
use clap::Args;
use serde_json::json;
use stateplane_host::controller::MulticastView;
use stateplane_host::controller::view::{MulticastGroupView, MulticastWaitsView};
use std::fmt::Display;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time between two looks of `--wait`.
const LOOK: Duration = Duration::from_millis(200);

/// Show the groups: leader, epoch, window, what the oldest message waits for, slow receivers
///
/// Asks the controllers at the deployment's `operator_port`. Exit code 1 if a group takes no
/// messages.
#[derive(Args)]
pub struct StatusArguments {
    /// Deployment file (TOML)
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Wait at most this many seconds until every group has a leader and all its members
    #[arg(long, value_name = "SECONDS")]
    wait: Option<u64>,
}

/// A switch to drain.
#[derive(Args)]
pub struct DrainArguments {
    /// Deployment file (TOML)
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Address of the switch
    switch: Ipv4Addr,
}

/// Begin a group anew, with empty logs, whose members are all lost; what they held is given up
#[derive(Args)]
pub struct RefoundArguments {
    /// Deployment file (TOML)
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Number of the group
    group: u8,
    /// Says that the members that the group last had are stopped, and not only cut off
    #[arg(long, required = true)]
    members_are_stopped: bool,
}

fn list(all: &[impl Display]) -> String {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    all.join(",")
}

/// The reason for which the oldest entry of a log waits, in words.
fn waits(oldest: &MulticastWaitsView) -> String {
    let mut parts = Vec::new();
    for (what, who) in [
        ("members", list(&oldest.members)),
        ("receivers", list(&oldest.receivers)),
        ("decision of groups", list(&oldest.undecided)),
        ("receivers of groups", list(&oldest.not_done)),
    ] {
        if !who.is_empty() {
            parts.push(format!("{what} {who}"));
        }
    }
    if parts.is_empty() {
        "its turn".to_owned()
    } else {
        parts.join("; ")
    }
}

/// State of a group in a word.
fn state(group: &MulticastGroupView, replicas: usize) -> &'static str {
    let alive = group.members.iter().filter(|member| member.alive).count();
    if !group.established {
        "no leader"
    } else if alive < replicas {
        "lacks members"
    } else {
        "ok"
    }
}

fn lines(view: &MulticastView) -> Vec<String> {
    let mut rows = vec![row(&[
        &"group",
        &"state",
        &"epoch",
        &"leader",
        &"members",
        &"window",
        &"receivers",
        &"oldest waits for",
    ])];
    for group in &view.groups {
        let members = group.members.iter().map(|member| {
            let dead = if member.alive { "" } else { "!" };
            format!("{}{dead}", member.address)
        });
        let learner = group.learner.map(|address| format!("{address}+"));
        let members: Vec<String> = members.chain(learner).collect();
        let receivers = group
            .receivers
            .iter()
            .map(|receiver| match receiver.behind {
                Some(behind) if behind > 0 => format!("{}-{behind}", receiver.address),
                _ => receiver.address.to_string(),
            });
        let receivers: Vec<String> = receivers.collect();
        let oldest = group.log.as_ref().and_then(|log| log.oldest.as_ref());
        rows.push(row(&[
            &group.group,
            &state(group, view.replicas),
            &group.epoch,
            &group
                .leader
                .map_or("-".to_owned(), |leader| leader.to_string()),
            &members.join(","),
            &format!("{}/{}", group.taken(), view.window),
            &receivers.join(","),
            &oldest.map_or(String::new(), waits),
        ]));
    }
    columns(&rows)
}

fn show(json: bool, leader: Ipv4Addr, view: &MulticastView) {
    if json {
        println!("{}", json!({"controller": leader, "multicast": view}));
        return;
    }
    if view.behind {
        println!("controller {leader} is behind: switches promised epochs that it does not know");
    }
    let alive = view.switches.iter().filter(|switch| switch.alive).count();
    println!(
        "controller {leader}; {alive} of {} switches live; {} sessions, {} of {} lanes granted, {} \
         slots wait for logs",
        view.switches.len(),
        view.sessions,
        view.lanes,
        view.most_lanes,
        view.ended,
    );
    for line in lines(view) {
        println!("{line}");
    }
}

/// Runs the command.
pub fn run(json: bool, arguments: &StatusArguments) -> Result<(), CommandError> {
    let deployment = Deployment::read(&arguments.config)?;
    let begin = Instant::now();
    let patience = arguments.wait.map(Duration::from_secs);
    loop {
        let asked = deployment.multicast();
        let in_time = patience.is_some_and(|patience| begin.elapsed() < patience);
        if in_time && !matches!(&asked, Ok((_, view)) if view.settled) {
            std::thread::sleep(LOOK);
            continue;
        }
        let (leader, view) = asked?;
        show(json, leader, &view);
        let unsettled = patience.is_some() && !view.settled;
        if view.down() > 0 || view.behind || unsettled {
            return Err(CommandError::explained(Failure::Expectation));
        }
        return Ok(());
    }
}

/// Lets a switch lose its groups, or take part again.
pub fn drain(arguments: &DrainArguments, drained: bool) -> Result<(), CommandError> {
    let deployment = Deployment::read(&arguments.config)?;
    deployment.drain_multicast(arguments.switch, drained)
}

/// Founds a group anew.
pub fn refound(arguments: &RefoundArguments) -> Result<(), CommandError> {
    Deployment::read(&arguments.config)?.refound_multicast(arguments.group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_host::controller::view::{
        MulticastLogView, MulticastMemberView, MulticastReceiverView,
    };

    #[test]
    fn a_group_says_what_it_waits_for_and_who_is_slow() {
        let address = |host: u8| Ipv4Addr::new(10, 0, 0, host);
        let member = |number: u8| MulticastMemberView {
            number,
            address: address(number),
            alive: number != 2,
            promised: true,
        };
        let receiver = |host, behind| MulticastReceiverView {
            number: 0,
            address: address(host),
            behind,
        };
        let group = MulticastGroupView {
            group: 1,
            epoch: 7,
            leader: Some(address(1)),
            established: true,
            members: (1..4).map(member).collect(),
            learner: Some(address(4)),
            list: 1,
            receivers: vec![receiver(20, Some(0)), receiver(21, Some(9))],
            log: Some(MulticastLogView {
                base: 10,
                commit: 19,
                end: 20,
                oldest: Some(MulticastWaitsView {
                    members: Vec::new(),
                    receivers: vec![address(21)],
                    undecided: vec![0],
                    not_done: vec![0, 3],
                }),
            }),
        };
        let view = MulticastView {
            leads: true,
            replicas: 3,
            window: 1024,
            groups: vec![group.clone()],
            ..MulticastView::default()
        };
        let line = lines(&view).pop().unwrap();
        for part in [
            "lacks members",
            "10.0.0.1,10.0.0.2!,10.0.0.3,10.0.0.4+",
            "10/1024",
            "10.0.0.20,10.0.0.21-9",
            "receivers 10.0.0.21; decision of groups 0; receivers of groups 0,3",
        ] {
            assert!(line.contains(part), "{line}");
        }
        let down = MulticastGroupView {
            established: false,
            ..group
        };
        assert_eq!(state(&down, 3), "no leader");
        assert_eq!(waits(&MulticastWaitsView::default()), "its turn");
    }
}

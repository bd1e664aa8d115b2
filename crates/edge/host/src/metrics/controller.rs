//! Metrics of a controller.

use std::collections::BTreeMap;

use super::{Families, Labels, events};
use crate::controller::{ControllerReport, ControllerView, CoordinationView, MulticastView};

/// A controller's metrics as OpenMetrics text. Events are named as in
/// [`ControllerCounters`](stateplane_chains::ControllerCounters), those of coordination as in
/// [its own](stateplane_groups::ControllerCounters), those of multicast as in
/// [its own](stateplane_multicast_groups::ControllerCounters).
pub fn controller_metrics(
    report: &ControllerReport,
    view: &ControllerView,
    coordination: &CoordinationView,
    multicast: &MulticastView,
) -> String {
    let mut families = Families::default();
    let without = ControllerReport {
        coordination: None,
        multicast: None,
        ..*report
    };
    families.counter(
        "stateplane_controller_events",
        "Events of the controller since it became the leader",
        events(&without),
    );
    if let Some(report) = &report.coordination {
        add_coordination(&mut families, events(report), coordination);
    }
    if let Some(report) = &report.multicast {
        add_multicast(&mut families, events(report), multicast);
    }
    for (name, help, value) in [
        (
            "stateplane_controller_leads",
            "1 if this controller leads",
            view.leads,
        ),
        (
            "stateplane_controller_behind",
            "1 if servers follow configurations that this controller does not know",
            view.behind,
        ),
        (
            "stateplane_controller_settled",
            "1 if every chain has all its replicas, where the controller wants them",
            view.is_whole(),
        ),
    ] {
        families.gauge(name, help, vec![(Vec::new(), value.into())]);
    }
    let mut servers = BTreeMap::from([("alive", 0), ("dead", 0), ("drained", 0)]);
    for server in &view.servers {
        let state = match (server.alive, server.drained) {
            (false, _) => "dead",
            (true, true) => "drained",
            (true, false) => "alive",
        };
        *servers.entry(state).or_default() += 1;
    }
    let servers = servers.into_iter();
    families.gauge(
        "stateplane_controller_servers",
        "Number of store servers, by state",
        servers
            .map(|(state, count)| (vec![("state", state.to_owned())], count))
            .collect(),
    );
    let mut chains: BTreeMap<usize, u64> = BTreeMap::new();
    for chain in &view.chains {
        *chains.entry(chain.whole().count()).or_default() += 1;
    }
    let chains = chains.into_iter();
    families.gauge(
        "stateplane_controller_chains",
        "Number of chains, by number of replicas that are alive and follow the present configuration",
        chains
            .map(|(replicas, count)| (vec![("replicas", replicas.to_string())], count))
            .collect(),
    );
    let degraded = view.degraded().unwrap_or_default();
    for (name, help, value) in [
        (
            "stateplane_controller_chains_degraded",
            "Number of chains that have fewer replicas than they are to have",
            degraded.chains.values().sum::<usize>() as u64,
        ),
        (
            "stateplane_controller_degraded_seconds",
            "Time since the first chain that lacks a replica lacks it; 0 if none does",
            degraded.for_ms / 1000,
        ),
        (
            "stateplane_controller_critical_servers",
            "Number of servers whose death would leave a shard without any replica",
            degraded.critical.len() as u64,
        ),
        (
            "stateplane_controller_chains_down",
            "Number of chains without any replica that is alive and has the whole state",
            degraded.down as u64,
        ),
    ] {
        families.gauge(name, help, vec![(Vec::new(), value)]);
    }
    families.text()
}

/// Adds the metrics of multicast.
fn add_multicast(families: &mut Families, events: Vec<(Labels, u64)>, view: &MulticastView) {
    families.counter(
        "stateplane_multicast_events",
        "Events of multicast since this controller became the leader",
        events,
    );
    let alive = view.switches.iter().filter(|switch| switch.alive).count();
    for (name, help, value) in [
        (
            "stateplane_multicast_behind",
            "1 if switches promised epochs that this controller does not know",
            u64::from(view.behind),
        ),
        (
            "stateplane_multicast_settled",
            "1 if every group has an established leader and all its members, where the controller \
             wants them",
            view.settled.into(),
        ),
        (
            "stateplane_multicast_groups_down",
            "Number of groups without an established leader",
            view.down() as u64,
        ),
        (
            "stateplane_multicast_switches_alive",
            "Number of switches that were heard lately",
            alive as u64,
        ),
        (
            "stateplane_multicast_sessions",
            "Number of sessions that are open",
            view.sessions as u64,
        ),
        (
            "stateplane_multicast_slots_waiting",
            "Number of slots of ended sessions of which logs may hold entries",
            view.ended as u64,
        ),
        (
            "stateplane_multicast_lanes",
            "Number of lanes granted",
            view.lanes.into(),
        ),
    ] {
        families.gauge(name, help, vec![(Vec::new(), value)]);
    }
    let label = |group: u8| vec![("group", group.to_string())];
    let groups = view.groups.iter();
    families.gauge(
        "stateplane_multicast_epoch",
        "Epoch of each group",
        groups
            .clone()
            .map(|it| (label(it.group), it.epoch.into()))
            .collect(),
    );
    families.gauge(
        "stateplane_multicast_window_taken",
        "Entries of each group's window that are taken",
        groups
            .clone()
            .map(|it| (label(it.group), it.taken().into()))
            .collect(),
    );
    let behind = groups.flat_map(|it| {
        let receivers = it.receivers.iter();
        receivers.map(move |receiver| {
            let mut labels = label(it.group);
            labels.push(("receiver", receiver.address.to_string()));
            (labels, receiver.behind.unwrap_or(0).into())
        })
    });
    families.gauge(
        "stateplane_multicast_receiver_behind",
        "Committed entries that each receiver has not said to have",
        behind.collect(),
    );
}

/// Adds the metrics of coordination.
fn add_coordination(families: &mut Families, events: Vec<(Labels, u64)>, view: &CoordinationView) {
    families.counter(
        "stateplane_coordination_events",
        "Events of coordination since this controller became the leader",
        events,
    );
    let mut groups: BTreeMap<usize, u64> = BTreeMap::new();
    for group in &view.groups {
        let whole = group.members.iter().filter(|member| member.is_whole());
        *groups.entry(whole.count()).or_default() += 1;
    }
    let degraded = view.degraded().unwrap_or_default();
    let alive = view.switches.iter().filter(|switch| switch.alive).count();
    for (name, help, value) in [
        (
            "stateplane_coordination_behind",
            "1 if switches follow configurations that this controller does not know",
            view.behind.into(),
        ),
        (
            "stateplane_coordination_settled",
            "1 if every group has all its members, where the controller wants them",
            view.is_whole().into(),
        ),
        (
            "stateplane_coordination_groups_degraded",
            "Number of groups that have fewer members than they are to have",
            degraded.chains.values().sum::<usize>() as u64,
        ),
        (
            "stateplane_coordination_degraded_seconds",
            "Time since the first group that lacks a member lacks it; 0 if none does",
            degraded.for_ms / 1000,
        ),
        (
            "stateplane_coordination_critical_switches",
            "Number of switches whose death would leave a group without any member",
            degraded.critical.len() as u64,
        ),
        (
            "stateplane_coordination_groups_down",
            "Number of groups without any member that is alive and has the whole state",
            degraded.down as u64,
        ),
        (
            "stateplane_coordination_switches_alive",
            "Number of switches that answered lately",
            alive as u64,
        ),
        (
            "stateplane_coordination_sessions",
            "Number of sessions that are not closed",
            view.sessions as u64,
        ),
    ] {
        families.gauge(name, help, vec![(Vec::new(), value)]);
    }
    families.gauge(
        "stateplane_coordination_groups",
        "Number of groups, by number of members that are alive and follow the present configuration",
        groups
            .into_iter()
            .map(|(members, count)| (vec![("members", members.to_string())], count))
            .collect(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::view::{ChainView, GroupView, MemberView, ServerView};

    #[test]
    fn servers_and_chains_are_counted_by_their_state() {
        let server = |alive, drained| ServerView {
            address: "10.0.0.1".parse().unwrap(),
            incarnation: 1,
            alive,
            drained,
        };
        let member = |alive, follows| MemberView {
            address: "10.0.0.1".parse().unwrap(),
            alive,
            follows,
        };
        let chain = |members: &[MemberView]| ChainView {
            chain: 1,
            epoch: 1,
            members: members.to_vec(),
            joining: None,
            lacking_for_ms: Some(7_500),
        };
        let view = ControllerView {
            leads: true,
            settled: true,
            replicas: 2,
            servers: vec![server(true, false), server(true, true), server(false, true)],
            chains: vec![
                chain(&[member(true, true), member(true, true)]),
                chain(&[member(true, true), member(true, false), member(false, true)]),
            ],
            ..ControllerView::default()
        };
        let mut report = ControllerReport::default();
        report.controller.deaths = 4;
        report.led = 2;
        let none = CoordinationView::default();
        let text = controller_metrics(&report, &view, &none, &MulticastView::default());
        assert!(!text.contains("coordination"), "{text}");
        for line in [
            "stateplane_controller_events_total{event=\"deaths\"} 4",
            "stateplane_controller_events_total{event=\"led\"} 2",
            "stateplane_controller_leads{} 1",
            "stateplane_controller_settled{} 0",
            "stateplane_controller_servers{state=\"alive\"} 1",
            "stateplane_controller_servers{state=\"dead\"} 1",
            "stateplane_controller_chains{replicas=\"1\"} 1",
            "stateplane_controller_chains{replicas=\"2\"} 1",
            "stateplane_controller_chains_degraded{} 1",
            "stateplane_controller_degraded_seconds{} 7",
            "stateplane_controller_critical_servers{} 1",
            "stateplane_controller_chains_down{} 0",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
    }

    #[test]
    fn groups_are_counted_by_their_members() {
        let member = |alive, follows| MemberView {
            address: "10.0.0.1".parse().unwrap(),
            alive,
            follows,
        };
        let view = CoordinationView {
            leads: true,
            settled: true,
            groups: vec![GroupView {
                group: 1,
                generation: 1,
                epoch: 1,
                members: vec![member(true, true), member(false, true)],
                joining: None,
                newest: None,
                lacking_for_ms: Some(7_500),
            }],
            replicas: 2,
            sessions: 7,
            ..CoordinationView::default()
        };
        let counters = stateplane_groups::ControllerCounters {
            deaths: 3,
            ..stateplane_groups::ControllerCounters::default()
        };
        let report = ControllerReport {
            coordination: Some(counters),
            ..ControllerReport::default()
        };
        let text = controller_metrics(
            &report,
            &ControllerView::default(),
            &view,
            &MulticastView::default(),
        );
        for line in [
            "stateplane_controller_events_total{event=\"deaths\"} 0",
            "stateplane_coordination_events_total{event=\"deaths\"} 3",
            "stateplane_coordination_settled{} 0",
            "stateplane_coordination_groups_degraded{} 1",
            "stateplane_coordination_degraded_seconds{} 7",
            "stateplane_coordination_critical_switches{} 1",
            "stateplane_coordination_groups_down{} 0",
            "stateplane_coordination_behind{} 0",
            "stateplane_coordination_sessions{} 7",
            "stateplane_coordination_switches_alive{} 0",
            "stateplane_coordination_groups{members=\"1\"} 1",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
    }
}

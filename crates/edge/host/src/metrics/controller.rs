//! Metrics of a controller.

use std::collections::BTreeMap;

use super::{Families, events};
use crate::controller::{ControllerReport, ControllerView};

/// A controller's metrics as OpenMetrics text. Events are named as in
/// [`ControllerCounters`](stateplane_chains::ControllerCounters).
pub fn controller_metrics(report: &ControllerReport, view: &ControllerView) -> String {
    let mut families = Families::default();
    families.counter(
        "stateplane_controller_events",
        "Events of the controller since it became the leader",
        events(report),
    );
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
            "1 if every chain has its wanted members and all follow its configuration",
            view.settled,
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
        let whole = chain.members.iter().filter(|m| m.alive && m.follows);
        *chains.entry(whole.count()).or_default() += 1;
    }
    let chains = chains.into_iter();
    families.gauge(
        "stateplane_controller_chains",
        "Number of chains, by number of replicas that are alive and follow the present configuration",
        chains
            .map(|(replicas, count)| (vec![("replicas", replicas.to_string())], count))
            .collect(),
    );
    families.text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::view::{ChainView, MemberView, ServerView};

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
        };
        let view = ControllerView {
            leads: true,
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
        let text = controller_metrics(&report, &view);
        for line in [
            "stateplane_controller_events_total{event=\"deaths\"} 4",
            "stateplane_controller_events_total{event=\"led\"} 2",
            "stateplane_controller_leads{} 1",
            "stateplane_controller_settled{} 0",
            "stateplane_controller_servers{state=\"alive\"} 1",
            "stateplane_controller_servers{state=\"dead\"} 1",
            "stateplane_controller_chains{replicas=\"1\"} 1",
            "stateplane_controller_chains{replicas=\"2\"} 1",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
    }
}

//! Metrics of flows that an engine follows.

use super::{Families, Labels};
use crate::sync::FlowsReport;

/// A gauge or counter of flows: name, help, and what it is of one section; `None`: absent.
type OfFlows = (&'static str, &'static str, fn(&FlowsReport) -> Option<u64>);

const GAUGES: [OfFlows; 5] = [
    (
        "stateplane_sync_flows_complete",
        "1 once every chain of the store was read whole",
        |flows| Some(flows.complete.into()),
    ),
    (
        "stateplane_sync_flows_age_microseconds",
        "All that was acknowledged longer ago is in the view; absent while it is incomplete",
        |flows| flows.age_us,
    ),
    (
        "stateplane_sync_flows_followed",
        "Flows in the view; absent while it is incomplete",
        |flows| flows.complete.then_some(flows.flows as u64),
    ),
    (
        "stateplane_sync_flows_chains",
        "Chains of the store; absent while the view is incomplete",
        |flows| flows.complete.then_some(flows.chains.into()),
    ),
    (
        "stateplane_sync_flows_waiting_requests",
        "Requests of clients about flows that wait",
        |flows| Some(flows.waiting as u64),
    ),
];

const COUNTERS: [OfFlows; 3] = [
    (
        "stateplane_sync_flows_changes",
        "Changes of the view since the engine began to lead",
        |flows| Some(flows.changes),
    ),
    (
        "stateplane_sync_flows_reads",
        "Reads of clients that were answered",
        |flows| Some(flows.reads),
    ),
    (
        "stateplane_sync_flows_unmet_reads",
        "Reads of clients whose limits were not met in time",
        |flows| Some(flows.unmet),
    ),
];

/// Adds the metrics of all flows. Series are those of names.
pub(super) fn add(families: &mut Families, all: &[FlowsReport]) {
    let name = |flows: &FlowsReport| ("flows", flows.name.clone());
    let samples = |of: fn(&FlowsReport) -> Option<u64>| -> Vec<(Labels, u64)> {
        let samples = all.iter();
        samples
            .filter_map(|flows| Some((vec![name(flows)], of(flows)?)))
            .collect()
    };
    for (metric, help, of) in GAUGES {
        families.gauge(metric, help, samples(of));
    }
    for (metric, help, of) in COUNTERS {
        families.counter(metric, help, samples(of));
    }
    let events = |of: fn(&FlowsReport) -> Vec<(&'static str, u64)>| -> Vec<(Labels, u64)> {
        let of_all = all.iter().flat_map(|flows| {
            let events = of(flows).into_iter();
            events.map(|(event, count)| {
                let labels = vec![name(flows), ("event", event.to_owned())];
                (labels, count)
            })
        });
        of_all.collect()
    };
    families.counter(
        "stateplane_sync_flows_datagrams",
        "Datagrams of the store and for it, by what became of them",
        events(|flows| {
            vec![
                ("received", flows.received),
                ("sent", flows.sent),
                ("elsewhere", flows.elsewhere),
                ("foreign", flows.foreign),
                ("late", flows.late),
            ]
        }),
    );
    families.counter(
        "stateplane_sync_flows_writes",
        "Changes that clients asked for, by how they ended",
        events(|flows| {
            vec![
                ("made", flows.made),
                ("mismatched", flows.mismatched),
                ("refused", flows.refused),
                ("timed_out", flows.timed_out),
                ("unknown", flows.unknown),
            ]
        }),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_its_age_and_counts() {
        let flows = |name: &str, complete: bool| FlowsReport {
            name: name.to_owned(),
            complete,
            age_us: complete.then_some(700),
            flows: 3,
            changes: 5,
            sent: 8,
            made: 2,
            ..FlowsReport::default()
        };
        let mut families = Families::default();
        add(&mut families, &[flows("nat", true), flows("kv", false)]);
        let text = families.text();
        for line in [
            "stateplane_sync_flows_complete{flows=\"kv\"} 0",
            "stateplane_sync_flows_age_microseconds{flows=\"nat\"} 700",
            "stateplane_sync_flows_followed{flows=\"nat\"} 3",
            "stateplane_sync_flows_changes_total{flows=\"kv\"} 5",
            "stateplane_sync_flows_datagrams_total{flows=\"nat\",event=\"sent\"} 8",
            "stateplane_sync_flows_writes_total{flows=\"nat\",event=\"made\"} 2",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        assert!(!text.contains("followed{flows=\"kv\"}"), "{text}");
    }
}

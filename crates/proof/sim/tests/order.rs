//! Packets of a flow that follow others while these wait for the store (rule 26).

mod common;

use common::reports;
use stateplane_history::replication::EventKind;
use stateplane_sim::{Options, ProgramKind, Report, Rule, Scenario};
use std::collections::{BTreeMap, BTreeSet};

fn programs() -> [ProgramKind; 5] {
    [
        common::program("counter"),
        common::program("nat"),
        common::program("firewall"),
        common::program("load-balancer"),
        common::program("serving-gateway"),
    ]
}

/// Bursts whose packets are closer than a round trip to the store, on links that keep the
/// order.
fn dense() -> Scenario {
    Scenario {
        burst_length: 12,
        burst_gap: 40,
        bursts: 600,
        flows: 400,
        buckets: 256,
        reroutes: 0,
        ..Scenario::handover()
    }
}

/// Number of packets that left before an earlier packet of their flow, and number of those that
/// could have; of flows that crossed one switch.
fn overtaken(report: &Report) -> (usize, usize) {
    let mut came = BTreeMap::new();
    let mut crossed: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (place, event) in report.history.events.iter().enumerate() {
        if let EventKind::Call {
            object: flow,
            operation: packet,
            node: switch,
            ..
        } = &event.kind
        {
            came.insert(*packet, place);
            crossed.entry(flow).or_default().insert(*switch);
        }
    }
    let mut last_of = BTreeMap::new();
    let (mut overtaken, mut of) = (0, 0);
    for event in &report.history.events {
        if let EventKind::Return {
            object: flow,
            operation: packet,
            ..
        } = &event.kind
            && crossed[flow].len() == 1
            && let Some(last) = last_of.insert(flow, came[packet])
        {
            overtaken += usize::from(came[packet] < last);
            of += 1;
        }
    }
    (overtaken, of)
}

#[test]
fn packets_of_a_flow_leave_in_the_order_in_which_they_came() {
    for program in programs() {
        let options = Options::new(program).scenario(dense());
        for report in reports(options, 0..5) {
            assert!(report.is_good(), "{report}");
            let (overtaken, of) = overtaken(&report);
            assert_eq!(overtaken, 0, "{report}");
            assert!(of > 500, "{of}: {report}");
        }
    }
}

#[test]
fn without_the_order_of_release_packets_overtake_those_that_wait() {
    for program in [common::program("nat"), common::program("serving-gateway")] {
        let options = Options::new(program).scenario(dense());
        let reports = reports(options.without(Rule::ReleaseOrder), 0..3);
        let overtaken: usize = reports.map(|report| overtaken(&report).0).sum();
        assert!(overtaken > 0, "{program}");
    }
}

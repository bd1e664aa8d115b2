//! Public ports that are taken and given back while switches and store servers fail.

mod common;

use common::reports;
use stateplane_history::replication::{EventKind, StateEvent, checkers};
use stateplane_sim::{Options, Report, Rule, Scenario};

/// The pool's checker objects if a port is taken twice or lost; besides, when all
/// mappings have been idle for long enough, every port is free again.
#[test]
fn no_port_is_taken_twice_nor_leaked() {
    let options = Options::new(common::program("nat")).scenario(Scenario::port_churn());
    let mut taken = 0;
    for report in reports(options, 0..3) {
        assert!(report.is_good(), "{report}");
        let events = &report.history.events;
        let mapped = |kind: &EventKind| matches!(kind, EventKind::Of(StateEvent::Mapped { .. }));
        assert!(!events.iter().any(|event| mapped(&event.kind)), "{report}");
        let coverage = report.coverage;
        assert_eq!(coverage.ports_taken, coverage.ports_freed, "{report}");
        assert!(coverage.store_deaths > 0 && coverage.deaths > 0, "{report}");
        taken += coverage.ports_taken;
    }
    assert!(taken > 10_000, "{taken} ports taken");
}

fn dependent() -> Options {
    Options::new(common::program("dependent-nat")).scenario(Scenario::port_churn())
}

/// A host objects if a connection that both sides use leaves as another public endpoint.
fn loses_its_mapping(report: &Report) -> bool {
    let mut anomalies = report.anomalies.iter();
    anomalies.any(|anomaly| anomaly.contains("of an open connection left as"))
}

/// Of one shard's few ports many connections want one for the same remote endpoint: they get those of
/// connections that have ended, and no port is given twice, nor taken from a connection in use.
#[test]
fn ports_of_ended_connections_are_given_to_others() {
    let (mut opened, mut reclaimed) = (0, 0);
    for report in reports(dependent(), 0..3) {
        println!("{report}");
        assert!(report.is_good(), "{report}");
        let coverage = report.coverage;
        assert!(coverage.store_deaths > 0 && coverage.deaths > 0, "{report}");
        opened += coverage.opened;
        reclaimed += coverage.reclaimed;
    }
    assert!(opened > 2_000, "{opened} connections opened");
    assert!(
        reclaimed > 100,
        "{reclaimed} ports of ended connections given to others"
    );
}

#[test]
fn without_the_wait_for_leases_two_connections_use_one_port() {
    let options = dependent().without(Rule::ReclaimAfterLeases);
    let found = reports(options, 0..3).filter(|report| report.objects(checkers::NAT));
    assert!(found.count() > 0);
}

#[test]
fn without_the_look_at_fins_a_connection_loses_its_port() {
    let options = dependent().without(Rule::ReclaimEnded);
    assert!(reports(options, 0..3).any(|report| loses_its_mapping(&report)));
}

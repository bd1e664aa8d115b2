//! Public ports that are taken and given back while switches and store servers fail.

mod common;

use common::reports;
use stateplane_history::replication::{EventKind, StateEvent};
use stateplane_sim::{Options, Scenario};

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

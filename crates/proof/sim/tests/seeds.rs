//! Worlds of every misfortune, with the compiled programs on the switches. Each of
//! the first five hundred seeds runs with the counter and with the NAT.

mod common;

use common::{all_good, ordinary_scenarios, reports};
use stateplane_history::replication::Document;
use stateplane_sim::{EngineKind, Options, ProgramKind, Report};
use std::ops::Range;

/// Asserts the events that every run must contain to count.
fn covered(report: &Report) {
    assert!(report.is_good(), "{report}");
    let coverage = report.coverage;
    assert!(coverage.owner_changes > 0, "no change of owner: {report}");
    assert!(coverage.table_full > 0, "no full flow table: {report}");
    assert!(coverage.deaths > 0, "no death: {report}");
    // With a filter a connection needs three slots, and its packets more turns.
    let name = report.options.program.name();
    let part = match name {
        "filtering-nat" => 5,
        _ => 2,
    };
    assert!(
        coverage.outputs * part > coverage.inputs,
        "little came out: {report}"
    );
    // The NAT's state is made once and never written, so its number stays.
    if ["nat", "filtering-nat"].contains(&name) {
        assert!(coverage.ports_freed > 0, "no port came back: {report}");
    } else {
        assert!(coverage.sequence_wraps > 0, "no sequence wrap: {report}");
    }
}

fn run(program: ProgramKind, seeds: Range<u64>) {
    for report in reports(Options::new(program), seeds) {
        covered(&report);
    }
}

macro_rules! seeds {
    ($($name:ident: $program:literal, $seeds:expr;)*) => {
        $(
            #[test]
            fn $name() {
                run(common::program($program), $seeds);
            }
        )*
    };
}

// The harness runs these on all cores.
seeds! {
    counter_seeds_from_0: "counter", 0..125;
    counter_seeds_from_125: "counter", 125..250;
    counter_seeds_from_250: "counter", 250..375;
    counter_seeds_from_375: "counter", 375..500;
    nat_seeds_from_0: "nat", 0..125;
    nat_seeds_from_125: "nat", 125..250;
    nat_seeds_from_250: "nat", 250..375;
    nat_seeds_from_375: "nat", 375..500;
    filtering_nat_seeds: "filtering-nat", 0..40;
}

#[test]
fn counter_seeds_of_the_other_scenarios() {
    for scenario in ordinary_scenarios() {
        all_good(common::program("counter"), scenario, 10);
    }
}

#[test]
fn nat_seeds_of_the_other_scenarios() {
    for scenario in ordinary_scenarios() {
        all_good(common::program("nat"), scenario, 10);
    }
}

#[test]
fn equal_seeds_give_equal_traces_on_both_engines() {
    for program in [common::program("counter"), common::program("nat")] {
        let run = || reports(Options::new(program), 0..3);
        let interp = reports(Options::new(program).engine(EngineKind::Interp), 0..3);
        for (first, second) in run().zip(interp) {
            assert_eq!(first.trace, second.trace);
            assert_eq!(first.history, second.history);
            assert_eq!(first.coverage, second.coverage);
        }
        let mut traces: Vec<_> = run().map(|report| report.trace).collect();
        traces.sort_unstable();
        traces.dedup();
        assert_eq!(traces.len(), 3);
    }
}

#[test]
fn a_run_can_be_kept_as_text() {
    for report in reports(Options::new(common::program("nat")), 0..1) {
        let text = report.history.to_string();
        let read = Document::read(&text, &[]).expect("the text of a history");
        assert_eq!(read.history, report.history);
    }
}

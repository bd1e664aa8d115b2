//! Each of these rules has a promise that is broken without it: with the rule turned off the judge
//! objects, with the rule on the same seed is good.

use stateplane_sync_sim::{Options, Rule, Scenario, Simulator};

/// Seeds in which a rule that is turned off has to be noticed. The first that shows it ends the
/// search and is printed.
const SEEDS: u64 = 60;

/// Asserts that one of `promises` is broken first in one of the seeds without the rule, and none
/// in that seed with it.
fn misses(rule: Rule, scenario: Scenario, promises: &[&str]) {
    let options = Options::new(scenario);
    let without = Simulator::new(options.clone().without(rule)).expect("a world");
    let mut reports = (0..SEEDS).map(|seed| without.run(seed).expect("a run"));
    let bad = reports.find(|report| !report.is_good());
    let bad = bad.unwrap_or_else(|| panic!("nobody misses {rule} in {SEEDS} seeds"));
    println!("{rule}: {} seeds", bad.seed + 1);
    let objection = bad.objection().expect("one objects");
    assert!(promises.contains(&objection), "{rule}: {bad}");
    let with = Simulator::new(options).expect("a world");
    let good = with.run(bad.seed).expect("a run");
    assert!(good.is_good(), "{good}");
}

macro_rules! rules {
    ($($name:ident: $rule:ident, $scenario:expr, $promises:expr;)*) => {
        $(
            #[test]
            fn $name() {
                misses(Rule::$rule, $scenario, &$promises);
            }
        )*

        /// No rule is left out.
        #[test]
        fn every_rule_has_its_test() {
            let tested = [$(Rule::$rule),*];
            assert!(Rule::ALL.iter().all(|rule| tested.contains(rule)));
        }
    };
}

rules! {
    without_opaque: Opaque, Scenario::kinds_mixed(), ["opaque"];
    without_tested: Tested, Scenario::overload(), ["bound", "all but k"];
    without_threshold_kept: ThresholdKept, Scenario::slow_sweep(), ["bound", "all but k"];
    without_peak: Peak, Scenario::overload(), ["bound"];
    without_shift: Shift, Scenario::lossy(), ["bound"];
    without_stamp: Stamp, Scenario::lossy(), ["bound", "all but k", "age", "rest"];
    without_requeued: Requeued, Scenario::lossy(), ["rest"];
    without_credit: Credit, Scenario::lossy(), ["window"];
    without_marks: Marks, Scenario::lossy(), ["rest"];
    without_incarnation: Incarnation, Scenario::restarts(), ["age", "fencing", "bound", "rest"];
    without_whole: Whole, Scenario::restarts(), ["rest"];
    without_sweep: Sweep, Scenario::overload(), ["bound", "all but k", "rest"];
    without_budget: Budget, Scenario::overload(), ["budget"];
    without_cross: Cross, Scenario::cuts(), ["window", "bound"];
    without_frozen: Frozen, Scenario::cuts(), ["window"];
    without_settled: Settled, Scenario::snapshots(), ["staged", "rest", "window"];
    without_fetch_settles: FetchSettles, Scenario::snapshots(), ["window", "bound"];
    without_cut_number: CutNumber, Scenario::cuts(), ["cut"];
    without_staged_settled: StagedSettled, Scenario::staged(), ["staged"];
    without_staged_apart: StagedApart, Scenario::staged(), ["staged", "rest"];
    without_fence: Fence, Scenario::writes(), ["fencing", "age"];
    without_once: Once, Scenario::writes(), ["once"];
    without_falls: Falls, Scenario::continued(), ["continued"];
    without_written_breaks: WrittenBreaks, Scenario::continued_mixed(), ["continued"];
    without_break_shift: BreakShift, Scenario::continued_mixed(), ["continued"];
    without_lease: Lease, Scenario::standby(), ["lease", "fencing"];
    without_written_queued: WrittenQueued, Scenario::writes(), ["all but k", "bound", "rest"];
}

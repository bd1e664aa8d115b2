//! Each of these rules has a checker that misses it: with the rule turned off it objects, with the
//! rule on the same seed is good.

use stateplane_history::multicast::checkers;
use stateplane_multicast_sim::{Options, Rule, Scenario, Simulator};

/// Seeds in which a rule that is turned off has to be noticed. The first that shows it ends the
/// search.
const SEEDS: u64 = 60;

/// Objections of the world itself.
const WORLD: &str = "the world";

/// Asserts that a checker or the world objects in one of the seeds without the rule, and nobody in
/// that seed with it.
fn misses(rule: Rule, scenario: Scenario) {
    let options = Options::new(scenario);
    let simulator = Simulator::new(options.clone().without(rule)).expect("a world");
    let mut reports = (0..SEEDS).map(|seed| simulator.run(seed).expect("a run"));
    let bad = reports.find(|report| !report.is_good());
    let bad = bad.unwrap_or_else(|| panic!("nobody misses {rule} in {SEEDS} seeds"));
    let objection = bad.objection().expect("one objects");
    assert!(
        objection == WORLD || checkers::NAMES.contains(&objection.as_str()),
        "{rule}: {bad}"
    );
    let simulator = Simulator::new(options).expect("a world");
    let good = simulator.run(bad.seed).expect("a run");
    assert!(good.is_good(), "{good}");
}

macro_rules! rules {
    ($($name:ident: $rule:ident, $scenario:ident;)*) => {
        $(
            #[test]
            fn $name() {
                misses(Rule::$rule, Scenario::$scenario());
            }
        )*
    };
}

rules! {
    without_majority: Majority, exchanges;
    without_log_clock: LogClock, leaders;
    without_entry_before: EntryBefore, exchanges;
    without_cut_off: CutOff, exchanges;
    without_commit_matched: CommitMatched, leaders;
    without_own_no_op: OwnNoOp, exchanges;
    without_marks_of_entry: MarksOfEntry, leaders;
}

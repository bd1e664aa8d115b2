//! Each of these rules has a checker that misses it: with the rule turned off it objects, with the
//! rule on the same seeds are good.
//!
//! The packet tests of `apps/multicast` alone guard the others, or nothing does:
//!
//! * `own-term`: the model of the protocol needs thousands of seeds for it, and some hundred runs
//!   here showed nothing.
//! * `incarnation`, `learner-promises`: the authority gives a number to another start only when no
//!   configuration that counts has it, so that a late message finds another number at the switch.
//! * `ack-epoch`: a member says ACK in the epoch that it promised, so that an ACK of another epoch is
//!   late, and its index must be one that the log of the present leader has with another term.
//! * `matches-forgotten`: harms if a switch leads again, and a member's log was cut meanwhile below
//!   what it had matched, by a leader whose entries are not in the log of the one that leads again.
//! * `held-back`: costs room in the window; lanes are granted so that there is enough.
//! * `covered`: what it keeps out is that a leader is elected that knows of no timestamp which is not
//!   below that of a freed message. All receivers have such a message, and name the timestamp.
//! * `list-version`: a receiver that is taken off and a new one of the same number would have to
//!   follow each other while a RECEIVED is under way.
//! * `number-cools`: a receiver that takes over a number with what its leader knows of it lacks what is
//!   freed, hears so, and joins anew.
//!
//! `learner-promises` and `number-cools` have no packet test, since the controller keeps them.

use stateplane_history::multicast::checkers::{
    ACYCLIC, AGREEMENT, BOUNDS, ENDS, FINALS, GENUINE, INTEGRITY, LOG, PREFIX, REAL_TIME, SERIAL,
    STRICT, VALIDITY,
};
use stateplane_multicast_sim::{Options, Report, Rule, Scenario, Simulator};

/// Seeds in which a rule that is turned off has to be noticed. The first that shows it ends the
/// search; most rules need fewer than ten, the rarest some eighty.
const SEEDS: u64 = 400;

/// Objections of the world itself: what does not settle.
const WORLD: &str = "the world";

fn reports(options: Options) -> impl Iterator<Item = Report> {
    let simulator = Simulator::new(options).expect("a world");
    (0..SEEDS).map(move |seed| simulator.run(seed).expect("a run"))
}

/// Asserts that one of `objects` objects first in one of the seeds without the rule, and nobody in
/// that seed with it.
fn misses(rule: Rule, scenario: Scenario, objects: &[&str]) {
    let options = Options::new(scenario);
    let mut without = reports(options.clone().without(rule));
    let bad = without.find(|report| !report.is_good());
    let bad = bad.unwrap_or_else(|| panic!("nobody misses {rule} in {SEEDS} seeds"));
    let objection = bad.objection().expect("one objects");
    println!("{rule}: {objection} in seed {}", bad.seed);
    assert!(objects.contains(&objection.as_str()), "{rule}: {bad}");
    let simulator = Simulator::new(options).expect("a world");
    let good = simulator.run(bad.seed).expect("a run");
    assert!(good.is_good(), "{good}");
}

macro_rules! rules {
    ($($name:ident: $rule:ident, $scenario:expr, $checkers:expr;)*) => {
        $(
            #[test]
            fn $name() {
                misses(Rule::$rule, $scenario, &$checkers);
            }
        )*

        /// No rule is left out, but for those that packet tests alone guard.
        #[test]
        fn every_rule_has_its_test() {
            let tested = [$(Rule::$rule),*];
            for rule in Rule::ALL {
                let missed = tested.contains(rule);
                assert_ne!(missed, UNSEEN.contains(rule), "{rule}");
            }
        }
    };
}

/// Checkers of two logs, or of orders that differ.
const FORKS: [&str; 6] = [LOG, FINALS, PREFIX, ACYCLIC, INTEGRITY, BOUNDS];
/// Checkers of orders that differ.
const ORDERS: [&str; 5] = [PREFIX, ACYCLIC, FINALS, INTEGRITY, REAL_TIME];
/// Checkers of what does not arrive.
const ARRIVES: [&str; 4] = [AGREEMENT, VALIDITY, ENDS, WORLD];
/// Checkers of forks, or of what does not arrive.
const FORKS_OR_ARRIVES: [&str; 10] = [
    LOG, FINALS, PREFIX, ACYCLIC, INTEGRITY, BOUNDS, AGREEMENT, VALIDITY, ENDS, WORLD,
];

/// Checkers of the store, or of replicas that differ.
const STORES: [&str; 3] = [SERIAL, STRICT, WORLD];

rules! {
    without_majority: Majority, Scenario::leaders(), FORKS;
    without_log_clock: LogClock, Scenario::leaders(), FORKS;
    without_entry_before: EntryBefore, Scenario::leaders(), FORKS;
    without_cut_off: CutOff, Scenario::leaders(), FORKS;
    without_commit_matched: CommitMatched, Scenario::leaders(), FORKS;
    without_fence: Fence, Scenario::two_leaders(), FORKS;
    without_own_no_op: OwnNoOp, Scenario::leaders(), ARRIVES;
    without_marks_of_entry: MarksOfEntry, Scenario::several_groups(), ORDERS;
    without_lead_epoch: LeadEpoch, Scenario::two_leaders(), FORKS;
    without_steps_down: StepsDown, Scenario::two_leaders(), FORKS_OR_ARRIVES;
    without_learner_no_vote: LearnerNoVote, Scenario::exchanges(), FORKS;
    without_skip: Skip, Scenario::lost_memory(), ARRIVES;
    without_hint: Hint, Scenario::several_groups(), ORDERS;
    without_clock_logged: ClockLogged, Scenario::several_groups(), ARRIVES;
    without_finish: Finish, Scenario::dying_senders(), ARRIVES;
    without_addressed_only: AddressedOnly, Scenario::several_groups(), [GENUINE];
    without_uniform: Uniform, Scenario::several_groups(), ORDERS;
    without_lane_compared: LaneCompared, Scenario::leaders(), FORKS_OR_ARRIVES;
    without_lane_ended: LaneEnded, Scenario::lossy(), FORKS_OR_ARRIVES;
    without_retransmit: Retransmit, Scenario::lossy(), ARRIVES;
    without_all_received: AllReceived, Scenario::lossy(), ARRIVES;
    without_done: Done, Scenario::leaders(), FORKS_OR_ARRIVES;
    without_void: Void, Scenario::several_groups(), FORKS_OR_ARRIVES;
    without_serial: Serial, Scenario::last_numbers(), FORKS_OR_ARRIVES;
    without_memory: Memory, Scenario::lost_memory(), FORKS_OR_ARRIVES;
    without_new_epoch_at_restart: NewEpochAtRestart, Scenario::mixed(), FORKS_OR_ARRIVES;
    without_greatest_log: GreatestLog, Scenario::leaders(), FORKS;
    without_every_configuration: EveryConfiguration, EXCHANGES, FORKS_OR_ARRIVES;
    without_all_answered: AllAnswered, Scenario::lossy(), FORKS_OR_ARRIVES;
    without_greatest_told: GreatestTold, Scenario::lossy(), [REAL_TIME];
    without_watermark: Watermark, Scenario::lossy(), ORDERS;
    without_once: Once, DUPLICATES, [INTEGRITY];
    without_queue_bound: QueueBound, Scenario::receivers(), [BOUNDS];
    without_snapshot_behind: SnapshotBehind, Scenario::mixed(), FORKS_OR_ARRIVES;
    without_state_covers: StateCovers, LISTS, STORES;
    without_parts_of_shards: PartsOfShards, Scenario::store(), STORES;
}

/// Leaders that change all the time, so that new ones get late duplicates of old messages.
const DUPLICATES: Scenario = Scenario {
    depositions: 40,
    several: 900,
    ..Scenario::leaders()
};

/// Receivers with replicas of the store that are taken off lists and join all the time.
const LISTS: Scenario = Scenario {
    evictions: 30,
    joins: 40,
    ..Scenario::store()
};

/// Configurations that follow each other before they are settled.
const EXCHANGES: Scenario = Scenario {
    exchanges: 40,
    hidden_depositions: 10,
    ..Scenario::exchanges()
};

/// Rules that packet tests alone guard.
const UNSEEN: &[Rule] = &[
    Rule::OwnTerm,
    Rule::Incarnation,
    Rule::AckEpoch,
    Rule::MatchesForgotten,
    Rule::HeldBack,
    Rule::Covered,
    Rule::ListVersion,
    Rule::LearnerPromises,
    Rule::NumberCools,
];

/// A bad run is made small, and its command says all of it.
#[test]
fn a_bad_run_is_made_small() {
    let options = Options::new(Scenario::several_groups()).without(Rule::Uniform);
    let simulator = Simulator::new(options).expect("a world");
    let bad = simulator.run(0).expect("a run");
    let small = simulator.shrink(&bad, 60).expect("smaller runs");
    assert_eq!(small.objection(), bad.objection());
    assert!(small.history.events.len() * 2 < bad.history.events.len());
    let again = Simulator::new(small.options.clone()).expect("a world");
    assert_eq!(again.run(small.seed).expect("a run").trace, small.trace);
}

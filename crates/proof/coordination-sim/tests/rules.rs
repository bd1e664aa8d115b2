//! Each of these rules has a checker that misses it: with the rule turned off it objects, with the
//! rule on the same seeds are good.
//!
//! The packet tests of `apps/coordination` alone guard the others:
//!
//! * `predecessor`, `successor`: in one epoch every switch has one list, so that nobody but the
//!   neighbour that it names sends these messages. What the rules keep out is forged or misrouted,
//!   and no node of the simulator forges.
//! * `new-head-behind`: `group_acked` of a switch that was no head is from its founding, from BEGIN,
//!   or from the number at which it closed a copy, none of which is above what its successors have
//!   but the last, and then it is the only member. So without the rule the head says BUSY no later.
//! * `subscription-ends`: entries that a switch sends to a client which no longer watches are not
//!   told, so that they cost messages alone.
//! * `round`: a late COPIED of a round that ended harms if it names the very place at which the next
//!   round stands, and the record there changed between the two rounds and does not change again;
//!   and a copy begins again once in an epoch at most.
//! * `one-promise`: a promise lasts for another switch than the answerer only if that one is a
//!   member (rule `promise`), which handed over and has no lease. What is left is a round of the
//!   tail that comes to the head behind one of the joiner to which it handed over: then the head
//!   forgets its promise to the joiner, which must be left out and cut off within the next 50 ms
//!   to answer by the lease that it still has.
//! * `empty-member`: controller and authority name no member that did not join; `joined` breaks
//!   that, and shows what follows.

use stateplane_coordination_sim::{Options, Report, Rule, Scenario, Simulator};
use stateplane_history::coordination::checkers::{
    LINEARIZABLE, NUMBERS, PREFIX, SERVES, TOKENS, UNDECIDED, WATCHES,
};
use stateplane_world::LinkQuality;

/// Seeds in which a rule that is turned off has to be noticed. The first that shows it ends the
/// search; most rules need fewer than ten, the rarest some sixty.
const SEEDS: u64 = 400;

/// Objections of the world itself: members that differ at the end.
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
    };
}

/// Checkers that see an entry twice, or another entry of a number.
const FORKS: [&str; 6] = [NUMBERS, LINEARIZABLE, PREFIX, TOKENS, UNDECIDED, WORLD];
/// Checkers of answers, or the world, which misses that nothing of ended sessions is left.
const ANSWERS_OR_WORLD: [&str; 5] = [NUMBERS, LINEARIZABLE, TOKENS, UNDECIDED, WORLD];
/// Checkers of answers.
const ANSWERS: [&str; 4] = [NUMBERS, LINEARIZABLE, TOKENS, UNDECIDED];

rules! {
    without_epoch: Epoch, Scenario::zombies(), FORKS;
    without_generation: Generation, Scenario::refounding(), ANSWERS;
    without_exactly_next: ExactlyNext, Scenario::lossy(), FORKS;
    without_ring_bound: RingBound, Scenario::small_ring(), FORKS_OR_STANDSTILL;
    without_closes: Closes, Scenario::small_ring(), FORKS_OR_STANDSTILL;
    without_newest_asked: NewestAsked, Scenario::small_ring(), FORKS_OR_STANDSTILL;
    without_failures_pass: FailuresPass, Scenario::chaos(), ANSWERS;
    without_duplicate: Duplicate, Scenario::lossy(), ANSWERS;
    without_lower_request: LowerRequest, Scenario::lossy(), ANSWERS;
    without_held_number: HeldNumber, Scenario::zombies(), ANSWERS;
    without_higher_epoch: HigherEpoch, Scenario::zombies(), FORKS_OR_STANDSTILL;
    without_head_decides: HeadDecides, Scenario::zombies(), FORKS;
    without_lease: Lease, Scenario::clocks(), ANSWERS;
    without_promise: Promise, Scenario::clocks(), ANSWERS;
    without_era: Era, CHURN, FORKS;
    without_joiner_forgets: JoinerForgets, Scenario::recovery(), FORKS;
    without_outcome_copied: OutcomeCopied, LATE_COPIES, FORKS;
    without_incarnation: Incarnation, LATE_CONFIGURES, FORKS;
    without_newer_stays: NewerStays, LATE_COPIES, FORKS;
    without_floor: Floor, EARLY_HAND_OVERS, FORKS;
    without_kept_copied: KeptCopied, Scenario::zombies(), FORKS;
    without_handed_silent: HandedSilent, Scenario::recovery(), ANSWERS;
    without_joined: Joined, Scenario::recovery(), FORKS_OR_STANDSTILL;
    without_standstill: Standstill, Scenario::cut_members(), [WORLD];
    without_holds_acks: HoldsAcks, Scenario::saturated(), [WORLD];
    without_lane_incarnation: LaneIncarnation, Scenario::sessions(), ANSWERS_OR_WORLD;
    without_lane_begins: LaneBegins, Scenario::quiet(), [SERVES, WORLD];
    without_kept_request: KeptRequest, Scenario::zombies(), [WORLD];
    without_token: Token, Scenario::quiet(), ANSWERS;
    without_token_kept: TokenKept, Scenario::quiet(), ANSWERS;
    without_guard: Guard, Scenario::quiet(), ANSWERS;
    without_answerer_pushes: AnswererPushes, Scenario::watches(), [WATCHES];
    without_compacted: Compacted, Scenario::watches(), [WATCHES];
    without_in_turn: InTurn, Scenario::watches(), [WATCHES];
    without_renewed: Renewed, Scenario::watches(), [WATCHES];
}

/// Copies that come after the entries that they are older than.
const LATE_COPIES: Scenario = Scenario {
    link: LinkQuality {
        straggle: 200,
        straggle_delay: 20_000,
        ..Scenario::recovery().link
    },
    ..Scenario::recovery()
};

/// Switches that leave a group and join it again, over and over.
const CHURN: Scenario = Scenario {
    changes: 60,
    ..Scenario::chaos()
};

/// Configurations that come when the switch that they are for has begun anew.
const LATE_CONFIGURES: Scenario = Scenario {
    control_link: LinkQuality {
        duplicate: 500,
        straggle: 300,
        straggle_delay: 1_500_000,
        ..Scenario::restarts().control_link
    },
    ..Scenario::restarts()
};

/// Hand-overs that come before the entries in front of them.
const EARLY_HAND_OVERS: Scenario = Scenario {
    link: LinkQuality {
        jitter: 4_000,
        straggle: 150,
        straggle_delay: 10_000,
        ..Scenario::recovery().link
    },
    ..Scenario::recovery()
};

/// Checkers of forks, or of groups that serve no more.
const FORKS_OR_STANDSTILL: [&str; 7] = [
    NUMBERS,
    LINEARIZABLE,
    PREFIX,
    TOKENS,
    UNDECIDED,
    WORLD,
    SERVES,
];

/// Clocks beyond the bound of rule 14 let a removed answerer serve old values.
#[test]
fn clocks_beyond_the_bound_are_noticed() {
    let scenario = Scenario {
        drift: 400_000,
        ..Scenario::clocks()
    };
    let mut reports = reports(Options::new(scenario));
    let bad = reports.find(|report| !report.is_good());
    let objection = bad.and_then(|report| report.objection());
    assert!(objection.is_some_and(|of| ANSWERS.contains(&of.as_str())));
}

/// A bad run is made small, and its command says all of it.
#[test]
fn a_bad_run_is_made_small() {
    let options = Options::new(Scenario::lossy()).without(Rule::Duplicate);
    let simulator = Simulator::new(options).expect("a world");
    let bad = simulator.run(0).expect("a run");
    let small = simulator.shrink(&bad, 60).expect("smaller runs");
    assert_eq!(small.objection(), bad.objection());
    assert!(small.history.events.len() * 2 < bad.history.events.len());
    let again = Simulator::new(small.options.clone()).expect("a world");
    assert_eq!(again.run(small.seed).expect("a run").trace, small.trace);
}

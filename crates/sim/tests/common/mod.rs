//! What the tests of this crate share.

use stateplane_history::Checker;
use stateplane_sim::{Options, ProgramKind, Report, Rule, Scenario, Simulator};

/// The reports of some seeds.
pub fn reports(options: Options, seeds: std::ops::Range<u64>) -> impl Iterator<Item = Report> {
    let simulator = Simulator::new(options).unwrap_or_else(|error| panic!("{error}"));
    seeds.map(move |seed| {
        let report = simulator.run(seed);
        report.unwrap_or_else(|error| panic!("{error}"))
    })
}

/// All scenarios but the one that is long.
#[allow(dead_code, reason = "not every test file needs it")]
pub fn ordinary_scenarios() -> impl Iterator<Item = Scenario> {
    let long = Scenario::port_churn().name;
    let all = Scenario::ALL.into_iter();
    all.filter(move |scenario| scenario.name != long)
}

/// Runs the first `seeds` seeds of `program` in `scenario`; none may be bad.
#[allow(dead_code, reason = "not every test file needs it")]
pub fn all_good(program: ProgramKind, scenario: Scenario, seeds: u64) {
    let options = Options::new(program).scenario(scenario);
    for report in reports(options, 0..seeds) {
        assert!(report.is_good(), "{report}");
    }
}

/// Runs `program` in `scenario` without `rule`, seed by seed, until one of
/// `checkers` objects, which it must within `most` seeds; the same seeds must be
/// good with the rule.
#[allow(dead_code, reason = "not every test file needs it")]
pub fn without(
    rule: Rule,
    program: ProgramKind,
    scenario: Scenario,
    checkers: &[Checker],
    most: u64,
) {
    let options = Options::new(program).scenario(scenario);
    let broken = options.clone().without(rule);
    let objection = reports(broken, 0..most)
        .find(|report| checkers.iter().any(|&checker| report.objects(checker)));
    let Some(objection) = objection else {
        panic!("none of {checkers:?} misses {rule} in {most} seeds of {program}");
    };
    println!("{objection}");
    for report in reports(options, 0..objection.seed + 1) {
        assert!(report.is_good(), "{report}");
    }
}

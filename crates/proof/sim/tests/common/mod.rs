//! Helpers of this crate's tests.

use stateplane_sim::{Options, ProgramKind, Report, Rule, Scenario, Simulator};

/// The reports of some seeds.
pub fn reports(options: Options, seeds: std::ops::Range<u64>) -> impl Iterator<Item = Report> {
    let simulator = Simulator::new(options).unwrap_or_else(|error| panic!("{error}"));
    seeds.map(move |seed| {
        let report = simulator.run(seed);
        report.unwrap_or_else(|error| panic!("{error}"))
    })
}

/// The program of that name.
#[allow(dead_code, reason = "not every test file needs it")]
pub fn program(name: &str) -> ProgramKind {
    ProgramKind::from_name(name).unwrap_or_else(|| panic!("{name} is no program"))
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

/// Runs the first `seeds` seeds of `program` in `scenario` without `rule`: one of `checkers`
/// must object to a quarter of them at least, and all must be good with the rule.
///
/// A scenario in which nearly every seed misses the rule keeps doing so when something else
/// makes all seeds run otherwise.
#[allow(dead_code, reason = "not every test file needs it")]
pub fn without(
    rule: Rule,
    program: ProgramKind,
    scenario: Scenario,
    checkers: &[&str],
    seeds: u64,
) {
    let options = Options::new(program).scenario(scenario);
    let mut objections = 0;
    for report in reports(options.clone().without(rule), 0..seeds) {
        if checkers.iter().any(|&checker| report.objects(checker)) {
            if objections == 0 {
                println!("{report}");
            }
            objections += 1;
        }
    }
    println!("{objections} of {seeds} seeds of {program} miss {rule}");
    assert!(
        4 * objections >= seeds,
        "one of {checkers:?} misses {rule} in {objections} of {seeds} seeds of {program}"
    );
    for report in reports(options, 0..seeds) {
        assert!(report.is_good(), "{report}");
    }
}

/// Few flows that change their path often, with short leases that are not recalled, over links with
/// much delay.
#[allow(dead_code, reason = "not every test file needs it")]
pub const LATE: Scenario = Scenario {
    term: 20_000,
    backing: 80_000,
    idle: 100_000,
    recall: false,
    protocol_link: Scenario::echoes().protocol_link,
    ..Scenario::tug_of_war()
};

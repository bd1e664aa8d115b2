//! Runs seeds of a scenario: `seeds SCENARIO FIRST COUNT [RULE|-] [NAME=VALUE…]`. With FIRST in
//! the environment it stops at the first bad seed.

use stateplane_sync_sim::{Options, Rule, Scenario, Simulator};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scenario = Scenario::from_name(&arguments[0]).expect("a scenario");
    let settings = arguments.get(4..).unwrap_or_default();
    let scenario = scenario.with_settings(settings).expect("settings");
    let first: u64 = arguments[1].parse().expect("a seed");
    let count: u64 = arguments[2].parse().expect("a number of seeds");
    let mut options = Options::new(scenario);
    if let Some(rule) = arguments.get(3).and_then(|name| Rule::from_name(name)) {
        options = options.without(rule);
    }
    let simulator = Simulator::new(options).unwrap_or_else(|error| panic!("{error}"));
    let mut bad = 0;
    for seed in first..first + count {
        let report = simulator
            .run(seed)
            .unwrap_or_else(|error| panic!("{error}"));
        if !report.is_good() || count == 1 {
            print!("{report}");
        }
        bad += u64::from(!report.is_good());
        if bad > 0 && std::env::var_os("FIRST").is_some() {
            break;
        }
    }
    println!("{}: {count} seeds, {bad} bad", arguments[0]);
}

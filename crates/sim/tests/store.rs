//! The store alone: model switches speak to it over bad links.

use stateplane_sim::{Options, ProgramKind, Scenario, Simulator};

#[test]
fn seeds() {
    for scenario in Scenario::ALL {
        let options = Options::new(ProgramKind::Model).scenario(scenario);
        let simulator = Simulator::new(options).expect("a world");
        for seed in 0..20 {
            let report = simulator.run(seed).expect("a run");
            println!("{report}");
            assert!(report.is_good(), "{report}");
        }
    }
}

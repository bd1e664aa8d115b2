use crate::{Outcome, properties};

#[test]
fn properties_hold_of_generated_programs() {
    let mut total = Outcome::default();
    for seed in 0..60 {
        match properties::check(seed, 40) {
            Ok(outcome) => total += outcome,
            Err(broken) => panic!("seed {seed}: {broken}"),
        }
    }
    assert_eq!(total.received, 2400);
    // Programs that drop all they get would show little.
    assert!(total.transmitted > 1200, "{total:?}");
}

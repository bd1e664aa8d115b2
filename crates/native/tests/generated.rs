//! Both engines on generated programs and packets.

use stateplane_generate::{Outcome, compare_program, generate, properties::interpreter};
use stateplane_native::{Native, Options};

/// Comparisons spent on making a difference small.
const ATTEMPTS: usize = 2000;

#[test]
fn generated_programs_show_no_difference() {
    let native =
        |program, seed| Native::new(program, Options { seed }).map_err(|error| error.to_string());
    let mut total = Outcome::default();
    for seed in 0..25 {
        let generated = generate(seed, 60);
        let (program, session) = (&generated.program, &generated.session);
        match compare_program(program, session, interpreter, native, ATTEMPTS) {
            Ok(outcome) => total += outcome,
            Err(mismatch) => panic!("seed {seed}: {mismatch}"),
        }
    }
    assert!(total.transmitted > 500, "{total:?}");
}

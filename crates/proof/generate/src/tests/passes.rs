use crate::properties::interpreter;
use crate::{Outcome, compare, generate, source};
use stateplane_ir::passes::{PASSES, optimise};

/// Each pass alone, and all of them, keep what the interpreter does: frames, tables with
/// their counters, registers, counters, meters, digests, log lines and events.
#[test]
fn passes_change_nothing_that_can_be_observed() {
    let mut total = Outcome::default();
    for seed in 0..40 {
        let generated = generate(seed, 30);
        let program = source::compile(&generated.program).unwrap();
        let judge = |name: &str, changed: stateplane_ir::Program| {
            if let Err(errors) = stateplane_ir::verify(&changed) {
                panic!("seed {seed}, {name}: {errors:?}\n{}", generated.program);
            }
            let session = &generated.session;
            let first = interpreter(program.clone(), session.seed).unwrap();
            let second = interpreter(changed, session.seed).unwrap();
            compare(first, second, session)
                .unwrap_or_else(|it| panic!("seed {seed}, {name}: {it:?}\n{}", generated.program))
        };
        for pass in &PASSES {
            let mut changed = program.clone();
            (pass.run)(&mut changed);
            judge(pass.name, changed);
        }
        let mut changed = program.clone();
        optimise(&mut changed);
        total += judge("all", changed);
    }
    // Programs that drop all they get would show little.
    assert!(total.transmitted > 400, "{total:?}");
}

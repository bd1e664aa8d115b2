//! Compares the two engines on generated programs: `compare [FIRST_SEED [PROGRAMS
//! [PACKETS]]]`, packets of each program. Ends at the first difference, which it prints
//! with a program and packets as small as it finds.

use stateplane_generate::{Outcome, compare_program, generate, properties::interpreter};
use stateplane_native::{Native, Options};
use std::process::ExitCode;

/// Comparisons spent on making a difference small.
const ATTEMPTS: usize = 5000;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: u64| {
        let argument = arguments.next();
        argument.map_or(Some(default), |argument| argument.parse().ok())
    };
    let (Some(first), Some(programs), Some(packets)) = (next(0), next(200), next(1000)) else {
        eprintln!("usage: compare [FIRST_SEED [PROGRAMS [PACKETS]]], all of them numbers");
        return ExitCode::from(2);
    };
    let native = |program, seed| {
        Native::new(program, Options::verified(seed)).map_err(|error| error.to_string())
    };
    let mut total = Outcome::default();
    for seed in first..first.saturating_add(programs) {
        let generated = generate(seed, packets as usize);
        let (program, session) = (&generated.program, &generated.session);
        match compare_program(program, session, interpreter, native, ATTEMPTS) {
            Ok(outcome) => total += outcome,
            Err(mismatch) => {
                eprintln!("seed {seed}: {mismatch}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!(
        "{programs} programs: {} frames in, {} frames and {} bytes out, no difference",
        total.received, total.transmitted, total.transmitted_bytes
    );
    ExitCode::SUCCESS
}

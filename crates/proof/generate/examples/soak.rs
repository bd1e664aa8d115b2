//! Checks generated programs: `soak [FIRST_SEED [PROGRAMS [PACKETS]]]`.

use stateplane_generate::{Outcome, arithmetic, properties};
use std::process::ExitCode;

fn main() -> ExitCode {
    stateplane_invariant::panic_in_release();
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse());
    let mut next = |default: u64| match arguments.next() {
        Some(Ok(number)) => Some(number),
        Some(Err(_)) => None,
        None => Some(default),
    };
    let (Some(first), Some(programs), Some(packets)) = (next(0), next(1000), next(200)) else {
        eprintln!("usage: soak [FIRST_SEED [PROGRAMS [PACKETS]]], all of them numbers");
        return ExitCode::from(2);
    };
    let mut total = Outcome::default();
    for seed in first..first.saturating_add(programs) {
        match properties::check(seed, packets as usize) {
            Ok(outcome) => total += outcome,
            Err(broken) => {
                eprintln!("seed {seed}: {broken}");
                return ExitCode::FAILURE;
            }
        }
        if let Err(difference) = arithmetic::check(seed) {
            eprintln!("seed {seed}: {difference}");
            return ExitCode::FAILURE;
        }
    }
    println!(
        "{programs} programs: {} frames in, {} frames and {} bytes out, no property broken",
        total.received, total.transmitted, total.transmitted_bytes
    );
    ExitCode::SUCCESS
}

//! Compares generated programs with the specification: `semantics [FIRST_SEED [PROGRAMS
//! [PACKETS]]]`.

use stateplane_generate::semantics::{self, Judged};
use std::process::ExitCode;

/// Comparisons that making a difference smaller may take.
const ATTEMPTS: usize = 20_000;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse());
    let mut next = |default: u64| match arguments.next() {
        Some(Ok(number)) => Some(number),
        Some(Err(_)) => None,
        None => Some(default),
    };
    let (Some(first), Some(programs), Some(packets)) = (next(0), next(1000), next(12)) else {
        eprintln!("usage: semantics [FIRST_SEED [PROGRAMS [PACKETS]]], all of them numbers");
        return ExitCode::from(2);
    };
    let mut total = Judged::default();
    for seed in first..first.saturating_add(programs) {
        match semantics::check(seed, packets as usize, ATTEMPTS) {
            Ok(judged) => total += judged,
            Err(mismatch) => {
                eprintln!("seed {seed}: {mismatch}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{programs} programs: {total}; no difference");
    ExitCode::SUCCESS
}

//! Runs a target without cargo-fuzz: `mutate TARGET [FIRST_SEED [SEEDS [INPUTS]]]`, from
//! the root of the repository. The seed at work is written to standard error from time to
//! time; an input that panics is written to the file `crash.TARGET`.

use stateplane_fuzz::TARGETS;
use stateplane_fuzz::mutate::Mutator;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let mut next = |default: u64| {
        let argument = arguments.next();
        argument.map_or(Some(default), |argument| argument.parse().ok())
    };
    let target = TARGETS.iter().find(|target| target.name == name);
    let (Some(target), Some(first), Some(seeds), Some(inputs)) =
        (target, next(0), next(100), next(1000))
    else {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("usage: mutate TARGET [FIRST_SEED [SEEDS [INPUTS]]]");
        eprintln!("targets: {}", names.join(", "));
        return ExitCode::from(2);
    };
    let corpus = (target.corpus)(Path::new("."));
    for seed in first..first.saturating_add(seeds) {
        let mut mutator = Mutator::new(&corpus, target.words, seed);
        for _ in 0..inputs {
            let input = mutator.next_input();
            let run = AssertUnwindSafe(|| (target.run)(&input));
            if catch_unwind(run).is_err() {
                let file = format!("crash.{name}");
                match std::fs::write(&file, &input) {
                    Ok(()) => eprintln!("seed {seed}: the input is in {file}"),
                    Err(error) => eprintln!("seed {seed}: {file} cannot be written: {error}"),
                }
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{name}: {} inputs", seeds.saturating_mul(inputs));
    ExitCode::SUCCESS
}

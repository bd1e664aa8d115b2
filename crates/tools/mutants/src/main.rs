//! `make mutants`: breaks the code that keeps state, one rule at a time, and sees that a
//! test objects each time.
//!
//! A [`mutant::Mutant`] is a replacement of one piece of text, kept in a `mutants.toml`
//! beside the tests, with the one test that kills it. Each is applied to a copy of the
//! repository ([`tree`]), its test alone is built there and run ([`cargo`]). A mutant that
//! its test does not object to, that does not apply exactly once, or that does not build,
//! fails the run.
#![allow(clippy::disallowed_methods)]

mod cargo;
mod error;
mod mutant;
mod outcome;
mod part;
mod run;
mod source;
mod tree;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::error::Error;
use crate::part::Part;

/// Breaks the code that keeps state, one rule at a time, and sees that a test objects.
#[derive(Parser)]
struct Arguments {
    /// Only one of some parts of about equal size: 2/4 is the second of four
    #[arg(long, value_name = "K/N")]
    part: Option<Part>,
    /// Only mutants whose names contain one of these, divided by commas
    #[arg(
        long,
        value_name = "TEXT",
        value_delimiter = ',',
        value_parser = clap::builder::NonEmptyStringValueParser::new()
    )]
    only: Vec<String>,
    /// Tells which mutants there are, and runs none
    #[arg(long)]
    list: bool,
    /// Prints the outcomes as JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("stateplane-mutants: {error}");
            ExitCode::from(2)
        }
    }
}

/// True if every mutant was killed.
fn run(arguments: &Arguments) -> Result<bool, Error> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let root = root.canonicalize().map_err(Error::file(&root))?;
    let mut mutants = mutant::read_all(&root)?;
    if !arguments.only.is_empty() {
        let contains = |name: &str| arguments.only.iter().any(|text| name.contains(text));
        mutants.retain(|mutant| contains(&mutant.name));
    }
    run::sort(&mut mutants);
    let mutants = match &arguments.part {
        Some(part) => part.of(&mutants),
        None => &mutants,
    };
    if mutants.is_empty() {
        return Err(Error::NoMutants);
    }
    if arguments.list {
        for mutant in mutants {
            println!("{:40} {}", mutant.name, mutant.breaks);
        }
        return Ok(true);
    }
    let outcomes = run::run(&root, mutants, !arguments.json)?;
    let good = outcomes.iter().all(outcome::Outcome::is_killed);
    if arguments.json {
        let text = outcome::to_json(mutants, &outcomes);
        writeln!(std::io::stdout(), "{text}").map_err(Error::Output)?;
    } else {
        println!("{}", outcome::summary(&outcomes));
    }
    Ok(good)
}

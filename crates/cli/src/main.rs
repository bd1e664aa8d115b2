//! The `stateplane` command: stateful P4 programs that survive their switch.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod exit;
mod store;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Runs stateful P4-16 programs and keeps their state when a switch dies.
#[derive(Parser)]
#[command(version, about, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Store(store::StoreArguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.command {
        Command::Store(arguments) => store::run(&arguments),
    };
    exit::report(outcome)
}

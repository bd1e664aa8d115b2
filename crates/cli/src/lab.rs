//! `stateplane lab`: networks of namespaces and the demonstration.

use crate::exit::Failure;
use std::process::ExitCode;

/// Runs the command.
pub fn run(command: &stateplane_lab::Command) -> ExitCode {
    match command.run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error[{}]: {error}", error.code());
            ExitCode::from(Failure::System as u8)
        }
    }
}

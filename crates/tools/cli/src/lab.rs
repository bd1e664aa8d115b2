//! `stateplane lab`: networks of namespaces and the demonstration.

use crate::exit::Failure;
use stateplane_lab::{Command, LabError};
use std::process::ExitCode;

/// Exit code of a shell for a process that SIGINT ended.
const INTERRUPTED: u8 = 130;

/// Runs the command.
pub fn run(command: &Command) -> ExitCode {
    match command.run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error[{}]: {error}", error.code());
            ExitCode::from(exit_code(&error))
        }
    }
}

/// Exit code for a failure.
pub fn exit_code(error: &LabError) -> u8 {
    match error {
        LabError::Interrupted => INTERRUPTED,
        LabError::File { .. }
        | LabError::Syntax { .. }
        | LabError::Topology { .. }
        | LabError::Unknown { .. }
        | LabError::NoTraffic(_)
        | LabError::Options(_) => Failure::Input as u8,
        _ => Failure::System as u8,
    }
}

//! `stateplane eval`: the experiments of the papers.

use crate::exit::Failure;
use crate::lab;
use stateplane_eval::{Command, EvalError};
use std::process::ExitCode;

/// Runs the command.
pub fn run(command: &Command) -> ExitCode {
    match command.run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error[{}]: {error}", error.code());
            ExitCode::from(match &error {
                EvalError::Lab(error) => lab::exit_code(error),
                EvalError::Options(_)
                | EvalError::File { .. }
                | EvalError::Refused { .. }
                | EvalError::Hazard { .. } => Failure::Input as u8,
                EvalError::Plot(_) | EvalError::Nothing { .. } | EvalError::Controller { .. } => {
                    Failure::System as u8
                }
            })
        }
    }
}

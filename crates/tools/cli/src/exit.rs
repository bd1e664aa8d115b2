//! Exit codes: what a script can tell apart.

use std::fmt::Display;
use std::process::ExitCode;

/// Cause of a command's failure; the number is its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The command ran, and its result is not the expected one (a demo, a simulation).
    Expectation = 1,
    /// A file, option or address is wrong. (clap, too, exits with 2.)
    Input = 2,
    /// The P4 program has errors.
    Program = 3,
    /// The system refused an interface, an address or a permission.
    System = 4,
    /// The condition of a change does not hold.
    Mismatch = 5,
    /// Another holds the lock.
    Taken = 6,
    /// It is not known whether a change was made, or a lock was held.
    Unknown = 7,
}

/// A failure with its message.
#[derive(Debug)]
pub struct CommandError {
    failure: Failure,
    message: String,
}

impl CommandError {
    /// A failure that says `message`.
    pub fn new(failure: Failure, message: impl Display) -> CommandError {
        CommandError {
            failure,
            message: format!("error: {message}"),
        }
    }

    /// A failure with a code to search for.
    pub fn coded(failure: Failure, code: &str, message: impl Display) -> CommandError {
        CommandError {
            failure,
            message: format!("error[{code}]: {message}"),
        }
    }

    /// Text of the message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// A failure that was explained already.
    pub fn explained(failure: Failure) -> CommandError {
        CommandError {
            failure,
            message: String::new(),
        }
    }
}

/// Prints a failure and gives its exit code.
pub fn report(outcome: Result<(), CommandError>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.message.is_empty() {
                eprintln!("{}", error.message);
            }
            ExitCode::from(error.failure as u8)
        }
    }
}

//! Exit codes: what a script can tell apart.

use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;

/// Why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It ran, and its result is not what was expected (a demo, a simulation).
    Expectation = 1,
    /// A file, option or address is wrong. (clap, too, exits with 2.)
    Input = 2,
    /// The P4 program has errors.
    Program = 3,
    /// The system refused: an interface, an address, a right.
    System = 4,
}

/// A failure with its message.
#[derive(Debug)]
pub struct CommandError {
    failure: Failure,
    message: String,
}

impl CommandError {
    /// A failure that says `message`; an empty one says nothing.
    pub fn new(failure: Failure, message: impl Display) -> CommandError {
        CommandError {
            failure,
            message: message.to_string(),
        }
    }

    /// A failure because of `error`, with the errors that caused it.
    pub fn from_error(failure: Failure, error: &dyn Error) -> CommandError {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        CommandError { failure, message }
    }
}

/// Prints a failure and gives its exit code.
pub fn report(outcome: Result<(), CommandError>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.message.is_empty() {
                eprintln!("stateplane: {}", error.message);
            }
            ExitCode::from(error.failure as u8)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn a_failure_tells_its_causes() {
        #[derive(Debug)]
        struct Outer(io::Error);
        impl Display for Outer {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("cannot start")
            }
        }
        impl Error for Outer {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(&self.0)
            }
        }
        let error = CommandError::from_error(Failure::System, &Outer(io::Error::other("no room")));
        assert_eq!(error.message, "cannot start: no room");
    }
}

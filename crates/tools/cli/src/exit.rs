//! Exit codes: what a script can tell apart.

use std::fmt::Display;
use std::process::ExitCode;

/// Makes [`Failure`] and the list of exit codes.
macro_rules! failures {
    ($($(#[doc = $meaning:literal])+ $name:ident = $code:literal,)*) => {
        /// Cause of a command's failure; the number is its exit code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Failure {
            $($(#[doc = $meaning])+ $name = $code,)*
        }

        /// All exit codes with their meanings, one a line.
        pub const CODES: &str = concat!(
            "Exit codes:\n  0   success\n",
            $("  ", stringify!($code), "  ", $($meaning,)+ "\n",)*
            "  130 the command was interrupted (`lab` and `eval`)",
        );
    };
}

failures! {
    /// the command ran, and its result is not the expected one
    Expectation = 1,
    /// an option, an address or a file that was given is wrong: it says so itself, or cannot be read
    Input = 2,
    /// the P4 program has errors
    Program = 3,
    /// the machine, or a process that was asked, refuses: an interface, an address in use, a
    /// permission, a file that cannot be written, a damaged log, a full disk, no answer
    System = 4,
    /// the condition of a change does not hold (`kv`, `view`)
    Mismatch = 5,
    /// another holds the lock (`kv`)
    Taken = 6,
    /// it is not known whether a change was made, a lock was held, or a message was delivered (`kv`,
    /// `view`, `multicast`)
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

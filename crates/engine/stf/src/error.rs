//! Errors in a script, or of the program that it tests.

use stateplane_runtime::StateError;
use stateplane_switch::SwitchError;
use std::fmt;
use thiserror::Error;

/// A script that cannot be read, or a test that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StfError {
    /// Name of the script.
    pub script: String,
    /// The line, from 1.
    pub line: usize,
    /// Cause of the error.
    pub cause: Box<Cause>,
}

/// Why a script cannot be read, or a test failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Cause {
    /// A word that is no command.
    #[error("there is no command `{name}`; the commands are {known}")]
    UnknownCommand {
        /// The word.
        name: String,
        /// All commands.
        known: String,
    },
    /// A script to include that is not there.
    #[error("there is no script `{0}` to include, neither beside this one nor in p4/lib")]
    NoInclude(String),
    /// A command that is written otherwise.
    #[error("write `{0}`")]
    Usage(&'static str),
    /// Text that is no number, or too great.
    #[error("`{text}` is no {what}")]
    Number {
        /// The text.
        text: String,
        /// Expected form.
        what: &'static str,
    },
    /// A character that is no digit of a frame.
    #[error("`{0}` is no hexadecimal digit")]
    Digit(char),
    /// Half a byte.
    #[error("{0} digits are not whole bytes: write two for each")]
    HalfByte(usize),
    /// A port that carries no frames.
    #[error("port {0} is out of range: ports are 0 to 510")]
    Port(u16),
    /// A name that the table or action does not have.
    #[error("{of} has no {kind} `{name}`; it has {names}")]
    UnknownName {
        /// `key` or `parameter`.
        kind: &'static str,
        /// The name.
        name: String,
        /// The table or action.
        of: String,
        /// The names that it has.
        names: String,
    },
    /// A parameter that was not given.
    #[error("action `{action}` needs parameter `{name}` too")]
    MissingParameter {
        /// The action.
        action: String,
        /// The parameter.
        name: String,
    },
    /// A reason for which the switch does not drop.
    #[error("the switch drops for no reason `{name}`; it does for {known}")]
    UnknownReason {
        /// The name.
        name: String,
        /// All reasons.
        known: String,
    },
    /// A multicast node that was not made.
    #[error("there is no multicast node {0}; make it with mc_node_create, which numbers from 0")]
    UnknownNode(usize),
    /// A handle that no entry has.
    #[error("there is no entry `{0}`; name it where it is added: add ... = {0}")]
    UnknownHandle(String),
    /// A frame was expected and none was sent.
    #[error("no frame was sent by port {port}{}", others(sent))]
    Missing {
        /// The port.
        port: u16,
        /// Ports by which frames were sent.
        sent: Vec<u16>,
    },
    /// Another frame was sent.
    #[error(
        "port {port} sent another frame (line {by} caused it)\n  expected {expected}\n  sent     {sent}\n           {marks}"
    )]
    Different {
        /// The port.
        port: u16,
        /// The line that caused the frame.
        by: usize,
        /// The pattern.
        expected: String,
        /// The frame.
        sent: String,
        /// Marks under the digits that differ.
        marks: String,
    },
    /// A frame was sent that was not expected.
    #[error("port {port} sent a frame that nobody expects: {sent}")]
    Unexpected {
        /// The port.
        port: u16,
        /// The frame.
        sent: String,
    },
    /// A register or counter has another value.
    #[error("{what} is {actual}, not {comparison} {wanted}")]
    Value {
        /// Name of the missing thing.
        what: String,
        /// Its value.
        actual: String,
        /// Comparison that failed.
        comparison: &'static str,
        /// Expected number.
        wanted: String,
    },
    /// The program never comes to rest.
    #[error(
        "the switch still has work after {0} calls at one time: does the program recirculate for ever?"
    )]
    Restless(u32),
    /// Time advances past more than a script may make the switch do.
    #[error(
        "more than {0} frames and time-outs while time advances: advance by less, or give packet generators longer periods"
    )]
    TooMuchDue(u64),
    /// The program's tables or registers refuse it.
    #[error(transparent)]
    State(#[from] StateError),
    /// The switch refuses it.
    #[error(transparent)]
    Switch(#[from] SwitchError),
}

impl StfError {
    /// Stable code, `STF` and three digits; that of the inner error if there is one.
    pub fn code(&self) -> &'static str {
        match &*self.cause {
            Cause::UnknownCommand { .. } => "STF001",
            Cause::Usage(_) => "STF002",
            Cause::Number { .. } => "STF003",
            Cause::Digit(_) => "STF004",
            Cause::HalfByte(_) => "STF005",
            Cause::Port(_) => "STF006",
            Cause::UnknownName { .. } => "STF007",
            Cause::MissingParameter { .. } => "STF008",
            Cause::UnknownReason { .. } => "STF009",
            Cause::UnknownNode(_) => "STF010",
            Cause::Missing { .. } => "STF011",
            Cause::Different { .. } => "STF012",
            Cause::Unexpected { .. } => "STF013",
            Cause::Value { .. } => "STF014",
            Cause::Restless(_) => "STF015",
            Cause::UnknownHandle(_) => "STF016",
            Cause::NoInclude(_) => "STF018",
            Cause::TooMuchDue(_) => "STF017",
            Cause::State(error) => error.code(),
            Cause::Switch(error) => error.code(),
        }
    }
}

impl fmt::Display for StfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.script, self.line, self.cause)
    }
}

impl std::error::Error for StfError {}

fn others(sent: &[u16]) -> String {
    if sent.is_empty() {
        return String::new();
    }
    let ports: Vec<String> = sent.iter().map(ToString::to_string).collect();
    format!(
        "; frames that nobody expected yet were sent by {}",
        ports.join(", ")
    )
}

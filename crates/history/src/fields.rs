//! Histories as text: words of a line, `name=value`, what can be wrong with them, and what is
//! expected of a history.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Mistake in a text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TextError {
    /// A line that begins with neither a time nor a word that may begin one.
    #[error("line {line}: HI001: `{word}` is no time in µs, {words}")]
    Start {
        /// Counted from 1.
        line: usize,
        /// The word there.
        word: String,
        /// Words that may begin a line.
        words: &'static str,
    },
    /// An event of no known name.
    #[error("line {line}: HI002: no event is named `{word}`; the names are {names}")]
    Event {
        /// Counted from 1.
        line: usize,
        /// The word there.
        word: String,
        /// Names of the system's events.
        names: &'static str,
    },
    /// A word that is not `name=value`.
    #[error("line {line}: HI003: `{word}` is not of the form name=value")]
    Form {
        /// Counted from 1.
        line: usize,
        /// The word there.
        word: String,
    },
    /// A field that the event needs.
    #[error("line {line}: HI004: the field `{field}` is missing")]
    Missing {
        /// Counted from 1.
        line: usize,
        /// Its name.
        field: &'static str,
    },
    /// A field that the event does not have, or has already.
    #[error("line {line}: HI005: the field `{field}` is given twice or does not belong here")]
    Extra {
        /// Counted from 1.
        line: usize,
        /// Its name.
        field: String,
    },
    /// A value that its field cannot have.
    #[error("line {line}: HI006: `{value}` is no {what}, which `{field}` must be")]
    Value {
        /// Counted from 1.
        line: usize,
        /// Name of the field.
        field: String,
        /// The value there.
        value: String,
        /// The value that should stand there.
        what: &'static str,
    },
    /// An event before the one above it.
    #[error("line {line}: HI007: time {at} is before {before} of the event above; sort the events")]
    Order {
        /// Counted from 1.
        line: usize,
        /// Time of the line.
        at: u64,
        /// Time of the event before it.
        before: u64,
    },
    /// An expectation that cannot be read, or a second one.
    #[error(
        "line {line}: HI008: write one line `expect accepted` or `expect rejected by CHECKER: REASON`, where CHECKER is {checkers}"
    )]
    Expectation {
        /// Counted from 1.
        line: usize,
        /// Names of the system's checkers.
        checkers: String,
    },
    /// An application that nobody knows, or a second one.
    #[error("line {line}: HI010: write one line `application NAME`, where NAME is one of {known}")]
    Application {
        /// Counted from 1.
        line: usize,
        /// The names, divided by commas.
        known: String,
    },
    /// A pool whose first port is above its last.
    #[error("line {line}: HI009: the pool has no port: {first} is above {last}")]
    EmptyPool {
        /// Counted from 1.
        line: usize,
        /// First port.
        first: u16,
        /// Last port.
        last: u16,
    },
}

/// The fields of a line that are not read yet.
pub(crate) struct Fields<'a> {
    pub(crate) line: usize,
    fields: Vec<(&'a str, &'a str)>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(
        line: usize,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<Self, TextError> {
        let mut fields: Vec<(&str, &str)> = Vec::new();
        for word in words {
            let Some((name, value)) = word.split_once('=') else {
                let word = word.into();
                return Err(TextError::Form { line, word });
            };
            if fields.iter().any(|(given, _)| *given == name) {
                let field = name.into();
                return Err(TextError::Extra { line, field });
            }
            fields.push((name, value));
        }
        Ok(Self { line, fields })
    }

    pub(crate) fn take_optional<T>(
        &mut self,
        field: &'static str,
        what: &'static str,
        parse: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<Option<T>, TextError> {
        let place = self.fields.iter().position(|(name, _)| *name == field);
        let Some(place) = place else { return Ok(None) };
        let (_, value) = self.fields.remove(place);
        let parsed = parse(value).ok_or_else(|| TextError::Value {
            line: self.line,
            field: field.into(),
            value: value.into(),
            what,
        })?;
        Ok(Some(parsed))
    }

    pub(crate) fn take<T>(
        &mut self,
        field: &'static str,
        what: &'static str,
        parse: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<T, TextError> {
        let line = self.line;
        self.take_optional(field, what, parse)?
            .ok_or(TextError::Missing { line, field })
    }

    pub(crate) fn number<T: FromStr>(&mut self, field: &'static str) -> Result<T, TextError> {
        self.take(field, "number in range", |value| value.parse().ok())
    }

    pub(crate) fn finish(self) -> Result<(), TextError> {
        match self.fields.first() {
            None => Ok(()),
            Some((name, _)) => Err(TextError::Extra {
                line: self.line,
                field: (*name).into(),
            }),
        }
    }
}

/// Verdict that the author of a history expects of its checkers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// No checker objects.
    Accepted,
    /// This checker objects.
    Rejected {
        /// Its name.
        by: &'static str,
        /// Why it should, for the reader.
        because: String,
    },
}

impl Expectation {
    /// Reads what stands behind `expect`; `named` knows the checkers.
    pub(crate) fn read(
        text: &str,
        named: impl FnOnce(&str) -> Option<&'static str>,
    ) -> Option<Self> {
        if text == "accepted" {
            return Some(Self::Accepted);
        }
        let (checker, because) = text.strip_prefix("rejected by ")?.split_once(':')?;
        Some(Self::Rejected {
            by: named(checker.trim())?,
            because: because.trim().into(),
        })
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted => writeln!(f, "expect accepted"),
            Self::Rejected { by, because } => writeln!(f, "expect rejected by {by}: {because}"),
        }
    }
}

//! Words of a line: `name=value`, and what can be wrong with them.

use crate::replication::event::{Endpoint, Flow, Occupant, Protocol};
use std::str::FromStr;
use thiserror::Error;

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TextError {
    /// A line that begins with neither a time nor `expect`, `pool` or `application`.
    #[error("line {line}: HI001: `{word}` is no time in µs, `expect`, `pool` or `application`")]
    Start {
        /// Counted from 1.
        line: usize,
        /// What stands there.
        word: String,
    },
    /// An event of no known name.
    #[error("line {line}: HI002: no event is named `{word}`; the names are {EVENT_NAMES}")]
    Event {
        /// Counted from 1.
        line: usize,
        /// What stands there.
        word: String,
    },
    /// A word that is not `name=value`.
    #[error("line {line}: HI003: `{word}` is not of the form name=value")]
    Form {
        /// Counted from 1.
        line: usize,
        /// What stands there.
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
        /// What stands there.
        value: String,
        /// What should stand there.
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
        "line {line}: HI008: write one line `expect accepted` or `expect rejected by CHECKER: REASON`, where CHECKER is outputs, counter, application, nat, single-owner, durable, pool or progress"
    )]
    Expectation {
        /// Counted from 1.
        line: usize,
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

const EVENT_NAMES: &str = "input, output, granted, accepted, used, ended, died, translated, taken, freed, mapped, remaining and kept";

/// The fields of a line that are not read yet.
pub(super) struct Fields<'a> {
    pub(super) line: usize,
    fields: Vec<(&'a str, &'a str)>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(
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

    pub(super) fn take_optional<T>(
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

    pub(super) fn take<T>(
        &mut self,
        field: &'static str,
        what: &'static str,
        parse: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<T, TextError> {
        let line = self.line;
        self.take_optional(field, what, parse)?
            .ok_or(TextError::Missing { line, field })
    }

    pub(super) fn number<T: FromStr>(&mut self, field: &'static str) -> Result<T, TextError> {
        self.take(field, "number in range", |value| value.parse().ok())
    }

    pub(super) fn flow(&mut self) -> Result<Flow, TextError> {
        self.take("flow", "name", |value| {
            (!value.is_empty()).then(|| Flow::new(value))
        })
    }

    pub(super) fn endpoint(&mut self, field: &'static str) -> Result<Endpoint, TextError> {
        self.take(field, "endpoint like 10.0.0.1:4000/tcp", endpoint)
    }

    pub(super) fn occupant(&mut self) -> Result<Occupant, TextError> {
        Ok(Occupant {
            switch: self.number("switch")?,
            incarnation: self.number("start")?,
        })
    }

    pub(super) fn shared(&mut self) -> Result<bool, TextError> {
        self.take("lease", "`shared` or `exclusive`", |value| match value {
            "shared" => Some(true),
            "exclusive" => Some(false),
            _ => None,
        })
    }

    pub(super) fn protocol(&mut self) -> Result<Protocol, TextError> {
        self.take("protocol", "`tcp`, `udp` or `icmp`", protocol)
    }

    pub(super) fn finish(self) -> Result<(), TextError> {
        match self.fields.first() {
            None => Ok(()),
            Some((name, _)) => Err(TextError::Extra {
                line: self.line,
                field: (*name).into(),
            }),
        }
    }
}

fn protocol(word: &str) -> Option<Protocol> {
    match word {
        "tcp" => Some(Protocol::Tcp),
        "udp" => Some(Protocol::Udp),
        "icmp" => Some(Protocol::Icmp),
        _ => None,
    }
}

fn endpoint(word: &str) -> Option<Endpoint> {
    let (rest, of) = word.split_once('/')?;
    let (address, port) = rest.split_once(':')?;
    Some(Endpoint {
        address: address.parse().ok()?,
        port: port.parse().ok()?,
        protocol: protocol(of)?,
    })
}

//! Histories as text, one event a line.
//!
//! ```text
//! # A comment.
//! expect rejected by durable: the tail did not have the state
//! pool address=203.0.113.1 protocol=tcp first=1024 last=1031
//! 100 input switch=1 flow=a packet=7
//! 100 used switch=1 start=9 flow=a epoch=4
//! 140 output switch=1 flow=a packet=7 value=3 sequence=3 held=3,3,2
//! ```
//!
//! An event line is the time in µs, the event's name and its fields in any order; `remote` is
//! left out of a mapping that serves all remote endpoints;
//! `held=-` stands for a replica without a record. `expect`, `pool` and `application`
//! lines come anywhere; an expectation is for those who keep histories as tests.

mod fields;
mod write;

use crate::fields::{Expectation, Fields, TextError};
use crate::replication::application::Application;
use crate::replication::checkers;
use crate::replication::event::{
    Direction, Durability, Event, EventKind, History, PoolRange, Released, StateEvent,
};
use core::net::Ipv4Addr;
use fields::{EVENT_NAMES, WORDS};
use std::fmt;

/// A history with what is expected of it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Document {
    /// The expectation, if there is one.
    pub expectation: Option<Expectation>,
    /// The history.
    pub history: History,
}

fn held(list: &str) -> Option<Vec<Option<u32>>> {
    let one = |word: &str| match word {
        "-" => Some(None),
        number => number.parse().ok().map(Some),
    };
    list.split(',').map(one).collect()
}

fn durability(fields: &mut Fields<'_>) -> Result<Option<Durability>, TextError> {
    let number = |value: &str| value.parse().ok();
    let sequence = fields.take_optional("sequence", "number in range", number)?;
    let what = "list of numbers or `-`, divided by commas";
    let held = fields.take_optional("held", what, held)?;
    let missing = |field| TextError::Missing {
        line: fields.line,
        field,
    };
    match (sequence, held) {
        (None, None) => Ok(None),
        (Some(sequence), Some(held)) => Ok(Some(Durability { sequence, held })),
        (None, Some(_)) => Err(missing("sequence")),
        (Some(_), None) => Err(missing("held")),
    }
}

fn event_kind(name: &str, fields: &mut Fields<'_>) -> Result<EventKind, TextError> {
    Ok(match name {
        "input" => EventKind::Call {
            node: fields.number("switch")?,
            object: fields.flow()?,
            operation: fields.number("packet")?,
            request: fields.take_optional("request", "number in range", |v| v.parse().ok())?,
        },
        "output" => EventKind::Return {
            node: fields.number("switch")?,
            object: fields.flow()?,
            operation: fields.number("packet")?,
            response: Released {
                value: fields.take_optional("value", "number in range", |v| v.parse().ok())?,
                durability: durability(fields)?,
            },
        },
        "died" => EventKind::Died {
            node: fields.number("switch")?,
        },
        name => EventKind::Of(state_event(name, fields)?),
    })
}

fn state_event(name: &str, fields: &mut Fields<'_>) -> Result<StateEvent, TextError> {
    Ok(match name {
        "granted" => StateEvent::Granted {
            to: fields.occupant()?,
            flow: fields.flow()?,
            epoch: fields.number("epoch")?,
            shared: fields.shared()?,
        },
        "accepted" => StateEvent::Accepted {
            by: fields.occupant()?,
            flow: fields.flow()?,
            epoch: fields.number("epoch")?,
            shared: fields.shared()?,
            until: fields.number("until")?,
        },
        "used" => StateEvent::Used {
            by: fields.occupant()?,
            flow: fields.flow()?,
            epoch: fields.number("epoch")?,
        },
        "ended" => StateEvent::Ended {
            by: fields.occupant()?,
            flow: fields.flow()?,
        },
        "translated" => StateEvent::Translated {
            switch: fields.number("switch")?,
            direction: fields.take("direction", "`out` or `in`", |value| match value {
                "out" => Some(Direction::Outbound),
                "in" => Some(Direction::Inbound),
                _ => None,
            })?,
            inside: fields.endpoint("inside")?,
            public: fields.endpoint("public")?,
            remote: fields.remote()?,
        },
        "taken" => StateEvent::Taken {
            replica: fields.number("replica")?,
            inside: fields.endpoint("inside")?,
            public: fields.endpoint("public")?,
            remote: fields.remote()?,
        },
        "freed" => StateEvent::Freed {
            replica: fields.number("replica")?,
            public: fields.endpoint("public")?,
            remote: fields.remote()?,
        },
        "mapped" => StateEvent::Mapped {
            replica: fields.number("replica")?,
            inside: fields.endpoint("inside")?,
            public: fields.endpoint("public")?,
            remote: fields.remote()?,
        },
        "remaining" => StateEvent::Remaining {
            replica: fields.number("replica")?,
            address: fields.take("address", "IPv4 address", |v| v.parse().ok())?,
            protocol: fields.protocol()?,
            free: fields.number("free")?,
        },
        "kept" => StateEvent::Kept {
            switch: fields.number("switch")?,
            flow: fields.flow()?,
            sequence: fields.number("sequence")?,
            acknowledged: fields.number("acknowledged")?,
        },
        word => {
            return Err(TextError::Event {
                line: fields.line,
                word: word.into(),
                names: EVENT_NAMES,
            });
        }
    })
}

fn pool(fields: &mut Fields<'_>) -> Result<PoolRange, TextError> {
    let pool = PoolRange {
        address: fields.take("address", "IPv4 address", |v| v.parse::<Ipv4Addr>().ok())?,
        protocol: fields.protocol()?,
        first: fields.number("first")?,
        last: fields.number("last")?,
    };
    if pool.first > pool.last {
        return Err(TextError::EmptyPool {
            line: fields.line,
            first: pool.first,
            last: pool.last,
        });
    }
    Ok(pool)
}

impl Document {
    /// Reads a text, which may name one of the applications `known`.
    ///
    /// # Errors
    ///
    /// [`TextError`], with the line.
    pub fn read(text: &str, known: &[Application]) -> Result<Self, TextError> {
        let mut document = Self::default();
        let mut before = 0;
        for (index, content) in text.lines().enumerate() {
            let line = index + 1;
            let content = content.trim();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let mut words = content.split_whitespace();
            let first = words.next().unwrap_or_default();
            if first == "expect" {
                let rest = content[first.len()..].trim();
                let expected = Expectation::read(rest, checkers::named);
                let expected = expected.filter(|_| document.expectation.is_none());
                let checkers = checkers::names;
                document.expectation = Some(expected.ok_or_else(|| TextError::Expectation {
                    line,
                    checkers: checkers(),
                })?);
                continue;
            }
            if first == "pool" {
                let mut fields = Fields::new(line, words)?;
                document.history.system.pools.push(pool(&mut fields)?);
                fields.finish()?;
                continue;
            }
            if first == "application" {
                let name = content[first.len()..].trim();
                let named = known.iter().find(|of| of.name() == name);
                let named = named.filter(|_| document.history.system.application.is_none());
                let application = *named.ok_or_else(|| TextError::Application {
                    line,
                    known: known
                        .iter()
                        .map(|of| of.name())
                        .collect::<Vec<_>>()
                        .join(", "),
                })?;
                document.history.system.application = Some(application);
                continue;
            }
            let at = first.parse().map_err(|_| TextError::Start {
                line,
                word: first.into(),
                words: WORDS,
            })?;
            if at < before {
                return Err(TextError::Order { line, at, before });
            }
            before = at;
            let name = words.next().unwrap_or_default();
            let mut fields = Fields::new(line, words)?;
            let kind = event_kind(name, &mut fields)?;
            fields.finish()?;
            document.history.events.push(Event { at, kind });
        }
        Ok(document)
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(expectation) = &self.expectation {
            write!(f, "{expectation}")?;
        }
        write!(f, "{}", self.history)
    }
}

#[cfg(test)]
mod tests;

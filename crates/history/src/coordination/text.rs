//! Histories as text, one event a line.
//!
//! ```text
//! # A comment.
//! expect rejected by linearizable: the read is behind the write
//! serves groups=a,b within=2000000
//! 100 call client=9 group=a operation=1 ask=write key=k value=0a condition=absent until=900000
//! 120 return client=9 group=a operation=1 outcome=done number=1:1 kind=value record=1:1
//! 130 call client=9 group=a operation=2 ask=read key=k
//! 150 return client=9 group=a operation=2 outcome=absent number=1:1 kind=none
//! 160 whole
//! ```
//!
//! An event line is the time in µs, the event's name and its fields in any order. Numbers are
//! generation and count, values hexadecimal. `expect` and `serves` lines come anywhere; an
//! expectation is for those who keep histories as tests.

mod write;

use crate::coordination::checkers;
use crate::coordination::event::{
    Asked, Condition, Coordination, CoordinationEvent, Event, EventKind, Guard, History, Holder,
    Kind, Number, Outcome, Part, Request, Response, Scanned, Seen, Told,
};
use crate::event::Object;
use crate::fields::{Expectation, Fields, TextError};
use std::fmt;
use std::sync::Arc;

const EVENT_NAMES: &str = "call, return, died, unknown, adopted, applied, told, scanned and whole";
const WORDS: &str = "`expect` or `serves`";

/// A history with what is expected of it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Document {
    /// The expectation, if there is one.
    pub expectation: Option<Expectation>,
    /// The history.
    pub history: History,
}

fn bytes(text: &str) -> Option<Arc<[u8]>> {
    let digits = text.is_ascii() && text.len().is_multiple_of(2);
    let pairs = (0..text.len() / 2).map(|at| text.get(2 * at..2 * at + 2));
    let bytes = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok());
    digits.then(|| bytes.collect::<Option<_>>())?
}

fn condition(text: &str) -> Option<Condition> {
    Some(match text.split_once(':') {
        None => match text {
            "absent" => Condition::Absent,
            "present" => Condition::Present,
            _ => return None,
        },
        Some(("number", number)) => Condition::Number(Number::read(number)?),
        Some(("token", number)) => Condition::Token(Number::read(number)?),
        Some(("value", value)) => Condition::Value(bytes(value)?),
        Some(_) => return None,
    })
}

const CONDITION: &str = "condition like absent, present, number:1:5, value:0a or token:1:5";

fn name(text: &str) -> Option<Object> {
    (!text.is_empty()).then(|| Object::new(text))
}

impl Fields<'_> {
    fn object(&mut self, field: &'static str) -> Result<Object, TextError> {
        self.take(field, "name", name)
    }

    fn entry(&mut self, field: &'static str) -> Result<Option<u64>, TextError> {
        self.take_optional(field, "number like 1:5", Number::read)
    }

    fn condition(&mut self, field: &'static str) -> Result<Condition, TextError> {
        let condition = self.take_optional(field, CONDITION, condition)?;
        Ok(condition.unwrap_or(Condition::None))
    }

    fn request(&mut self) -> Result<Request, TextError> {
        let what = "`read`, `write`, `delete`, `acquire`, `wait` or `release`";
        let asked = self.take("ask", what, |word| {
            ["read", "write", "delete", "acquire", "wait", "release"]
                .into_iter()
                .find(|known| *known == word)
        })?;
        let asked = match asked {
            "read" => Asked::Read,
            "write" => {
                let value = self.take("value", "hexadecimal", bytes)?;
                Asked::Write(value, self.condition("condition")?)
            }
            "delete" => Asked::Delete(self.condition("condition")?),
            "release" => Asked::Release,
            acquires => Asked::Acquire(acquires == "wait"),
        };
        let guard = self.take_optional("guard", "name", name)?;
        let guard = match guard {
            None => None,
            Some(key) => Some(Guard {
                key,
                condition: self.take("if", CONDITION, condition)?,
            }),
        };
        let number = |value: &str| value.parse().ok();
        let of = |found: Option<u32>| found.unwrap_or(0);
        Ok(Request {
            key: self.object("key")?,
            asked,
            token: self.entry("token")?.unwrap_or(0),
            guard,
            holder: Holder {
                session: of(self.take_optional("session", "number in range", number)?),
                handle: of(self.take_optional("handle", "number in range", number)?),
            },
            until: self.take_optional("until", "time in µs", |value| value.parse().ok())?,
        })
    }

    fn seen(&mut self) -> Result<Option<Seen>, TextError> {
        let kind = self.take_optional("kind", "kind of a record", Kind::from_name)?;
        let Some(kind) = kind else {
            return Ok(None);
        };
        Ok(Some(Seen {
            kind,
            number: self.entry("record")?.unwrap_or(0),
            value: self.take_optional("value", "hexadecimal", bytes)?,
        }))
    }

    fn response(&mut self) -> Result<Response, TextError> {
        let outcome = self.take("outcome", "outcome", Outcome::from_name)?;
        let seen = self.seen()?;
        Ok(Response {
            outcome,
            number: self.entry("number")?.unwrap_or(0),
            token: self.entry("token")?,
            seen,
        })
    }
}

fn event_kind(event: &str, fields: &mut Fields<'_>) -> Result<EventKind, TextError> {
    Ok(match event {
        "call" => EventKind::Call {
            node: fields.number("client")?,
            object: fields.object("group")?,
            operation: fields.number("operation")?,
            request: fields.request()?,
        },
        "return" => EventKind::Return {
            node: fields.number("client")?,
            object: fields.object("group")?,
            operation: fields.number("operation")?,
            response: fields.response()?,
        },
        "died" => EventKind::Died {
            node: fields.number("node")?,
        },
        "unknown" => EventKind::Of(CoordinationEvent::Unknown {
            node: fields.number("client")?,
            group: fields.object("group")?,
            operation: fields.number("operation")?,
            before: fields
                .take_optional("before", "number of a generation", |word| word.parse().ok())?,
        }),
        "adopted" => EventKind::Of(CoordinationEvent::Adopted {
            switch: fields.number("switch")?,
            group: fields.object("group")?,
            epoch: fields.number("epoch")?,
            part: fields.take("part", "`member`, `founder` or `joiner`", Part::from_name)?,
        }),
        "applied" => EventKind::Of(CoordinationEvent::Applied {
            switch: fields.number("switch")?,
            group: fields.object("group")?,
            number: fields.take("number", "number like 1:5", Number::read)?,
            digest: fields.take("digest", "hexadecimal number", |word| {
                u64::from_str_radix(word, 16).ok()
            })?,
        }),
        "told" => EventKind::Of(CoordinationEvent::Told {
            node: fields.number("client")?,
            group: fields.object("group")?,
            told: fields.take(
                "what",
                "`begin`, `put`, `deleted`, `compacted` or `end`",
                Told::from_name,
            )?,
            number: fields.take("number", "number like 1:5", Number::read)?,
            key: fields.take_optional("key", "name", name)?,
            value: fields.take_optional("value", "hexadecimal", bytes)?,
        }),
        "scanned" => EventKind::Of(CoordinationEvent::Scanned {
            node: fields.number("client")?,
            group: fields.object("group")?,
            list: fields.number("list")?,
            scanned: fields.take(
                "what",
                "`begin`, `record`, `nothing` or `end`",
                Scanned::from_name,
            )?,
            number: fields.entry("number")?.unwrap_or(0),
            key: fields.take_optional("key", "name", name)?,
            seen: fields.seen()?,
        }),
        "whole" => EventKind::Of(CoordinationEvent::Whole),
        word => {
            return Err(TextError::Event {
                line: fields.line,
                word: word.into(),
                names: EVENT_NAMES,
            });
        }
    })
}

fn serves(fields: &mut Fields<'_>) -> Result<Coordination, TextError> {
    let groups = fields.take("groups", "list of names, divided by commas", |list| {
        list.split(',').map(name).collect()
    })?;
    Ok(Coordination {
        groups,
        serves_within: fields.number("within")?,
    })
}

impl Document {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// [`TextError`], with the line.
    pub fn read(text: &str) -> Result<Self, TextError> {
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
                document.expectation = Some(expected.ok_or_else(|| TextError::Expectation {
                    line,
                    checkers: checkers::NAMES.join(", "),
                })?);
                continue;
            }
            if first == "serves" {
                let mut fields = Fields::new(line, words)?;
                document.history.system = serves(&mut fields)?;
                fields.finish()?;
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

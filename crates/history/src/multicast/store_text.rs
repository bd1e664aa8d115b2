//! Operations of the store, and their answers, as fields of a line.
//!
//! ```text
//! 10 call node=9 operation=1 request=swap key=lamp value=off
//! 20 executed node=5 group=0 operation=1 at=7:0
//! 30 return node=9 operation=1 outcome=decided done=yes values=-
//! ```
//!
//! A value that is missing is `-`, or left out where it has a field of its own.

use super::store::{Request, Response};
use crate::event::Object;
use crate::fields::{Fields, TextError};
use std::fmt;

/// The store, which is the object of all calls.
pub(super) const STORE: &str = "store";

const REQUESTS: &str = "`get`, `put`, `delete`, `swap`, `move` or `read`";
const OUTCOMES: &str = "`values`, `done`, `decided` or `refused`";
/// A value that is missing.
const NONE: &str = "-";

impl Fields<'_> {
    fn word(&mut self, field: &'static str) -> Result<Object, TextError> {
        self.take(field, "word", |word| Some(Object::new(word)))
    }

    fn optional_word(&mut self, field: &'static str) -> Result<Option<Object>, TextError> {
        self.take_optional(field, "word", |word| Some(Object::new(word)))
    }

    fn words(&mut self) -> Result<Vec<Option<Object>>, TextError> {
        self.take("values", "list of words, divided by commas", |words| {
            let values = words.split(',');
            let values = values.map(|word| (word != NONE).then(|| Object::new(word)));
            Some(values.collect())
        })
    }

    /// Reads a request.
    pub(super) fn store_request(&mut self) -> Result<Request, TextError> {
        let name = self.take("request", REQUESTS, |word| {
            let known = ["get", "put", "delete", "swap", "move", "read"];
            known.into_iter().find(|name| *name == word)
        })?;
        Ok(match name {
            "get" => Request::Get {
                key: self.word("key")?,
            },
            "put" => Request::Put {
                key: self.word("key")?,
                value: self.word("value")?,
            },
            "delete" => Request::Delete {
                key: self.word("key")?,
            },
            "swap" => Request::Swap {
                key: self.word("key")?,
                expected: self.optional_word("expected")?,
                value: self.optional_word("value")?,
            },
            "move" => Request::Move {
                from: self.word("from")?,
                to: self.word("to")?,
            },
            _ => Request::Read {
                keys: self.take("keys", "list of words, divided by commas", |words| {
                    Some(words.split(',').map(Object::new).collect())
                })?,
            },
        })
    }

    /// Reads a response.
    pub(super) fn store_response(&mut self) -> Result<Response, TextError> {
        let name = self.take("outcome", OUTCOMES, |word| {
            let known = ["values", "done", "decided", "refused"];
            known.into_iter().find(|name| *name == word)
        })?;
        Ok(match name {
            "values" => Response::Values {
                values: self.words()?,
            },
            "done" => Response::Done,
            "decided" => Response::Decided {
                done: self.take("done", "`yes` or `no`", |word| match word {
                    "yes" => Some(true),
                    "no" => Some(false),
                    _ => None,
                })?,
                values: self.words()?,
            },
            _ => Response::Refused,
        })
    }
}

struct List<'a>(&'a [Option<Object>]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, value) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let value = value.as_ref().map_or(NONE, |value| &value.0);
            write!(f, "{comma}{value}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get { key } => write!(f, "request=get key={key}"),
            Self::Put { key, value } => write!(f, "request=put key={key} value={value}"),
            Self::Delete { key } => write!(f, "request=delete key={key}"),
            Self::Swap {
                key,
                expected,
                value,
            } => {
                write!(f, "request=swap key={key}")?;
                for (name, value) in [("expected", expected), ("value", value)] {
                    if let Some(value) = value {
                        write!(f, " {name}={value}")?;
                    }
                }
                Ok(())
            }
            Self::Move { from, to } => write!(f, "request=move from={from} to={to}"),
            Self::Read { keys } => {
                let keys: Vec<&str> = keys.iter().map(|key| &*key.0).collect();
                write!(f, "request=read keys={}", keys.join(","))
            }
        }
    }
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Values { values } => write!(f, "outcome=values values={}", List(values)),
            Self::Done => f.write_str("outcome=done"),
            Self::Decided { done, values } => {
                let done = if *done { "yes" } else { "no" };
                write!(f, "outcome=decided done={done} values={}", List(values))
            }
            Self::Refused => f.write_str("outcome=refused"),
        }
    }
}

//! Histories as text, one event a line.
//!
//! ```text
//! # A comment.
//! expect rejected by prefix: the second receiver has another order
//! promises within=1000000 queue=8 window=64
//! 10 joined node=5 group=0
//! 10 joined node=6 group=0
//! 15 joined node=7 group=0 after=5
//! 20 sent node=9 message=1 to=0,2 digest=af
//! 30 committed switch=1 group=0 index=4 term=1 time=7 message=1
//! 40 delivered node=5 group=0 message=1 at=7:0 digest=af
//! 50 completed node=9 message=1
//! 60 whole
//! ```
//!
//! An event line is the time in µs, the event's name and its fields in any order. `expect` and
//! `promises` lines come anywhere; an expectation is for those who keep histories as tests.

use super::checkers;
use super::event::{Entry, Event, EventKind, Filled, Final, History, Multicast, MulticastEvent};
use super::store_text::STORE;
use crate::event::Object;
use crate::fields::{Expectation, Fields, TextError};
use std::fmt;

const EVENT_NAMES: &str = "sent, completed, refused, joined, left, delivered, took, committed, \
                           call, executed, return, fills, died and whole";
const WORDS: &str = "`expect` or `promises`";

/// A history with what is expected of it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Document {
    /// The expectation, if there is one.
    pub expectation: Option<Expectation>,
    /// The history.
    pub history: History,
}

/// The map of the groups in a list.
fn map(list: &str) -> Option<u32> {
    let bits = list.split(',').map(|group| {
        let group: u32 = group.parse().ok()?;
        1u32.checked_shl(group)
    });
    bits.reduce(|one, other| Some(one? | other?))?
}

impl Fields<'_> {
    fn digest(&mut self) -> Result<u64, TextError> {
        self.take("digest", "hexadecimal number", |word| {
            u64::from_str_radix(word, 16).ok()
        })
    }
}

fn event_kind(event: &str, fields: &mut Fields<'_>) -> Result<EventKind, TextError> {
    Ok(EventKind::Of(match event {
        "sent" => MulticastEvent::Sent {
            node: fields.number("node")?,
            message: fields.number("message")?,
            to: fields.take("to", "list of groups, divided by commas", map)?,
            digest: fields.digest()?,
        },
        "completed" => MulticastEvent::Completed {
            node: fields.number("node")?,
            message: fields.number("message")?,
        },
        "refused" => MulticastEvent::Refused {
            node: fields.number("node")?,
            message: fields.number("message")?,
        },
        "joined" => MulticastEvent::Joined {
            node: fields.number("node")?,
            group: fields.number("group")?,
            peer: fields.take_optional("peer", "number in range", |word| word.parse().ok())?,
            after: fields.take_optional("after", "number in range", |word| word.parse().ok())?,
        },
        "left" => MulticastEvent::Left {
            node: fields.number("node")?,
            group: fields.number("group")?,
        },
        "delivered" => MulticastEvent::Delivered {
            node: fields.number("node")?,
            group: fields.number("group")?,
            message: fields.number("message")?,
            at: fields.take("at", "final timestamp like 7:0", Final::read)?,
            digest: fields.digest()?,
        },
        "took" => MulticastEvent::Took {
            node: fields.number("switch")?,
            group: fields.number("group")?,
            message: fields.number("message")?,
        },
        "committed" => MulticastEvent::Committed {
            node: fields.number("switch")?,
            group: fields.number("group")?,
            entry: Entry {
                index: fields.number("index")?,
                term: fields.number("term")?,
                time: fields.number("time")?,
                message: fields.number("message")?,
            },
        },
        "fills" => MulticastEvent::Fills {
            node: fields.number("node")?,
            group: fields.number("group")?,
            what: fields.take("what", "`queue`, `window` or `held`", |word| {
                let mut all = Filled::ALL.into_iter();
                all.find_map(|(filled, name)| (name == word).then_some(filled))
            })?,
            count: fields.number("count")?,
        },
        "executed" => MulticastEvent::Executed {
            node: fields.number("node")?,
            group: fields.number("group")?,
            operation: fields.number("operation")?,
            at: fields.take("at", "final timestamp like 7:0", Final::read)?,
        },
        "call" => {
            return Ok(EventKind::Call {
                node: fields.number("node")?,
                object: Object::new(STORE),
                operation: fields.number("operation")?,
                request: fields.store_request()?,
            });
        }
        "return" => {
            return Ok(EventKind::Return {
                node: fields.number("node")?,
                object: Object::new(STORE),
                operation: fields.number("operation")?,
                response: fields.store_response()?,
            });
        }
        "whole" => MulticastEvent::Whole,
        "died" => {
            let node = fields.number("node")?;
            return Ok(EventKind::Died { node });
        }
        word => {
            return Err(TextError::Event {
                line: fields.line,
                word: word.into(),
                names: EVENT_NAMES,
            });
        }
    }))
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
            if first == "promises" {
                let mut fields = Fields::new(line, words)?;
                document.history.system = Multicast {
                    within: fields.number("within")?,
                    queue: fields.number("queue")?,
                    window: fields.number("window")?,
                };
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

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Multicast {
            within,
            queue,
            window,
        } = self.system;
        writeln!(f, "promises within={within} queue={queue} window={window}")?;
        for event in &self.events {
            writeln!(f, "{event}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.at)?;
        match &self.kind {
            EventKind::Died { node } => write!(f, "died node={node}"),
            EventKind::Of(event) => write!(f, "{event}"),
            EventKind::Call {
                node,
                operation,
                request,
                ..
            } => write!(f, "call node={node} operation={operation} {request}"),
            EventKind::Return {
                node,
                operation,
                response,
                ..
            } => write!(f, "return node={node} operation={operation} {response}"),
            EventKind::Send { content, .. } | EventKind::Deliver { content, .. } => {
                match *content {}
            }
        }
    }
}

impl fmt::Display for MulticastEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent {
                node,
                message,
                to,
                digest,
            } => {
                let groups = (0..32).filter(|group| (to >> group) & 1 == 1);
                let groups: Vec<String> = groups.map(|group: u32| group.to_string()).collect();
                let to = groups.join(",");
                write!(
                    f,
                    "sent node={node} message={message} to={to} digest={digest:x}"
                )
            }
            Self::Completed { node, message } => {
                write!(f, "completed node={node} message={message}")
            }
            Self::Refused { node, message } => write!(f, "refused node={node} message={message}"),
            Self::Joined {
                node,
                group,
                peer,
                after,
            } => {
                write!(f, "joined node={node} group={group}")?;
                if let Some(peer) = peer {
                    write!(f, " peer={peer}")?;
                }
                match after {
                    Some(after) => write!(f, " after={after}"),
                    None => Ok(()),
                }
            }
            Self::Left { node, group } => write!(f, "left node={node} group={group}"),
            Self::Delivered {
                node,
                group,
                message,
                at,
                digest,
            } => write!(
                f,
                "delivered node={node} group={group} message={message} at={at} digest={digest:x}"
            ),
            Self::Took {
                node,
                group,
                message,
            } => write!(f, "took switch={node} group={group} message={message}"),
            Self::Committed { node, group, entry } => {
                let Entry {
                    index,
                    term,
                    time,
                    message,
                } = entry;
                write!(
                    f,
                    "committed switch={node} group={group} index={index} term={term} time={time} \
                     message={message}"
                )
            }
            Self::Executed {
                node,
                group,
                operation,
                at,
            } => write!(
                f,
                "executed node={node} group={group} operation={operation} at={at}"
            ),
            Self::Fills {
                node,
                group,
                what,
                count,
            } => write!(
                f,
                "fills node={node} group={group} what={what} count={count}"
            ),
            Self::Whole => f.write_str("whole"),
        }
    }
}

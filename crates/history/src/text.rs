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
//! An event line is the time in µs, the event's name and its fields in any order;
//! `held=-` stands for a replica without a record. `expect`, `pool` and `application`
//! lines come anywhere; an expectation is for those who keep histories as tests.

use crate::application::{APPLICATION_NAMES, Application};
use crate::checker::Checker;
use crate::event::{
    Direction, Durability, Endpoint, Event, EventKind, Flow, History, Occupant, PoolRange, Protocol,
};
use core::net::Ipv4Addr;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// What whoever wrote a history down expects of [`judge`](crate::judge).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// No checker objects.
    Accepted,
    /// This checker objects.
    Rejected {
        /// Which one.
        by: Checker,
        /// Why it should, for the reader.
        because: String,
    },
}

/// A history with what is expected of it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Document {
    /// What is expected, if anything is.
    pub expectation: Option<Expectation>,
    /// The history.
    pub history: History,
}

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
    #[error(
        "line {line}: HI010: write one line `application NAME`, where NAME is one of {APPLICATION_NAMES}"
    )]
    Application {
        /// Counted from 1.
        line: usize,
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

struct Fields<'a> {
    line: usize,
    fields: Vec<(&'a str, &'a str)>,
}

impl<'a> Fields<'a> {
    fn new(line: usize, words: impl Iterator<Item = &'a str>) -> Result<Self, TextError> {
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

    fn take_optional<T>(
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

    fn take<T>(
        &mut self,
        field: &'static str,
        what: &'static str,
        parse: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<T, TextError> {
        let line = self.line;
        self.take_optional(field, what, parse)?
            .ok_or(TextError::Missing { line, field })
    }

    fn number<T: FromStr>(&mut self, field: &'static str) -> Result<T, TextError> {
        self.take(field, "number in range", |value| value.parse().ok())
    }

    fn flow(&mut self) -> Result<Flow, TextError> {
        self.take("flow", "name", |value| {
            (!value.is_empty()).then(|| Flow::new(value))
        })
    }

    fn endpoint(&mut self, field: &'static str) -> Result<Endpoint, TextError> {
        self.take(field, "endpoint like 10.0.0.1:4000/tcp", endpoint)
    }

    fn occupant(&mut self) -> Result<Occupant, TextError> {
        Ok(Occupant {
            switch: self.number("switch")?,
            incarnation: self.number("start")?,
        })
    }

    fn shared(&mut self) -> Result<bool, TextError> {
        self.take("lease", "`shared` or `exclusive`", |value| match value {
            "shared" => Some(true),
            "exclusive" => Some(false),
            _ => None,
        })
    }

    fn protocol(&mut self) -> Result<Protocol, TextError> {
        self.take("protocol", "`tcp`, `udp` or `icmp`", protocol)
    }

    fn finish(self) -> Result<(), TextError> {
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
        "input" => EventKind::Input {
            switch: fields.number("switch")?,
            flow: fields.flow()?,
            packet: fields.number("packet")?,
            request: fields.take_optional("request", "number in range", |v| v.parse().ok())?,
        },
        "output" => EventKind::Output {
            switch: fields.number("switch")?,
            flow: fields.flow()?,
            packet: fields.number("packet")?,
            value: fields.take_optional("value", "number in range", |v| v.parse().ok())?,
            durability: durability(fields)?,
        },
        "granted" => EventKind::Granted {
            to: fields.occupant()?,
            flow: fields.flow()?,
            epoch: fields.number("epoch")?,
            shared: fields.shared()?,
        },
        "accepted" => EventKind::Accepted {
            by: fields.occupant()?,
            flow: fields.flow()?,
            epoch: fields.number("epoch")?,
            shared: fields.shared()?,
            until: fields.number("until")?,
        },
        "used" => EventKind::Used {
            by: fields.occupant()?,
            flow: fields.flow()?,
            epoch: fields.number("epoch")?,
        },
        "ended" => EventKind::Ended {
            by: fields.occupant()?,
            flow: fields.flow()?,
        },
        "died" => EventKind::Died {
            switch: fields.number("switch")?,
        },
        "translated" => EventKind::Translated {
            switch: fields.number("switch")?,
            direction: fields.take("direction", "`out` or `in`", |value| match value {
                "out" => Some(Direction::Outbound),
                "in" => Some(Direction::Inbound),
                _ => None,
            })?,
            inside: fields.endpoint("inside")?,
            public: fields.endpoint("public")?,
        },
        "taken" => EventKind::Taken {
            replica: fields.number("replica")?,
            inside: fields.endpoint("inside")?,
            public: fields.endpoint("public")?,
        },
        "freed" => EventKind::Freed {
            replica: fields.number("replica")?,
            public: fields.endpoint("public")?,
        },
        "mapped" => EventKind::Mapped {
            replica: fields.number("replica")?,
            inside: fields.endpoint("inside")?,
            public: fields.endpoint("public")?,
        },
        "remaining" => EventKind::Remaining {
            replica: fields.number("replica")?,
            address: fields.take("address", "IPv4 address", |v| v.parse().ok())?,
            protocol: fields.protocol()?,
            free: fields.number("free")?,
        },
        "kept" => EventKind::Kept {
            switch: fields.number("switch")?,
            flow: fields.flow()?,
            sequence: fields.number("sequence")?,
            acknowledged: fields.number("acknowledged")?,
        },
        word => {
            return Err(TextError::Event {
                line: fields.line,
                word: word.into(),
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

fn expectation(text: &str) -> Option<Expectation> {
    if text == "accepted" {
        return Some(Expectation::Accepted);
    }
    let (checker, because) = text.strip_prefix("rejected by ")?.split_once(':')?;
    Some(Expectation::Rejected {
        by: Checker::from_name(checker.trim())?,
        because: because.trim().into(),
    })
}

impl FromStr for Document {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
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
                let expected = expectation(rest).filter(|_| document.expectation.is_none());
                document.expectation = Some(expected.ok_or(TextError::Expectation { line })?);
                continue;
            }
            if first == "pool" {
                let mut fields = Fields::new(line, words)?;
                document.history.pools.push(pool(&mut fields)?);
                fields.finish()?;
                continue;
            }
            if first == "application" {
                let name = content[first.len()..].trim();
                let application =
                    Application::from_name(name).filter(|_| document.history.application.is_none());
                let application = application.ok_or(TextError::Application { line })?;
                document.history.application = Some(application);
                continue;
            }
            let at = first.parse().map_err(|_| TextError::Start {
                line,
                word: first.into(),
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
        match &self.expectation {
            None => {}
            Some(Expectation::Accepted) => writeln!(f, "expect accepted")?,
            Some(Expectation::Rejected { by, because }) => {
                writeln!(f, "expect rejected by {by}: {because}")?;
            }
        }
        write!(f, "{}", self.history)
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(application) = self.application {
            writeln!(f, "application {application}")?;
        }
        for pool in &self.pools {
            let PoolRange {
                address,
                protocol,
                first,
                last,
            } = pool;
            writeln!(
                f,
                "pool address={address} protocol={protocol} first={first} last={last}"
            )?;
        }
        for event in &self.events {
            writeln!(f, "{event}")?;
        }
        Ok(())
    }
}

struct Who<'a>(&'a Occupant);

impl fmt::Display for Who<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "switch={} start={}", self.0.switch, self.0.incarnation)
    }
}

fn lease(shared: bool) -> &'static str {
    if shared { "shared" } else { "exclusive" }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.at)?;
        match &self.kind {
            EventKind::Input {
                switch,
                flow,
                packet,
                request,
            } => {
                write!(f, "input switch={switch} flow={flow} packet={packet}")?;
                match request {
                    Some(request) => write!(f, " request={request}"),
                    None => Ok(()),
                }
            }
            EventKind::Output {
                switch,
                flow,
                packet,
                value,
                durability,
            } => {
                write!(f, "output switch={switch} flow={flow} packet={packet}")?;
                if let Some(value) = value {
                    write!(f, " value={value}")?;
                }
                if let Some(Durability { sequence, held }) = durability {
                    let held = held.iter().map(|held| match held {
                        None => "-".into(),
                        Some(number) => number.to_string(),
                    });
                    let held = held.collect::<Vec<_>>().join(",");
                    write!(f, " sequence={sequence} held={held}")?;
                }
                Ok(())
            }
            EventKind::Granted {
                to,
                flow,
                epoch,
                shared,
            } => write!(
                f,
                "granted {} flow={flow} epoch={epoch} lease={}",
                Who(to),
                lease(*shared)
            ),
            EventKind::Accepted {
                by,
                flow,
                epoch,
                shared,
                until,
            } => write!(
                f,
                "accepted {} flow={flow} epoch={epoch} lease={} until={until}",
                Who(by),
                lease(*shared)
            ),
            EventKind::Used { by, flow, epoch } => {
                write!(f, "used {} flow={flow} epoch={epoch}", Who(by))
            }
            EventKind::Ended { by, flow } => write!(f, "ended {} flow={flow}", Who(by)),
            EventKind::Died { switch } => write!(f, "died switch={switch}"),
            EventKind::Translated {
                switch,
                direction,
                inside,
                public,
            } => {
                let direction = match direction {
                    Direction::Outbound => "out",
                    Direction::Inbound => "in",
                };
                write!(
                    f,
                    "translated switch={switch} direction={direction} inside={inside} public={public}"
                )
            }
            EventKind::Taken {
                replica,
                inside,
                public,
            } => write!(f, "taken replica={replica} inside={inside} public={public}"),
            EventKind::Freed { replica, public } => {
                write!(f, "freed replica={replica} public={public}")
            }
            EventKind::Mapped {
                replica,
                inside,
                public,
            } => write!(
                f,
                "mapped replica={replica} inside={inside} public={public}"
            ),
            EventKind::Remaining {
                replica,
                address,
                protocol,
                free,
            } => write!(
                f,
                "remaining replica={replica} address={address} protocol={protocol} free={free}"
            ),
            EventKind::Kept {
                switch,
                flow,
                sequence,
                acknowledged,
            } => write!(
                f,
                "kept switch={switch} flow={flow} sequence={sequence} acknowledged={acknowledged}"
            ),
        }
    }
}

#[cfg(test)]
mod tests;

//! Lines of the workers to the lab: a line of JSON for each operation, which becomes a history.

use super::workers::group_name;
use serde::{Deserialize, Serialize};
use stateplane_apps::coordination::{Listing, Progress, Tale};
use stateplane_history::Object;
use stateplane_history::coordination::{
    Asked, Condition, Coordination, CoordinationEvent, Event, EventKind, History, Holder, Kind,
    Outcome, Request, Response, Scanned, Seen, Told,
};
use stateplane_wire::coordination::Key;
use std::sync::Arc;

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Line {
    /// An operation.
    Operation(Box<OperationLine>),
    /// Progress of a list of a group's records.
    Scan(Box<ScanLine>),
    /// An event of a watch of a group.
    Told(Box<ToldLine>),
    /// A client ended with operations under way.
    Died {
        /// Time in ns.
        at_ns: u64,
        /// The logical client.
        client: u32,
    },
    /// Faults are over.
    Whole {
        /// Time in ns.
        at_ns: u64,
        /// Groups that serve soon after.
        groups: Vec<String>,
        /// Time in ns within which they serve.
        serves_within_ns: u64,
    },
}

/// An operation and what became of it. Times are ns of one clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationLine {
    /// The logical client.
    pub client: u32,
    /// Number of the operation, unlike all others.
    pub operation: u64,
    /// The group.
    pub group: String,
    /// The key in the group.
    pub key: String,
    /// `read`, `write`, `cas`, `delete`, `acquire`, `wait` or `release`.
    pub ask: Ask,
    /// Hexadecimal value of a write or CAS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<String>,
    /// Number that the record must have, of a CAS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// Fencing token that the request carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// Session of a lock's owner.
    pub session: u32,
    /// Holder in the session.
    pub handle: u32,
    /// Time of the invocation.
    pub invoked_ns: u64,
    /// Time by which the client has to give it up.
    pub until_ns: u64,
    /// Time at which the client gave it up, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_ns: Option<u64>,
    /// Time of the response; none of an operation whose outcome is unknown.
    pub responded_ns: Option<u64>,
    /// A name of [`Outcome`], or `unknown`.
    pub outcome: String,
    /// Number of the entry; of a read, of the newest entry of the answerer.
    pub number: u64,
    /// The lock's token, if the answer tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// The record behind the operation, if the answer tells it.
    #[serde(flatten)]
    pub record: RecordLine,
}

/// Progress of a list: its begin, each answered scan, its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanLine {
    /// Time in ns.
    pub at_ns: u64,
    /// The logical client.
    pub client: u32,
    /// The group.
    pub group: String,
    /// Number of the list.
    pub list: u64,
    /// A name of [`Scanned`].
    pub scanned: String,
    /// Number of the newest entry of the answerer.
    pub number: u64,
    /// The key of the record that was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The record that was found.
    #[serde(flatten)]
    pub record: RecordLine,
}

/// An event of a watch of a group: its begin, a change, entries that are missing, its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldLine {
    /// Time in ns.
    pub at_ns: u64,
    /// The logical client.
    pub client: u32,
    /// The group.
    pub group: String,
    /// A name of [`Told`].
    pub told: String,
    /// Number of the entry; of the begin and of missing entries the first that is told, of the end
    /// the first that was not.
    pub number: u64,
    /// The record that the entry changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its value, hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// A record as an answer shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordLine {
    /// A name of [`Kind`], if the answer tells the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// Number of the entry that last changed the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_number: Option<u64>,
    /// Its value, hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl RecordLine {
    /// The line of a record.
    pub fn of(seen: &Seen) -> Self {
        Self {
            record: Some(seen.kind.name().to_owned()),
            record_number: Some(seen.number),
            value: seen.value.as_deref().map(hex),
        }
    }

    fn seen(&self) -> Result<Option<Seen>, String> {
        let Some(kind) = &self.record else {
            return Ok(None);
        };
        Ok(Some(Seen {
            kind: Kind::from_name(kind).ok_or_else(|| format!("{kind} is no record"))?,
            number: self.record_number.unwrap_or(0),
            value: self.value.as_deref().map(bytes).transpose()?,
        }))
    }
}

impl ScanLine {
    /// The line of a list's progress. `name` gives the names of the records that the history has.
    pub fn of(
        (at_ns, client): (u64, u32),
        listing: &Listing,
        progress: Progress,
        name: impl Fn(Key) -> Option<String>,
    ) -> Self {
        let progress = progress.of_named(|key| name(key).is_some());
        let (key, seen) = progress.record.unzip();
        Self {
            at_ns,
            client,
            group: group_name(listing.group),
            list: listing.number,
            scanned: progress.scanned.name().to_owned(),
            number: progress.number,
            key: key.and_then(name),
            record: seen
                .as_ref()
                .map_or_else(RecordLine::default, RecordLine::of),
        }
    }

    fn event(&self) -> Result<EventKind, String> {
        let scanned = Scanned::from_name(&self.scanned);
        Ok(EventKind::Of(CoordinationEvent::Scanned {
            node: self.client,
            group: Object::new(&self.group),
            list: self.list,
            scanned: scanned.ok_or_else(|| format!("{} is no scan", self.scanned))?,
            number: self.number,
            key: self.key.as_deref().map(Object::new),
            seen: self.record.seen()?,
        }))
    }
}

impl ToldLine {
    /// The line of an event of a watch of `group`. `name` gives the names of records; others are
    /// named by their keys.
    pub fn of(
        (at_ns, client): (u64, u32),
        group: u16,
        tale: Tale,
        name: impl Fn(Key) -> Option<String>,
    ) -> Self {
        Self {
            at_ns,
            client,
            group: group_name(group),
            told: tale.told.name().to_owned(),
            number: tale.number,
            key: tale.key.map(|key| name(key).unwrap_or_else(|| hex(&key.0))),
            value: tale.value.as_deref().map(hex),
        }
    }

    fn event(&self) -> Result<EventKind, String> {
        let told = Told::from_name(&self.told);
        Ok(EventKind::Of(CoordinationEvent::Told {
            node: self.client,
            group: Object::new(&self.group),
            told: told.ok_or_else(|| format!("{} is no event of a watch", self.told))?,
            number: self.number,
            key: self.key.as_deref().map(Object::new),
            value: self.value.as_deref().map(bytes).transpose()?,
        }))
    }
}

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// The record.
    Read,
    /// A new value.
    Write,
    /// A new value, if the record has the expected number.
    Cas,
    /// No record.
    Delete,
    /// The lock, without waiting.
    Acquire,
    /// The lock, or a place in its queue.
    Wait,
    /// The lock is given up.
    Release,
}

/// Outcome of an operation of which nobody knows what became.
pub const UNKNOWN: &str = "unknown";

/// `bytes` in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(text: &str) -> Result<Arc<[u8]>, String> {
    let digits = text.as_bytes().chunks(2);
    let parsed = digits.map(|pair| {
        let pair = std::str::from_utf8(pair)
            .ok()
            .filter(|pair| pair.len() == 2);
        pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())
    });
    let parsed: Option<Arc<[u8]>> = parsed.collect();
    parsed.ok_or_else(|| format!("{text} is not hexadecimal"))
}

impl OperationLine {
    /// Notes the response of time `at_ns`.
    pub fn respond(&mut self, at_ns: u64, response: &Response) {
        self.responded_ns = Some(at_ns);
        response.outcome.name().clone_into(&mut self.outcome);
        self.number = response.number;
        self.token = response.token;
        self.record = response
            .seen
            .as_ref()
            .map_or_else(Default::default, RecordLine::of);
    }

    fn request(&self) -> Result<Request, String> {
        let condition = self.expected.map_or(Condition::None, Condition::Number);
        let asked = match self.ask {
            Ask::Read => Asked::Read,
            Ask::Write | Ask::Cas => {
                let value = self.write.as_deref().ok_or("a write has no value")?;
                Asked::Write(bytes(value)?, condition)
            }
            Ask::Delete => Asked::Delete(condition),
            Ask::Acquire => Asked::Acquire(false),
            Ask::Wait => Asked::Acquire(true),
            Ask::Release => Asked::Release,
        };
        Ok(Request {
            key: Object::new(&self.key),
            asked,
            token: self.fence.unwrap_or(0),
            guard: None,
            holder: Holder {
                session: self.session,
                handle: self.handle,
            },
            until: Some(self.until_ns / 1000),
        })
    }

    fn response(&self) -> Result<Response, String> {
        let outcome = Outcome::from_name(&self.outcome)
            .ok_or_else(|| format!("{} is no outcome of a response", self.outcome))?;
        let seen = self.record.seen()?;
        Ok(Response {
            outcome,
            number: self.number,
            token: self.token,
            seen,
        })
    }

    /// Its events, each with its place among those of one time.
    fn events(&self) -> Result<Vec<(u64, u8, EventKind)>, String> {
        let (node, operation) = (self.client, self.operation);
        let object = Object::new(&self.group);
        let mut events = vec![(
            self.invoked_ns,
            1,
            EventKind::Call {
                node,
                object: object.clone(),
                operation,
                request: self.request()?,
            },
        )];
        if let Some(at) = self.unknown_ns {
            let group = object.clone();
            let event = CoordinationEvent::Unknown {
                before: None,
                node,
                group,
                operation,
            };
            events.push((at, 2, EventKind::Of(event)));
        }
        if let Some(at) = self.responded_ns {
            let response = self.response()?;
            let event = EventKind::Return {
                node,
                object,
                operation,
                response,
            };
            events.push((at, 3, event));
        }
        Ok(events)
    }
}

/// The history that the lines tell, in the order of time. Of events of one microsecond, calls come
/// before responses: the checkers then take their operations as concurrent.
///
/// # Errors
/// The fault of a line.
pub fn history(lines: &[Line]) -> Result<History, String> {
    let mut system = Coordination::default();
    let mut events = Vec::new();
    for line in lines {
        match line {
            Line::Operation(operation) => events.extend(operation.events()?),
            Line::Scan(scan) => events.push((scan.at_ns, 2, scan.event()?)),
            Line::Told(told) => events.push((told.at_ns, 4, told.event()?)),
            Line::Died { at_ns, client } => {
                events.push((*at_ns, 4, EventKind::Died { node: *client }));
            }
            Line::Whole {
                at_ns,
                groups,
                serves_within_ns,
            } => {
                system.groups = groups.iter().map(|name| Object::new(name)).collect();
                system.serves_within = serves_within_ns / 1000;
                events.push((*at_ns, 0, EventKind::Of(CoordinationEvent::Whole)));
            }
        }
    }
    events.sort_by_key(|(at, rank, _)| (at / 1000, *rank));
    let events = events.into_iter().map(|(at, _, kind)| Event {
        at: at / 1000,
        kind,
    });
    Ok(History {
        system,
        events: events.collect(),
    })
}

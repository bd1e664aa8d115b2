//! Answers as text, JSON and exit codes.

use std::io::{self, Write as _};

use serde_json::{Map, Value, json};
use stateplane_coordination::{Answer, Name, Record};
use stateplane_wire::coordination::Outcome;

use crate::exit::{CommandError, Failure};

/// Prints answers.
#[derive(Clone, Copy)]
pub struct Printer {
    pub json: bool,
}

impl Printer {
    /// Prints a record that was read.
    pub fn record(self, name: &Name, answer: &Answer) -> Result<(), CommandError> {
        if answer.outcome == Outcome::WrongKind {
            return Err(failure(name, answer));
        }
        let Some(record) = &answer.record else {
            return Err(failure(name, answer));
        };
        if self.json {
            self.line(&described(name, record, &record.value));
            return Ok(());
        }
        if let Some(lock) = record.lock() {
            println!(
                "lock of session {} handle {}, token {}, {} waiting",
                lock.owner.session,
                lock.owner.handle,
                lock.token,
                lock.waiters.len()
            );
            return Ok(());
        }
        let mut out = io::stdout().lock();
        let written = out
            .write_all(&record.value)
            .and_then(|()| out.write_all(b"\n"));
        written.map_err(super::system)
    }

    /// Prints what a change became.
    pub fn change(self, name: &Name, answer: &Answer) -> Result<(), CommandError> {
        if self.json {
            let mut told = Map::new();
            bytes(&mut told, "name", name.bytes());
            told.insert("outcome".into(), outcome(answer.outcome).into());
            told.insert("number".into(), answer.number.into());
            if let Some(record) = &answer.record {
                told.insert("record".into(), described(name, record, &record.value));
            }
            self.line(&Value::Object(told));
        } else if answer.outcome == Outcome::Done {
            println!("{}", answer.number);
        }
        match answer.outcome {
            Outcome::Done => Ok(()),
            _ => Err(failure(name, answer)),
        }
    }

    /// Prints one line of JSON.
    pub fn line(self, value: &Value) {
        println!("{value}");
    }
}

/// A record as JSON.
pub fn described(name: &Name, record: &Record, value: &[u8]) -> Value {
    let mut told = Map::new();
    bytes(&mut told, "name", name.bytes());
    told.insert("number".into(), record.number.into());
    if let Some(lock) = record.lock() {
        let owner = |owner: &stateplane_coordination::Owner| json!({ "session": owner.session, "handle": owner.handle });
        told.insert("owner".into(), owner(&lock.owner));
        told.insert("token".into(), lock.token.into());
        let waiters: Vec<Value> = lock.waiters.iter().map(owner).collect();
        told.insert("waiters".into(), waiters.into());
    } else {
        bytes(&mut told, "value", value);
        told.insert("token".into(), record.token.into());
        told.insert("session".into(), record.session.into());
    }
    Value::Object(told)
}

/// Bytes as text, or, if they are none, in hexadecimal under a name that says so.
pub fn bytes(told: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => told.insert(name.into(), text.into()),
        Err(_) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            told.insert(format!("{name}_hex"), digits.into())
        }
    };
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::Mismatch => "mismatch",
        Outcome::Absent => "absent",
        Outcome::Taken => "taken",
        Outcome::Full => "full",
        Outcome::StaleToken => "stale_token",
        Outcome::Guarded => "guarded",
        Outcome::NotOwner => "not_owner",
        Outcome::WrongKind => "wrong_kind",
        _ => "refused",
    }
}

fn failure(name: &Name, answer: &Answer) -> CommandError {
    let name = String::from_utf8_lossy(name.bytes());
    let (failure, message) = match answer.outcome {
        Outcome::Mismatch => {
            let is = match &answer.record {
                Some(record) => format!(", whose number is {}", record.number),
                None => String::new(),
            };
            (
                Failure::Mismatch,
                format!("the condition does not hold of {name}{is}"),
            )
        }
        Outcome::Absent => (Failure::Expectation, format!("there is no record {name}")),
        Outcome::StaleToken => (
            Failure::Mismatch,
            format!("{name} has seen a higher fencing token"),
        ),
        Outcome::WrongKind => (Failure::Input, format!("{name} is a lock")),
        Outcome::Full => (Failure::System, format!("there is no room for {name}")),
        other => (Failure::System, format!("{name}: {other:?}")),
    };
    CommandError::coded(failure, outcome(answer.outcome), message)
}

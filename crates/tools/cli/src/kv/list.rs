//! `stateplane kv list`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stateplane_coordination::{Action, Event, Name, Operation, Place, Reading, Record};
use stateplane_wire::coordination::Key;

use super::answers::{Printer, described};
use super::{Service, expired};
use crate::exit::{CommandError, Failure};

/// Lists the records whose names begin with `prefix`.
pub fn run(mut service: Service, printer: Printer, prefix: &str) -> Result<(), CommandError> {
    let mut scans = BTreeMap::new();
    let mut found: BTreeMap<Name, (Record, Vec<u8>)> = BTreeMap::new();
    let scan = |group, slot| {
        let reading = Reading::Leased;
        Operation::new(
            Place::within(group, Key::default()),
            Action::Scan { slot, reading },
        )
    };
    for group in 0..service.groups {
        scans.insert(service.submit(scan(group, 0))?, group);
    }
    while !scans.is_empty() {
        let end = service.client.now() + 2 * service.timeout_us;
        let event = service.event(end)?.ok_or_else(|| expired(None))?;
        let Some(group) = event.ticket().and_then(|ticket| scans.remove(&ticket)) else {
            continue;
        };
        let answer = match event {
            Event::Answered { answer, .. } => answer,
            Event::Expired { refusal, .. } => return Err(expired(refusal)),
            Event::Failed { reason, .. } => {
                return Err(CommandError::new(Failure::System, reason));
            }
            _ => continue,
        };
        if let Some(next) = answer.next_slot() {
            scans.insert(service.submit(scan(group, next))?, group);
        }
        let Some(record) = answer.record else {
            continue;
        };
        let Some((name, value)) = Name::of_record(&record) else {
            continue;
        };
        if name.bytes().starts_with(prefix.as_bytes()) {
            let value = value.to_vec();
            found.insert(name, (record, value));
        }
    }
    if printer.json {
        let records = found.iter();
        let records: Vec<Value> = records
            .map(|(name, (record, value))| described(name, record, value))
            .collect();
        printer.line(&json!({ "records": records, "one_moment": false }));
        return Ok(());
    }
    for (name, (record, value)) in &found {
        let name = String::from_utf8_lossy(name.bytes());
        match record.lock() {
            Some(lock) => println!("{name}\tlock of session {}", lock.owner.session),
            None => println!("{name}\t{}", String::from_utf8_lossy(value)),
        }
    }
    eprintln!(
        "{} records, read one after the other: not the state of one moment",
        found.len()
    );
    Ok(())
}

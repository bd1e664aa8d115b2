//! `stateplane kv watch`.

use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::Args;
use serde_json::{Map, Value, json};
use stateplane_coordination::{ConnectionEvent, Name, Record, Watch, WatchEvent};
use stateplane_wire::coordination::Key;

use super::answers::{Printer, bytes, described};
use super::{Service, ServiceArguments, name, system, unusable};
use crate::exit::CommandError;
use crate::signal;

/// Print the changes of a record, or of a whole group, until stopped
///
/// The record as it is comes first, unless --from says where to go on. Each change is told once, in
/// order. A line `compacted` says that the switches have forgotten changes before its number.
#[derive(Args)]
pub struct WatchArguments {
    /// Name of the record or lock
    #[arg(required_unless_present = "group")]
    name: Option<String>,
    /// Watch all records of this group instead
    #[arg(long, value_name = "NUMBER", conflicts_with = "name")]
    group: Option<u16>,
    /// Number of the first entry to tell: one more than that of the last event told
    #[arg(long, value_name = "NUMBER")]
    from: Option<u64>,
    /// Stop after so many lines
    #[arg(long, value_name = "LINES")]
    count: Option<u64>,
}

/// Prints what happens until it is stopped.
pub fn run(
    service: &ServiceArguments,
    printer: Printer,
    arguments: &WatchArguments,
) -> Result<ExitCode, CommandError> {
    let stop = signal::stop_flag()?;
    let watched = arguments.name.as_deref().map(name).transpose()?;
    let mut service = service.open(0)?;
    let mut watch = match (&watched, arguments.group) {
        (Some(name), _) => Watch::new(name.place(service.groups), arguments.from),
        (None, Some(group)) if group < service.groups => Watch::group(group, arguments.from),
        (None, group) => {
            let last = service.groups - 1;
            let group = group.unwrap_or_default();
            return Err(unusable(format!(
                "there is no group {group}: the last is {last}"
            )));
        }
    };
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 && !stop.load(Ordering::Relaxed) {
        follow(&mut service, &mut watch)?;
        while left > 0
            && let Some(event) = watch.poll_event()
        {
            tell(printer, watched.as_ref(), &event);
            left -= 1;
        }
    }
    let now = service.client.now();
    watch.end(now, service.agent());
    service.client.step(now).map_err(system)?;
    Ok(ExitCode::SUCCESS)
}

/// Goes on for a tenth of a second at most, within which a signal is seen.
fn follow(service: &mut Service, watch: &mut Watch) -> Result<(), CommandError> {
    let now = service.client.now();
    watch.handle_timeout(now, service.agent());
    let due = watch.poll_timeout().unwrap_or(u64::MAX);
    service
        .client
        .step(due.min(now + 100_000))
        .map_err(system)?;
    let now = service.client.now();
    while let Some(event) = service.client.poll_event() {
        if let ConnectionEvent::Agent(event) = event {
            watch.handle_event(now, &event);
        }
    }
    Ok(())
}

fn tell(printer: Printer, watched: Option<&Name>, event: &WatchEvent) {
    if printer.json {
        return printer.line(&in_json(watched, event));
    }
    match event {
        WatchEvent::Put { record } => {
            let (name, value) = named(watched, record);
            let number = record.number;
            let value = match record.lock() {
                Some(lock) => format!(
                    "lock of session {} handle {}, token {}, {} waiting",
                    lock.owner.session,
                    lock.owner.handle,
                    lock.token,
                    lock.waiters.len()
                ),
                None => String::from_utf8_lossy(&value).into_owned(),
            };
            match watched {
                Some(_) => println!("{number}\tput\t{value}"),
                None => println!(
                    "{number}\tput\t{}\t{value}",
                    shown(name.as_ref(), record.key)
                ),
            }
        }
        WatchEvent::Deleted { key, number } => match watched {
            Some(_) => println!("{number}\tdeleted"),
            None => println!(
                "{number}\tdeleted\t{}",
                shown(Name::of_key(*key).as_ref(), *key)
            ),
        },
        WatchEvent::Compacted { oldest } => println!("{oldest}\tcompacted"),
        WatchEvent::Clash => println!("0\tclash"),
    }
}

/// The record's name, if it shows it, and its value.
fn named(watched: Option<&Name>, record: &Record) -> (Option<Name>, Vec<u8>) {
    match (watched, Name::of_record(record)) {
        (Some(name), _) => (Some(name.clone()), record.value.clone()),
        (None, Some((name, value))) => (Some(name), value.to_vec()),
        (None, None) => (None, record.value.clone()),
    }
}

fn shown(name: Option<&Name>, key: Key) -> String {
    match name {
        Some(name) => String::from_utf8_lossy(name.bytes()).into_owned(),
        None => hex(key),
    }
}

fn hex(key: Key) -> String {
    key.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn in_json(watched: Option<&Name>, event: &WatchEvent) -> Value {
    let mut told = Map::new();
    match event {
        WatchEvent::Put { record } => {
            told.insert("event".into(), "put".into());
            let (name, value) = named(watched, record);
            match name {
                Some(name) => {
                    if let Value::Object(fields) = described(&name, record, &value) {
                        told.extend(fields);
                    }
                }
                None => {
                    told.insert("number".into(), record.number.into());
                    told.insert("key_hex".into(), hex(record.key).into());
                    bytes(&mut told, "value", &value);
                }
            }
        }
        WatchEvent::Deleted { key, number } => {
            told.insert("event".into(), "deleted".into());
            match watched.cloned().or_else(|| Name::of_key(*key)) {
                Some(name) => bytes(&mut told, "name", name.bytes()),
                None => _ = told.insert("key_hex".into(), hex(*key).into()),
            }
            told.insert("number".into(), (*number).into());
        }
        WatchEvent::Compacted { oldest } => {
            return json!({ "event": "compacted", "oldest": oldest });
        }
        WatchEvent::Clash => return json!({ "event": "clash" }),
    }
    Value::Object(told)
}

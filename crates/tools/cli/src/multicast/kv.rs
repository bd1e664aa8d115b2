//! `stateplane multicast kv`: a client of the key-value store.

use super::ServiceArguments;
use crate::exit::{CommandError, Failure};
use crate::kv::system;
use crate::store::refused as keys_refused;
use clap::{Args, Subcommand};
use serde_json::json;
use stateplane_host::clock::boot_time_us;
use stateplane_host::multicast_store::{StoreClient, StoreClientConfig, StoreClientError};
use stateplane_host::random::random_bits;
use stateplane_multicast_store::{
    Found, Key, MAX_KEY, MAX_KEYS, MAX_SHARDS, MAX_VALUE, Operation, Outcome, Reason, Reply, Value,
};
use std::io::{self, Write};

/// Read and change records of the key-value store whose replicas are `stateplane multicast store`.
///
/// Operations on several keys, whatever their shards, happen at one moment. Exit codes: 1 there is
/// no such record; 5 the condition does not hold; 7 it is not known whether the change was made.
#[derive(Args)]
pub struct KvArguments {
    /// Shards of the store
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_SHARDS)))]
    shards: u8,
    #[command(subcommand)]
    operation: KvOperation,
}

#[derive(Subcommand)]
enum KvOperation {
    /// Print the value of a key
    Get { key: String },
    /// Give a key a value
    Put { key: String, value: String },
    /// Take a key's value away
    Delete { key: String },
    /// Give a key a value, or none, if it has an expected one, or none
    Swap {
        key: String,
        /// The value that it must have; without the option it must have none
        #[arg(long)]
        expected: Option<String>,
        /// Its value from there on; without the option it has none
        #[arg(long)]
        value: Option<String>,
    },
    /// Move a key's value to another key, which must have none
    Move { from: String, to: String },
    /// Print the values of several keys at one moment
    Read {
        #[arg(value_name = "KEY", required = true, num_args = 1..=MAX_KEYS)]
        names: Vec<String>,
    },
}

fn key(text: &str) -> Result<Key, CommandError> {
    Key::new(text).ok_or_else(|| {
        let message = format!("a key has 1 to {MAX_KEY} bytes");
        CommandError::new(Failure::Input, message)
    })
}

fn value(text: &str) -> Result<Value, CommandError> {
    Value::new(text).ok_or_else(|| {
        let message = format!("a value has at most {MAX_VALUE} bytes");
        CommandError::new(Failure::Input, message)
    })
}

impl KvOperation {
    fn read(&self) -> Result<Operation, CommandError> {
        let optional = |text: &Option<String>| text.as_deref().map(value).transpose();
        Ok(match self {
            KvOperation::Get { key: of } => Operation::Get { key: key(of)? },
            KvOperation::Put { key: of, value: to } => Operation::Put {
                key: key(of)?,
                value: value(to)?,
            },
            KvOperation::Delete { key: of } => Operation::Delete { key: key(of)? },
            KvOperation::Swap {
                key: of,
                expected,
                value,
            } => Operation::Swap {
                key: key(of)?,
                expected: optional(expected)?,
                value: optional(value)?,
            },
            KvOperation::Move { from, to } => Operation::Move {
                from: key(from)?,
                to: key(to)?,
            },
            KvOperation::Read { names } => Operation::Read {
                keys: names.iter().map(|of| key(of)).collect::<Result<_, _>>()?,
            },
        })
    }
}

/// The exit code and message that a client's error gives.
fn failed(error: StoreClientError) -> CommandError {
    match error {
        StoreClientError::Keys(error) => keys_refused(error),
        StoreClientError::NoGroup(_) | StoreClientError::Send(_) => {
            CommandError::new(Failure::Input, error)
        }
        _ => CommandError::new(Failure::System, error),
    }
}

/// The answer of the operation that is under way, if it comes in time.
fn reply(client: &mut StoreClient, end: u64) -> Result<Option<Reply>, CommandError> {
    while boot_time_us() < end {
        client.step(end).map_err(failed)?;
        if let Some(reply) = client.poll_reply(0) {
            return Ok(Some(reply));
        }
    }
    Ok(None)
}

fn texts(values: &[Found]) -> Vec<Option<String>> {
    let texts = values.iter().map(|value| {
        let text = value
            .as_ref()
            .map(|value| String::from_utf8_lossy(value.bytes()));
        text.map(|text| text.into_owned())
    });
    texts.collect()
}

fn refused(reason: &Reason) -> CommandError {
    match reason {
        Reason::Full {} => CommandError::coded(
            Failure::System,
            "full",
            "a shard has no room for the record",
        ),
        Reason::Misdirected {} => CommandError::new(
            Failure::Input,
            "the replicas' store has another number of shards",
        ),
        Reason::Forgotten {} | Reason::Late {} => {
            let message =
                "replicas forgot this client; it is not known whether the change was made";
            CommandError::coded(Failure::Unknown, "unknown", message)
        }
    }
}

/// Prints an answer, and tells what it means.
fn show(json: bool, keys: &[&Key], reply: &Reply) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    let (done, values) = match &reply.outcome {
        Outcome::Values { values } => (true, values.as_slice()),
        Outcome::Decided { done, values } => (*done, values.as_slice()),
        Outcome::Opened {} | Outcome::Done {} => (true, &[][..]),
        Outcome::Refused { reason } => return Err(refused(reason)),
    };
    let read = matches!(reply.outcome, Outcome::Values { .. });
    if json {
        let at = json!({"time": reply.at.time, "group": reply.at.group});
        let answer = json!({"at": at, "done": done, "values": texts(values)});
        writeln!(out, "{answer}").map_err(system)?;
    } else if read {
        for (key, value) in keys.iter().zip(values) {
            if keys.len() > 1 {
                out.write_all(key.bytes()).map_err(system)?;
            }
            let tab: &[u8] = if keys.len() > 1 { b"\t" } else { b"" };
            if let Some(value) = value {
                let line = [tab, value.bytes()].concat();
                out.write_all(&line).map_err(system)?;
            }
            if keys.len() > 1 || value.is_some() {
                out.write_all(b"\n").map_err(system)?;
            }
        }
    }
    let missing = read && keys.len() == 1 && values.iter().all(Option::is_none);
    match (missing, done) {
        (true, _) => Err(CommandError::explained(Failure::Expectation)),
        (false, true) => Ok(()),
        (false, false) => {
            let message = "the condition does not hold; nothing was changed";
            Err(CommandError::coded(Failure::Mismatch, "mismatch", message))
        }
    }
}

/// Runs the command.
pub fn run(service: &ServiceArguments, arguments: &KvArguments) -> Result<(), CommandError> {
    let operation = arguments.operation.read()?;
    let timeout = service.timeout_us()?;
    let end = boot_time_us() + timeout;
    let own = random_bits().map_err(system)?;
    let config = StoreClientConfig {
        address: service.address,
        give_up_us: timeout,
        ..StoreClientConfig::new(service.controller.clone(), arguments.shards, vec![own])
    };
    let client = StoreClient::connect(config, service.keys.as_deref(), end);
    let mut client = client.map_err(failed)?;
    let called = client.call(0, operation.clone());
    called.map_err(|error| CommandError::new(Failure::Input, error))?;
    let Some(reply) = reply(&mut client, end)? else {
        let message = "no replica answers; it is not known whether the change was made";
        return Err(CommandError::coded(Failure::Unknown, "unknown", message));
    };
    client.close(boot_time_us() + 1_000_000);
    show(service.json, &operation.keys(), &reply)
}

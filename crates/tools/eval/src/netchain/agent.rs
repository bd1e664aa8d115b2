//! `stateplane eval switch-agent`: reads and writes registers of the switch in its node, as its input
//! says, a line each. A switch agent of the paper is a process in the switch's operating system, too.

use crate::error::EvalError;
use clap::Args;
use serde::{Deserialize, Serialize};
use stateplane_rpc::client::names::{self, find, update};
use stateplane_rpc::client::{Connection, Target};
use stateplane_rpc::proto::v1::entity::Entity;
use stateplane_rpc::proto::v1::p4_data::Data;
use stateplane_rpc::proto::v1::update::Type;
use stateplane_rpc::proto::{config, v1};
use std::io::{BufRead, Write};

/// Address at which switches of an experiment serve P4Runtime, each in its node.
pub const P4RUNTIME: &str = "127.0.0.1:9559";

/// Updates of one message.
const BATCH: usize = 4096;

/// Arguments of the agent.
#[derive(Clone, Debug, Args)]
pub struct AgentArguments {
    /// Address at which the switch serves P4Runtime.
    #[arg(long, default_value = P4RUNTIME)]
    switch: String,
}

/// An element of a register; of a value only the bytes behind its leading zeros.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Element {
    pub register: String,
    pub index: u64,
    pub value: Vec<u8>,
}

/// A request to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// `count` elements from `first` on of each of these registers, one register behind the other.
    Read {
        registers: Vec<String>,
        first: u64,
        count: u64,
    },
    /// New values.
    Write(Vec<Element>),
}

/// The answer of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Why it was not done.
    pub error: Option<String>,
    /// Values that were read.
    pub values: Vec<Vec<u8>>,
}

fn failed(error: impl ToString) -> EvalError {
    EvalError::Controller {
        whom: "the switch".to_owned(),
        reason: error.to_string(),
    }
}

/// Says `ready`, and does what its input says until that ends.
///
/// # Errors
/// `EV006` if the switch does not answer.
pub fn run(arguments: &AgentArguments) -> Result<(), EvalError> {
    let target = Target {
        address: arguments.switch.clone(),
        device_id: 1,
        tls: None,
    };
    let mut connection = Connection::open(target).map_err(failed)?;
    let pipeline = connection.pipeline().map_err(failed)?;
    let info = pipeline.p4info.unwrap_or_default();
    say("ready");
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else {
            break;
        };
        let done = serde_json::from_str(&line)
            .map_err(|error| error.to_string())
            .and_then(|ask| carry_out(&mut connection, &info, &ask));
        let answer = match done {
            Ok(values) => Answer {
                error: None,
                values,
            },
            Err(error) => Answer {
                error: Some(error),
                values: Vec::new(),
            },
        };
        say(&serde_json::to_string(&answer).unwrap_or_default());
    }
    Ok(())
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn carry_out(
    connection: &mut Connection,
    info: &config::P4Info,
    ask: &Ask,
) -> Result<Vec<Vec<u8>>, String> {
    match ask {
        Ask::Read {
            registers,
            first,
            count,
        } => {
            let mut wanted = Vec::new();
            for name in registers {
                let elements = (*first..first + count).map(|index| entry(info, name, index, None));
                for element in elements {
                    wanted.push(element?);
                }
            }
            let read = connection.read(wanted).map_err(|error| error.to_string())?;
            let values = read.into_iter().filter_map(|entity| match entity {
                Entity::RegisterEntry(entry) => match entry.data?.data? {
                    Data::Bitstring(bytes) => Some(shortened(bytes)),
                    _ => None,
                },
                _ => None,
            });
            let values: Vec<_> = values.collect();
            let expected = registers.len() * *count as usize;
            if values.len() == expected {
                Ok(values)
            } else {
                Err(format!("{} elements of {expected}", values.len()))
            }
        }
        Ask::Write(elements) => {
            for elements in elements.chunks(BATCH) {
                let updates = elements.iter().map(|element| {
                    let value = Some(element.value.clone());
                    let entity = entry(info, &element.register, element.index, value)?;
                    Ok(update(Type::Modify, entity))
                });
                let updates = updates.collect::<Result<_, String>>()?;
                let written = connection.write(updates);
                written.map_err(|error| error.to_string())?;
            }
            Ok(Vec::new())
        }
    }
}

fn entry(
    info: &config::P4Info,
    name: &str,
    index: u64,
    value: Option<Vec<u8>>,
) -> Result<Entity, String> {
    let register = find(&info.registers, name, "register")?;
    let data = value.map(|bytes| {
        // A bit string has at least one byte.
        let bytes = if bytes.is_empty() { vec![0] } else { bytes };
        v1::P4Data {
            data: Some(Data::Bitstring(bytes)),
        }
    });
    Ok(Entity::RegisterEntry(v1::RegisterEntry {
        register_id: names::id(register),
        index: Some(v1::Index {
            index: index as i64,
        }),
        data,
    }))
}

/// A number without its leading zeros.
fn shortened(bytes: Vec<u8>) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes[zeros..].to_vec()
}

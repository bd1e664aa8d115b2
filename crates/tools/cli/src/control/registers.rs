//! `stateplane registers`: register arrays and their elements.

use super::{SwitchArguments, columns, indices, json, wrong};
use crate::exit::CommandError;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use stateplane_rpc::client::{data, names};
use stateplane_rpc::proto::config::{self, P4Info};
use stateplane_rpc::proto::v1::{self, entity::Entity, update::Type};

/// Show and change the registers of a running switch.
///
/// Without a command, lists the registers.
#[derive(Args)]
#[command(after_help = "Examples:
  stateplane registers
  stateplane registers read totals
  stateplane registers read totals 10..20
  stateplane registers write totals 3 0xff
  stateplane registers write pairs all mac=00:00:00:00:00:01 known=true")]
pub struct RegistersArguments {
    #[command(flatten)]
    switch: SwitchArguments,
    #[command(subcommand)]
    command: Option<RegistersCommand>,
}

#[derive(Subcommand)]
enum RegistersCommand {
    /// Show elements of a register array
    Read {
        /// Name of the register
        register: String,
        /// An index, FROM..TO (TO excluded), or `all`
        index: Option<String>,
        /// Leave out elements that are zero
        #[arg(long)]
        nonzero: bool,
    },
    /// Write elements of a register array; on an error, none is written
    Write {
        /// Name of the register
        register: String,
        /// An index, FROM..TO (TO excluded), or `all`
        index: String,
        /// A value, or MEMBER=VALUE for each member of a struct
        #[arg(required = true)]
        value: Vec<String>,
    },
}

/// Runs the command.
pub fn run(arguments: &RegistersArguments) -> Result<(), CommandError> {
    let switch = &arguments.switch;
    match &arguments.command {
        None => list(switch),
        Some(RegistersCommand::Read {
            register,
            index,
            nonzero,
        }) => read(switch, register, index.as_deref(), *nonzero),
        Some(RegistersCommand::Write {
            register,
            index,
            value,
        }) => write(switch, register, index, value),
    }
}

fn find<'a>(info: &'a P4Info, name: &str) -> Result<&'a config::Register, CommandError> {
    names::find(&info.registers, name, "register").map_err(wrong)
}

fn size(register: &config::Register) -> u64 {
    u64::try_from(register.size).unwrap_or(0)
}

fn list(switch: &SwitchArguments) -> Result<(), CommandError> {
    let (_, info) = switch.open_with_info()?;
    let mut rows = vec![["register", "size"].map(str::to_owned).to_vec()];
    let mut values = Vec::new();
    for register in &info.registers {
        rows.push(vec![
            names::name(register).to_owned(),
            register.size.to_string(),
        ]);
        values.push(json!({ "register": names::name(register), "size": register.size }));
    }
    switch.print(&Value::from(values), &columns(&rows));
    Ok(())
}

/// An element, or all.
fn element(register: &config::Register, index: Option<u64>) -> v1::RegisterEntry {
    v1::RegisterEntry {
        register_id: names::id(register),
        index: index.map(|index| v1::Index {
            index: i64::try_from(index).unwrap_or(i64::MAX),
        }),
        data: None,
    }
}

fn read(
    switch: &SwitchArguments,
    name: &str,
    index: Option<&str>,
    nonzero: bool,
) -> Result<(), CommandError> {
    let (mut connection, info) = switch.open_with_info()?;
    let register = find(&info, name)?;
    let wanted = indices(index, size(register))?;
    let whole = wanted == (0..size(register));
    let entries = if whole {
        vec![element(register, None)]
    } else {
        wanted.map(|index| element(register, Some(index))).collect()
    };
    let entries = entries.into_iter().map(Entity::RegisterEntry);
    let read = connection.read(entries.collect())?;
    let mut rows = Vec::new();
    let mut values = Vec::new();
    for entity in read {
        let Entity::RegisterEntry(entry) = entity else {
            continue;
        };
        let data = entry.data.unwrap_or_default();
        if nonzero && is_zero(&data) {
            continue;
        }
        let index = entry.index.unwrap_or_default().index;
        let (name, types) = (names::alias(register), info.type_info.as_ref());
        let shown = data::show(&data, name, register.type_spec.as_ref(), types);
        rows.push(vec![index.to_string(), shown.to_string()]);
        values.push(json!({ "index": index, "value": json(&shown) }));
    }
    switch.print(&Value::from(values), &columns(&rows));
    Ok(())
}

fn is_zero(data: &v1::P4Data) -> bool {
    use v1::p4_data::Data;
    match &data.data {
        Some(Data::Bitstring(bytes) | Data::EnumValue(bytes)) => bytes.iter().all(|it| *it == 0),
        Some(Data::Bool(value)) => !value,
        Some(Data::Struct(parts) | Data::Tuple(parts)) => parts.members.iter().all(is_zero),
        _ => false,
    }
}

fn write(
    switch: &SwitchArguments,
    name: &str,
    index: &str,
    value: &[String],
) -> Result<(), CommandError> {
    let (mut connection, info) = switch.open_with_info()?;
    let register = find(&info, name)?;
    let wanted = indices(Some(index), size(register))?;
    let spec = register.type_spec.clone().unwrap_or_default();
    let data = data::read(value, &spec, info.type_info.as_ref()).map_err(wrong)?;
    let entries = if wanted == (0..size(register)) {
        vec![element(register, None)]
    } else {
        wanted.map(|index| element(register, Some(index))).collect()
    };
    let updates = entries.into_iter().map(|entry| {
        let entry = v1::RegisterEntry {
            data: Some(data.clone()),
            ..entry
        };
        names::update(Type::Modify, Entity::RegisterEntry(entry))
    });
    connection.write(updates.collect())?;
    Ok(())
}

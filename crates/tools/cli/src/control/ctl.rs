//! `stateplane ctl`: ports, counters and the program of a switch; the store; coordination.

use super::{SwitchArguments, columns, coordination, heads, indices, read, store, wrong};
use crate::exit::CommandError;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use stateplane_rpc::client::names;
use stateplane_rpc::proto::config::P4Info;
use stateplane_rpc::proto::v1::{self, entity::Entity, update::Type};
use std::path::PathBuf;

/// Inspect a running switch and replace its program; operate the store and coordination.
#[derive(Args)]
#[command(after_help = "Examples:
  stateplane ctl ports
  stateplane ctl counters per_port
  stateplane ctl pipeline
  stateplane ctl program router.p4 --keep")]
pub struct CtlArguments {
    #[command(flatten)]
    switch: SwitchArguments,
    #[command(subcommand)]
    command: CtlCommand,
}

#[derive(Subcommand)]
enum CtlCommand {
    /// Show the ports: state and counters
    Ports,
    /// Show counters; without a name, list them
    Counters {
        /// Name of the counter
        counter: Option<String>,
        /// An index, FROM..TO (TO excluded), or `all`
        index: Option<String>,
        /// Reset the shown counters to zero
        #[arg(long, requires = "counter")]
        reset: bool,
    },
    /// Show the objects of the running program
    Pipeline {
        /// Print its source, if a controller pushed it
        #[arg(long)]
        source: bool,
    },
    /// Replace the running program; no packet is lost
    Program {
        /// P4 source: one file, which may include the built-in files
        file: PathBuf,
        /// Keep entries and state that fit the new program
        #[arg(long)]
        keep: bool,
    },
    Heads(heads::HeadsArguments),
    Store(store::StoreArguments),
    Coordination(coordination::CoordinationArguments),
}

/// Runs the command.
pub fn run(arguments: &CtlArguments) -> Result<(), CommandError> {
    let switch = &arguments.switch;
    match &arguments.command {
        CtlCommand::Ports => ports(switch),
        CtlCommand::Counters {
            counter: None,
            index: _,
            reset: _,
        } => list_counters(switch),
        CtlCommand::Counters {
            counter: Some(counter),
            index,
            reset,
        } => counters(switch, counter, index.as_deref(), *reset),
        CtlCommand::Pipeline { source } => pipeline(switch, *source),
        CtlCommand::Heads(arguments) => heads::run(switch, arguments),
        CtlCommand::Store(arguments) => store::run(switch, arguments),
        CtlCommand::Coordination(arguments) => coordination::run(switch, arguments),
        CtlCommand::Program { file, keep } => Ok(switch.open()?.set_program(read(file)?, *keep)?),
    }
}

fn ports(switch: &SwitchArguments) -> Result<(), CommandError> {
    let head = [
        "port",
        "name",
        "state",
        "rx packets",
        "rx bytes",
        "tx packets",
        "tx bytes",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut values = Vec::new();
    for port in switch.open()?.ports()? {
        rows.push(vec![
            port.number.to_string(),
            port.name.clone(),
            if port.up { "up" } else { "down" }.to_owned(),
            port.rx_packets.to_string(),
            port.rx_bytes.to_string(),
            port.tx_packets.to_string(),
            port.tx_bytes.to_string(),
        ]);
        values.push(json!({
            "port": port.number,
            "name": port.name,
            "up": port.up,
            "rx_packets": port.rx_packets,
            "rx_bytes": port.rx_bytes,
            "tx_packets": port.tx_packets,
            "tx_bytes": port.tx_bytes,
        }));
    }
    switch.print(&Value::from(values), &columns(&rows));
    Ok(())
}

fn list_counters(switch: &SwitchArguments) -> Result<(), CommandError> {
    let (_, info) = switch.open_with_info()?;
    let mut rows = vec![["counter", "size"].map(str::to_owned).to_vec()];
    let mut values = Vec::new();
    for counter in &info.counters {
        rows.push(vec![
            names::name(counter).to_owned(),
            counter.size.to_string(),
        ]);
        values.push(json!({ "counter": names::name(counter), "size": counter.size }));
    }
    for counter in &info.direct_counters {
        let table = names::by_id(&info.tables, counter.direct_table_id);
        let table = table.map_or("", |table| names::name(table));
        rows.push(vec![
            names::name(counter).to_owned(),
            format!("one for each entry: stateplane tables show {table}"),
        ]);
        values.push(json!({ "counter": names::name(counter), "table": table }));
    }
    switch.print(&Value::from(values), &columns(&rows));
    Ok(())
}

fn counters(
    switch: &SwitchArguments,
    name: &str,
    index: Option<&str>,
    reset: bool,
) -> Result<(), CommandError> {
    let (mut connection, info) = switch.open_with_info()?;
    let counter = names::find(&info.counters, name, "counter").map_err(wrong)?;
    let wanted = indices(index, u64::try_from(counter.size).unwrap_or(0))?;
    let element = |index: u64| v1::CounterEntry {
        counter_id: names::id(counter),
        index: Some(v1::Index {
            index: i64::try_from(index).unwrap_or(i64::MAX),
        }),
        data: None,
    };
    let entries: Vec<v1::CounterEntry> = wanted.map(element).collect();
    let read = connection.read(entries.iter().cloned().map(Entity::CounterEntry).collect())?;
    let mut rows = vec![["index", "packets", "bytes"].map(str::to_owned).to_vec()];
    let mut values = Vec::new();
    for entity in read {
        let Entity::CounterEntry(entry) = entity else {
            continue;
        };
        let index = entry.index.unwrap_or_default().index;
        let data = entry.data.unwrap_or_default();
        rows.push(vec![
            index.to_string(),
            data.packet_count.to_string(),
            data.byte_count.to_string(),
        ]);
        values.push(json!({
            "index": index,
            "packets": data.packet_count,
            "bytes": data.byte_count,
        }));
    }
    if reset {
        let updates = entries.into_iter().map(|entry| {
            let zero = v1::CounterEntry {
                data: Some(v1::CounterData::default()),
                ..entry
            };
            names::update(Type::Modify, Entity::CounterEntry(zero))
        });
        connection.write(updates.collect())?;
    }
    switch.print(&Value::from(values), &columns(&rows));
    Ok(())
}

/// Kinds of objects with the names of those that there are.
fn objects(info: &P4Info) -> Vec<(&'static str, Vec<&str>)> {
    macro_rules! all {
        ($($title:literal: $field:ident),*) => {
            vec![$(($title, info.$field.iter().map(|it| names::name(it)).collect())),*]
        };
    }
    all![
        "tables": tables,
        "actions": actions,
        "action profiles": action_profiles,
        "counters": counters,
        "direct counters": direct_counters,
        "meters": meters,
        "direct meters": direct_meters,
        "registers": registers,
        "value sets": value_sets,
        "digests": digests,
        "controller headers": controller_packet_metadata
    ]
}

fn pipeline(switch: &SwitchArguments, source: bool) -> Result<(), CommandError> {
    let config = switch.open()?.pipeline()?;
    let info = config.p4info.unwrap_or_default();
    let text = String::from_utf8_lossy(&config.p4_device_config).into_owned();
    let architecture = info.pkg_info.as_ref().map_or("", |package| &package.arch);
    let cookie = config.cookie.map(|cookie| cookie.cookie);
    let mut value = json!({ "architecture": architecture, "cookie": cookie });
    let mut lines = vec![format!("architecture: {architecture}")];
    if let Some(cookie) = cookie {
        lines.push(format!("cookie: {cookie}"));
    }
    for (title, names) in objects(&info) {
        if !names.is_empty() {
            lines.push(format!("{title}: {}", names.join(", ")));
        }
        value[title.replace(' ', "_")] = names.into();
    }
    if source {
        value["source"] = text.as_str().into();
        lines = vec![text];
    }
    switch.print(&value, &lines);
    Ok(())
}

//! `stateplane tables`: tables and their entries.

use super::{SwitchArguments, columns, joined, object, wrong};
use crate::exit::CommandError;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use stateplane_rpc::client::{entry, names};
use stateplane_rpc::proto::config::{self, P4Info};
use stateplane_rpc::proto::v1::{self, entity::Entity, update::Type};

/// Show and change the tables of a running switch.
///
/// Without a command, lists the tables. Tables, fields and actions may be named by the last part of
/// their names. Controllers stay connected and primary.
///
/// Matches are FIELD=VALUE: 10.0.0.1 or 00:11:22:33:44:55 or 0x800; 10.0.0.0/8 for a prefix; 6&&&7
/// for a value and a mask; 80..90 for a range; an omitted field matches every value. The action
/// follows with its PARAMETER=VALUE, or member:N or group:N.
#[derive(Args)]
#[command(after_help = "Examples:
  stateplane tables
  stateplane tables show routes
  stateplane tables insert routes dst=10.0.0.0/8 send port=3
  stateplane tables insert acl src='10.0.0.0&&&255.0.0.0' drop --priority 10
  stateplane tables delete routes dst=10.0.0.0/8
  stateplane tables default routes drop")]
pub struct TablesArguments {
    #[command(flatten)]
    switch: SwitchArguments,
    #[command(subcommand)]
    command: Option<TablesCommand>,
}

#[derive(Subcommand)]
enum TablesCommand {
    /// Show the entries of a table
    Show {
        /// Name of the table
        table: String,
    },
    /// Insert an entry
    Insert(EntryArguments),
    /// Change the action of an entry
    Modify(EntryArguments),
    /// Delete an entry
    Delete(EntryArguments),
    /// Set the default action; without an action, restore the program's
    Default {
        /// Name of the table
        table: String,
        /// ACTION PARAMETER=VALUE...
        words: Vec<String>,
    },
}

#[derive(Args)]
struct EntryArguments {
    /// Name of the table
    table: String,
    /// FIELD=VALUE... ACTION PARAMETER=VALUE...
    words: Vec<String>,
    /// Priority: the matching entry with the greatest priority wins; for tables with ternary, range
    /// or optional fields
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    priority: i32,
    /// Report the entry to controllers when no packet has hit it for this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32))]
    idle_timeout: Option<u32>,
}

/// Runs the command.
pub fn run(arguments: &TablesArguments) -> Result<(), CommandError> {
    let switch = &arguments.switch;
    match &arguments.command {
        None => list(switch),
        Some(TablesCommand::Show { table }) => show(switch, table),
        Some(TablesCommand::Insert(entry)) => write(switch, Type::Insert, entry),
        Some(TablesCommand::Modify(entry)) => write(switch, Type::Modify, entry),
        Some(TablesCommand::Delete(entry)) => write(switch, Type::Delete, entry),
        Some(TablesCommand::Default { table, words }) => default(switch, table, words),
    }
}

fn find<'a>(info: &'a P4Info, name: &str) -> Result<&'a config::Table, CommandError> {
    names::find(&info.tables, name, "table").map_err(wrong)
}

/// `field: kind`, for all fields.
fn keys(table: &config::Table) -> Vec<(String, String)> {
    let fields = table.match_fields.iter();
    fields
        .map(|field| {
            let kind = entry::kind(field).as_str_name().to_lowercase();
            (field.name.clone(), kind)
        })
        .collect()
}

fn actions(info: &P4Info, table: &config::Table) -> Vec<String> {
    let listed = table.action_refs.iter();
    listed
        .filter_map(|listed| names::by_id(&info.actions, listed.id))
        .map(|action| names::alias(action).to_owned())
        .collect()
}

fn list(switch: &SwitchArguments) -> Result<(), CommandError> {
    let (mut connection, info) = switch.open_with_info()?;
    let entries = connection.read(vec![Entity::TableEntry(v1::TableEntry::default())])?;
    let count = |id: u32| {
        let of = |entity: &&Entity| matches!(entity, Entity::TableEntry(it) if it.table_id == id);
        entries.iter().filter(of).count()
    };
    let mut rows = vec![
        ["table", "entries", "size", "keys", "actions"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut values = Vec::new();
    for table in &info.tables {
        let (count, keys, actions) = (count(names::id(table)), keys(table), actions(&info, table));
        rows.push(vec![
            names::name(table).to_owned(),
            count.to_string(),
            table.size.to_string(),
            joined(&keys).replace('=', ":"),
            actions.join(", "),
        ]);
        values.push(json!({
            "table": names::name(table),
            "entries": count,
            "size": table.size,
            "keys": object(&keys),
            "actions": actions,
        }));
    }
    switch.print(&Value::from(values), &columns(&rows));
    Ok(())
}

fn show(switch: &SwitchArguments, name: &str) -> Result<(), CommandError> {
    let (mut connection, info) = switch.open_with_info()?;
    let table = find(&info, name)?;
    let wanted = |is_default_action| {
        Entity::TableEntry(v1::TableEntry {
            table_id: names::id(table),
            is_default_action,
            counter_data: Some(v1::CounterData::default()),
            ..v1::TableEntry::default()
        })
    };
    let entries = connection.read(vec![wanted(false), wanted(true)])?;
    let mut lines = Vec::new();
    let mut values = Vec::new();
    for entity in entries {
        let Entity::TableEntry(entry) = entity else {
            continue;
        };
        let matches = entry::show_matches(table, &entry);
        let (action, params) = entry::show_action(&info, entry.action.as_ref());
        let mut value = json!({ "action": action, "parameters": object(&params) });
        let mut line = if entry.is_default_action {
            "default".to_owned()
        } else {
            joined(&matches)
        };
        if entry.is_default_action {
            value["default"] = true.into();
        } else {
            value["matches"] = object(&matches);
        }
        line.push_str(&format!("  ->  {action}"));
        if !params.is_empty() {
            line.push_str(&format!(" {}", joined(&params)));
        }
        if entry.priority > 0 {
            line.push_str(&format!("  priority {}", entry.priority));
            value["priority"] = entry.priority.into();
        }
        if entry.is_const {
            line.push_str("  const");
            value["const"] = true.into();
        }
        if entry.idle_timeout_ns > 0 {
            let seconds = entry.idle_timeout_ns as f64 / 1e9;
            line.push_str(&format!("  idle timeout {seconds} s"));
            value["idle_timeout_ns"] = entry.idle_timeout_ns.into();
        }
        if let Some(count) = &entry.counter_data {
            line.push_str(&format!(
                "  {} packets, {} bytes",
                count.packet_count, count.byte_count
            ));
            value["packets"] = count.packet_count.into();
            value["bytes"] = count.byte_count.into();
        }
        lines.push(line);
        values.push(value);
    }
    switch.print(&Value::from(values), &lines);
    Ok(())
}

fn write(
    switch: &SwitchArguments,
    kind: Type,
    arguments: &EntryArguments,
) -> Result<(), CommandError> {
    let (mut connection, info) = switch.open_with_info()?;
    let table = find(&info, &arguments.table)?;
    let mut entry =
        entry::read(&info, table, &arguments.words, arguments.priority).map_err(wrong)?;
    entry.idle_timeout_ns = i64::from(arguments.idle_timeout.unwrap_or(0)) * 1_000_000_000;
    connection.write(vec![names::update(kind, Entity::TableEntry(entry))])?;
    Ok(())
}

fn default(switch: &SwitchArguments, name: &str, words: &[String]) -> Result<(), CommandError> {
    let (mut connection, info) = switch.open_with_info()?;
    let table = find(&info, name)?;
    let mut entry = entry::read(&info, table, words, 0).map_err(wrong)?;
    entry.is_default_action = true;
    connection.write(vec![names::update(Type::Modify, Entity::TableEntry(entry))])?;
    Ok(())
}

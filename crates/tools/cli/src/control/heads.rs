//! `stateplane ctl heads`: the heads of the store's chains, as a switch reaches them.

use super::{SwitchArguments, columns};
use crate::command_socket::{self, Answer, Command};
use crate::exit::{CommandError, Failure};
use clap::Args;
use serde_json::Value;
use std::path::PathBuf;

/// Show whether the store answers a switch that runs here, and what does not fit between them.
#[derive(Args)]
pub struct HeadsArguments {
    /// Program that the switch runs, by its file's name, or path of the switch's control socket; by
    /// default the only switch that runs here
    #[arg(long, value_name = "PROGRAM|PATH")]
    control: Option<PathBuf>,
}

/// Runs the command.
pub fn run(switch: &SwitchArguments, arguments: &HeadsArguments) -> Result<(), CommandError> {
    let answer = command_socket::send(arguments.control.as_deref(), &Command::Heads);
    let Answer { exit, text } = answer.map_err(|it| CommandError::new(Failure::System, it))?;
    if exit != 0 {
        let failure = match exit {
            2 => Failure::Input,
            _ => Failure::System,
        };
        let text = text.trim_start_matches("error: ").to_owned();
        return Err(CommandError::new(failure, text));
    }
    let report: Value =
        serde_json::from_str(&text).map_err(|error| CommandError::new(Failure::System, error))?;
    switch.print(&report, &lines(&report));
    Ok(())
}

/// One line for each head, and one for each of its differences.
fn lines(report: &Value) -> Vec<String> {
    let head = ["head", "port", "state"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut differences = Vec::new();
    for head in report["heads"].as_array().into_iter().flatten() {
        let address = head["address"].as_str().unwrap_or_default();
        let told = head["differences"].as_array().into_iter().flatten();
        let told: Vec<&str> = told.filter_map(Value::as_str).collect();
        let state = match (head["silent_ms"].as_u64(), told.len(), &head["fits"]) {
            (Some(ms), ..) => format!("silent for {} s", ms / 1000),
            (None, 0, Value::Bool(true)) => "fits".to_owned(),
            (None, 0, _) => "not heard yet".to_owned(),
            (None, count, _) => format!("{count} settings differ"),
        };
        rows.push(vec![address.to_owned(), head["port"].to_string(), state]);
        differences.extend(told.into_iter().map(|text| format!("{address}: {text}")));
    }
    let mut lines = columns(&rows);
    lines.extend(differences);
    lines
}

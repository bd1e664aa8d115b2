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

/// One line for each head, one for each of its differences, and one for the terms.
fn lines(report: &Value) -> Vec<String> {
    let terms = &report["terms"];
    let head = ["head", "port", "heartbeat answered", "state"];
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
        let mut asked = terms["heads"].as_array().into_iter().flatten();
        let answered = asked.find(|asked| asked["address"] == head["address"]);
        let answered = answered.and_then(|asked| asked["silent_ms"].as_u64());
        let answered = answered.map_or_else(|| "no".to_owned(), |ms| format!("{ms} ms ago"));
        rows.push(vec![
            address.to_owned(),
            head["port"].to_string(),
            answered,
            state,
        ]);
        differences.extend(told.into_iter().map(|text| format!("{address}: {text}")));
    }
    let mut lines = columns(&rows);
    lines.extend(differences);
    if let (Some(held), Some(lapses)) = (terms["held"].as_u64(), terms["lapses"].as_u64()) {
        lines.push(format!(
            "terms: {held} shards have one; {lapses} lapses since the start"
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn heads_are_told_with_their_heartbeats_and_the_terms_below() {
        let report = json!({
            "heads": [
                {"address": "10.0.0.1", "port": 2, "silent_ms": null, "fits": true, "differences": []},
                {"address": "10.0.0.2", "port": 2, "silent_ms": 3000, "fits": null, "differences": []},
            ],
            "terms": {
                "held": 2,
                "lapses": 1,
                "heads": [{"address": "10.0.0.1", "silent_ms": 12}],
            },
        });
        let told = lines(&report);
        assert!(
            told[1].contains("12 ms ago") && told[1].contains("fits"),
            "{told:?}"
        );
        assert!(
            told[2].contains("no ") && told[2].contains("silent for 3 s"),
            "{told:?}"
        );
        assert_eq!(
            told[3],
            "terms: 2 shards have one; 1 lapses since the start"
        );
        let unreplicated = json!({"heads": [], "terms": null});
        assert_eq!(lines(&unreplicated).len(), 1);
    }
}

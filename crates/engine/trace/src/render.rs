//! Steps as text and as JSON.

use crate::{Recorder, Step};
use serde_json::{Value, json};
use stateplane_diagnostics::Color;
use std::fmt::Write as _;

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[1;31m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const BLUE: &str = "\x1b[1;34m";
const FAINT: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

/// The colour of the words that say what a step is.
fn style(step: &Step) -> &'static str {
    match step.what {
        _ if step.depth == 0 => BOLD,
        "parser" | "control" | "deparser" | "state" | "action" | "function" => BLUE,
        "table" => GREEN,
        "register read" | "register write" | "count" | "meter" => YELLOW,
        "drop" | "mark to drop" | "parser error" | "assertion failed" => RED,
        "queue" | "transmit" | "mirror" | "multicast" | "back to ingress" => BOLD,
        _ => FAINT,
    }
}

/// One line for each step, indented by its depth, and further lines below it. Assignments
/// and conditions are shown if `all` is set.
#[must_use]
pub fn render(recorder: &Recorder, all: bool, color: Color) -> String {
    let mut out = String::new();
    for step in recorder.steps().iter().filter(|step| all || !step.fine) {
        if step.depth == 0 && !out.is_empty() {
            out.push('\n');
        }
        let indent = "  ".repeat(step.depth);
        let what = match color {
            Color::Ansi => format!("{}{}{RESET}", style(step), step.what),
            Color::Never => step.what.to_owned(),
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{}",
            format!("{indent}{what} {}", step.text).trim_end()
        );
        for line in &step.more {
            let _ = writeln!(out, "{indent}    {line}");
        }
    }
    if recorder.dropped() > 0 {
        let _ = writeln!(out, "\n{} more steps are not kept", recorder.dropped());
    }
    out
}

/// One object a line for each step: its number from 1, `depth`, `what`, and what belongs to
/// a step of that kind. Numbers of the program are strings, written as in the text.
#[must_use]
pub fn to_json(recorder: &Recorder, all: bool) -> String {
    let mut out = String::new();
    let steps = recorder.steps().iter().filter(|step| all || !step.fine);
    for (number, step) in (1..).zip(steps) {
        let mut object = json!({"step": number, "depth": step.depth, "what": step.what});
        if let (Value::Object(object), Value::Object(data)) = (&mut object, &step.data) {
            object.extend(data.clone());
        }
        let _ = writeln!(out, "{object}");
    }
    if recorder.dropped() > 0 {
        let _ = writeln!(out, "{}", json!({"dropped": recorder.dropped()}));
    }
    out
}

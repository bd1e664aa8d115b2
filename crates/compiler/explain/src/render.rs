//! Explanations in a terminal.

use crate::{Example, Explanation};
use stateplane_diagnostics::Color;
use std::fmt::Write as _;

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[1;31m";
const GREEN: &str = "\x1b[1;32m";
const RESET: &str = "\x1b[0m";

fn paint(color: Color, style: &str, text: &str) -> String {
    match color {
        Color::Ansi => format!("{style}{text}{RESET}"),
        Color::Never => text.to_owned(),
    }
}

/// The explanation as text: title, explanation, and the examples indented.
#[must_use]
pub fn render(explanation: &Explanation, color: Color) -> String {
    let Explanation {
        code,
        title,
        text,
        wrong,
        right,
    } = explanation;
    let heading = paint(color, BOLD, &format!("{code}: {title}"));
    let mut out = format!("{heading}\n\n{text}\n");
    let examples = [("Wrong", RED, wrong), ("Right", GREEN, right)];
    for (word, style, example) in examples {
        if let Some(example) = example {
            show(&mut out, &paint(color, style, word), example);
        }
    }
    out
}

fn show(out: &mut String, word: &str, example: &Example) {
    match example.place.map_or("", |place| place.words()) {
        "" => {
            let _ = writeln!(out, "\n{word}:\n");
        }
        place => {
            let _ = writeln!(out, "\n{word}, {place}:\n");
        }
    }
    for line in example.text.lines() {
        let _ = writeln!(out, "{}", format!("    {line}").trim_end());
    }
}

/// All codes with their titles, one a line.
#[must_use]
pub fn list() -> String {
    let mut out = String::new();
    for explanation in crate::all() {
        let _ = writeln!(out, "{:8}{}", explanation.code, explanation.title);
    }
    out
}

//! Histories as JSON lines, one event a line, for judges in other languages
//! (`docs/coordination-histories.md`).
//!
//! A line has the fields of the event's line in [`Document`]'s text, under the same names: `at`,
//! the event's name as `event`, whole numbers as numbers, all others as strings.

use crate::coordination::event::History;
use crate::coordination::text::Document;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::io::{self, BufRead, Write};

/// Fields whose values are whole numbers.
const WHOLE: [&str; 11] = [
    "client",
    "operation",
    "session",
    "handle",
    "until",
    "node",
    "switch",
    "epoch",
    "within",
    "before",
    "list",
];

/// Why JSON lines are no history.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// The lines cannot be read.
    #[error("HI011: the history cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// A line that is no object of words and whole numbers.
    #[error("line {line}: HI012: {problem}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// The mistake in it.
        problem: String,
    },
    /// A line whose fields are not those of its event.
    #[error(transparent)]
    Text(#[from] crate::fields::TextError),
}

/// Writes `history`, a line for what is known before it begins and one for each event.
///
/// # Errors
///
/// Those of `to`.
pub fn write_lines(history: &History, to: &mut impl Write) -> io::Result<()> {
    for text in history.to_string().lines() {
        let mut words = text.split(' ');
        let mut object = Map::new();
        let first = words.next().unwrap_or_default();
        match first.parse::<u64>() {
            Ok(at) => {
                object.insert("at".to_owned(), at.into());
                let event = words.next().unwrap_or_default();
                object.insert("event".to_owned(), event.into());
            }
            Err(_) => {
                object.insert("event".to_owned(), first.into());
            }
        }
        for (name, value) in words.filter_map(|word| word.split_once('=')) {
            let value = match value.parse::<u64>() {
                Ok(number) if WHOLE.contains(&name) => number.into(),
                _ => Value::from(value),
            };
            object.insert(name.to_owned(), value);
        }
        serde_json::to_writer(&mut *to, &object)?;
        to.write_all(b"\n")?;
    }
    Ok(())
}

/// Reads what [`write_lines`] wrote.
///
/// # Errors
///
/// [`LinesError`], with the line.
pub fn read_lines(from: impl BufRead) -> Result<History, LinesError> {
    let mut text = String::new();
    for (index, read) in from.lines().enumerate() {
        let refuse = |problem: &str| LinesError::Line {
            line: index + 1,
            problem: problem.to_owned(),
        };
        let object: Map<String, Value> =
            serde_json::from_str(&read?).map_err(|error| refuse(&error.to_string()))?;
        if let Some(at) = object.get("at") {
            let at = at.as_u64().ok_or_else(|| refuse("`at` is no time in µs"))?;
            let _ = write!(text, "{at} ");
        }
        let event = object.get("event").and_then(Value::as_str);
        text.push_str(
            event
                .filter(|name| is_word(name))
                .ok_or_else(|| refuse("`event` names no event"))?,
        );
        for (name, value) in object
            .iter()
            .filter(|(name, _)| *name != "at" && *name != "event")
        {
            let value = match value {
                Value::String(value) => value.clone(),
                Value::Number(value) => value.to_string(),
                _ => return Err(refuse("a field is neither a string nor a number")),
            };
            // The value of a write may be empty; a name may not.
            if !is_word(name) || (!value.is_empty() && !is_word(&value)) {
                return Err(refuse("a field has white space, or no name"));
            }
            let _ = write!(text, " {name}={value}");
        }
        text.push('\n');
    }
    Ok(Document::read(&text)?.history)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

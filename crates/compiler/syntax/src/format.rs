//! The formatter: P4 text to the same text in one layout.
//!
//! It works on the text before preprocessing, so macros stay unexpanded and directives
//! stay where they are; therefore it follows brackets and separators rather than the
//! grammar. The layout: four spaces a level, at most [`WIDTH`] columns where a line can be
//! broken, an opening brace at the end of its line, nothing aligned, at most one blank line
//! in a row.
//!
//! The formatter keeps these decisions of the author: blank lines, the line that a comment stands
//! on, whether an annotation has a line of its own, whether a list in braces stands on one line if
//! it fits there, and a block of one statement likewise.
//!
//! Untouched are directives with their continuation lines, comments, annotations, and a
//! declaration that a conditional cuts between its brackets.
//!
//! The result has the same tokens, comments and directives as the text, which is checked
//! before it is returned, and formatting it again changes nothing.

mod doc;
mod expression;
mod item;
mod list;
mod piece;
mod spacing;
#[cfg(test)]
mod tests;
mod tree;

use std::fmt;

/// Columns that a line should not exceed.
pub const WIDTH: usize = 100;

/// Why a text is not formatted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError {
    /// Line of the text, from 1.
    pub line: u32,
    /// Character of the line, from 1.
    pub column: u32,
    /// Reason why the program cannot be formatted.
    pub message: &'static str,
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for FormatError {}

/// Reason at a byte of the text why the program cannot be formatted.
#[derive(Clone, Copy, Debug)]
struct Obstacle {
    at: usize,
    message: &'static str,
}

/// Formats a file.
///
/// # Errors
///
/// A character that begins no token, a string or comment without end, a bracket without
/// its partner, or brackets nested deeper than [`MAX_NESTING`](crate::MAX_NESTING).
pub fn format(text: &str) -> Result<String, FormatError> {
    let text = text.replace("\r\n", "\n");
    try_format(&text).map_err(|obstacle| {
        let before = &text[..obstacle.at];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        FormatError {
            line: before.matches('\n').count() as u32 + 1,
            column: before[line_start..].chars().count() as u32 + 1,
            message: obstacle.message,
        }
    })
}

fn try_format(text: &str) -> Result<String, Obstacle> {
    let pieces = piece::pieces(text)?;
    let nodes = tree::nodes(text, &pieces)?;
    let out = doc::print(&item::file(&nodes));
    let lost = Obstacle {
        at: 0,
        message: "the formatter would change what the text means; please report this file",
    };
    let again = piece::pieces(&out).map_err(|_| lost)?;
    if piece::same(&pieces, &again) {
        Ok(out)
    } else {
        Err(lost)
    }
}

//! Diagnostics about a source text: positions (a [`Span`] in a [`SourceMap`]), messages (a coded
//! [`Diagnostic`] with labels, notes and a help line), and their output ([`render_all`] for people;
//! with the feature `json`, `to_json_lines` for tools).
//!
//! The crate does no IO: texts are handed in, rendered text is handed out.

mod code;
mod diagnostic;
#[cfg(feature = "json")]
mod json;
mod list;
mod render;
mod source;
mod suggest;

pub use code::{Code, duplicate_code};
pub use diagnostic::{Diagnostic, Label, Severity};
#[cfg(feature = "json")]
pub use json::{to_json, to_json_lines};
pub use list::Diagnostics;
pub use render::{Color, render, render_all};
pub use source::{FileId, Position, SourceFile, SourceMap, Span};
pub use suggest::{distance, nearest};

//! What a user is told about a source text: where (a [`Span`] in a [`SourceMap`]), what
//! (a coded [`Diagnostic`] with labels, notes and a help line), and how it is shown
//! (rendered text for people, JSON for tools).
//!
//! The crate does no IO: texts are handed in, rendered text is handed out.

mod code;
mod diagnostic;
mod list;
mod source;

pub use code::{Code, duplicate_code};
pub use diagnostic::{Diagnostic, Label, Severity};
pub use list::Diagnostics;
pub use source::{FileId, Position, SourceFile, SourceMap, Span};

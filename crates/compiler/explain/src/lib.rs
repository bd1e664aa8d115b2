//! Explanations of codes: one Markdown file in `codes/` for each code that a user may be shown,
//! with an explanation, a wrong example that gives the code and a right one that does not. [`find`]
//! looks one up, [`render`] shows it in a terminal.
//!
//! A file has this form; the title of a P4 code is the meaning that its declaration gives:
//!
//! ````text
//! # E1101: a value has another type than is needed
//!
//! Explanation.
//!
//! ## Wrong
//!
//! ```p4 apply
//! hdr.ipv4.ttl = hdr.ipv4.length;
//! ```
//!
//! ## Right
//!
//! ```p4 apply
//! hdr.ipv4.ttl = (bit<8>)hdr.ipv4.length;
//! ```
//! ````
//!
//! The word after `p4` is the [`Place`] of the example in a program; a test compiles each
//! with the real front end.

mod example;
mod render;
mod text;

pub use example::{Example, Place};
pub use render::{list, render};
use stateplane_diagnostics::Diagnostic;
pub use text::Explanation;

/// Codes and files, in order of code.
const TEXTS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/texts.rs"));

/// All explanations, in order of code.
pub fn all() -> impl Iterator<Item = Explanation> {
    TEXTS
        .iter()
        .map(|&(code, text)| Explanation::parse(code, text))
}

/// The explanation of `code`; capital and small letters are the same here.
#[must_use]
pub fn find(code: &str) -> Option<Explanation> {
    TEXTS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(code))
        .map(|&(code, text)| Explanation::parse(code, text))
}

/// The explained code most like `code`, if one is like it at all.
#[must_use]
pub fn nearest(code: &str) -> Option<&'static str> {
    stateplane_diagnostics::nearest(
        &code.to_ascii_uppercase(),
        TEXTS.iter().map(|&(known, _)| known),
    )
}

/// Codes that a hint names at most.
const HINTED: usize = 5;

/// The line after diagnostics that says where to read on: `for more: stateplane explain
/// E1101`. It names the explained codes in order of place; `None` if there are none.
#[must_use]
pub fn hint<'d>(diagnostics: impl IntoIterator<Item = &'d Diagnostic>) -> Option<String> {
    let mut codes: Vec<&str> = Vec::new();
    for diagnostic in diagnostics {
        let code = diagnostic.code.id();
        if !codes.contains(&code) && find(code).is_some() {
            codes.push(code);
        }
    }
    if codes.is_empty() {
        return None;
    }
    codes.truncate(HINTED);
    Some(format!("for more: stateplane explain {}", codes.join(" ")))
}

#[cfg(test)]
mod tests;

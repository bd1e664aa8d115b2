//! Program texts to IR.

use stateplane_check::Compiled;
use stateplane_compile::Source;
use stateplane_ir::Program;
use stateplane_syntax::{MemoryLoader, Parsed};

/// Name of the text in diagnostics.
pub const MAIN_FILE: &str = "main.p4";

/// Reads and checks a program that includes at most the files that come with
/// Stateplane.
#[must_use]
pub fn check(text: &str) -> Compiled {
    source(text).compile()
}

fn source(text: &str) -> Source<MemoryLoader> {
    Source::new(MemoryLoader::new().with(MAIN_FILE, text), MAIN_FILE)
}

/// Reads a program that includes at most the files that come with Stateplane.
///
/// # Errors
///
/// The rendered diagnostics of a text with errors.
pub(crate) fn read(text: &str) -> Result<Parsed, String> {
    source(text).tree().map_err(|refused| refused.to_string())
}

/// Compiles the program alone, see [`check`].
///
/// # Errors
///
/// The rendered diagnostics of a program that is refused.
pub fn compile(text: &str) -> Result<Program, String> {
    let program = source(text).program();
    program.map_err(|refused| format!("refused:\n{refused}"))
}

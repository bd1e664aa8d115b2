//! Program texts to IR.

use stateplane_check::Compiled;
use stateplane_diagnostics::{Color, render_all};
use stateplane_ir::Program;
use stateplane_library::{WithLibrary, with_library};
use stateplane_syntax::{MemoryLoader, Options};

/// Name of the text in diagnostics.
pub const MAIN_FILE: &str = "main.p4";

/// Reads and checks a program that includes at most the files that come with
/// Stateplane.
#[must_use]
pub fn check(text: &str) -> Compiled {
    let loader = WithLibrary(MemoryLoader::new().with(MAIN_FILE, text));
    stateplane_check::compile(&loader, MAIN_FILE, &with_library(Options::default()))
}

/// Compiles the program alone, see [`check`].
///
/// # Errors
///
/// The rendered diagnostics of a program that is refused.
pub fn compile(text: &str) -> Result<Program, String> {
    let compiled = check(text);
    compiled.program.ok_or_else(|| {
        format!(
            "refused:\n{}",
            render_all(&compiled.diagnostics, &compiled.sources, Color::Never)
        )
    })
}

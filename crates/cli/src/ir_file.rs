//! Reading a program in the text form of the intermediate representation.

use crate::exit::{CommandError, Failure};
use std::path::Path;

/// Reads `path`, which may hold any text, and verifies what it says.
///
/// # Errors
///
/// `IR001` if the file cannot be read, `IR002` if it is no program, `IR003` if the program
/// breaks a rule of the IR.
pub fn read(path: &Path) -> Result<stateplane_ir::Program, CommandError> {
    let place = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        CommandError::coded(Failure::Program, "IR001", format!("{place}: {error}"))
    })?;
    let program = stateplane_ir::parse(&text).map_err(|error| {
        CommandError::coded(Failure::Program, "IR002", format!("{place}:{error}"))
    })?;
    stateplane_ir::verify(&program).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let text = format!("{place}: {}", lines.join(&format!("\n{place}: ")));
        CommandError::coded(Failure::Program, "IR003", text)
    })?;
    Ok(program)
}

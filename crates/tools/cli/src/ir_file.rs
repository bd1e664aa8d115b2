//! Reading a program in the text form of the intermediate representation.

use crate::exit::{CommandError, Failure};
use crate::text_file;
use std::path::Path;

/// Why a file holds no program.
#[derive(Clone, Copy)]
enum Fault {
    /// The file cannot be read.
    Unreadable,
    /// The file is not the text form of the IR.
    Syntax,
    /// The program breaks a rule of the IR.
    Invalid,
}

impl Fault {
    const fn code(self) -> &'static str {
        match self {
            Fault::Unreadable => "IR001",
            Fault::Syntax => "IR002",
            Fault::Invalid => "IR003",
        }
    }

    fn told(self, message: String) -> CommandError {
        CommandError::coded(Failure::Program, self.code(), message)
    }
}

/// Reads `path`, which may hold any text, and verifies what it says.
///
/// # Errors
///
/// `IR001` if the file cannot be read, `IR002` if it is no program, `IR003` if the program
/// breaks a rule of the IR.
pub fn read(path: &Path) -> Result<stateplane_ir::Program, CommandError> {
    let place = path.display();
    let text = text_file::read(path)
        .map_err(|error| Fault::Unreadable.told(format!("{place}: {error}")))?;
    let program = stateplane_ir::parse(&text)
        .map_err(|error| Fault::Syntax.told(format!("{place}:{error}")))?;
    stateplane_ir::verify(&program).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let lines = lines.join(&format!("\n{place}: "));
        Fault::Invalid.told(format!("{place}: {lines}"))
    })?;
    Ok(program)
}

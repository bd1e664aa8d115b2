//! The choice of an engine.

use clap::ValueEnum;

/// The engine that runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
    /// Machine code, compiled when the program is loaded
    Native,
    /// Reference interpreter, tens of times slower
    Interp,
}

impl EngineChoice {
    /// Name of the engine, as it is written and shown.
    pub fn name(self) -> &'static str {
        match self {
            EngineChoice::Native => "native",
            EngineChoice::Interp => "interp",
        }
    }
}

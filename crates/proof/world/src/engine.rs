//! Engines by name.

/// Engine that runs a switch's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum EngineKind {
    /// Machine code.
    #[default]
    Native,
    /// The reference interpreter.
    Interp,
}

impl EngineKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Native, Self::Interp];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Interp => "interp",
        }
    }

    /// The engine of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

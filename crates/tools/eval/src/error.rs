//! Errors of experiments.

use stateplane_hazards::HazardError;
use stateplane_lab::LabError;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A failure of an experiment. Its text says what happened, where, and how to mend it.
#[derive(Debug, Error)]
pub enum EvalError {
    /// The lab refused.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// An option is out of range or contradicts another.
    #[error("{0}")]
    Options(String),
    /// A file could not be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        reason: std::io::Error,
    },
    /// A program, or the configuration of a switch or a store, was refused.
    #[error("{what}: {reason}")]
    Refused {
        /// Name of the thing.
        what: String,
        /// Why, as its reader says.
        reason: String,
    },
    /// A plot could not be drawn.
    #[error("the plot could not be drawn: {0}")]
    Plot(String),
    /// The external controller of a NAT lost whom it speaks to.
    #[error("the controller and {whom}: {reason}")]
    Controller {
        /// The switch, or a replica.
        whom: String,
        /// Description of the error.
        reason: String,
    },
    /// The model of hazards refused traffic or settings.
    #[error("{what}: {error}")]
    Hazard {
        /// Name of the traffic.
        what: String,
        /// Its reason.
        error: HazardError,
    },
    /// An experiment ran, and has nothing to show.
    #[error("{what} measured nothing: {reason}; logs are in {}", logs.display())]
    Nothing {
        /// The experiment or trial.
        what: String,
        /// Missing requirement.
        reason: String,
        /// Folder with the output of its processes.
        logs: PathBuf,
    },
}

impl EvalError {
    /// Stable code: `EV` and three digits, or that of the lab or of the model of hazards.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Lab(error) => error.code(),
            Self::Hazard { error, .. } => error.code(),
            Self::Options(_) => "EV001",
            Self::File { .. } => "EV002",
            Self::Refused { .. } => "EV003",
            Self::Plot(_) => "EV004",
            Self::Nothing { .. } => "EV005",
            Self::Controller { .. } => "EV006",
        }
    }

    pub(crate) fn controller(whom: impl Into<String>, reason: std::io::Error) -> Self {
        Self::Controller {
            whom: whom.into(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn hazard(what: impl AsRef<Path>, error: HazardError) -> Self {
        Self::Hazard {
            what: what.as_ref().display().to_string(),
            error,
        }
    }

    pub(crate) fn file(path: impl Into<PathBuf>, reason: std::io::Error) -> Self {
        Self::File {
            path: path.into(),
            reason,
        }
    }
}

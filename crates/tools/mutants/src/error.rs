//! Why no mutants can be run.

use std::io;
use std::path::{Path, PathBuf};

/// Why no mutants can be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("{}: {error}", path.display())]
    Format {
        path: PathBuf,
        error: Box<toml::de::Error>,
    },
    #[error("{command} cannot be run: {error}; install it and run again")]
    Command {
        command: &'static str,
        error: io::Error,
    },
    #[error("git ls-files: {0}; mutants are made in a checkout of the repository")]
    Git(String),
    #[error("no such mutants; --list without --only and --part tells all")]
    NoMutants,
    #[error("the outcomes cannot be written: {0}")]
    Output(io::Error),
}

impl Error {
    /// Error about the file at `path`.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |error| Error::File { path, error }
    }

    /// Why `command` could not be started.
    pub fn command(command: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |error| Error::Command { command, error }
    }
}

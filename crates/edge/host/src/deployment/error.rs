//! Why a deployment's file is refused.

use std::io;
use std::path::{Path, PathBuf};

use stateplane_diagnostics::nearest;

use super::keys::{Section, Unknown};

/// Why a deployment's file is refused.
#[derive(Debug, thiserror::Error)]
pub enum DeploymentError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {cause}; name an existing file with --config", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// The file is not TOML, or a value is not of its key's kind.
    #[error("{}: {cause}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line, column and what is wrong there.
        cause: Box<toml::de::Error>,
    },
    /// A key, or a section, that there is not.
    #[error("{}:{at}: there is no key `{key}` here; {help}", path.display())]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// Line and column of the key, from 1.
        at: Position,
        /// The key.
        key: String,
        /// The nearest known key, or all of them.
        help: String,
    },
    /// A key of one section outside of it.
    #[error(
        "{}:{at}: `{key}` belongs to the section [{section}]: move it there{}",
        path.display(), header.as_ref().map_or(String::new(), |header| format!(", as {header}"))
    )]
    Misplaced {
        /// The file.
        path: PathBuf,
        /// Line and column of the key, from 1.
        at: Position,
        /// The key.
        key: String,
        /// The section that has it.
        section: &'static str,
        /// The header with which the key stands there, if it is a table.
        header: Option<String>,
    },
    /// The section of a system that a command needs.
    #[error("{}: there is no [{name}] section: add one", path.display())]
    NoSection {
        /// The file.
        path: PathBuf,
        /// The section.
        name: &'static str,
    },
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl DeploymentError {
    /// The error for what the TOML reader says of `text`, the contents of the file at `path`;
    /// `sections` are all sections and their keys.
    pub(super) fn of_parser(
        path: &Path,
        text: &str,
        cause: toml::de::Error,
        sections: &[Section],
    ) -> DeploymentError {
        let path = path.to_owned();
        let start = cause.span().map(|span| span.start);
        let place = start.and_then(|start| Some((text.get(..start)?, text.get(start..)?)));
        let unknown = Unknown::of_message(cause.message());
        let (Some((before, behind)), Some(unknown)) = (place, unknown) else {
            let cause = Box::new(cause);
            return DeploymentError::Parse { path, cause };
        };
        let at = Position::behind(before);
        let key = unknown.key.to_owned();
        let has = |section: &&Section| (section.keys)().contains(&unknown.key);
        if let Some(Section { name: section, .. }) = sections.iter().find(has) {
            let line = before.rsplit('\n').next().unwrap_or_default();
            let brackets = match line.trim() {
                "[[" => Some(("[[", "]]")),
                "[" => Some(("[", "]")),
                _ => None,
            };
            let rest = behind.split(']').next().unwrap_or_default();
            return DeploymentError::Misplaced {
                path,
                at,
                key,
                section,
                header: brackets.map(|(open, close)| format!("{open}{section}.{rest}{close}")),
            };
        }
        let help = match nearest(unknown.key, unknown.known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if unknown.known.is_empty() => "there are none".to_owned(),
            None => format!("there are `{}`", unknown.known.join("`, `")),
        };
        DeploymentError::UnknownKey {
            path,
            at,
            key,
            help,
        }
    }

    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            DeploymentError::Read { .. } => "H101",
            DeploymentError::Parse { .. } => "H102",
            DeploymentError::UnknownKey { .. } => "H124",
            DeploymentError::Misplaced { .. } => "H125",
            DeploymentError::NoSection { .. } => "H126",
        }
    }
}

impl Position {
    /// The place behind `text`.
    fn behind(text: &str) -> Position {
        let line = text.rsplit('\n').next().unwrap_or_default();
        Position {
            line: text.matches('\n').count() + 1,
            column: line.chars().count() + 1,
        }
    }
}

//! Sources of files' texts.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a file cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// There is no such file; the next place is searched.
    NotFound,
    /// There is one, but it cannot be read; the reason is shown to the user.
    Unreadable(String),
}

/// Gives the texts of files, so that this crate does no IO.
pub trait FileLoader {
    /// The text of the file at `path`, whose parts are separated by `/`.
    ///
    /// # Errors
    /// See [`LoadError`].
    fn load(&self, path: &str) -> Result<Arc<str>, LoadError>;

    /// The names of the files in `folder`, in any order, for suggestions; empty where
    /// they are not known.
    fn names(&self, _folder: &str) -> Vec<String> {
        Vec::new()
    }
}

/// Files held in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryLoader {
    files: BTreeMap<String, Arc<str>>,
}

impl MemoryLoader {
    /// A loader without files.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, or replaces it.
    #[must_use]
    pub fn with(mut self, path: impl Into<String>, text: impl Into<Arc<str>>) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }
}

impl FileLoader for MemoryLoader {
    fn load(&self, path: &str) -> Result<Arc<str>, LoadError> {
        self.files.get(path).cloned().ok_or(LoadError::NotFound)
    }

    fn names(&self, folder_wanted: &str) -> Vec<String> {
        self.files
            .keys()
            .filter(|path| folder(path) == folder_wanted)
            .filter_map(|path| path.rsplit('/').next())
            .map(str::to_owned)
            .collect()
    }
}

/// The path of `name` as seen from the folder `folder`, with `.` and `..` resolved as far as
/// the text allows.
pub(crate) fn join(folder: &str, name: &str) -> String {
    let (root, parts) = if name.starts_with('/') {
        ("/", name.to_owned())
    } else {
        (
            if folder.starts_with('/') { "/" } else { "" },
            format!("{folder}/{name}"),
        )
    };
    let mut kept: Vec<&str> = Vec::new();
    for part in parts.split('/') {
        match part {
            "" | "." => {}
            ".." if kept.last().is_some_and(|&last| last != "..") => {
                kept.pop();
            }
            _ => kept.push(part),
        }
    }
    format!("{root}{}", kept.join("/"))
}

/// The folder of a file; empty for a bare name.
pub(crate) fn folder(path: &str) -> &str {
    path.rfind('/')
        .map_or("", |at| if at == 0 { "/" } else { &path[..at] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_textually() {
        assert_eq!(join("", "a.p4"), "a.p4");
        assert_eq!(join("x/y", "../a.p4"), "x/a.p4");
        assert_eq!(join("", "../a.p4"), "../a.p4");
        assert_eq!(join("/usr", "p4/./a"), "/usr/p4/a");
        assert_eq!(join("x", "/abs/a"), "/abs/a");
        assert_eq!(folder("x/y.p4"), "x");
        assert_eq!(folder("y.p4"), "");
        assert_eq!(folder("/y.p4"), "/");
    }
}

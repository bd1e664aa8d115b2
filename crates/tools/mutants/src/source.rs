//! Texts in which mutants are looked for.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Why a mutant does not apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotApplicable {
    #[error("its text does not occur below {0}")]
    Nowhere(String),
    #[error("its text occurs {count} times below {folder}; make it longer")]
    Often { count: usize, folder: String },
    #[error("it replaces a text by itself")]
    Same,
}

/// A file that a mutant changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub path: PathBuf,
    /// Its text without the mutant.
    pub original: String,
    /// Its text with the mutant.
    pub mutated: String,
}

impl Change {
    /// True if tests must be built anew: they read P4 sources when they run.
    pub fn is_rust(&self) -> bool {
        self.path.extension().is_some_and(|ending| ending == "rs")
    }
}

/// The sources below a folder.
#[derive(Debug, Clone)]
pub struct Sources {
    folder: String,
    files: Vec<(PathBuf, String)>,
}

impl Sources {
    /// Reads the Rust and P4 sources below `folder`, or the one that it is, of the
    /// repository at `root`.
    pub fn read(root: &Path, folder: &str) -> Result<Sources, Error> {
        let mut files = Vec::new();
        let mut paths = vec![root.join(folder)];
        while let Some(path) = paths.pop() {
            if path.is_dir() {
                for entry in fs::read_dir(&path).map_err(Error::file(&path))? {
                    paths.push(entry.map_err(Error::file(&path))?.path());
                }
            } else if path.extension().is_some_and(|e| e == "rs" || e == "p4") {
                let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
                files.push((path, text));
            }
        }
        Ok(Sources {
            folder: folder.to_owned(),
            files,
        })
    }

    /// The change by which `replace` takes the place of the one `find`.
    pub fn change(&self, find: &str, replace: &str) -> Result<Change, NotApplicable> {
        if find == replace {
            return Err(NotApplicable::Same);
        }
        let times = |text: &str| text.matches(find).count();
        let count: usize = self.files.iter().map(|(_, text)| times(text)).sum();
        let found = self.files.iter().find(|(_, text)| text.contains(find));
        match found {
            Some((path, text)) if count == 1 => Ok(Change {
                path: path.clone(),
                original: text.clone(),
                mutated: text.replacen(find, replace, 1),
            }),
            Some(_) => Err(NotApplicable::Often {
                count,
                folder: self.folder.clone(),
            }),
            None => Err(NotApplicable::Nowhere(self.folder.clone())),
        }
    }

    /// True if `word` occurs as a whole word of Rust.
    #[cfg(test)]
    pub fn has_word(&self, word: &str) -> bool {
        let in_word = |c: char| c.is_alphanumeric() || c == '_';
        self.files.iter().any(|(_, text)| {
            text.match_indices(word).any(|(at, _)| {
                !text[..at].ends_with(in_word) && !text[at + word.len()..].starts_with(in_word)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(texts: &[&str]) -> (tempfile::TempDir, Sources) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("src/deep")).unwrap();
        for (number, text) in texts.iter().enumerate() {
            let name = format!("src/deep/{number}.rs");
            fs::write(folder.path().join(name), text).unwrap();
        }
        fs::write(folder.path().join("src/a.txt"), "if a < b {").unwrap();
        let sources = Sources::read(folder.path(), "src").unwrap();
        (folder, sources)
    }

    #[test]
    fn a_text_that_occurs_once_is_replaced() {
        let (folder, sources) = sources(&["fn f() {}", "if a < b {\n    c();\n}\n"]);
        let change = sources.change("a < b {\n    c", "a > b {\n    c").unwrap();
        assert_eq!(change.path, folder.path().join("src/deep/1.rs"));
        assert_eq!(change.original, "if a < b {\n    c();\n}\n");
        assert_eq!(change.mutated, "if a > b {\n    c();\n}\n");
    }

    #[test]
    fn a_text_that_occurs_elsewhere_too_is_not() {
        for texts in [["a < b, a < b", ""], ["a < b", "a < b"]] {
            let (_folder, sources) = sources(&texts);
            let refused = sources.change("a < b", "a > b").unwrap_err();
            assert_eq!(
                refused,
                NotApplicable::Often {
                    count: 2,
                    folder: "src".to_owned()
                }
            );
        }
    }

    #[test]
    fn a_text_that_is_gone_is_not() {
        let (_folder, sources) = sources(&["a <= b"]);
        let nowhere = NotApplicable::Nowhere("src".to_owned());
        assert_eq!(sources.change("a < b", "a > b"), Err(nowhere));
        assert_eq!(sources.change("a", "a"), Err(NotApplicable::Same));
    }

    #[test]
    fn words_are_whole() {
        let (_folder, sources) = sources(&["fn order_of_release() {}"]);
        assert!(sources.has_word("order_of_release"));
        assert!(!sources.has_word("order_of"));
        assert!(!sources.has_word("release"));
    }
}

//! The P4 files that come with Stateplane, as text: `core.p4` and `v1model.p4`, the
//! replication library, and the applications. They are part of the binary, so that it
//! works wherever it is copied.

use stateplane_syntax::{FileLoader, LoadError, Options};
use std::sync::Arc;

/// Front of the paths of built-in files, which no file system has.
const ROOT: &str = "<stateplane>";

// `LIBRARY`: texts of the library, by their paths below `p4/`. `ROOMS`: programs and `app.toml` of
// the applications, by their paths from the repository's root.
include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Paths and texts of all built-in files.
fn files() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    LIBRARY.iter().chain(ROOMS.iter())
}

/// The path by which [`WithLibrary`] gives the built-in file `path`: `include/core.p4` or
/// `lib/ipv4.p4` below `p4/`, or `apps/nat/nat.p4`.
pub fn path_of(path: &str) -> String {
    format!("{ROOT}/{path}")
}

/// The text of the built-in file `path`, as [`path_of`] takes it.
pub fn text(path: &str) -> Option<&'static str> {
    let found = files().find(|(name, _)| *name == path);
    found.map(|(_, text)| *text)
}

/// The path, as [`path_of`] gives it, of the file of the library of which the file at `path` is a copy: one in
/// another folder, with the same text.
pub fn copied(path: &str, copy: &str) -> Option<String> {
    let found = LIBRARY.iter().find(|(name, text)| {
        let below = name.strip_prefix("lib/");
        below.is_some_and(|below| path == below || path.ends_with(&format!("/{below}")))
            && *text == copy
    });
    found.map(|(name, _)| path_of(name))
}

/// Options that search the built-in folders after those of `options`.
pub fn with_library(mut options: Options) -> Options {
    options.include_dirs.push(path_of("include"));
    options.include_dirs.push(path_of("lib"));
    options
}

/// The text of a packet test that the script at `script` includes as `path`: a file beside it,
/// which `read` gives, or one of `p4/lib`.
pub fn included_script(
    script: &str,
    path: &str,
    read: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let folder = script.rfind('/').map_or("", |end| &script[..=end]);
    let library = |path: &str| {
        let mut library = LIBRARY.iter();
        let found = library.find(|(name, _)| name.strip_prefix("lib/") == Some(path));
        found.map(|(_, text)| (*text).to_owned())
    };
    read(&format!("{folder}{path}")).or_else(|| library(path))
}

/// Gives built-in files, and all others from another loader.
pub struct WithLibrary<L>(pub L);

impl<L: FileLoader> FileLoader for WithLibrary<L> {
    fn load(&self, path: &str) -> Result<Arc<str>, LoadError> {
        match path.strip_prefix(ROOT) {
            None => self.0.load(path),
            Some(rest) => rest
                .strip_prefix('/')
                .and_then(text)
                .map(Arc::from)
                .ok_or(LoadError::NotFound),
        }
    }

    fn names(&self, folder: &str) -> Vec<String> {
        match folder.strip_prefix(ROOT) {
            None => self.0.names(folder),
            Some(rest) => files()
                .filter_map(|(name, _)| name.rsplit_once('/'))
                .filter(|(front, _)| rest.strip_prefix('/') == Some(front))
                .map(|(_, name)| name.to_owned())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_diagnostics::{Color, render_all};
    use stateplane_syntax::{MemoryLoader, parse};

    #[test]
    fn every_built_in_program_can_be_read() {
        let loader = WithLibrary(MemoryLoader::new());
        let programs = ROOMS.iter().filter(|(name, _)| name.ends_with(".p4"));
        for (name, _) in programs {
            let options = with_library(Options::default());
            let parsed = parse(&loader, &path_of(name), &options);
            let rendered = render_all(&parsed.diagnostics, &parsed.sources, Color::Never);
            assert!(parsed.diagnostics.is_empty(), "{name}: {rendered}");
        }
    }

    #[test]
    fn other_paths_go_to_the_other_loader() {
        let loader = WithLibrary(MemoryLoader::new().with("mine.p4", "header h {}"));
        assert!(loader.load("mine.p4").is_ok());
        assert!(loader.load("core.p4").is_err());
        assert!(loader.load(&path_of("include/core.p4")).is_ok());
    }
}

//! Mutants as they are kept: `mutants.toml` beside the tests.
//!
//! ```toml
//! mutates = "crates/systems/replication/store/src"   # the folder whose sources are searched
//!
//! [[mutant]]
//! name = "epoch-not-compared"    # unlike that of every other mutant
//! breaks = "rule 12: a write under an older epoch is applied"
//! find = "if request.epoch != record.epoch {"      # occurs exactly once in the folder
//! replace = "if false {"
//! test = ["stateplane-store", "scenarios", "rule_12_fencing"]   # package, target, test
//! ```
//!
//! The target is `lib` or the name of an integration test.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::Error;

/// A test: package, `lib` or the name of an integration test, and its path there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(from = "(String, String, String)")]
pub struct Test {
    pub package: String,
    pub target: String,
    pub name: String,
}

impl Test {
    /// Package and target from which the test's binary is built.
    pub fn binary(&self) -> (&str, &str) {
        (&self.package, &self.target)
    }
}

impl From<(String, String, String)> for Test {
    fn from((package, target, name): (String, String, String)) -> Test {
        Test {
            package,
            target,
            name,
        }
    }
}

/// One replacement of text that breaks one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// The folder whose sources are searched, relative to the repository.
    pub mutates: String,
    /// Its name, unlike that of every other mutant.
    pub name: String,
    /// The rule or invariant that is lost.
    pub breaks: String,
    /// Text that occurs once.
    pub find: String,
    /// Replacement text.
    pub replace: String,
    /// The test that kills it.
    pub test: Test,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    mutates: String,
    #[serde(default)]
    mutant: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    breaks: String,
    find: String,
    replace: String,
    test: Test,
}

/// The folders of the crates of the repository at `root`.
fn crates(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut open = vec![root.join("crates")];
    while let Some(folder) = open.pop() {
        if folder.join("Cargo.toml").exists() {
            found.push(folder);
            continue;
        }
        for entry in fs::read_dir(&folder).map_err(Error::file(&folder))? {
            let path = entry.map_err(Error::file(&folder))?.path();
            if path.is_dir() {
                open.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The mutants in `text`, which is that of the file at `path`.
fn parse(path: &Path, text: &str) -> Result<Vec<Mutant>, Error> {
    let file: File = toml::from_str(text).map_err(|error| Error::Format {
        path: path.to_owned(),
        error: Box::new(error),
    })?;
    let mutates = file.mutates;
    let mutant = |entry: Entry| Mutant {
        mutates: mutates.clone(),
        name: entry.name,
        breaks: entry.breaks,
        find: entry.find,
        replace: entry.replace,
        test: entry.test,
    };
    Ok(file.mutant.into_iter().map(mutant).collect())
}

/// All mutants of the repository at `root`.
pub fn read_all(root: &Path) -> Result<Vec<Mutant>, Error> {
    let mut mutants = Vec::new();
    for folder in crates(root)? {
        let path = folder.join("tests/mutants.toml");
        if !path.exists() {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
        mutants.extend(parse(&path, &text)?);
    }
    Ok(mutants)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::source::Sources;

    fn root() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..")
    }

    #[derive(Deserialize)]
    struct Manifest {
        package: Package,
    }

    #[derive(Deserialize)]
    struct Package {
        name: String,
    }

    /// Folders of the packages by name, relative to the repository.
    fn folders() -> BTreeMap<String, String> {
        let pairs = crates(&root()).unwrap().into_iter().map(|folder| {
            let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
            let manifest: Manifest = toml::from_str(&text).unwrap();
            let path = folder.strip_prefix(root()).unwrap().to_string_lossy();
            (manifest.package.name, path.into_owned())
        });
        pairs.collect()
    }

    /// Folder of a test: the sources of its crate, or those of the integration test.
    fn place_of(folders: &BTreeMap<String, String>, test: &Test) -> String {
        let folder = &folders[&test.package];
        let file = format!("{folder}/tests/{}.rs", test.target);
        match test.target.as_str() {
            "lib" => format!("{folder}/src"),
            _ if root().join(&file).exists() => file,
            target => format!("{folder}/tests/{target}"),
        }
    }

    #[test]
    fn every_mutant_applies_once_and_names_a_test() {
        let mutants = read_all(&root()).unwrap();
        let folders = folders();
        let mut sources: BTreeMap<String, Sources> = BTreeMap::new();
        let mut names = BTreeSet::new();
        let mut wrong = Vec::new();
        for mutant in &mutants {
            let name = &mutant.name;
            if !names.insert(name) {
                wrong.push(format!("{name}: another has its name"));
            }
            let place = place_of(&folders, &mutant.test);
            for folder in [&mutant.mutates, &place] {
                if !sources.contains_key(folder) {
                    let read = Sources::read(&root(), folder).unwrap();
                    sources.insert(folder.clone(), read);
                }
            }
            let change = sources[&mutant.mutates].change(&mutant.find, &mutant.replace);
            if let Err(error) = change {
                wrong.push(format!("{name}: {error}"));
            }
            let function = mutant.test.name.rsplit("::").next().unwrap_or_default();
            if !sources[&place].has_word(function) {
                wrong.push(format!("{name}: no test {:?}", mutant.test));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(mutants.len() >= 150, "only {} mutants", mutants.len());
    }

    #[test]
    fn a_file_says_which_folder_and_what_in_it() {
        let text = r#"
            mutates = "crates/systems/replication/store/src"
            [[mutant]]
            name = "flipped"
            breaks = "rule 1"
            find = "a < b"
            replace = "a > b"
            test = ["stateplane-store", "lib", "tests::order"]
        "#;
        let mutants = parse(Path::new("mutants.toml"), text).unwrap();
        assert_eq!(mutants[0].mutates, "crates/systems/replication/store/src");
        assert_eq!(mutants[0].test.target, "lib");
        let wrong = text.replace("breaks", "spoils");
        let error = parse(Path::new("mutants.toml"), &wrong).unwrap_err();
        assert!(error.to_string().contains("spoils"), "{error}");
    }
}

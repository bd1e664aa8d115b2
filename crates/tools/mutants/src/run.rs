//! One mutant after another.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::cargo::{self, Binary, Cargo, Ran};
use crate::error::Error;
use crate::mutant::{Mutant, Test};
use crate::outcome::{Outcome, line};
use crate::source::{Change, Sources};
use crate::tree;

/// The time that a test may take without a mutant.
const LONGEST: Duration = Duration::from_secs(300);

/// Additional time for a test with a mutant, beside ten times its time without.
const SLACK: Duration = Duration::from_secs(10);

/// Puts side by side what is built alike.
pub fn sort(mutants: &mut [Mutant]) {
    mutants.sort_by_cached_key(|m| (m.test.clone(), m.mutates.clone(), m.name.clone()));
}

/// A mutant in its place, which it leaves when this is dropped.
struct Applied<'a>(&'a Change);

impl Applied<'_> {
    fn new(change: &Change) -> Result<Applied<'_>, Error> {
        fs::write(&change.path, &change.mutated).map_err(Error::file(&change.path))?;
        Ok(Applied(change))
    }
}

impl Drop for Applied<'_> {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.0.path, &self.0.original) {
            eprintln!("stateplane-mutants: {}: {error}", self.0.path.display());
        }
    }
}

/// Runs `mutants` of the repository at `root`; `tells` of each as it goes.
pub fn run(root: &Path, mutants: &[Mutant], tells: bool) -> Result<Vec<Outcome>, Error> {
    let (tree, target) = cargo::folders(root);
    tree::copy(root, &tree::files(root)?, &tree)?;
    let mut run = Run {
        cargo: Cargo::new(tree.clone(), target),
        tree,
        sources: BTreeMap::new(),
        tests: BTreeMap::new(),
        stale: false,
    };
    let style = ProgressStyle::with_template("{pos}/{len} {wide_bar} {eta} left  {msg}");
    let bar = ProgressBar::new(mutants.len() as u64);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut outcomes = Vec::new();
    for group in mutants.chunk_by(|a, b| a.test.binary() == b.test.binary()) {
        bar.set_message(format!(
            "building {} {}",
            group[0].test.package, group[0].test.target
        ));
        run.learn(&group.iter().map(|mutant| &mutant.test).collect())?;
        for mutant in group {
            bar.set_message(mutant.name.clone());
            let begin = Instant::now();
            let outcome = run.judge(mutant)?;
            if tells {
                let seconds = begin.elapsed().as_secs_f64();
                bar.suspend(|| println!("{}", line(mutant, &outcome, seconds)));
            }
            outcomes.push(outcome);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(outcomes)
}

struct Run {
    cargo: Cargo,
    tree: PathBuf,
    sources: BTreeMap<String, Sources>,
    /// Tests without a mutant, or why they cannot judge one.
    tests: BTreeMap<Test, Result<Learnt, String>>,
    /// True if the last build was of a mutant, so that binaries may hold it.
    stale: bool,
}

/// A test that passes without a mutant.
#[derive(Clone)]
struct Learnt {
    binary: Binary,
    /// The time that it may take with a mutant.
    limit: Duration,
}

impl Run {
    /// Runs `tests`, which are in one binary, without a mutant.
    fn learn(&mut self, tests: &BTreeSet<&Test>) -> Result<(), Error> {
        let Some(first) = tests.first() else {
            return Ok(());
        };
        let binary = self.cargo.build(first)?;
        self.stale = false;
        for test in tests {
            let learnt = match &binary {
                Err(said) => Err(format!("without the mutant it does not build:\n{said}")),
                Ok(binary) => match binary.run(&test.name, LONGEST)? {
                    Ran::Passed(took) => Ok(Learnt {
                        binary: binary.clone(),
                        limit: SLACK + took * 10,
                    }),
                    Ran::Failed(said) => Err(format!("without the mutant it fails:\n{said}")),
                    Ran::TimedOut => Err("without the mutant it takes too long".to_owned()),
                },
            };
            self.tests.insert((*test).clone(), learnt);
        }
        Ok(())
    }

    fn judge(&mut self, mutant: &Mutant) -> Result<Outcome, Error> {
        if !self.sources.contains_key(&mutant.mutates) {
            let sources = Sources::read(&self.tree, &mutant.mutates)?;
            self.sources.insert(mutant.mutates.clone(), sources);
        }
        let change = self.sources[&mutant.mutates].change(&mutant.find, &mutant.replace);
        let change = match change {
            Ok(change) => change,
            Err(why) => return Ok(Outcome::NotApplicable(why.to_string())),
        };
        let Learnt { binary, limit } = match &self.tests[&mutant.test] {
            Ok(learnt) => learnt.clone(),
            Err(why) => return Ok(Outcome::NoTest(why.clone())),
        };
        let _applied = Applied::new(&change)?;
        let binary = if change.is_rust() || self.stale {
            self.stale = change.is_rust();
            match self.cargo.build(&mutant.test)? {
                Ok(binary) => binary,
                Err(said) => return Ok(Outcome::DoesNotBuild(said)),
            }
        } else {
            binary
        };
        Ok(match binary.run(&mutant.test.name, limit)? {
            Ran::Passed(_) => Outcome::Survived,
            Ran::Failed(_) => Outcome::Killed,
            Ran::TimedOut => Outcome::TimedOut,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutant_leaves_the_text_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rs");
        fs::write(&path, "a < b").unwrap();
        let sources = Sources::read(folder.path(), ".").unwrap();
        let change = sources.change("a < b", "a > b").unwrap();
        let path = &change.path;
        let applied = Applied::new(&change).unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "a > b");
        drop(applied);
        assert_eq!(fs::read_to_string(path).unwrap(), "a < b");
    }
}

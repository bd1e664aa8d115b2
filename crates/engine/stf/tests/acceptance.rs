//! The reference compiler's own tests: programs that have to be accepted, packet tests that
//! have to pass, programs that have to be refused.
//!
//! They are not part of this repository. Where the environment variable `P4C_TESTDATA` names
//! the folder `testdata` of a copy of p4lang/p4c, the test runs them, prints the figures, and
//! compares what fails with the lists in `docs/p4c-samples.md`; elsewhere it says that it
//! did not.

#![allow(clippy::disallowed_methods)] // A thread each, so that one that hangs is found.

use stateplane_compile::Source;
use stateplane_interp::{Interp, Options};
use stateplane_stf::{parse, run_all};
use stateplane_syntax::{FileLoader, LoadError};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A program or packet test that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(10);

/// Least share of the packet tests that pass, in percent.
const LEAST_PASSED: f64 = 97.0;

/// Least share of the wrong programs that are refused, in percent.
const LEAST_REFUSED: f64 = 95.0;

const LISTS: &str = include_str!("../../../../docs/p4c-samples.md");

struct Files;

impl FileLoader for Files {
    fn load(&self, path: &str) -> Result<Arc<str>, LoadError> {
        match fs::read(path) {
            // Some programs have comments in other encodings than UTF-8.
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned().into()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(LoadError::NotFound),
            Err(error) => Err(LoadError::Unreadable(error.to_string())),
        }
    }
}

/// Outcome of a program or packet test.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Good,
    /// Refused or failed: the first line of why.
    Bad(String),
    Panicked(String),
    Hung,
}

/// The samples for other architectures need their include files.
fn source(program: &Path) -> Source<Files> {
    let testdata = program
        .ancestors()
        .find(|folder| folder.ends_with("testdata"));
    let include = testdata
        .and_then(Path::parent)
        .map(|p4c| p4c.join("p4include").to_string_lossy().into_owned());
    Source::new(Files, &program.to_string_lossy()).include_dirs(include)
}

fn check(program: &Path) -> Result<stateplane_ir::Program, String> {
    source(program).program().map_err(|refused| {
        let mut diagnostics = refused.diagnostics.iter();
        let first = diagnostics.find(|diagnostic| diagnostic.is_error());
        first.map_or_else(
            || "refused without an error".to_owned(),
            |first| format!("{}: {}", first.code.id(), first.message),
        )
    })
}

/// Runs the packet test of `program`; the error says why it fails.
fn test(program: &Path) -> Result<(), String> {
    let script = program.with_extension("stf");
    let ir = check(program)?;
    let bytes = fs::read(&script).map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&bytes);
    let parsed = parse(&script.to_string_lossy(), &text).map_err(|error| error.to_string())?;
    let engine = Interp::new(ir, Options::default()).map_err(|error| error.to_string())?;
    match run_all(&parsed, engine).first() {
        None => Ok(()),
        Some(failure) => Err(format!("line {}: {}", failure.line, failure.cause)),
    }
}

/// Runs `work` on each of `files` with the time limit.
fn outcomes<T: Send + 'static>(
    files: &[PathBuf],
    work: fn(&Path) -> Result<T, String>,
) -> Vec<Outcome> {
    files.iter().map(|file| outcome(file, work)).collect()
}

fn outcome<T: Send + 'static>(file: &Path, work: fn(&Path) -> Result<T, String>) -> Outcome {
    let (sender, receiver) = channel();
    let file = file.to_owned();
    std::thread::Builder::new()
        .stack_size(8 << 20)
        .spawn(move || {
            let _ = sender.send(work(&file).map(|_| ()));
        })
        .expect("a thread");
    match receiver.recv_timeout(LIMIT) {
        Ok(Ok(())) => Outcome::Good,
        Ok(Err(why)) => Outcome::Bad(why),
        Err(RecvTimeoutError::Timeout) => Outcome::Hung,
        Err(RecvTimeoutError::Disconnected) => {
            let message = LAST_PANIC
                .lock()
                .map(|last| last.clone())
                .unwrap_or_default();
            Outcome::Panicked(message)
        }
    }
}

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// All files under `folder` that end so, by path.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// True if a program is one that the reference compiler's BMv2 tests compile.
fn is_bmv2_sample(program: &Path) -> bool {
    let path = program.to_string_lossy();
    let chosen = path.ends_with("-bmv2.p4")
        || path.contains("/parser-inline/")
        || path.contains("/omec/")
        || path.contains("/pins/")
        || path.ends_with("fabric.p4");
    chosen && includes_v1model(program)
}

fn includes_v1model(program: &Path) -> bool {
    let text = fs::read(program).unwrap_or_default();
    String::from_utf8_lossy(&text)
        .lines()
        .any(|line| line.contains("include") && line.contains("v1model.p4"))
        || program.ends_with("fabric.p4")
}

/// The names listed under a heading of `docs/p4c-samples.md`: the first cell of each row.
fn listed(heading: &str) -> BTreeSet<String> {
    let section = LISTS
        .split("\n## ")
        .find(|section| section.lines().next() == Some(heading))
        .unwrap_or_else(|| panic!("docs/p4c-samples.md has no section `{heading}`"));
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// One of the four parts of the test: prints its figures; what is wrong goes to `wrong`.
struct Part<'a> {
    title: &'static str,
    folder: &'a Path,
    files: Vec<PathBuf>,
    outcomes: Vec<Outcome>,
}

impl<'a> Part<'a> {
    fn new<T: Send + 'static>(
        title: &'static str,
        folder: &'a Path,
        files: Vec<PathBuf>,
        work: fn(&Path) -> Result<T, String>,
    ) -> Part<'a> {
        let outcomes = outcomes(&files, work);
        Part {
            title,
            folder,
            files,
            outcomes,
        }
    }

    fn count(&self, is_meant: impl Fn(&Outcome) -> bool) -> usize {
        self.outcomes
            .iter()
            .filter(|outcome| is_meant(outcome))
            .count()
    }

    fn share(&self, count: usize) -> f64 {
        100.0 * count as f64 / self.files.len().max(1) as f64
    }

    /// Names, from the folder on, and outcomes of what came out so.
    fn such(&self, is_meant: impl Fn(&Outcome) -> bool) -> Vec<(String, &Outcome)> {
        let pairs = self.files.iter().zip(&self.outcomes);
        pairs
            .filter(|(_, outcome)| is_meant(outcome))
            .map(|(file, outcome)| {
                let name = file.strip_prefix(self.folder).unwrap_or(file);
                (name.to_string_lossy().into_owned(), outcome)
            })
            .collect()
    }

    /// Reports panics and hangs, of which none is allowed.
    fn no_crash(&self, wrong: &mut Vec<String>) {
        for (name, outcome) in self.such(|o| matches!(o, Outcome::Panicked(_) | Outcome::Hung)) {
            wrong.push(format!("{}: {name}: {outcome:?}", self.title));
        }
    }

    /// Reports where what came out so is not what the document lists under the title.
    fn as_listed(&self, is_meant: impl Fn(&Outcome) -> bool, wrong: &mut Vec<String>) {
        let listed = listed(self.title);
        let found = self.such(is_meant);
        for (name, outcome) in &found {
            if !listed.contains(name) {
                wrong.push(format!("{}: {name} is not listed: {outcome:?}", self.title));
            }
        }
        for name in listed {
            if !found.iter().any(|(found, _)| *found == name) {
                wrong.push(format!(
                    "{}: {name} is listed, but has no fault",
                    self.title
                ));
            }
        }
    }
}

#[test]
fn the_reference_compilers_tests() {
    let Some(testdata) = std::env::var_os("P4C_TESTDATA") else {
        println!("not run: P4C_TESTDATA does not name a testdata folder of p4lang/p4c");
        return;
    };
    let testdata = PathBuf::from(testdata);
    let samples = testdata.join("p4_16_samples");
    let errors = testdata.join("p4_16_errors");
    let all = files(&samples, "p4");
    assert!(
        !all.is_empty(),
        "there are no programs in {}",
        samples.display()
    );
    std::panic::set_hook(Box::new(|info| {
        if let Ok(mut last) = LAST_PANIC.lock() {
            *last = info.to_string();
        }
    }));
    let mut wrong = Vec::new();
    let bad = |outcome: &Outcome| *outcome != Outcome::Good;

    let chosen: Vec<PathBuf> = all
        .iter()
        .filter(|program| is_bmv2_sample(program))
        .cloned()
        .collect();
    let part = Part::new("Programs that are refused", &samples, chosen, check);
    println!(
        "accepted: {} of {} programs of the BMv2 tests",
        part.count(|outcome| !bad(outcome)),
        part.files.len()
    );
    part.as_listed(bad, &mut wrong);

    let with_script: Vec<PathBuf> = all
        .iter()
        .filter(|program| program.with_extension("stf").exists() && includes_v1model(program))
        .cloned()
        .collect();
    let part = Part::new("Packet tests that fail", &samples, with_script, test);
    let passed = part.count(|outcome| !bad(outcome));
    let share = part.share(passed);
    println!(
        "packet tests: {passed} of {} pass ({share:.1} %)",
        part.files.len()
    );
    if share < LEAST_PASSED {
        wrong.push(format!("only {share:.1} % of the packet tests pass"));
    }
    part.as_listed(bad, &mut wrong);
    part.no_crash(&mut wrong);

    let part = Part::new(
        "Wrong programs that are accepted",
        &errors,
        files(&errors, "p4"),
        check,
    );
    let refused = part.count(|outcome| matches!(outcome, Outcome::Bad(_)));
    let share = part.share(refused);
    println!(
        "wrong programs: {refused} of {} refused ({share:.1} %)",
        part.files.len()
    );
    if share < LEAST_REFUSED {
        wrong.push(format!(
            "only {share:.1} % of the wrong programs are refused"
        ));
    }
    part.as_listed(|outcome| *outcome == Outcome::Good, &mut wrong);
    part.no_crash(&mut wrong);

    let count = all.len();
    let part = Part::new("All programs", &samples, all, check);
    part.no_crash(&mut wrong);
    let crashed = part.count(|o| matches!(o, Outcome::Panicked(_) | Outcome::Hung));
    println!("all architectures: {crashed} of {count} programs make the compiler panic or hang");

    let _ = std::panic::take_hook();
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

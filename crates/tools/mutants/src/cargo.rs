//! Building one test binary, and running one test of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::error::Error;
use crate::mutant::Test;

/// Bytes of address space for a test; a mutant may ask for memory for ever.
const MEMORY: u64 = 16 << 30;

/// Builds tests in a folder of its own.
#[derive(Debug)]
pub struct Cargo {
    tree: PathBuf,
    target: PathBuf,
}

/// A test binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    path: PathBuf,
    /// The folder of its package.
    folder: PathBuf,
}

/// Result of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ran {
    Passed(Duration),
    /// The test failed, with this output.
    Failed(String),
    TimedOut,
}

#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

impl Cargo {
    pub fn new(tree: PathBuf, target: PathBuf) -> Cargo {
        Cargo { tree, target }
    }

    /// Builds the binary that `test` is in; or tells what the compiler says.
    pub fn build(&self, test: &Test) -> Result<Result<Binary, String>, Error> {
        let mut command = Command::new("cargo");
        command
            .args(["test", "--no-run", "--locked", "--quiet"])
            .args(["--message-format", "json-render-diagnostics"])
            .args(["--package", &test.package])
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.target)
            // What it says of a mutant is of no interest, and it may build with it.
            .env("RUSTFLAGS", "--cap-lints=allow")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            // A test reads the P4 library when it runs: mutants of it need no build.
            .env("STATEPLANE_LIBRARY_AT_RUN_TIME", "1");
        match test.target.as_str() {
            "lib" => command.arg("--lib"),
            target => command.args(["--test", target]),
        };
        let output = command.output().map_err(Error::command("cargo"))?;
        if !output.status.success() {
            return Ok(Err(tail(&output.stderr)));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        let mut messages = said.lines().filter_map(|l| serde_json::from_str(l).ok());
        let binary = messages.find_map(|message: Message| match message.profile {
            Some(Profile { test: true }) => Some(Binary {
                path: message.executable?,
                folder: message.manifest_path?.parent()?.to_owned(),
            }),
            _ => None,
        });
        Ok(binary.ok_or_else(|| "cargo built no test".to_owned()))
    }
}

impl Binary {
    /// Runs the test `name` alone, for `limit` at most.
    pub fn run(&self, name: &str, limit: Duration) -> Result<Ran, Error> {
        let begin = Instant::now();
        let output = Command::new("prlimit")
            .arg(format!("--as={MEMORY}"))
            .args(["timeout", "--signal=KILL"])
            .arg(limit.as_secs_f64().to_string())
            .arg(&self.path)
            .args(["--exact", name])
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .output()
            .map_err(Error::command("prlimit"))?;
        Ok(ran(&output, begin.elapsed(), limit))
    }
}

/// Result of the test whose process ended with `output` after `took`.
fn ran(output: &Output, took: Duration, limit: Duration) -> Ran {
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && said.contains("test result: ok. 1 passed") {
        Ran::Passed(took)
    } else if took >= limit {
        Ran::TimedOut
    } else if output.status.success() {
        Ran::Failed("there is no such test".to_owned())
    } else {
        Ran::Failed(tail(&[&output.stdout[..], &output.stderr[..]].concat()))
    }
}

/// The last lines of what a process printed.
fn tail(printed: &[u8]) -> String {
    let printed = String::from_utf8_lossy(printed);
    let lines: Vec<&str> = printed.trim_end().lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

/// The folder of the copy, and that of what is built of it, below the repository `root`.
pub fn folders(root: &Path) -> (PathBuf, PathBuf) {
    let folder = root.join("target/mutants");
    (folder.join("tree"), folder.join("target"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn output(status: i32, said: &str) -> Output {
        Output {
            status: ExitStatus::from_raw(status),
            stdout: said.into(),
            stderr: Vec::new(),
        }
    }

    #[test]
    fn only_a_test_that_ran_has_passed() {
        let (took, limit) = (Duration::from_secs(1), Duration::from_secs(2));
        let passed = output(0, "running 1 test\n\ntest result: ok. 1 passed; 0 failed");
        assert_eq!(ran(&passed, took, limit), Ran::Passed(took));
        let none = output(0, "running 0 tests\n\ntest result: ok. 0 passed; 0 failed");
        assert!(matches!(ran(&none, took, limit), Ran::Failed(_)));
        let failed = output(101 << 8, "test result: FAILED. 0 passed; 1 failed");
        assert!(matches!(ran(&failed, took, limit), Ran::Failed(_)));
        let killed = output(9, "running 1 test");
        assert_eq!(ran(&killed, limit, limit), Ran::TimedOut);
    }
}

//! The commit that `stateplane --version` names.
//!
//! It comes from the variable `STATEPLANE_COMMIT`, from `packaging/commit` of an archive made by
//! `git archive`, or, in an optimised build, from the repository. Other builds name none: the tests'
//! binaries would be linked anew after each commit.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Variable that names the commit.
const GIVEN: &str = "STATEPLANE_COMMIT";

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={GIVEN}");
    let commit = std::env::var(GIVEN)
        .ok()
        .filter(|given| !given.is_empty())
        .or_else(|| archived(&root))
        .or_else(|| in_repository(&root))
        .unwrap_or_default();
    println!("cargo::rustc-env=STATEPLANE_BUILT_COMMIT={commit}");
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=STATEPLANE_BUILT_TARGET={target}");
}

/// The commit of an archive: `git archive` puts it in the place of `$Format:%H$`.
fn archived(root: &Path) -> Option<String> {
    let file = root.join("packaging/commit");
    println!("cargo::rerun-if-changed={}", file.display());
    let text = std::fs::read_to_string(file).ok()?;
    let commit = text.trim();
    let is_commit = !commit.is_empty() && commit.chars().all(|it| it.is_ascii_hexdigit());
    is_commit.then(|| commit.to_owned())
}

/// The commit of the repository's work tree, for optimised builds.
fn in_repository(root: &Path) -> Option<String> {
    if std::env::var("PROFILE").ok()? != "release" || !root.join(".git").exists() {
        return None;
    }
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        let output = command.arg("-C").arg(root).args(arguments).output();
        let output = output.ok().filter(|it| it.status.success())?;
        let text = String::from_utf8(output.stdout).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let file = |name: &str| {
        let path = git(&["rev-parse", "--git-path", name])?;
        Some(root.join(PathBuf::from(path))).filter(|path| path.exists())
    };
    // HEAD names a branch, whose commit stands in a file of its own or with the packed ones; the log
    // of HEAD grows with each change.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    let names = ["HEAD", "logs/HEAD", "packed-refs"]
        .into_iter()
        .chain(branch.as_deref());
    for path in names.filter_map(file) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    git(&["rev-parse", "HEAD"])
}

//! Commands of README and docs: each runs here as printed, or `docs/not_run.toml` says why not, and
//! then the command line is accepted at least. With STATEPLANE_DOCS set, as in `make soak`, those that
//! take long run too. `first_program.rs` runs those of a first program.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::namespaces::{apart, search_path};
use support::{Running, errors, missing, repository, stateplane};

/// Beginnings of lines that are commands.
const PROGRAMS: [&str; 13] = [
    "stateplane",
    "target/release/stateplane",
    "make",
    "cargo",
    "ip",
    "systemctl",
    "apt-get",
    "install",
    "export",
    "pip",
    "python3",
    "kill",
    "docs/models/coordination/run.sh",
];

/// Pages with commands, beside README.
const FOLDERS: [&str; 3] = ["docs", "apps", "python"];

/// Pages whose commands `first_program.rs` runs, or that are not for readers who try things.
const ELSEWHERE: [&str; 3] = [
    "docs/first-program.md",
    "docs/decisions/",
    "docs/reference/",
];

/// Beginning of the reasons of commands that run with STATEPLANE_DOCS.
const LONG: &str = "make soak runs it";

fn pages() -> Vec<(String, String)> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                below(&path, found);
            } else if path.extension().is_some_and(|end| end == "md") {
                found.push(path);
            }
        }
    }
    let root = repository().canonicalize().unwrap();
    let mut found = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in FOLDERS {
        below(&root.join(folder), &mut found);
    }
    found.sort();
    let named = found.into_iter().map(|path| {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let text = fs::read_to_string(&path).unwrap();
        (name, text)
    });
    named
        .filter(|(name, _)| !ELSEWHERE.iter().any(|it| name.starts_with(it)))
        .collect()
}

/// Lines of code blocks without a language or of a shell, and of indented ones; those that `\` ends
/// are joined.
fn code(page: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut goes_on = false;
    for line in page.lines() {
        if let Some(language) = line.strip_prefix("```") {
            fence = match fence {
                None => Some(language),
                Some(_) => None,
            };
            continue;
        }
        let indented = line.strip_prefix("    ").filter(|_| fence.is_none());
        let Some(text) = indented.or((fence == Some("")).then_some(line)) else {
            continue;
        };
        let (text, more) = match text.trim().strip_suffix('\\') {
            Some(text) => (text.trim(), true),
            None => (text.trim(), false),
        };
        match lines.last_mut().filter(|_| goes_on) {
            Some(last) => *last = format!("{last} {text}"),
            None => lines.push(text.to_owned()),
        }
        goes_on = more;
    }
    lines
}

/// The command of a line of code without its comment, if it is one.
fn command(line: &str) -> Option<String> {
    let line = line.split(" #").next().unwrap_or(line).trim();
    let bare = line.strip_prefix("sudo ").unwrap_or(line);
    let first = bare.split_whitespace().find(|word| !word.contains('='))?;
    let more = bare.split_whitespace().nth(1).is_some();
    (PROGRAMS.contains(&first) && more).then(|| line.to_owned())
}

fn commands() -> BTreeMap<String, Vec<String>> {
    let found = pages().into_iter().map(|(name, text)| {
        let commands = code(&text)
            .iter()
            .filter_map(|line| command(line))
            .collect();
        (name, commands)
    });
    found
        .filter(|(_, commands): &(_, Vec<_>)| !commands.is_empty())
        .collect()
}

/// Reasons why commands are not run here, by page.
fn reasons() -> BTreeMap<String, BTreeMap<String, String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/docs/not_run.toml");
    toml::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn every_reason_is_one_of_a_command() {
    let commands = commands();
    let all: usize = commands.values().map(Vec::len).sum();
    assert!(all > 80, "{all} commands");
    for (page, reasons) in reasons() {
        let there: BTreeSet<&String> = commands.get(&page).into_iter().flatten().collect();
        for (command, reason) in reasons {
            assert!(there.contains(&command), "{page} has no `{command}`");
            assert!(reason.len() > 10, "{page}: `{command}`: {reason}");
        }
    }
}

#[test]
fn command_lines_that_are_not_run_are_accepted() {
    let mut count = 0;
    for (page, reasons) in reasons() {
        for line in reasons.keys() {
            let line = line.strip_prefix("sudo ").unwrap_or(line);
            let line = line.strip_prefix("target/release/").unwrap_or(line);
            let Some(words) = line.strip_prefix("stateplane ") else {
                continue;
            };
            // Words in brackets may be given; what follows `--` is a command of its own.
            let words = words.split(" -- ").next().unwrap_or(words);
            let words = words.replace(['[', ']'], "").replace("...", "");
            let words = words.split_whitespace().map(|word| word.trim_matches('\''));
            let mut words: Vec<&str> = words.collect();
            words.push("--help");
            let output = stateplane(&words).output().unwrap();
            assert!(
                output.status.success(),
                "{page}: `{line}`: {}",
                errors(&output)
            );
            count += 1;
        }
    }
    assert!(count > 30, "{count} command lines");
}

/// Bodies of the page's blocks of shell.
fn scripts(page: &str) -> Vec<&str> {
    let blocks = page.split("```sh\n").skip(1);
    blocks
        .filter_map(|block| Some(block.split_once("```")?.0))
        .collect()
}

#[test]
fn scripts_run_as_printed() {
    if let Some(missing) = missing(&["ip", "ethtool", "bash", "unshare"]) {
        eprintln!("not tried: {missing}");
        return;
    }
    let mut count = 0;
    for (page, text) in pages() {
        let scripts = scripts(&text);
        // The first of README is that of the first program.
        let first = usize::from(page == "README.md");
        for script in scripts.get(first..).unwrap_or_default() {
            let folder = tempfile::tempdir().unwrap();
            for name in ["lab", "apps", "docs"] {
                let there = repository().canonicalize().unwrap().join(name);
                std::os::unix::fs::symlink(there, folder.path().join(name)).unwrap();
            }
            let mut command = apart(&format!("set -eu\n{script}"));
            command.current_dir(folder.path());
            let output = Running::start(&mut command).finish(Duration::from_secs(120));
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success(),
                "{page}: {script}\n{said}{}",
                errors(&output)
            );
            count += 1;
        }
    }
    assert!(count > 0);
}

#[test]
fn every_other_command_runs_as_printed() {
    let reasons = reasons();
    let all = std::env::var_os("STATEPLANE_DOCS").is_some();
    let mut ran = BTreeSet::new();
    for (page, commands) in commands() {
        for line in commands {
            let reason = reasons.get(&page).and_then(|it| it.get(&line));
            let known = reason.is_some_and(|it| !(all && it.starts_with(LONG)));
            if known || !ran.insert(line.clone()) {
                continue;
            }
            println!("{page}: {line}");
            let measures = line.starts_with("cargo bench") || line.starts_with("make bench");
            assert!(
                !measures,
                "{page}: `{line}` takes minutes and needs a reason in docs/not_run.toml"
            );
            let mut command = Command::new("bash");
            command
                .args(["-c", &line])
                .current_dir(repository())
                .env("PATH", search_path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped());
            let output = Running::start(&mut command).finish(Duration::from_secs(120));
            assert!(
                output.status.success(),
                "{page}: `{line}`: {}",
                errors(&output)
            );
        }
    }
    assert!(ran.len() > 12, "{ran:?}");
}

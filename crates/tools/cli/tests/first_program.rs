//! The commands of `docs/first-program.md`, as printed, in namespaces (needs root; passes with a
//! message otherwise).
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Running, STATEPLANE, errors, missing, repository};

/// Bodies of the page's code blocks of a language.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let fence = format!("```{language}\n");
    let blocks = page.split(fence.as_str()).skip(1);
    blocks
        .filter_map(|block| Some(block.split_once("```")?.0))
        .collect()
}

#[test]
fn every_command_does_what_the_page_says() {
    if let Some(missing) = missing(&["ip", "nstat", "ethtool", "bash"]) {
        eprintln!("not tried: {missing}");
        return;
    }
    let page = fs::read_to_string(repository().join("docs/first-program.md")).expect("the page");
    // Paths of the page lead to the repository; what it makes goes to a folder of the test.
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink(repository().join("docs"), folder.path().join("docs")).unwrap();
    // Whatever the script does, nothing that it started outlives it.
    let script = format!(
        "set -eu\ntrap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n{}",
        blocks(&page, "sh").concat()
    );
    let folders = Path::new(STATEPLANE).parent().expect("the binary's folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("bash");
    command
        .args(["-c", &script])
        .current_dir(folder.path())
        .env("PATH", format!("{}:{path}", folders.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let output = Running::start(&mut command).finish(Duration::from_secs(240));
    let said = String::from_utf8_lossy(&output.stdout);
    let context = format!("{said}\n{}", errors(&output));
    assert!(output.status.success(), "{context}");
    let mut rest = said.as_ref();
    for line in blocks(&page, "text").concat().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut lines = rest.split_inclusive('\n');
        let found = lines.find(|said| said.split_whitespace().eq(words.iter().copied()));
        assert!(found.is_some(), "no {line:?} in its place in: {context}");
        rest = &rest[rest.len() - lines.map(str::len).sum::<usize>()..];
    }
}

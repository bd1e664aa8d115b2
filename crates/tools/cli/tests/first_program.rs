//! The commands of `docs/first-program.md` and of README, as printed, in namespaces (needs root; passes
//! with a message otherwise).
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::fs;
use std::time::Duration;
use support::namespaces::apart;
use support::{Running, errors, missing, repository};

/// Bodies of the page's code blocks of a language.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let fence = format!("```{language}\n");
    let blocks = page.split(fence.as_str()).skip(1);
    blocks
        .filter_map(|block| Some(block.split_once("```")?.0))
        .collect()
}

#[test]
fn the_readme_has_the_commands_of_the_page_and_they_are_few() {
    let read = |path: &str| fs::read_to_string(repository().join(path)).expect(path);
    let readme = read("README.md");
    let readme = blocks(&readme, "sh")[0];
    assert_eq!(
        readme,
        blocks(&read("docs/first-program.md"), "sh").concat()
    );
    // Ten with the package's installation.
    assert!(readme.lines().count() < 10, "{readme}");
}

#[test]
fn every_command_does_what_the_page_says() {
    if let Some(missing) = missing(&["ip", "nstat", "ethtool", "bash", "unshare"]) {
        eprintln!("not tried: {missing}");
        return;
    }
    let page = fs::read_to_string(repository().join("docs/first-program.md")).expect("the page");
    // The commands need nothing of the repository.
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!("set -eu\n{}", blocks(&page, "sh").concat());
    let mut command = apart(&script);
    command.current_dir(folder.path());
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

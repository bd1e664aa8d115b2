//! The pages of `docs/reference`, which are made from the code:
//! `UPDATE_GOLDEN=1 cargo test -p stateplane-cli --test reference` writes them anew.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

#[path = "reference/keys.rs"]
mod keys;
#[path = "reference/metrics.rs"]
mod metrics;
#[path = "reference/source.rs"]
mod source;
mod support;

use source::{Sources, root};
use support::stateplane;

/// First line of every page.
const HEAD: &str = "<!-- Made from the code by `make goldens`; a test compares them. -->\n\n";

/// Compares `page` with the file called `name`, or writes that.
fn compare(name: &str, page: &str) {
    let path = root().join("docs/reference").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, page).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let first = written
        .lines()
        .zip(page.lines())
        .find(|(old, new)| old != new);
    assert!(
        written == page,
        "docs/reference/{name} is not what the code says; `make goldens` writes it anew: {first:?}"
    );
}

#[test]
fn keys_of_files() {
    compare("keys.md", &keys::page(&Sources::read()));
}

#[test]
fn metrics_of_processes() {
    compare("metrics.md", &metrics::page(&Sources::read()));
}

#[test]
fn exit_codes() {
    let output = stateplane(&["--help"])
        .output()
        .expect("the command starts");
    let help = String::from_utf8(output.stdout).expect("text");
    let (_, list) = help
        .split_once("Exit codes:\n")
        .expect("help names the exit codes");
    let mut codes: Vec<(u8, String)> = Vec::new();
    for line in list
        .lines()
        .map(str::trim)
        .take_while(|line| !line.is_empty())
    {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (first.parse(), codes.last_mut()) {
            (Ok(code), _) => codes.push((code, rest.trim().to_owned())),
            // The terminal's width broke the line.
            (Err(_), Some((_, meaning))) => *meaning += &format!(" {line}"),
            (Err(_), None) => panic!("no code: {line}"),
        }
    }
    let numbers: Vec<u8> = codes.iter().map(|(code, _)| *code).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7, 130]);
    let mut page = HEAD.to_owned() + "# Exit codes\n\n| code | meaning |\n|---|---|\n";
    for (code, meaning) in codes {
        page += &format!("| {code} | {meaning} |\n");
    }
    compare("exit-codes.md", &page);
}

#[test]
fn codes_of_messages() {
    let mut page = HEAD.to_owned()
        + "# Codes of messages\n\n`stateplane explain CODE` shows a code's page.\n\n\
           | code | meaning |\n|---|---|\n";
    for explanation in stateplane_explain::all() {
        let (code, title) = (explanation.code, keys::cell(explanation.title));
        page += &format!("| [{code}](../../crates/compiler/explain/codes/{code}.md) | {title} |\n");
    }
    compare("codes.md", &page);
}

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
use std::path::{Path, PathBuf};
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

/// Markdown files at the root and below `docs` and `apps`.
fn pages() -> Vec<PathBuf> {
    fn below(folder: &Path, pages: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                below(&path, pages);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    let mut pages: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
        .map(|name| root().join(name))
        .into();
    for folder in ["docs", "apps", "bench/results"] {
        below(&root().join(folder), &mut pages);
    }
    pages
}

#[test]
fn links_lead_to_files() {
    let mut count = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        // Code has no links.
        let prose = text.split("```").step_by(2).flat_map(str::lines);
        let links = prose.flat_map(|line| line.split("](").skip(1));
        let targets = links.filter_map(|link| link.split([')', '#', ' ']).next());
        for target in targets.filter(|it| !it.is_empty() && !it.contains("://")) {
            let to = page.parent().expect("its folder").join(target);
            assert!(to.exists(), "{}: a link leads to {target}", page.display());
            count += 1;
        }
    }
    assert!(count > 500, "{count} links");
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

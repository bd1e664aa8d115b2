//! An application's name stands in its rooms and in one list. Code and data elsewhere take it
//! from there, but for the places of [`ALLOWED`].

use stateplane_apps::{APPS, AppId};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders and files, and their reasons to name an application.
const ALLOWED: [(&str, &str); 11] = [
    ("crates/apps/src/lib.rs", "modules of the list"),
    ("crates/apps/src/registry.rs", "the list"),
    (
        "crates/history/src/replication",
        "names of the checkers `counter` and `nat`",
    ),
    (
        "crates/proof/sim/src/model.rs",
        "the model of a switch with one application",
    ),
    (
        "crates/tools/cli/src",
        "examples of commands, and what runs if nothing else is said",
    ),
    (
        "crates/tools/eval/src/approsync",
        "the paper evaluates certain applications, those of its Table II",
    ),
    (
        "crates/tools/eval/src/experiments",
        "an experiment of the paper is one of certain applications",
    ),
    (
        "crates/tools/lab/src/scenario",
        "sketches are read as those of heavy hitters",
    ),
    (
        "lab/apps/count-min",
        "a plain program before the hosts of another application",
    ),
    (
        "lab/apps/view",
        "a plain program before the hosts of another application",
    ),
    ("lab/nat", "the demonstration is one of a NAT"),
];

/// Folders of tests, measurements and examples, which run certain applications.
const RUN: [&str; 4] = ["tests", "benches", "examples", "target"];

/// Folders where a counter is an object of P4, or of metrics.
const OWN_COUNTERS: [&str; 3] = ["crates/compiler", "crates/engine", "crates/edge"];

/// Text files of code and data below `folder`, which is a path in the repository.
fn files(root: &Path, folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::from(folder)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(root.join(&folder)).expect("a folder") {
            let entry = entry.expect("an entry of it");
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = folder.join(&name);
            if entry.path().is_dir() {
                if !RUN.contains(&name.as_str()) {
                    open.push(path);
                }
            } else if !name.ends_with(".md") && name != "tests.rs" {
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found
}

/// The text of a file without comments and unit tests.
fn said(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let code = text.split("#[cfg(test)]\nmod tests").next();
    let lines = code.unwrap_or_default().lines();
    let lines = lines.filter(|line| !line.trim_start().starts_with(['#', '/']));
    lines.map(|line| format!("{line}\n")).collect()
}

/// True if `word` stands in the text with no letter, digit or `beside` next to it.
fn has_word(text: &str, word: &str, beside: &[char]) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let joins = |c: char| c.is_alphanumeric() || beside.contains(&c);
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(joins) && !after.is_some_and(joins)
    })
}

/// True if the file at `path` names the application: as a text, a path, or, if its name is more
/// than a word, in any way.
fn names(path: &str, text: &str, app: AppId) -> bool {
    let (kebab, snake) = (app.name(), app.name().replace('-', "_"));
    let own_word = kebab == "counter" && OWN_COUNTERS.iter().any(|it| path.starts_with(it));
    let quoted = !own_word && text.contains(&format!("\"{kebab}\""));
    let module = [format!("{snake}::"), format!("mod {snake};")];
    let long = kebab.contains('-')
        && (has_word(text, kebab, &['-', '_']) || module.iter().any(|it| text.contains(it)));
    quoted
        || long
        || has_word(text, &format!("apps/{kebab}"), &['-', '_'])
        || has_word(text, &format!("{snake}.p4"), &['-', '_'])
}

#[test]
fn names_stand_in_rooms_and_in_one_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut strays = BTreeSet::new();
    let mut used = BTreeSet::new();
    let mut searched = 0;
    for path in ["crates", "lab", "p4", "fuzz"]
        .map(|folder| files(&root, folder))
        .concat()
    {
        let text = said(&root.join(&path));
        searched += 1;
        for app in APPS {
            let module = app.room().folder().replace("apps/", "crates/apps/src/");
            if path.starts_with(&module.replace('-', "_")) || !names(&path, &text, app) {
                continue;
            }
            let allowed = ALLOWED.iter().find(|(place, _)| path.starts_with(place));
            match allowed {
                Some((place, _)) => _ = used.insert(*place),
                None => _ = strays.insert(format!("{path} names {app}")),
            }
        }
    }
    assert!(searched > 500, "{searched} files");
    assert!(strays.is_empty(), "{strays:#?}");
    let allowed = ALLOWED.map(|(place, _)| place);
    assert_eq!(used, BTreeSet::from(allowed), "places that name none");
}

#[test]
fn a_name_is_found_where_it_stands() {
    let app = |name| stateplane_apps::app(name).expect("an application");
    let found = |text: &str, name| names("crates/proof/a.rs", text, app(name));
    assert!(found("app(\"nat\")", "nat"));
    assert!(found("apps/nat/nat.p4", "nat"));
    assert!(!found("natural, apps/nation, [nat]", "nat"));
    assert!(found("heavy_hitter::elements", "heavy-hitter"));
    assert!(found("a heavy-hitter's", "heavy-hitter"));
    assert!(!found("key_value(key)", "key-value"));
    assert!(!names("crates/engine/a.rs", "\"counter\"", app("counter")));
}

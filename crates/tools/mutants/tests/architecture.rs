//! Invariants of ARCHITECTURE.md that can be read off the manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Folders of `crates`: what is in one depends only on what is in it and in those before it.
const FOLDERS: [&str; 10] = [
    "invariant",
    "compiler",
    "engine",
    "wire",
    "history",
    "systems",
    "apps",
    "proof",
    "edge",
    "tools",
];

/// Folders whose crates may have clocks, sockets, threads and files.
const DO_IO: [&str; 2] = ["edge", "tools"];

struct Package {
    /// Position in [`FOLDERS`].
    folder: usize,
    /// The crates of ours that it needs, without their common prefix.
    needs: BTreeSet<String>,
}

/// All crates of ours by name, without their common prefix.
fn packages() -> BTreeMap<String, Package> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut packages = BTreeMap::new();
    for (number, folder) in FOLDERS.iter().enumerate() {
        let mut open = vec![crates.join(folder)];
        while let Some(place) = open.pop() {
            if let Ok(text) = fs::read_to_string(place.join("Cargo.toml")) {
                let manifest: toml::Table = text.parse().expect("a manifest");
                let name = manifest["package"]["name"].as_str().expect("a name");
                let name = name.strip_prefix("stateplane-").expect("our prefix");
                // The crate that a system is named after stands among the system's others, which
                // may bear its name before their own.
                let among = place.parent().is_some_and(|folder| folder.ends_with(name));
                let parts = place.iter().rev().take(2);
                let parts: Vec<_> = parts.map(|part| part.to_string_lossy()).collect();
                let of_system = parts.len() == 2 && name == format!("{}-{}", parts[1], parts[0]);
                assert!(
                    among || of_system || place.ends_with(name),
                    "{} holds {name}",
                    place.display()
                );
                let package = Package {
                    folder: number,
                    needs: needed(&manifest),
                };
                packages.insert(name.to_owned(), package);
                continue;
            }
            for entry in fs::read_dir(&place).expect("a folder of crates") {
                open.push(entry.expect("an entry").path());
            }
        }
    }
    packages
}

fn needed(manifest: &toml::Table) -> BTreeSet<String> {
    let listed = manifest.get("dependencies").and_then(|d| d.as_table());
    listed
        .into_iter()
        .flat_map(|table| table.keys())
        .filter_map(|name| name.strip_prefix("stateplane-"))
        .map(str::to_owned)
        .collect()
}

/// Everything that `from` depends on, directly or not.
fn reachable(packages: &BTreeMap<String, Package>, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(next) = open.pop() {
        for dependency in packages.get(&next).into_iter().flat_map(|p| &p.needs) {
            if found.insert(dependency.clone()) {
                open.push(dependency.clone());
            }
        }
    }
    found
}

#[test]
fn every_crate_stands_in_a_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let text = fs::read_to_string(root.join("Cargo.toml")).expect("the workspace's manifest");
    let manifest: toml::Table = text.parse().expect("a manifest");
    let listed = manifest["workspace"]["dependencies"].as_table();
    let packages = packages();
    let listed = listed
        .into_iter()
        .flat_map(|table| table.keys())
        .filter_map(|name| name.strip_prefix("stateplane-"));
    for name in listed {
        assert!(
            packages.contains_key(name),
            "{name} is in none of {FOLDERS:?}"
        );
    }
    let entries = fs::read_dir(root.join("crates")).expect("the folder of crates");
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        let ranked = FOLDERS.contains(&name.as_ref());
        assert!(ranked || !holds_crate(&path), "crates/{name} has no rank");
    }
}

/// True if a crate is in the folder or below it: caches of a former place are none.
fn holds_crate(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    folder.join("Cargo.toml").exists() || entries.flatten().any(|entry| holds_crate(&entry.path()))
}

#[test]
fn arrows_between_folders_go_one_way() {
    let packages = packages();
    let mut against = Vec::new();
    for (name, package) in &packages {
        for needed in &package.needs {
            if packages[needed].folder > package.folder {
                let (from, to) = (FOLDERS[package.folder], FOLDERS[packages[needed].folder]);
                against.push(format!("{from}/{name} depends on {to}/{needed}"));
            }
        }
    }
    assert!(against.is_empty(), "{against:#?}");
}

#[test]
fn the_switch_knows_no_protocol() {
    let packages = packages();
    for name in ["switch", "interp", "native", "runtime", "ir"] {
        assert!(packages.contains_key(name), "crate {name} is gone");
        let found = reachable(&packages, name);
        for protocol in ["wire", "store", "seal"] {
            assert!(!found.contains(protocol), "{name} depends on {protocol}");
        }
    }
}

#[test]
fn the_simulator_and_the_host_do_not_see_each_other() {
    let packages = packages();
    assert!(!reachable(&packages, "sim").contains("host"));
    assert!(!reachable(&packages, "host").contains("sim"));
}

#[test]
fn checkers_judge_histories_alone() {
    assert_eq!(reachable(&packages(), "history"), BTreeSet::new());
}

/// The evaluator depends on the syntax tree only: errors of the front end would be its errors too.
#[test]
fn the_evaluator_shares_only_the_tree_with_the_front_end() {
    let found = reachable(&packages(), "semantics");
    let allowed = ["diagnostics", "syntax"].map(str::to_owned);
    assert_eq!(found, BTreeSet::from(allowed));
}

#[test]
fn cores_depend_on_nothing_that_does_io() {
    let packages = packages();
    let does_io = |name: &String| DO_IO.contains(&FOLDERS[packages[name].folder]);
    for core in packages.keys().filter(|name| !does_io(name)) {
        let found = reachable(&packages, core);
        let found: Vec<&String> = found.iter().filter(|name| does_io(name)).collect();
        assert!(found.is_empty(), "{core} depends on {found:?}");
    }
}

//! Invariants of ARCHITECTURE.md that can be read off the manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Direct dependencies of each crate on crates of ours, by folder name.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut graph = BTreeMap::new();
    for folder in fs::read_dir(crates).expect("the folder of crates") {
        let folder = folder.expect("a folder").path();
        let Ok(text) = fs::read_to_string(folder.join("Cargo.toml")) else {
            continue;
        };
        let manifest: toml::Table = text.parse().expect("a manifest");
        let listed = manifest.get("dependencies").and_then(|d| d.as_table());
        let ours = listed
            .into_iter()
            .flat_map(|table| table.keys())
            .filter_map(|name| name.strip_prefix("stateplane-"))
            .map(str::to_owned)
            .collect();
        let name = folder.file_name().expect("a name").to_string_lossy();
        graph.insert(name.into_owned(), ours);
    }
    graph
}

/// Everything that `from` depends on, directly or not.
fn reachable(graph: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(next) = open.pop() {
        for dependency in graph.get(&next).into_iter().flatten() {
            if found.insert(dependency.clone()) {
                open.push(dependency.clone());
            }
        }
    }
    found
}

#[test]
fn the_switch_knows_no_protocol() {
    let graph = dependencies();
    for name in ["switch", "interp", "native", "target", "ir"] {
        assert!(graph.contains_key(name), "crate {name} is gone");
        let found = reachable(&graph, name);
        for protocol in ["wire", "store", "seal"] {
            assert!(!found.contains(protocol), "{name} depends on {protocol}");
        }
    }
}

#[test]
fn the_simulator_and_the_host_do_not_see_each_other() {
    let graph = dependencies();
    assert!(!reachable(&graph, "sim").contains("host"));
    assert!(!reachable(&graph, "host").contains("sim"));
}

#[test]
fn checkers_judge_histories_alone() {
    assert_eq!(reachable(&dependencies(), "history"), BTreeSet::new());
}

/// The evaluator depends on the syntax tree only: errors of the front end would be its errors too.
#[test]
fn the_evaluator_shares_only_the_tree_with_the_front_end() {
    let found = reachable(&dependencies(), "semantics");
    let allowed = ["diagnostics", "syntax"].map(str::to_owned);
    assert_eq!(found, BTreeSet::from(allowed));
}

/// Crates with clocks, sockets, threads or files: the edge, and the tools.
const DOES_IO: [&str; 9] = [
    "bench", "cli", "etcd", "eval", "fuzz", "host", "lab", "mutants", "rpc",
];

#[test]
fn cores_depend_on_nothing_that_does_io() {
    let graph = dependencies();
    let outer: BTreeSet<String> = DOES_IO.map(str::to_owned).into();
    assert!(outer.iter().all(|name| graph.contains_key(name)));
    for core in graph.keys().filter(|name| !outer.contains(*name)) {
        let found = reachable(&graph, core);
        let found: Vec<&String> = found.intersection(&outer).collect();
        assert!(found.is_empty(), "{core} depends on {found:?}");
    }
}
